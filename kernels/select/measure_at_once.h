/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/measure_at_once.h - measures what it gains to compute several frames at once
 *
 * A primitive that can (krn_primitive.frames_at_once) reads its weights once for all frames. Whether
 * that gains depends on where the weights come from: between two runs of an op a frame reads all
 * other weights, so as many bytes are read in front of every sample here, at most 64 MiB. 1, 2, 4
 * and 8 frames are timed in turns, so that what disturbs one of them disturbs the others alike.
 */
#pragma once

#include <stdatomic.h>

#include "kernels/choice.h"

#define KRN_AT_ONCE 3u /* 2, 4 and 8 frames */

struct krn_at_once_options {
    int cpu;                  /* core to measure on; < 0: wherever the thread runs */
    uint64_t budget_ns;       /* approximate; each op is timed three times at least */
    const _Atomic bool *stop; /* borrowed, may be NULL; true: stop early */
};

/** krn_at_once_gains() - Return: op @op computes several frames at once with this choice, with
 * weights that are worth it. */
bool krn_at_once_gains(const struct mdl_model *m, const struct krn_choice *c, size_t op);
/** krn_at_once_any() - Return: some op does. */
bool krn_at_once_any(const struct mdl_model *m, const struct krn_choice *c);

/**
 * krn_measure_at_once() - times the choice's primitives for 1, 2, 4 and 8 frames at once
 * @ret: [op_count][KRN_AT_ONCE]: the time a frame of 2, 4, 8 frames at once over that of one frame:
 * the median over the turns of t(n) / (n t(1)); 1 for ops that run frame after frame
 * Threads: any; blocks for the budget, starts one thread, packs one op at a time.
 * Return: 0, -ENOMEM, -EAGAIN (no thread), -ECANCELED (stopped), -EOPNOTSUPP.
 */
int krn_measure_at_once(const struct mdl_model *m, const struct krn_choice *c,
                        const struct krn_at_once_options *o, double (*ret)[KRN_AT_ONCE]);
