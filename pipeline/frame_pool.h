/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/frame_pool.h - the frames of a pipeline: a fixed pool of them with their arenas, and
 * those that are finished, until it is their turn
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
    uint64_t released_ns; /* by its client's period; due_ns counts from then; set on admission */
    uint64_t given_ns;    /* when it was last given to a team; set by the one who gives it */
    struct krn_mem mem;   /* arena, and inputs[] below or the frame's, outputs[] */
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

/*
 * ---- takes finished frames in any order and releases them in admission order ----
 *
 * A window with one slot per frame of the pool, indexed by admission number. Frames in flight have
 * numbers next .. next + frames - 1, so no two share a slot, and epochs do not matter. Only the
 * loop thread uses it.
 */
struct pl_sequencer {
    uint64_t next;           /* number of the next frame to release */
    size_t mask;             /* slots - 1 */
    struct pl_frame **slots; /* owned; the frames are borrowed */
};

/** pl_sequencer_init() - makes a window for at most @frames frames in flight. Return: 0, -EINVAL,
 * -ENOMEM. */
int pl_sequencer_init(struct pl_sequencer *s, size_t frames);
void pl_sequencer_deinit(struct pl_sequencer *s);

/** pl_sequencer_put() - adds finished frame @f with number @seq. Each number comes once. */
void pl_sequencer_put(struct pl_sequencer *s, uint64_t seq, struct pl_frame *f);
/** pl_sequencer_take() - Return: the next frame in order, or NULL if it is not finished. */
struct pl_frame *pl_sequencer_take(struct pl_sequencer *s);
