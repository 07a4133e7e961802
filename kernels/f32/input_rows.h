/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/input_rows.h - what the convolution of a first layer reads: rows of an NHWC tensor,
 * of an image, or of the NCHW tensor that a COPY in front of it would make NHWC
 */
#pragma once

#include "kernels/common/nhwc.h"
#include "kernels/image/pixels.h"
#include "kernels/primitive.h"

struct krn_planes {   /* strides in elements */
    const uint8_t *x; /* floats at any address, dense along a row; NULL: the input is NHWC */
    ptrdiff_t batch, channel, row;
};

/** krn_planes_of() - Return: whether @op is a plain COPY of an f32 NCHW tensor and a convolution
 * right behind it reads the result; if so, *ret has the strides, and its x is NULL. Threads: any.
 */
bool krn_planes_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_planes *ret);

struct krn_input_rows {
    const struct krn_call *call; /* of the convolution */
    struct krn_img x;            /* its input */
    struct krn_planes planes;
    struct krn_pixel_sink pixels; /* if the call has an image */
};

/** krn_input_rows_init() - for a convolution that reads @x. @call: borrowed */
void krn_input_rows_init(struct krn_input_rows *r, const struct krn_call *call,
                         const struct krn_img *x, const struct krn_planes *planes);
/** krn_input_row() - writes the first @pixels of row @y of image @n, their channels side by side.
 * Threads: any. */
void krn_input_row(const struct krn_input_rows *r, size_t n, size_t y, size_t pixels, float *dst);
