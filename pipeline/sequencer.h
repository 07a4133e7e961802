/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/sequencer.h - finished frames in any order in, in admission order out
 *
 * A window of as many slots as there are frames, indexed by admission number. Frames in flight have
 * numbers next .. next + frames - 1, so two of them never meet in one slot, and epochs do not
 * matter. Belongs to the loop thread alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pl_frame;

struct pl_sequencer {
    uint64_t next;           /* number of the frame that goes out next */
    size_t mask;             /* slots - 1 */
    struct pl_frame **slots; /* owned; the frames are borrowed */
};

/** pl_sequencer_init() - for at most @frames frames in flight. Return: 0, -EINVAL, -ENOMEM. */
int pl_sequencer_init(struct pl_sequencer *s, size_t frames);
void pl_sequencer_deinit(struct pl_sequencer *s);

/** pl_sequencer_put() - @f, number @seq, is finished. Each number comes once. */
void pl_sequencer_put(struct pl_sequencer *s, uint64_t seq, struct pl_frame *f);
/** pl_sequencer_take() - the next frame in order, or NULL while it is not finished. */
struct pl_frame *pl_sequencer_take(struct pl_sequencer *s);
