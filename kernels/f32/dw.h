/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/dw.h - rows of a depthwise convolution, for primitives that contain one
 *
 * Channels lie side by side in vectors; weights are packed [vector][tap][lane].
 */
#pragma once

#include "kernels/common/conv_common.h"
#include "kernels/common/vec.h"

struct krn_dw {
    /* x.row, x.pixel and y.pixel are strides of the memory that is read and written */
    struct krn_conv c;
    struct krn_epilogue epilogue;
    const float *packed;
};

/** krn_dw_of() - Return: whether @op is a depthwise convolution; then *ret is set. */
static inline bool krn_dw_of(const struct mdl_model *m, const struct mdl_op *op,
                             struct krn_conv *ret)
{
    return krn_conv_of(m, op, ret) && krn_conv_is_depthwise(ret);
}

/* floats of packed weights */
static inline size_t krn_dw_packed(const struct krn_conv *c)
{
    return c->taps * ((c->x.c + KRN_VL - 1) / KRN_VL * KRN_VL);
}
/** krn_dw_pack() - packs the weights of @op, multiplied by its scale. @c: from krn_dw_of() */
void KRN_ISA_FN(krn_dw_pack)(const struct mdl_model *m, const struct mdl_op *op,
                             const struct krn_conv *c, float *dst);

/**
 * krn_dw_row() - computes some channels of output row @oy
 * @image: address of the image's pixel (0, 0), which may be virtual; only rows under the window are
 * read
 * @y: pixel 0 of the row, channel 0     @first: number of that pixel, for the residual
 * @channels: begin is a multiple of KRN_VL; end, too, or the image's last channel
 * Threads: any; never allocates.
 */
void KRN_ISA_FN(krn_dw_row)(const struct krn_dw *d, const float *image, size_t oy, float *y,
                            size_t first, struct krn_range channels);
