/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/ipc/fetch_rig.h - files that boards fetch from each other, over fake links */
#pragma once

#include "apps/link/weights/store.h"
#include "tests/unit/ipc/fake_links.h"
#include "tests/unit/ipc/leaf_file.h"

#define FILES 3u
#define TURNS 20000

/** Where all of them keep what they have; the files; whether the head has them. */
extern char folder[];
extern struct leaf_file file[FILES];
extern bool routed[FILES];

/* A fetch and how it ended. */
struct goal {
    int times, status;
    char said[STORE_WHY_BYTES + 200];
};

/** start() - boards without anything; pair with finish(). @bytes_max: of a board's store */
void start(uint64_t bytes_max);
void finish(void);
/** done() - of fetch_begin(): notes the end in a struct goal. */
void done(void *arg, int status, const char *path_or_why);
/** begin() - a board begins a fetch. Return: of fetch_begin(). */
int begin(size_t board, const struct leaf_file *f, const char *leaves, struct goal *g);
/** run() - turns until it is done, or never. */
void run(const struct goal *g);
/** marked() - Return: leaves that are marked at @path, all right ones; -1. */
int marked(const char *path);
