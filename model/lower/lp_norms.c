/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>

#include "base/base.h"
#include "model/lower/lowering.h"
#include "model/lower/window.h"

/* Norms (sum |x|^p)^(1/p) of windows and along an axis, and normalisation by statistics. */

static int read_p(struct mdl_lower *l, int64_t most, int64_t *ret)
{
    int64_t p = mdl_l_int(l, "p", 2);

    if (l->error < 0) {
        return l->error;
    }
    if (p < 1 || p > most) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "p %lld is out of range", (long long)p);
    }
    *ret = p;
    return 0;
}

/* y = |x|^p */
static int power_of(struct mdl_lower *l, size_t x, int64_t p, size_t *ret)
{
    size_t e, y = x;
    int r = 0;

    if (p == 2) {
        return mdl_ir_binary(l->ir, MDL_BIN_MUL, x, x, ret);
    }
    r = mdl_ir_unary(l->ir, MDL_ACT_ABS, 0, 0, x, &y);
    if (r == 0 && p > 2) {
        r = mdl_ir_scalar(l->ir, MDL_F32, (double)p, &e);
        r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_POW, y, e, &y);
    }
    *ret = y;
    return r;
}

/* y = x^(1/p), x not negative */
static int root_of(struct mdl_lower *l, size_t x, int64_t p, size_t *ret)
{
    size_t e;
    int r;

    if (p == 1) {
        *ret = x;
        return 0;
    }
    if (p == 2) {
        return mdl_ir_unary(l->ir, MDL_ACT_SQRT, 0, 0, x, ret);
    }
    r = mdl_ir_scalar(l->ir, MDL_F32, 1.0 / (double)p, &e);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_POW, x, e, ret);
}

static int check_image(struct mdl_lower *l)
{
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r == 0 && (mdl_l_value(l, l->in[0])->rank < 3 || mdl_l_value(l, l->in[0])->rank > 5)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input of rank %zu is not supported (3 to 5 are)",
                             mdl_l_value(l, l->in[0])->rank);
    }
    return r;
}

/* The mean of a window times its size. Padding counts as zeros, also what ceil_mode adds, so every
 * mean is over a whole window. */
static int lower_lp_pool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_AVG_POOL);
    struct mdl_window *win = &op.op.attr.pool.window;
    bool ceil_mode = mdl_l_int(l, "ceil_mode", 0) != 0;
    struct mdl_ir_value x;
    size_t dim[MDL_RANK_MAX], y, n;
    double taps = 1;
    int64_t p = 0;
    int auto_pad, r = check_image(l);

    r = r < 0 ? r : read_p(l, INT32_MAX, &p);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    r = mdl_window_read(l, x.rank - 2, NULL, win, &auto_pad);
    r = r < 0 ? r
              : mdl_window_resolve(l, win, auto_pad, ceil_mode, x.dim + 2, dim + 2,
                                   op.op.attr.pool.pad_end_model);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < win->rank; i++) {
        size_t reach = (win->kernel[i] - 1) * win->dilation[i] + 1;

        if (base_max(win->pad_begin[i], op.op.attr.pool.pad_end_model[i]) >= reach) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "pads leave windows without any input");
        }
        taps *= (double)win->kernel[i];
        op.op.attr.pool.pad_end_model[i] = win->pad_end[i];
    }
    op.op.attr.pool.count_include_pad = true;
    dim[0] = x.dim[0];
    dim[1] = x.dim[1];
    r = power_of(l, l->in[0], p, &op.op.in[0]);
    r = r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_F32, x.rank, dim, &y);
    r = r < 0 ? r : mdl_ir_scalar(l->ir, MDL_F32, taps, &n);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, y, n, &y);
    return r < 0 ? r : root_of(l, y, p, &l->out[0]);
}

static int norm_over(struct mdl_lower *l, size_t x, int64_t p, const bool *axes, size_t *ret)
{
    size_t y;
    int r;

    if (p <= 2) {
        return mdl_ir_reduce(l->ir, p == 1 ? MDL_RED_L1 : MDL_RED_L2, x, axes, true, ret);
    }
    r = power_of(l, x, p, &y);
    r = r < 0 ? r : mdl_ir_reduce(l->ir, MDL_RED_SUM, y, axes, true, &y);
    return r < 0 ? r : root_of(l, y, p, ret);
}

static int lower_global_lp_pool(struct mdl_lower *l, int arg)
{
    bool axes[MDL_RANK_MAX];
    int64_t p = 0;
    int r = check_image(l);

    r = r < 0 ? r : read_p(l, INT32_MAX, &p);
    for (size_t i = 0; i < MDL_RANK_MAX; i++) {
        axes[i] = i >= 2;
    }
    return r < 0 ? r : norm_over(l, l->in[0], p, axes, &l->out[0]);
}

/* y = x / norm. Where the norm is 0, x is 0 too, and so is y: the divisor is never 0, but at least
 * the smallest float. */
static int lower_lp_normalization(struct mdl_lower *l, int arg)
{
    bool axes[MDL_RANK_MAX] = {0};
    size_t at, norm, least;
    int64_t p = 0;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    r = r < 0 ? r : read_p(l, 2, &p);
    r = r < 0 ? r
              : mdl_l_axis(l, mdl_l_int(l, "axis", -1), mdl_l_value(l, l->in[0])->rank, false, &at);
    if (r < 0) {
        return r;
    }
    axes[at] = true;
    r = norm_over(l, l->in[0], p, axes, &norm);
    r = r < 0 ? r : mdl_ir_scalar(l->ir, MDL_F32, (double)FLT_TRUE_MIN, &least);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MAX, norm, least, &norm);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_DIV, l->in[0], norm, &l->out[0]);
}

/* y = (x - mean) / (sqrt(mean of (x - mean)^2) + 1e-9)     Source: MeanVarianceNormalization-13 */
static int lower_mean_variance(struct mdl_lower *l, int arg)
{
    struct mdl_ir *ir = l->ir;
    int64_t axis[MDL_RANK_MAX] = {0, 2, 3};
    bool axes[MDL_RANK_MAX] = {0};
    size_t count = 3, mean, x, t;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    if (mdl_l_attr(l, "axes")) {
        mdl_l_ints(l, "axes", axis, MDL_RANK_MAX, &count);
    }
    for (size_t i = 0; l->error == 0 && i < count; i++) {
        size_t at;

        r = mdl_l_axis(l, axis[i], mdl_l_value(l, l->in[0])->rank, false, &at);
        if (r < 0) {
            return r;
        }
        axes[at] = true;
    }
    r = l->error < 0 ? l->error : mdl_ir_reduce(ir, MDL_RED_MEAN, l->in[0], axes, true, &mean);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_SUB, l->in[0], mean, &x);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_MUL, x, x, &t);
    r = r < 0 ? r : mdl_ir_reduce(ir, MDL_RED_MEAN, t, axes, true, &t);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_SQRT, 0, 0, t, &t);
    r = r < 0 ? r : mdl_ir_scalar(ir, MDL_F32, 1e-9, &mean);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_ADD, t, mean, &t);
    return r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_DIV, x, t, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_lp_norms[] = {
    {"LpPool", lower_lp_pool, 0},
    {"GlobalLpPool", lower_global_lp_pool, 0},
    {"LpNormalization", lower_lp_normalization, 0},
    {"MeanVarianceNormalization", lower_mean_variance, 0},
    {0},
};
