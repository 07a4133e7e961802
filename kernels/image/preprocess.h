/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/preprocess.h - what krn_preprocess() needs to be asked beforehand
 *
 * Every source pixel becomes 8-bit RGB (or 8-bit luma, for a model of one channel) by integer
 * arithmetic; then rows are resized in f32; then x = (p - mean) / std, rounded twice as written.
 * So without a resize the result is exact, and a constant image stays constant at any size.
 *
 * Rows of the source are never copied: scratch depends on the model's input alone, so an image of
 * any size can be taken with what was allocated when the model was loaded.
 */
#pragma once

#include "kernels/kernels.h"

/**
 * krn_preprocess_ok() - can an image be brought into this tensor
 * @pre, @shape: as for krn_preprocess()
 * Rank 4 ([N][C][H][W] or, with pre->nhwc, [N][H][W][C]) or rank 3 (without N), f32 or u8, no
 * empty dimension. Every n gets the same image. Channels past the third get 0; a letterbox's bars
 * are mid-grey (128), as darknet's are. Return: whether krn_preprocess() will write anything.
 */
bool krn_preprocess_ok(const struct mdl_preproc *pre, const struct mdl_tensor *shape);

/** krn_preprocess_is_plain() - is pixel (x, y) of each image of the tensor that of @img, unresized?
 * Then krn_pixels_copy_row() makes its rows. @shape: krn_preprocess_ok(). */
bool krn_preprocess_is_plain(const struct mdl_preproc *pre, const struct mdl_tensor *shape,
                             const struct krn_image *img);

/** krn_preprocess_scratch_bytes() - scratch for input 0 of @m and a team of @width; a part of what
 * krn_net_scratch_bytes() says. */
size_t krn_preprocess_scratch_bytes(const struct mdl_model *m, size_t width);
