/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/conv_common.h - what the convolution and product primitives have in common
 *
 * The shape of a 2-D (or 1-D) convolution on NHWC images and of a product with constant weights,
 * checked once, and the weights read through their strides with the batch norm's scale multiplied
 * in.
 */
#pragma once

#include "kernels/common/epilogue.h"

struct krn_conv {
    struct krn_img x, y; /* y is flat */
    struct krn_win win;
    size_t groups, cg, og; /* channels of one group in and out */
    size_t taps;           /* kh kw */
    ptrdiff_t tap_stride;  /* of the weights, in elements: tap = ky kw + kx */
};

/** krn_conv_of() - Return: whether @op is a convolution of flat-output f32 NHWC images with
 * constant f32 weights and an epilogue that the fast code knows; then *ret is set. */
bool krn_conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *ret);

/* Where packed weights lie, in floats: tap t of input channel c for output o of group g, c and o
 * counted inside the group, is at g*group + o*o + c*c + t*tap. */
struct krn_conv_order {
    size_t group, o, c, tap;
};
/** krn_conv_pack() - the weights of @op, batch norm's scale multiplied in
 * @c: of krn_conv_of(). @dst: groups og cg taps floats. Threads: any. */
void krn_conv_pack(const struct mdl_model *m, const struct mdl_op *op, const struct krn_conv *c,
                   const struct krn_conv_order *order, float *dst);

struct krn_product { /* y[m][n] = sum_k a[m][k] b[k][n] */
    size_t m, n, k;
    size_t lda, ldy;            /* elements between rows of a and y; inside a row they are dense */
    ptrdiff_t b_k, b_n;         /* strides of b in elements */
    float alpha;                /* GEMM's */
    bool b_const;               /* scale and shift may be given */
    struct krn_img y_as_pixels; /* y as m pixels of n channels */
};

/** krn_product_of() - Return: whether @op (GEMM without c, or MATMUL of rank-2 b) is one plain f32
 * product; then *ret is set. */
bool krn_product_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *ret);
/** krn_product_epilogue() - as krn_epilogue_of(), for the rows of a product */
struct krn_epilogue krn_product_epilogue(const struct krn_call *c);

/** krn_const_ptr() - element 0 of a constant; its alignment is not guaranteed */
static inline const uint8_t *krn_const_ptr(const struct mdl_model *m, size_t tensor)
{
    const struct mdl_tensor *t = &m->tensors[tensor];

    return (const uint8_t *)m->storages[t->storage].data + t->offset;
}

static inline float krn_load_unaligned(const uint8_t *p, ptrdiff_t element)
{
    float v;

    __builtin_memcpy(&v, p + element * (ptrdiff_t)sizeof(v), sizeof(v));
    return v;
}

static inline bool krn_is_const_f32(const struct mdl_model *m, size_t tensor)
{
    return tensor != MDL_NONE && m->tensors[tensor].dtype == MDL_F32 &&
           m->storages[m->tensors[tensor].storage].home == MDL_HOME_CONST;
}
