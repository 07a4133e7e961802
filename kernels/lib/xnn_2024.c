/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XNNPACK as in Debian 13: making, shapes and tensors apart, one function for all elementwise
 * operators. Some pools need scratch memory. A mean over an image is an average pool, since
 * XNNPACK's own reduction calls a missing function if it needs scratch. In its x86 kernels, the
 * square root of infinity is wrong, so the square root has no primitive.
 */
#include "kernels/lib/xnn.h"

#include <math.h>

#include "base/base.h"

int krn_xnn_make_conv(const struct krn_conv *c, const float *kernel, const float *shift,
                      struct krn_xnn_limits l, xnn_operator_t *ret)
{
    const struct krn_padding behind = krn_conv_padding(&c->win, &c->x, &c->y);
    const struct krn_win *w = &c->win;

    return krn_xnn_error(xnn_create_convolution2d_nhwc_f32(
        (uint32_t)w->top, (uint32_t)behind.right, (uint32_t)behind.down, (uint32_t)w->left,
        (uint32_t)w->kh, (uint32_t)w->kw, (uint32_t)w->sh, (uint32_t)w->sw, (uint32_t)w->dh,
        (uint32_t)w->dw, (uint32_t)c->groups, c->cg, c->og, c->x.pixel, c->y.pixel, kernel, shift,
        l.min, l.max, 0, NULL, NULL, ret));
}

int krn_xnn_setup_conv(xnn_operator_t x, const struct krn_conv *c, const float *in, float *out,
                       pthreadpool_t pool)
{
    size_t space = 0, alignment, h, w;
    int r = krn_xnn_error(xnn_reshape_convolution2d_nhwc_f32(x, c->x.n, c->x.h, c->x.w, &space,
                                                             &alignment, &h, &w, pool));

    if (r < 0 || space > 0) {
        return r < 0 ? r : -EOPNOTSUPP;
    }
    return krn_xnn_error(xnn_setup_convolution2d_nhwc_f32(x, NULL, in, out));
}

int krn_xnn_make_product(const struct krn_product *p, const float *kernel, const float *shift,
                         struct krn_xnn_limits l, xnn_operator_t *ret)
{
    return krn_xnn_error(xnn_create_fully_connected_nc_f32(
        p->k, p->n, p->lda, p->ldy, kernel, shift, l.min, l.max, 0, NULL, NULL, ret));
}

int krn_xnn_setup_product(xnn_operator_t x, const struct krn_product *p, const float *in,
                          float *out, pthreadpool_t pool)
{
    int r = krn_xnn_error(xnn_reshape_fully_connected_nc_f32(x, p->m, pool));

    return r < 0 ? r : krn_xnn_error(xnn_setup_fully_connected_nc_f32(x, in, out));
}

static struct krn_win window_of(const struct krn_xnn_pool *p)
{
    return p->which == KRN_XNN_GLOBAL
               ? (struct krn_win){.kh = p->x.h, .kw = p->x.w, .sh = 1, .sw = 1, .dh = 1, .dw = 1}
               : p->win;
}

int krn_xnn_make_pool(const struct krn_xnn_pool *p, xnn_operator_t *ret)
{
    const struct krn_win win = window_of(p), *w = &win;
    const struct krn_padding behind = krn_conv_padding(w, &p->x, &p->y);

    if (p->which == KRN_XNN_MAX) {
        return krn_xnn_error(xnn_create_max_pooling2d_nhwc_f32(
            (uint32_t)w->top, (uint32_t)behind.right, (uint32_t)behind.down, (uint32_t)w->left,
            (uint32_t)w->kh, (uint32_t)w->kw, (uint32_t)w->sh, (uint32_t)w->sw, (uint32_t)w->dh,
            (uint32_t)w->dw, -INFINITY, INFINITY, 0, ret));
    }
    return krn_xnn_error(xnn_create_average_pooling2d_nhwc_f32(
        (uint32_t)w->top, (uint32_t)behind.right, (uint32_t)behind.down, (uint32_t)w->left,
        (uint32_t)w->kh, (uint32_t)w->kw, (uint32_t)w->sh, (uint32_t)w->sw, -INFINITY, INFINITY, 0,
        ret));
}

/* @ret_space: bytes to work in */
static enum xnn_status reshape_pool(xnn_operator_t x, const struct krn_xnn_pool *p,
                                    pthreadpool_t pool, size_t *ret_space)
{
    const struct krn_img *i = &p->x;
    size_t alignment = 0, h, w;

    if (p->which == KRN_XNN_MAX) {
        return xnn_reshape_max_pooling2d_nhwc_f32(x, i->n, i->h, i->w, i->c, i->pixel, p->y.pixel,
                                                  &h, &w, pool);
    }
    return xnn_reshape_average_pooling2d_nhwc_f32(x, i->n, i->h, i->w, i->c, i->pixel, p->y.pixel,
                                                  ret_space, &alignment, &h, &w, pool);
}

