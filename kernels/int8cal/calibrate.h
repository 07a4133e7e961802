/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/calibrate.h - runs an f32 model on examples and finds the ranges of its values
 *
 * The ranges quantise the model at its next load (model/calibration.h). By extremes (MINMAX): the
 * smallest and the largest number ever seen. By entropy (KL): |x| is counted in 2048 bins, and the
 * limit t is taken at which the distribution clipped at t loses least when it is told in 128 steps:
 * the divergence sum p log(p / q) of the clipped distribution p from its quantised form q is least.
 * What the model's answer is read from, back to the last product, is not clipped. Of each channel
 * of what products and pools read, extremes and means are found too, never clipped. Source: S.
 * Migacz, "8-bit Inference with TensorRT", GTC 2017.
 */
#pragma once

#include "kernels/kernels.h"
#include "model/quant/calibration.h"

enum krn_calibrate_method { KRN_CALIBRATE_MINMAX, KRN_CALIBRATE_KL };

struct krn_calibrate;

/**
 * krn_calibrate_new() - @m: the f32 model, borrowed until krn_calibrate_free()
 * Threads: one; allocates. Return: 0, -ENOMEM, -EOPNOTSUPP (@ret_error says why).
 */
int krn_calibrate_new(const struct mdl_model *m, enum krn_calibrate_method method,
                      char ret_error[MDL_ERROR_MAX], struct krn_calibrate **ret);

/** krn_calibrate_free() - Takes NULL. Return: NULL. */
struct krn_calibrate *krn_calibrate_free(struct krn_calibrate *c);

/**
 * krn_calibrate_tensor() - runs the model on one input, @bytes as model.inputs[0] has
 * (krn_example_input() makes one of a picture)
 * Threads: the one that made @c; runs for as long as a frame takes.
 * Return: 0; -EINVAL for another size, a model with several inputs, or a value that is NaN or
 * infinite in the model: then @ret_error names it, and the example counts for nothing.
 */
int krn_calibrate_tensor(struct krn_calibrate *c, const void *data, size_t bytes,
                         char ret_error[MDL_ERROR_MAX]);

/**
 * krn_calibrate_finish() - the ranges of all that was seen; may be called more than once
 * @method: KL only where krn_calibrate_new() had it. @symmetric: of the calibration. @ret: owned by
 * the caller, mdl_calibration_free(). Values that were 0 in every example have the range 0 to 0 and
 * are quantised exactly; @ret_zeros: how many. Return: 0, -ENOENT without any example, -ENOMEM.
 */
int krn_calibrate_finish(struct krn_calibrate *c, enum krn_calibrate_method method, bool symmetric,
                         size_t *ret_zeros, struct mdl_calibration **ret);
