/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/frame_pool.h - the fixed pool of frames and their arenas
 *
 * All arenas share one mapping; each is 64-byte aligned and has its own pages. Untouched pages cost
 * no memory, and the pool hands out the most recently returned frame first. So an oversized pool
 * costs only address space. Large arenas ask for huge pages; they lie close together, so that
 * arenas in use fill these pages. The pool belongs to the loop thread; a frame in flight belongs to
 * the team that took it off a ring.
 */
#pragma once

#include "pipeline/frame.h"

enum pl_frame_place { PL_PLACE_POOL, PL_PLACE_CALLER, PL_PLACE_FLIGHT };

struct pl_frame_private {
    uint64_t seq;       /* admission number; set before the first push */
    uint64_t given_ns;  /* when it was last given to a team; set by the one who gives it */
    struct krn_mem mem; /* arena, and inputs[] below or the frame's, outputs[] */
    const void *image_inputs[PL_FRAME_IO_MAX]; /* inputs[] for a frame with an image */
    bool probe;                /* the team that has it was to be measured anew; set with given_ns */
    enum pl_frame_place place; /* loop's own */
};

struct pl_frame_pool {
    size_t count, free_count;
    struct pl_frame *frames;           /* owned */
    struct pl_frame_private *privates; /* owned */
    struct pl_frame **free_frames;     /* owned; a stack */
    size_t least_free;                 /* fewest free frames so far; others were used */
    void *map;                         /* owned mapping */
    size_t map_bytes, stride;          /* size of the mapping; distance between arenas */
};

/** pl_frame_pool_init() - makes @count frames with arenas of @arena_bytes. Return: 0, -EINVAL,
 * -ENOMEM.
 */
int pl_frame_pool_init(struct pl_frame_pool *p, size_t count, size_t arena_bytes);
/** pl_frame_pool_deinit() - frees all frames, also those in flight. Accepts a zeroed pool. */
void pl_frame_pool_deinit(struct pl_frame_pool *p);

/** pl_frame_pool_get() - Return: a frame with cleared fields, or NULL if none is free.
 * pl_frame_pool_put() - returns it to the pool.
 */
struct pl_frame *pl_frame_pool_get(struct pl_frame_pool *p);
void pl_frame_pool_put(struct pl_frame_pool *p, struct pl_frame *f);
