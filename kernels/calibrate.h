/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/calibrate.h - runs an f32 model on examples and finds the ranges of its values
 *
 * The ranges quantise the model at its next load (model/calibration.h). By extremes (MINMAX): the
 * smallest and the largest number ever seen. By entropy (KL): |x| is counted in 2048 bins, and the
 * limit t is taken at which the distribution clipped at t loses least when it is told in 128 steps:
 * the divergence sum p log(p / q) of the clipped distribution p from its quantised form q is least.
 * Source: S. Migacz, "8-bit Inference with TensorRT", GTC 2017.
 */
#pragma once

#include "kernels/kernels.h"
#include "model/calibration.h"

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
 * krn_calibrate_image() - runs the model on one image, prepared as the model's sidecar says
 * krn_calibrate_tensor() - or on the bytes of its one input, @bytes as model.inputs[0] has
 * Threads: the one that made @c; runs for as long as a frame takes.
 * Return: 0; -EINVAL for an impossible image, another size, a model with several inputs, or a
 * value that is NaN or infinite in the model: then @ret_error names it, and the example counts for
 * nothing.
 */
int krn_calibrate_image(struct krn_calibrate *c, const struct krn_image *img,
                        char ret_error[MDL_ERROR_MAX]);
int krn_calibrate_tensor(struct krn_calibrate *c, const void *data, size_t bytes,
                         char ret_error[MDL_ERROR_MAX]);

/**
 * krn_calibrate_folder() - every *.ppm (P6, 8 bits) and *.f32 (the input's raw numbers) in @path,
 * in order of name; what else lies there is passed over
 * @ret_count: how many counted. @ret_note: the first file that did not and why, or "".
 * Return: 0, -errno of the folder, -ENOENT where no file counted (@ret_error says why).
 */
int krn_calibrate_folder(struct krn_calibrate *c, const char *path, size_t *ret_count,
                         char ret_note[MDL_ERROR_MAX], char ret_error[MDL_ERROR_MAX]);

/**
 * krn_calibrate_finish() - the ranges of all that was seen
 * @symmetric: of the calibration. @ret: owned by the caller, mdl_calibration_free(). Values that
 * were 0 in every example have the range 0 to 0 and are quantised exactly; @ret_zeros: how many.
 * Return: 0, -ENOENT without any example, -ENOMEM.
 */
int krn_calibrate_finish(struct krn_calibrate *c, bool symmetric, size_t *ret_zeros,
                         struct mdl_calibration **ret);
