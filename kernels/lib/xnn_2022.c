/* SPDX-License-Identifier: Apache-2.0 */
/* XNNPACK as in Debian 12: shapes at making and at setup, one function for each operator. */
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
        l.min, l.max, 0, ret));
}

int krn_xnn_setup_conv(xnn_operator_t x, const struct krn_conv *c, const float *in, float *out,
                       pthreadpool_t pool)
{
    return krn_xnn_error(
        xnn_setup_convolution2d_nhwc_f32(x, c->x.n, c->x.h, c->x.w, in, out, pool));
}

int krn_xnn_make_product(const struct krn_product *p, const float *kernel, const float *shift,
                         struct krn_xnn_limits l, xnn_operator_t *ret)
{
    return krn_xnn_error(xnn_create_fully_connected_nc_f32(p->k, p->n, p->lda, p->ldy, kernel,
                                                           shift, l.min, l.max, 0, ret));
}

int krn_xnn_setup_product(xnn_operator_t x, const struct krn_product *p, const float *in,
                          float *out, pthreadpool_t pool)
{
    return krn_xnn_error(xnn_setup_fully_connected_nc_f32(x, p->m, in, out, pool));
}

bool krn_xnn_knows_pool(const struct krn_xnn_pool *p, size_t *ret_space)
{
    *ret_space = 0;
    return p->which == KRN_XNN_GLOBAL || p->win.kh * p->win.kw > 1;
}

int krn_xnn_make_pool(const struct krn_xnn_pool *p, xnn_operator_t *ret)
{
    const struct krn_win *w = &p->win;
    const struct krn_padding behind = krn_conv_padding(w, &p->x, &p->y);

    switch (p->which) {
    case KRN_XNN_MAX:
        return krn_xnn_error(xnn_create_max_pooling2d_nhwc_f32(
            (uint32_t)w->top, (uint32_t)behind.right, (uint32_t)behind.down, (uint32_t)w->left,
            (uint32_t)w->kh, (uint32_t)w->kw, (uint32_t)w->sh, (uint32_t)w->sw, (uint32_t)w->dh,
            (uint32_t)w->dw, p->x.c, p->x.pixel, p->y.pixel, -INFINITY, INFINITY, 0, ret));
    case KRN_XNN_AVERAGE:
        return krn_xnn_error(xnn_create_average_pooling2d_nhwc_f32(
            (uint32_t)w->top, (uint32_t)behind.right, (uint32_t)behind.down, (uint32_t)w->left,
            (uint32_t)w->kh, (uint32_t)w->kw, (uint32_t)w->sh, (uint32_t)w->sw, p->x.c, p->x.pixel,
            p->y.pixel, -INFINITY, INFINITY, 0, ret));
    default:
        return krn_xnn_error(xnn_create_global_average_pooling_nwc_f32(
            p->x.c, p->x.pixel, p->y.pixel, -INFINITY, INFINITY, 0, ret));
    }
}

int krn_xnn_setup_pool(xnn_operator_t x, const struct krn_xnn_pool *p, const float *in, float *out,
                       void *space, pthreadpool_t pool)
{
    const struct krn_img *i = &p->x;

    switch (p->which) {
    case KRN_XNN_MAX:
        return krn_xnn_error(xnn_setup_max_pooling2d_nhwc_f32(x, i->n, i->h, i->w, in, out, pool));
    case KRN_XNN_AVERAGE:
        return krn_xnn_error(
            xnn_setup_average_pooling2d_nhwc_f32(x, i->n, i->h, i->w, in, out, pool));
    default:
        return krn_xnn_error(
            xnn_setup_global_average_pooling_nwc_f32(x, i->n, i->h * i->w, in, out, pool));
    }
}

/* Those without parameters have one type. */
typedef enum xnn_status create_fn(size_t n, size_t x_row, size_t y_row, uint32_t flags,
                                  xnn_operator_t *ret);
typedef enum xnn_status setup_fn(xnn_operator_t x, size_t rows, const float *in, float *out,
                                 pthreadpool_t pool);

