/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/dw.h - rows of a depthwise convolution, for primitives that are one or begin or end with
 * one
 *
 * Channels lie side by side in vectors; weights are packed [vector][tap][lane].
 */
#pragma once

#include "kernels/common/conv_common.h"
#include "kernels/common/vec_math.h"

struct krn_dw {
    struct krn_conv c; /* x.row and x.pixel are those of the memory that is read */
    struct krn_epilogue epilogue;
    const float *packed;
    size_t y_pixel; /* elements between pixels of what is written */
};

/** krn_dw_of() - Return: whether @op is a depthwise convolution; then *ret is set. */
static inline bool krn_dw_of(const struct mdl_model *m, const struct mdl_op *op,
                             struct krn_conv *ret)
{
    return krn_conv_of(m, op, ret) && ret->groups == ret->x.c && ret->cg == 1 && ret->og == 1;
}

/* floats of packed weights */
static inline size_t krn_dw_packed(const struct krn_conv *c)
{
    return c->taps * ((c->x.c + KRN_VL - 1) / KRN_VL * KRN_VL);
}
/** krn_dw_pack() - weights of @op, krn_dw_of() which is @c, with its scale */
void KRN_ISA_FN(krn_dw_pack)(const struct mdl_model *m, const struct mdl_op *op,
                             const struct krn_conv *c, float *dst);

/**
 * krn_dw_row() - some channels of output row @oy
 * @image: where pixel (0, 0) of the image is or would be; only rows under the window are read
 * @y: pixel 0 of the row, channel 0     @first: number of that pixel, for the residual
 * @channels: the first a multiple of KRN_VL, the last too or that of the image
 * Threads: any; never allocates.
 */
void KRN_ISA_FN(krn_dw_row)(const struct krn_dw *d, const float *image, size_t oy, float *y,
                            size_t first, struct krn_range channels);
