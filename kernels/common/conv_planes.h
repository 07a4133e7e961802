/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/conv_planes.h - a COPY that would make an NCHW tensor NHWC for the convolution
 * behind it, which reads the planes itself
 *
 * Shared by the primitives that are such a pair. They say of the pair what their convolution says
 * of itself: KRN_BYTES_OF_NEXT() defines that.
 */
#pragma once

#include "kernels/primitive.h"

struct krn_planes {   /* strides in elements */
    const uint8_t *x; /* floats at any address, dense along a row; NULL: the input is NHWC */
    ptrdiff_t batch, channel, row;
};

/** krn_planes_of() - Return: whether @op is a plain COPY of an f32 NCHW tensor and a convolution
 * right behind it reads the result; if so, *ret has the strides, and its x is NULL. Threads: any.
 */
bool krn_planes_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_planes *ret);

/** KRN_BYTES_OF_NEXT() - next_packed_bytes(), next_pack() and next_scratch_bytes(), which ask
 * packed_bytes(), pack() and scratch_bytes() of their file about the op behind theirs */
#define KRN_BYTES_OF_NEXT()                                                                        \
    static size_t next_packed_bytes(const struct mdl_model *m, const struct mdl_op *op)            \
    {                                                                                              \
        return packed_bytes(m, op + 1);                                                            \
    }                                                                                              \
    static void next_pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)           \
    {                                                                                              \
        pack(m, op + 1, dst);                                                                      \
    }                                                                                              \
    static size_t next_scratch_bytes(const struct mdl_model *m, const struct mdl_op *op,           \
                                     size_t width)                                                 \
    {                                                                                              \
        return scratch_bytes(m, op + 1, width);                                                    \
    }
