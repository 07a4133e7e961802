/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/calibrate.h - runs an f32 model on examples to find the ranges of its values
 *
 * The ranges quantise the model at its next load (model/quant/calibration.h). MINMAX: the smallest
 * and the largest number seen. KL: counts |x| in 2048 bins and picks the limit t that minimises the
 * divergence sum p log(p / q) of the distribution p, clipped at t, from its form q quantised to 128
 * steps. Values between the last product and the model's answer are not clipped. For each channel
 * that products and pools read, extremes and means are also found; they are never clipped. Source:
 * S. Migacz, "8-bit Inference with TensorRT", GTC 2017.
 */
#pragma once

#include "kernels/kernels.h"
#include "model/quant/calibration.h"

enum krn_calibrate_method { KRN_CALIBRATE_MINMAX, KRN_CALIBRATE_KL };

struct krn_calibrate;

/**
 * krn_calibrate_new() - starts a calibration. @m: the f32 model, borrowed until
 * krn_calibrate_free()
 * Threads: one; allocates. Return: as krn_runner_init() (@ret_error says why).
 */
int krn_calibrate_new(const struct mdl_model *m, enum krn_calibrate_method method,
                      char ret_error[MDL_ERROR_MAX], struct krn_calibrate **ret);

/** krn_calibrate_free() - Accepts NULL. Return: NULL. */
struct krn_calibrate *krn_calibrate_free(struct krn_calibrate *c);

/**
 * krn_calibrate_tensor() - runs the model on one input of model.inputs[0].bytes
 * (krn_example_input() makes it from a picture)
 * Threads: the one that made @c; blocks for one frame.
 * Return: 0; -EINVAL for a wrong size, or a NaN or infinite value in the model: @ret_error names
 * it, and the example is ignored.
 */
int krn_calibrate_tensor(struct krn_calibrate *c, const void *data, size_t bytes,
                         char ret_error[MDL_ERROR_MAX]);

/**
 * krn_calibrate_finish() - makes a calibration from all examples so far; may be called more than
 * once
 * @method: KL only if krn_calibrate_new() had it. @symmetric: for the calibration. @ret: owned by
 * the caller, mdl_calibration_free(). Values that were 0 in every example have the range 0 to 0 and
 * are quantised exactly; @ret_zeros: how many. Return: 0, -ENOENT without any example, -ENOMEM.
 */
int krn_calibrate_finish(struct krn_calibrate *c, enum krn_calibrate_method method, bool symmetric,
                         size_t *ret_zeros, struct mdl_calibration **ret);

/* ---- where to clip a distribution that is quantised to 128 steps; for calibrate*.c ---- */

#define KRN_KL_BINS 2048u

/**
 * krn_kl_widen() - extends the bins to numbers up to @most > 0
 * @bins: [KRN_KL_BINS] counts of |x| in equal steps up to *@limit, all 0 while *@limit is 0. The
 * limit doubles until it reaches @most; each doubling merges neighbouring bins.
 */
void krn_kl_widen(uint64_t *bins, float *limit, float most);

/**
 * krn_kl_limit() - Return: the limit t = i bins, i = 128, 144 ... 2048, with the least sum p log(p
 * / q). p: the counts of the first i bins, with all beyond added to the last. q: the first i bins
 * in 128 groups; each non-empty bin gets the mean of its group. Both are scaled to a sum of 1. At
 * most a hundredth of the numbers is clipped: with few distinct numbers, a clipped bin that holds
 * nearly all of them would look like a good fit.
 */
float krn_kl_limit(const uint64_t *bins, float limit);
