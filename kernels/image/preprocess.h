/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image/preprocess.h - converts an image to input 0 of a model
 *
 * Every source pixel becomes 8-bit RGB (or 8-bit luma, for a model of one channel) by integer
 * arithmetic; then rows are resized in f32; then x = (p - mean) / std, rounded twice as written.
 * So without a resize the result is exact, and a constant image stays constant at any size.
 *
 * Source rows are never copied. Scratch depends only on the model's input, so images of any size
 * work with the scratch allocated when the model was loaded.
 */
#pragma once

#include <stdbool.h>

#include "kernels/common/parallel.h"
#include "kernels/image/image.h"
#include "model/model.h"

/**
 * krn_preprocess_ok() - checks whether an image can be converted into this tensor
 * @pre, @shape: as for krn_preprocess()
 * Rank 4 ([N][C][H][W] or, with pre->nhwc, [N][H][W][C]) or rank 3 (without N), f32 or u8, no
 * empty dimension. Every n gets the same image. Channels past the third get 0; letterbox bars
 * are pre->pad. Return: whether krn_preprocess() will write anything.
 */
bool krn_preprocess_ok(const struct mdl_preproc *pre, const struct mdl_tensor *shape);

/** krn_preprocess_is_plain() - Return: whether pixel (x, y) of each image of the tensor is that of
 * @img, unresized. If so, krn_pixels_copy_row() makes its rows. @shape: krn_preprocess_ok(). */
bool krn_preprocess_is_plain(const struct mdl_preproc *pre, const struct mdl_tensor *shape,
                             const struct krn_image *img);

/** krn_preprocess_scratch_bytes() - Return: scratch for input 0 of @m and a team of @width;
 * krn_net_scratch_bytes() includes it. */
size_t krn_preprocess_scratch_bytes(const struct mdl_model *m, size_t width);

/** krn_preprocess_rows() - Return: rows of the tensor, over all its images. @pre, @shape:
 * krn_preprocess_ok(). Threads: any. */
size_t krn_preprocess_rows(const struct mdl_preproc *pre, const struct mdl_tensor *shape);

/**
 * krn_preprocess() - converts, resizes and normalises an image
 * @pre, @shape: krn_preprocess_ok(), else nothing is written. @dst: element 0 of that tensor.
 * @exec: rows are shared among the team; the scratch has krn_preprocess_scratch_bytes()
 *
 * Resizing is bilinear with half-pixel centres, or by area if it shrinks more than 2x. A model of
 * one channel gets luma (BT.601). NV12 and YUYV are BT.601 of limited range.
 * Threads: the team's leader. Never allocates.
 */
void krn_preprocess(const struct krn_image *img, const struct mdl_preproc *pre,
                    const struct mdl_tensor *shape, void *dst, const struct krn_exec *exec);

/** krn_preprocess_slice() - as krn_preprocess(), of rows @begin up to but not including @end, which
 * is at most krn_preprocess_rows(). Slices that cover all rows make the same tensor. */
void krn_preprocess_slice(const struct krn_image *img, const struct mdl_preproc *pre,
                          const struct mdl_tensor *shape, void *dst, size_t begin, size_t end,
                          const struct krn_exec *exec);
