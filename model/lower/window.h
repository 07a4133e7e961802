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
 * @ret_auto: SAME_UPPER 1, SAME_LOWER 2, VALID 3, else 0. Return: 0, -EBADMSG, -EOPNOTSUPP.
 */
int mdl_window_read(struct mdl_lower *l, size_t spatial, const size_t *kernel,
                    struct mdl_window *ret, int *ret_auto);

/** mdl_window_resolve() - computes the pads from auto_pad and ceil_mode; @ret_out: output size of
 * each dim. Refuses a kernel larger than the padded input. */
int mdl_window_resolve(struct mdl_lower *l, struct mdl_window *w, int auto_pad, bool ceil_mode,
                       const size_t *in, size_t *ret_out, size_t *ret_pad_end_model);

enum { MDL_PAD_NOTSET, MDL_PAD_SAME_UPPER, MDL_PAD_SAME_LOWER, MDL_PAD_VALID };