static const struct {
    create_fn *create;
    setup_fn *setup;
} unaries[MDL_ACT_COUNT] = {
    [MDL_ACT_RELU] = {NULL, xnn_setup_clamp_nc_f32},
    [MDL_ACT_CLIP] = {NULL, xnn_setup_clamp_nc_f32},
    [MDL_ACT_LEAKY_RELU] = {NULL, xnn_setup_leaky_relu_nc_f32},
    [MDL_ACT_SIGMOID] = {xnn_create_sigmoid_nc_f32, xnn_setup_sigmoid_nc_f32},
    [MDL_ACT_HARD_SWISH] = {xnn_create_hardswish_nc_f32, xnn_setup_hardswish_nc_f32},
    [MDL_ACT_ELU] = {NULL, xnn_setup_elu_nc_f32},
    [MDL_ACT_SQRT] = {xnn_create_square_root_nc_f32, xnn_setup_square_root_nc_f32},
    [MDL_ACT_NEG] = {xnn_create_negate_nc_f32, xnn_setup_negate_nc_f32},
    [MDL_ACT_ABS] = {xnn_create_abs_nc_f32, xnn_setup_abs_nc_f32},
    [MDL_ACT_FLOOR] = {xnn_create_floor_nc_f32, xnn_setup_floor_nc_f32},
    [MDL_ACT_CEIL] = {xnn_create_ceiling_nc_f32, xnn_setup_ceiling_nc_f32},
    [MDL_ACT_ROUND] = {xnn_create_bankers_rounding_nc_f32, xnn_setup_bankers_rounding_nc_f32},
};

int krn_xnn_make_unary(const struct mdl_op *op, const struct krn_xnn_rows *r, xnn_operator_t *ret)
{
    size_t n = r->n, x = r->x_row, y = r->y_row;

    switch (op->act) {
    case MDL_ACT_RELU:
        return krn_xnn_error(xnn_create_clamp_nc_f32(n, x, y, 0.0f, INFINITY, 0, ret));
    case MDL_ACT_CLIP:
        return krn_xnn_error(xnn_create_clamp_nc_f32(n, x, y, op->act_a, op->act_b, 0, ret));
    case MDL_ACT_LEAKY_RELU:
        return krn_xnn_error(xnn_create_leaky_relu_nc_f32(n, x, y, op->act_a, 0, ret));
    case MDL_ACT_ELU:
        return krn_xnn_error(xnn_create_elu_nc_f32(n, x, y, op->act_a, 0, ret));
    default:
        return unaries[op->act].create ? krn_xnn_error(unaries[op->act].create(n, x, y, 0, ret))
                                       : -EOPNOTSUPP;
    }
}

int krn_xnn_setup_unary(xnn_operator_t x, const struct mdl_op *op, const struct krn_xnn_rows *r,
                        const float *in, float *out, pthreadpool_t pool)
{
    return krn_xnn_error(unaries[op->act].setup(x, r->count, in, out, pool));
}

bool krn_xnn_knows_prelu(const struct krn_xnn_rows *r)
{
    return true;
}

int krn_xnn_make_prelu(const struct krn_xnn_rows *r, const float *slope, xnn_operator_t *ret)
{
    return krn_xnn_error(xnn_create_prelu_nc_f32(r->n, r->x_row, r->y_row, slope, 0, ret));
}

int krn_xnn_setup_prelu(xnn_operator_t x, const struct krn_xnn_rows *r, const float *slope,
                        const float *in, float *out, pthreadpool_t pool)
{
    return krn_xnn_error(xnn_setup_prelu_nc_f32(x, r->count, in, out, pool));
}

static const struct {
    enum xnn_status (*create)(float min, float max, uint32_t flags, xnn_operator_t *ret);
    enum xnn_status (*setup)(xnn_operator_t x, size_t a_dims, const size_t *a_shape, size_t b_dims,
                             const size_t *b_shape, const float *a, const float *b, float *out,
                             pthreadpool_t pool);
} binaries[] = {
    [MDL_BIN_ADD] = {xnn_create_add_nd_f32, xnn_setup_add_nd_f32},
    [MDL_BIN_SUB] = {xnn_create_subtract_nd_f32, xnn_setup_subtract_nd_f32},
};

int krn_xnn_make_binary(enum mdl_binary which, xnn_operator_t *ret)
{
    return which < base_array_count(binaries)
               ? krn_xnn_error(binaries[which].create(-INFINITY, INFINITY, 0, ret))
               : -EOPNOTSUPP;
}

int krn_xnn_setup_binary(xnn_operator_t x, enum mdl_binary which, const struct krn_xnn_shapes *s,
                         const float *a, const float *b, float *out, pthreadpool_t pool)
{
    return krn_xnn_error(binaries[which].setup(x, s->dims, s->a, s->dims, s->b, a, b, out, pool));
}
