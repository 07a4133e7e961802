/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/frame.h - the fixed pool of frames and their arenas
 *
 * All arenas are one mapping, each 64-byte aligned and of its own pages; pages that no frame ever
 * touched cost nothing, and the pool hands out the frame given back last, so a pool that is larger
 * than needed costs address space only. Large arenas ask for huge pages; they lie close together,
 * so that what is in use fills those. Belongs to the loop thread; a frame in flight belongs to the
 * team that took it off a ring.
 */
#pragma once

#include "pipeline/pipeline.h"

enum pl_frame_place { PL_PLACE_POOL, PL_PLACE_CALLER, PL_PLACE_FLIGHT };

struct pl_frame_private {
    uint64_t seq;       /* admission number; set before the first push */
    struct krn_mem mem; /* arena, and inputs[] below or the frame's, outputs[] */
    const void *image_inputs[PL_FRAME_IO_MAX]; /* inputs of a frame that comes as an image */
    enum pl_frame_place place;                 /* loop's own */
};

struct pl_frame_pool {
    size_t count, free_count;
    struct pl_frame *frames;           /* owned */
    struct pl_frame_private *privates; /* owned */
    struct pl_frame **free_frames;     /* owned; a stack */
    size_t least_free;                 /* that there ever were: the others' arenas are in use */
    void *map;                         /* owned mapping */
    size_t map_bytes, stride;          /* of all, from one arena to the next */
};

/** pl_frame_pool_init() - @count frames with arenas of @arena_bytes. Return: 0, -EINVAL, -ENOMEM.
 */
int pl_frame_pool_init(struct pl_frame_pool *p, size_t count, size_t arena_bytes);
/** pl_frame_pool_deinit() - frees all, whoever has them. A zeroed pool is fine. */
void pl_frame_pool_deinit(struct pl_frame_pool *p);

/** pl_frame_pool_get() - a frame with cleared fields, or NULL. pl_frame_pool_put() - gives it back.
 */
struct pl_frame *pl_frame_pool_get(struct pl_frame_pool *p);
void pl_frame_pool_put(struct pl_frame_pool *p, struct pl_frame *f);
