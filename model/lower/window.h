/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/window.h - kernel, stride, dilation and padding attributes of convolutions and pools;
 * for model/lower/ only
 */
#pragma once

#include "model/lower/lowering.h"

/**
 * mdl_window_read() - reads and checks the attributes: 1..2^31-1 for kernels, strides and
 * dilations, 0..2^31-1 for pads
 * @spatial: number of spatial dims, 1..3
 * @kernel: the weights' kernel dims, or NULL for a pool (kernel_shape is then required)
 * @ret_auto: SAME_UPPER 1, SAME_LOWER 2, VALID 3, else 0.
 */
void mdl_window_read(struct mdl_lower *l, size_t spatial, const size_t *kernel,
                     struct mdl_window *ret, int *ret_auto);

/** mdl_window_of() - the same, with the pads of input dims @in; @ret_out: output size of each dim.
 * @ret_end: pads at the end before ceil_mode, or NULL. Refuses a kernel larger than the padded
 * input. */
void mdl_window_of(struct mdl_lower *l, size_t spatial, const size_t *kernel, bool ceil_mode,
                   const size_t *in, struct mdl_window *ret, size_t *ret_out, size_t *ret_end);
/** mdl_window_pool() - window and dims of a pool of input 0, an image. Refuses windows that lie in
 * the pads. */
void mdl_window_pool(struct mdl_lower *l, struct mdl_ir_op *op, size_t *ret_dim);
/** mdl_window_image() - refuses an input 0 that is not of rank @least to @most. */
void mdl_window_image(struct mdl_lower *l, size_t least, size_t most);
enum { MDL_PAD_NOTSET, MDL_PAD_SAME_UPPER, MDL_PAD_SAME_LOWER, MDL_PAD_VALID };
