/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/conv_common.h - shapes and weights, shared by the convolution and product
 * primitives
 *
 * Checks the shape of a 2-D (or 1-D) convolution on NHWC images, or of a product with constant
 * weights. Packs the weights from any strides, multiplied by the batch norm's scale.
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

/** krn_conv_shape_of() - Return: whether the window, the groups and the dims of the weights fit
 * c->x and c->y, which the caller has set. If so, sets all of *@c but tap_stride. A transposed
 * convolution has weights [input][output]; how its window reaches y is not checked. */
bool krn_conv_shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *c);
/** krn_conv_of() - Return: whether @op is a convolution of flat-output f32 NHWC images with
 * constant f32 weights and an epilogue that the fast code supports; if so, *ret is set. */
bool krn_conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *ret);

/* Where packed weights lie, in floats: tap t of input channel c for output o of group g, c and o
 * counted inside the group, is at g*group + o*o + c*c + t*tap. */
struct krn_conv_order {
    size_t group, o, c, tap;
};
/** krn_conv_pack() - packs the weights of @op, multiplied by the batch norm's scale
 * @c: from krn_conv_of(). @dst: groups og cg taps floats. Threads: any. */
void krn_conv_pack(const struct mdl_model *m, const struct mdl_op *op, const struct krn_conv *c,
                   const struct krn_conv_order *order, float *dst);

/** krn_conv_is_pointwise() - Return: whether the pixels of y are those of x */
static inline bool krn_conv_is_pointwise(const struct krn_conv *c)
{
    return c->taps == 1 && c->win.sh == 1 && c->win.sw == 1 && c->win.top == 0 &&
           c->win.left == 0 && c->x.h == c->y.h && c->x.w == c->y.w;
}

/** krn_conv_is_depthwise() - Return: whether each channel is a group of its own */
static inline bool krn_conv_is_depthwise(const struct krn_conv *c)
{
    return c->groups == c->x.c && c->cg == 1 && c->og == 1;
}

/* Padding behind the image, along both dims, that windows reach. */
struct krn_padding {
    size_t down, right;
};

/** krn_conv_padding_along() - Return: along one dim: @out windows of @span, @stride apart, from
 * @begin before the image of @size */
static inline size_t krn_conv_padding_along(size_t out, size_t stride, size_t span, size_t begin,
                                            size_t size)
{
    size_t needed = (out - 1) * stride + span;

    return needed > begin + size ? needed - begin - size : 0;
}
static inline struct krn_padding krn_conv_padding(const struct krn_win *w, const struct krn_img *x,
                                                  const struct krn_img *y)
{
    return (struct krn_padding){
        krn_conv_padding_along(y->h, w->sh, (w->kh - 1) * w->dh + 1, (size_t)w->top, x->h),
        krn_conv_padding_along(y->w, w->sw, (w->kw - 1) * w->dw + 1, (size_t)w->left, x->w)};
}

struct krn_product { /* y[m][n] = sum_k a[m][k] b[k][n] */
    size_t m, n, k;
    size_t lda, ldy;            /* elements between rows of a and y; inside a row they are dense */
    ptrdiff_t b_k, b_n;         /* strides of b in elements */
    float alpha;                /* GEMM's */
    bool b_const;               /* op may have a scale and a shift */
    struct krn_img y_as_pixels; /* y as m pixels of n channels */
};

/** krn_product_shape_of() - Return: whether @op is GEMM or MATMUL of rows by one matrix, of any
 * element types; if so, sets all of *ret but b_const. */
bool krn_product_shape_of(const struct mdl_model *m, const struct mdl_op *op,
                          struct krn_product *ret);
/** krn_product_of() - Return: whether @op (GEMM without c, or MATMUL with a rank-2 b) is one plain
 * f32 product; if so, *ret is set. */
bool krn_product_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *ret);
/** krn_product_frames() - a frames_at_once(): products of one row with constant weights, without a
 * residual. Each frame is then a row. */
bool krn_product_frames(const struct mdl_model *m, const struct mdl_op *op);
/** krn_product_take_frames() - makes a product of one row that of a dense row for each of @frames
 * frames; 0 and 1 change nothing */
void krn_product_take_frames(struct krn_product *p, size_t frames);
/** krn_product_pack() - packs some outputs of a constant b as [output][k], multiplied by alpha and
 * the batch norm's scale. @p: from krn_product_of(). @dst: k floats for each output. Threads: any.
 */
void krn_product_pack(const struct mdl_model *m, const struct mdl_op *op,
                      const struct krn_product *p, struct krn_range outputs, float *dst);
/** krn_product_as_conv() - Return: the product as a 1x1 convolution on an image of one row of m
 * pixels; tap_stride is not set. */
struct krn_conv krn_product_as_conv(const struct krn_product *p);

/** krn_const_ptr() - element 0 of a constant; its alignment is not guaranteed */
static inline const uint8_t *krn_const_ptr(const struct mdl_model *m, size_t tensor)
{
    const struct mdl_tensor *t = &m->tensors[tensor];

    return (const uint8_t *)m->storages[t->storage].data + t->offset;
}

static inline float krn_load_unaligned(const uint8_t *p, ptrdiff_t element)
{
    return ((const krn_any_f32 *)p)[element];
}

static inline bool krn_is_const_f32(const struct mdl_model *m, size_t tensor)
{
    return tensor != MDL_NONE && m->tensors[tensor].dtype == MDL_F32 &&
           m->storages[m->tensors[tensor].storage].home == MDL_HOME_CONST;
}
