/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/sequencer.h - takes finished frames in any order and releases them in admission order
 *
 * A window with one slot per frame of the pool, indexed by admission number. Frames in flight have
 * numbers next .. next + frames - 1, so no two share a slot, and epochs do not matter. Only the
 * loop thread uses it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pl_frame;

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
