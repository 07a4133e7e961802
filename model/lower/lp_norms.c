/* SPDX-License-Identifier: Apache-2.0 */
/* Norms (sum |x|^p)^(1/p) of windows and along an axis, and normalisation by statistics. */
#include <float.h>

#include "base/base.h"
#include "model/lower/lowering.h"
#include "model/lower/window.h"

static int64_t read_p(struct mdl_lower *l, int64_t most)
{
    int64_t p = mdl_l_int(l, "p", 2);

    mdl_bad_if(l, p < 1 || p > most, "p %lld is out of range", (long long)p);
    return p;
}

/* y = |x|^p */
static size_t power_of(struct mdl_lower *l, size_t x, int64_t p)
{
    size_t y;

    if (p == 2) {
        return mdl_ir_binary(l->ir, MDL_BIN_MUL, x, x);
    }
    y = mdl_ir_unary(l->ir, MDL_ACT_ABS, 0, 0, x);
    return p < 2 ? y
                 : mdl_ir_binary(l->ir, MDL_BIN_POW, y, mdl_ir_scalar(l->ir, MDL_F32, (double)p));
}

/* y = x^(1/p), x not negative */
static size_t root_of(struct mdl_lower *l, size_t x, int64_t p)
{
    if (p <= 2) {
        return p == 1 ? x : mdl_ir_unary(l->ir, MDL_ACT_SQRT, 0, 0, x);
    }
    return mdl_ir_binary(l->ir, MDL_BIN_POW, x, mdl_ir_scalar(l->ir, MDL_F32, 1.0 / (double)p));
}

/* The mean of a window times its size. Padding counts as zeros, also what ceil_mode adds, so every
 * mean is over a whole window. */
static size_t lower_lp_pool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_AVG_POOL);
    struct mdl_window *win = &op.op.attr.pool.window;
    size_t dim[MDL_RANK_MAX], y;
    double taps = 1;
    int64_t p = read_p(l, INT32_MAX);

    mdl_window_pool(l, &op, dim);
    for (size_t i = 0; i < win->rank; i++) {
        taps *= (double)win->kernel[i];
        op.op.attr.pool.pad_end_model[i] = win->pad_end[i];
    }
    op.op.attr.pool.count_include_pad = true;
    op.op.in[0] = power_of(l, l->in[0], p);
    y = mdl_ir_emit(l->ir, &op, MDL_F32, win->rank + 2, dim);
    y = mdl_ir_binary(l->ir, MDL_BIN_MUL, y, mdl_ir_scalar(l->ir, MDL_F32, taps));
    return root_of(l, y, p);
}

static size_t norm_over(struct mdl_lower *l, size_t x, int64_t p, const bool *axes)
{
    if (p <= 2) {
        return mdl_ir_reduce(l->ir, p == 1 ? MDL_RED_L1 : MDL_RED_L2, x, axes, true);
    }
    return root_of(l, mdl_ir_reduce(l->ir, MDL_RED_SUM, power_of(l, x, p), axes, true), p);
}

static size_t lower_global_lp_pool(struct mdl_lower *l, int arg)
{
    bool axes[MDL_RANK_MAX];

    mdl_window_image(l, 3, 5);
    for (size_t i = 0; i < MDL_RANK_MAX; i++) {
        axes[i] = i >= 2;
    }
    return norm_over(l, l->in[0], read_p(l, INT32_MAX), axes);
}

/* y = x / norm. Where the norm is 0, x is 0 too, and so is y: the divisor is never 0, but at least
 * the smallest float. */
static size_t lower_lp_normalization(struct mdl_lower *l, int arg)
{
    bool axes[MDL_RANK_MAX] = {0};
    size_t norm, least;

    axes[mdl_l_axis(l, mdl_l_int(l, "axis", -1), mdl_l_value(l, l->in[0])->rank, false)] = true;
    norm = norm_over(l, l->in[0], read_p(l, 2), axes);
    least = mdl_ir_scalar(l->ir, MDL_F32, (double)FLT_TRUE_MIN);
    norm = mdl_ir_binary(l->ir, MDL_BIN_MAX, norm, least);
    return mdl_ir_binary(l->ir, MDL_BIN_DIV, l->in[0], norm);
}

/* y = (x - mean) / (sqrt(mean of (x - mean)^2) + 1e-9)     Source: MeanVarianceNormalization-13 */
static size_t lower_mean_variance(struct mdl_lower *l, int arg)
{
    struct mdl_ir *ir = l->ir;
    int64_t axis[MDL_RANK_MAX] = {0, 2, 3};
    bool axes[MDL_RANK_MAX];
    size_t count = 3, x, t;

    if (mdl_l_attr(l, "axes")) {
        mdl_l_ints(l, "axes", axis, MDL_RANK_MAX, &count);
    }
    mdl_l_marked(l, axis, count, mdl_l_value(l, l->in[0])->rank, axes);
    x = mdl_ir_reduce(ir, MDL_RED_MEAN, l->in[0], axes, true);
    x = mdl_ir_binary(ir, MDL_BIN_SUB, l->in[0], x);
    t = mdl_ir_binary(ir, MDL_BIN_MUL, x, x);
    t = mdl_ir_reduce(ir, MDL_RED_MEAN, t, axes, true);
    t = mdl_ir_unary(ir, MDL_ACT_SQRT, 0, 0, t);
    t = mdl_ir_binary(ir, MDL_BIN_ADD, t, mdl_ir_scalar(ir, MDL_F32, 1e-9));
    return mdl_ir_binary(ir, MDL_BIN_DIV, x, t);
}

const struct mdl_lower_row mdl_lower_lp_norms[] = {
    {"LpPool", lower_lp_pool, 1, 1},
    {"GlobalLpPool", lower_global_lp_pool, 1, 1},
    {"LpNormalization", lower_lp_normalization, 1, 1},
    {"MeanVarianceNormalization", lower_mean_variance, 1, 1},
    {0},
};
