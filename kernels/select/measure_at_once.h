/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/measure_at_once.h - measures what it gains to compute several frames at once
 *
 * A primitive that can (krn_primitive.frames_at_once) reads its weights once for all frames.
 * Whether that gains depends on where the weights come from: between two runs of an op a frame
 * reads all other weights, so as many bytes are read in front of every sample here, at most 64
 * MiB. 1, 2, 4 and 8 frames are timed in turns, and so are two primitives that are compared, so
 * that what disturbs one of them disturbs the others alike: other programs that read memory, or a
 * clock that moves. Times are of the thread's clock: who else runs on the core takes none of it.
 */
#pragma once

#include <stdatomic.h>

#include "kernels/select/choose.h"

#define KRN_AT_ONCE 3u /* 2, 4 and 8 frames */

struct krn_at_once_options {
    int cpu;                  /* core to measure on; < 0: wherever the thread runs */
    uint64_t budget_ns;       /* approximate; each op is timed three times at least */
    const _Atomic bool *stop; /* borrowed, may be NULL; true: stop early */
    uint64_t packed_max;      /* bytes that two primitives may pack to be compared */
    /* tests: the time of a run of @p for so many frames instead of @ns, which it took */
    uint64_t (*took_ns)(const struct krn_primitive *p, size_t frames, uint64_t ns);
};

/** krn_at_once_gains() - Return: op @op computes several frames at once with this choice, with
 * weights that are worth it. */
bool krn_at_once_gains(const struct mdl_model *m, const struct krn_choice *c, size_t op);
/** krn_at_once_any() - Return: some op does. */
bool krn_at_once_any(const struct mdl_model *m, const struct krn_choice *c);

/**
 * krn_at_once_candidates() - the primitives of op @op that may compute several frames at once
 *
 * Reading weights takes all primitives about the same time, so which of them is the fastest for one
 * frame is often a matter of noise, but not how well they do with several. Beside the chosen one
 * they are the fastest of those that are slower by at most KRN_AT_ONCE_TIE_MAX and twice the
 * uncertainty of the difference.
 * @t: times of @m; NULL: only the chosen one. @ret: ns, sigma_ns and bytes are 0 without a time.
 * Return: how many.
 */
#define KRN_AT_ONCE_TIE 0.10
#define KRN_AT_ONCE_TIE_MAX 0.25
#define KRN_AT_ONCE_CANDIDATES 3u
size_t krn_at_once_candidates(const struct mdl_model *m, const struct krn_times *t,
                              const struct krn_choice *c, size_t op,
                              struct krn_time ret[KRN_AT_ONCE_CANDIDATES]);

/**
 * krn_at_once_takes() - Return: a primitive may take the place of the one chosen for one frame
 * @now_gain, @to_gain: of the chosen one and of the other, the time a frame of 4 frames at once
 * over that of one. @lone: the time of the other's lone frame over that of the chosen one, from
 * turns
 *
 * It must be faster with 4 frames. With one it may be slower by KRN_AT_ONCE_TIE; where 4 frames
 * take at most KRN_AT_ONCE_WORTH of their time, by KRN_AT_ONCE_TIE_MAX. Pure.
 */
#define KRN_AT_ONCE_WORTH 0.67
bool krn_at_once_takes(double now_gain, double lone, double to_gain);

/**
 * krn_measure_at_once() - times 1, 2, 4 and 8 frames at once
 * @t: as for krn_at_once_candidates(). Each candidate is timed in turns with the chosen one. Of
 * those that krn_at_once_takes() permits, the one is chosen that takes least with 4 frames; its
 * time is the chosen one's, times what the turns say. Two that would pack more than packed_max are
 * not compared.
 * @c: the choice; changes with it. @ret: [op_count][KRN_AT_ONCE]: the time a frame of 2, 4, 8
 * frames at once over that of one frame: the median over the turns of t(n) / (n t(1)); 1 for ops
 * that run frame after frame
 *
 * Threads: any; blocks for the budget, starts one thread, packs two primitives of one op at a
 * time.
 * Return: 0, -ENOMEM, -EAGAIN (no thread), -ECANCELED (stopped), -EOPNOTSUPP; if not 0, @c is
 * valid, and may have changed.
 */
int krn_measure_at_once(const struct mdl_model *m, const struct krn_times *t,
                        const struct krn_at_once_options *o, struct krn_chosen *c,
                        double (*ret)[KRN_AT_ONCE]);
