/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/hop/hop_private.h - what hop.c and frames.c share */
#pragma once

#include <sys/queue.h>

#include "apps/link/hop/hop.h"
#include "apps/link/hop/segments.h"

#define HOP_PLACES_MAX 64u

struct hop_next {
    size_t board;
    int share, due; /* due: the next frame goes to the board with the largest */
};
/* This board's part of an epoch. */
struct hop_place {
    uint64_t number; /* another for each place there ever was; 0: free */
    uint64_t since_ns;
    size_t head;
    uint32_t stream, epoch;
    uint16_t hop;
    bool last;
    uint32_t from;                  /* bits of boards that send to it; hop 0: the head does */
    uint8_t border[LNK_HASH_BYTES]; /* as the head cuts the model; zeros: unknown */
    struct segment *segment;        /* held */
    size_t next_count;
    struct hop_next next[BRD_SHARE_MAX];
};
/* A frame that waits for a slot of its segment. A route has more frames on their way than a board's
 * daemon takes at once; those of the slowest hop wait here, bounded in frames and bytes. */
struct hop_waiting {
    TAILQ_ENTRY(hop_waiting) linked;
    uint64_t place; /* number of the hop's place */
    uint64_t came_ns;
    size_t bytes;
    struct lnk_message message; /* a FRAME; its tail and parts are in here, too */
    struct lnk_bytes part[LNK_PARTS_MAX];
    uint8_t data[]; /* of the tail, then of the parts */
};
struct hop_queue {
    TAILQ_HEAD(, hop_waiting) frames;
    size_t bytes;
    uint32_t count;
};
struct hops {
    struct hop_place place[HOP_PLACES_MAX];
    uint64_t last_number;
    struct hop_queue queue;
};

/** hop_places() - Return: the first place that is not free; the next one behind @before; NULL. */
struct hop_place *hop_places(struct hops *h, struct hop_place *before);
/** hop_drop_waiting() - takes a frame out of the queue and frees it. */
void hop_drop_waiting(struct hop_queue *q, struct hop_waiting *w);
