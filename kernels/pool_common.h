/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/pool_common.h - what pools have in common: shape and divisor, checked once
 */
#pragma once

#include "kernels/common/epilogue.h"

struct krn_pool {
    struct krn_img x, y;
    struct krn_win win;
    bool max;
    bool fixed; /* divide by the taps in the padded extent instead of those in the image */
    size_t extent_h, extent_w; /* of the padded extent, from the first padded row and column */
    bool epilogue;
};

/** krn_pool_shape_of() - Return: whether @op is a pool of NHWC images of any type, without indices;
 * then *ret is set, all but the epilogue. */
bool krn_pool_shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *ret);
/** krn_pool_of() - Return: whether it is one of f32 images whose epilogue the fast code knows; then
 * *ret is set. */
bool krn_pool_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *ret);

/** krn_pool_within() - taps of a window from @padded_first on, counted with the padding, that lie
 * before @extent. */
size_t krn_pool_within(size_t padded_first, size_t taps, size_t dilation, size_t extent);