int krn_xnn_setup_pool(xnn_operator_t x, const struct krn_xnn_pool *p, const float *in, float *out,
                       void *space, pthreadpool_t pool)
{
    size_t bytes = 0;
    int r = krn_xnn_error(reshape_pool(x, p, pool, &bytes));

    if (r < 0) {
        return r;
    }
    return krn_xnn_error(p->which == KRN_XNN_MAX
                             ? xnn_setup_max_pooling2d_nhwc_f32(x, in, out)
                             : xnn_setup_average_pooling2d_nhwc_f32(x, space, in, out));
}

bool krn_xnn_knows_pool(const struct krn_xnn_pool *p, size_t *ret_space)
{
    struct krn_win w = window_of(p);
    xnn_operator_t x;
    bool ok;

    *ret_space = 0;
    if (w.kh * w.kw == 1 || krn_xnn_make_pool(p, &x) < 0) {
        return false;
    }
    ok = reshape_pool(x, p, NULL, ret_space) == xnn_status_success;
    xnn_delete_operator(x);
    return ok;
}

/* Return: xnn_unary_invalid if there is none */
static enum xnn_unary_operator unary_of(const struct mdl_op *op, union xnn_unary_params *ret)
{
    switch (op->act) {
    case MDL_ACT_RELU:
        ret->clamp.min = 0.0f;
        ret->clamp.max = INFINITY;
        return xnn_unary_clamp;
    case MDL_ACT_CLIP:
        ret->clamp.min = op->act_a;
        ret->clamp.max = op->act_b;
        return xnn_unary_clamp;
    case MDL_ACT_LEAKY_RELU:
        ret->leaky_relu.negative_slope = op->act_a;
        return xnn_unary_leaky_relu;
    case MDL_ACT_ELU:
        ret->elu.alpha = op->act_a;
        return xnn_unary_elu;
    case MDL_ACT_SIGMOID:
        return xnn_unary_sigmoid;
    case MDL_ACT_HARD_SWISH:
        return xnn_unary_hardswish;
    case MDL_ACT_NEG:
        return xnn_unary_negate;
    case MDL_ACT_ABS:
        return xnn_unary_abs;
    case MDL_ACT_FLOOR:
        return xnn_unary_floor;
    case MDL_ACT_CEIL:
        return xnn_unary_ceiling;
    case MDL_ACT_ROUND:
        return xnn_unary_bankers_rounding;
    default:
        return xnn_unary_invalid;
    }
}

int krn_xnn_make_unary(const struct mdl_op *op, const struct krn_xnn_rows *r, xnn_operator_t *ret)
{
    union xnn_unary_params params = {0};
    enum xnn_unary_operator which = unary_of(op, &params);

    return which == xnn_unary_invalid
               ? -EOPNOTSUPP
               : krn_xnn_error(xnn_create_unary_elementwise_nc(
                     which, xnn_datatype_fp32, xnn_datatype_fp32, &params, NULL, NULL, 0, ret));
}

int krn_xnn_setup_unary(xnn_operator_t x, const struct mdl_op *op, const struct krn_xnn_rows *r,
                        const float *in, float *out, pthreadpool_t pool)
{
    int e = krn_xnn_error(
        xnn_reshape_unary_elementwise_nc(x, r->count, r->n, r->x_row, r->y_row, pool));

    return e < 0 ? e : krn_xnn_error(xnn_setup_unary_elementwise_nc(x, in, out));
}

static int make_binary(enum xnn_binary_operator which, xnn_operator_t *ret)
{
    return krn_xnn_error(
        xnn_create_binary_elementwise_nd(which, xnn_datatype_fp32, NULL, NULL, NULL, 0, ret));
}

bool krn_xnn_knows_prelu(const struct krn_xnn_rows *r)
{
    return r->x_row == r->n && r->y_row == r->n; /* a binary operator there */
}

int krn_xnn_make_prelu(const struct krn_xnn_rows *r, const float *slope, xnn_operator_t *ret)
{
    return make_binary(xnn_binary_prelu, ret);
}

int krn_xnn_setup_prelu(xnn_operator_t x, const struct krn_xnn_rows *r, const float *slope,
                        const float *in, float *out, pthreadpool_t pool)
{
    int e = krn_xnn_error(xnn_reshape_binary_elementwise_nd(x, 2, (size_t[]){r->count, r->n}, 2,
                                                            (size_t[]){1, r->n}, pool));

    return e < 0 ? e : krn_xnn_error(xnn_setup_binary_elementwise_nd(x, in, slope, out));
}

int krn_xnn_make_binary(enum mdl_binary which, xnn_operator_t *ret)
{
    static const enum xnn_binary_operator known[] = {
        [MDL_BIN_ADD] = xnn_binary_add,
        [MDL_BIN_SUB] = xnn_binary_subtract,
    };

    return which < base_array_count(known) ? make_binary(known[which], ret) : -EOPNOTSUPP;
}

int krn_xnn_setup_binary(xnn_operator_t x, enum mdl_binary which, const struct krn_xnn_shapes *s,
                         const float *a, const float *b, float *out, pthreadpool_t pool)
{
    int e = krn_xnn_error(xnn_reshape_binary_elementwise_nd(x, s->dims, s->a, s->dims, s->b, pool));

    return e < 0 ? e : krn_xnn_error(xnn_setup_binary_elementwise_nd(x, a, b, out));
}
