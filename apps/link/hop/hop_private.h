/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/hop/hop_private.h - what hop.c and hop_frames.c share */
#pragma once

#include "apps/link/hop/hop.h"
#include "apps/link/hop/queue.h"
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
    enum brd_encoding takes, sends; /* of borders: the hop before, and this one */
    uint8_t border[LNK_HASH_BYTES]; /* as the head cuts the model; zeros: unknown */
    struct segment *segment;        /* held */
    size_t next_count;
    struct hop_next next[BRD_SHARE_MAX];
};
struct hops {
    struct hop_place place[HOP_PLACES_MAX];
    uint64_t last_number;
    struct hop_queue queue;
};
