/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/ipc/fake_links.h - a few boards in one thread, and a wire between them that delays,
 * reorders, doubles and changes what it carries
 *
 * Board 0 is the head; for it, peer i is board i + 1. For others, peer 0 is the head.
 */
#pragma once

#include "apps/link/transport/code.h"
#include "apps/link/weights/fetch.h"
#include "tests/harness.h"

#define NODES 3u

struct wire {
    unsigned flip, twice, lose; /* a LEAF of so many; 0: none */
    bool any_order;             /* else each lane's order is kept */
    size_t queue_bytes_max;     /* to one peer; 0: any */
    /* counts */
    unsigned wants, leaves, lists, refusals, flipped, lost, full;
};
extern struct wire wire;

struct node {
    struct lnk_transport base; /* first */
    struct link link;
};
extern struct node node[NODES];

/* Of the test: the files that boards serve. */
fetch_path links_path;

/** links_begin() - all boards are there; @folder: of board i's store is @folder/i. */
void links_begin(const char *folder, uint64_t bytes_max);
void links_end(void);
/** links_restart() - of board @i: another process. */
void links_restart(size_t i);
/** links_cut(), links_join() - between the head and board @i; what is on its way is lost. */
void links_cut(size_t i);
void links_join(size_t i);
/** links_turn() - delivers something, if there is something; then all boards have a turn. Waits for
 * threads when nothing is on its way. Return: whether something is. */
bool links_turn(void);
/** links_pass() - lets time pass. */
void links_pass(uint64_t ns);
