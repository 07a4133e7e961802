/* SPDX-License-Identifier: Apache-2.0 */
/* Norms over some dims of each element of the others: layer, instance, group and RMS norms; norms
 * (sum |x|^p)^(1/p) of windows and along an axis, and normalisation by statistics. */
#include <float.h>

#include "model/lower/lowering.h"

/* Makes the norm of f32 value @x. @scale, @bias: broadcast to its dims, or MDL_NONE. */
static size_t make_norm(struct mdl_lower *l, struct mdl_ir_op *op, size_t x, size_t scale,
                        size_t bias)
{
    const struct mdl_ir_value v = *mdl_l_value(l, x);
    size_t in[3] = {x, scale, bias}, count = scale == MDL_NONE ? 1 : bias == MDL_NONE ? 2 : 3;

    for (size_t i = 0; i < v.rank; i++) {
        mdl_bad_if(l, op->op.attr.norm.axes[i] && v.dim[i] == 0,
                   "dimension %zu, which is normalised, is 0", i);
    }
    mdl_ir_spread(l->ir, in, count, v.rank, v.dim, op->op.in);
    return mdl_ir_emit(l->ir, op, MDL_F32, v.rank, v.dim);
}

/* A norm with an epsilon, which must not make a square root of a negative number. */
static struct mdl_ir_op norm_op(struct mdl_lower *l, float epsilon, bool rms)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NORM);

    op.op.attr.norm.rms = rms;
    op.op.attr.norm.epsilon = mdl_l_float(l, "epsilon", epsilon);
    mdl_bad_if(l, !(op.op.attr.norm.epsilon >= 0), "epsilon is %g; it must be 0 or more",
               (double)op.op.attr.norm.epsilon);
    return op;
}

/* The mean as output 1, and 1 / sqrt(var + epsilon), which only some models read. */
static void moments(struct mdl_lower *l, const struct mdl_ir_op *op, size_t x, size_t inverse_out)
{
    const bool *axes = op->op.attr.norm.axes;
    struct mdl_ir *ir = l->ir;
    size_t mean, t = x;

    if (!op->op.attr.norm.rms) {
        mean = mdl_ir_reduce(ir, MDL_RED_MEAN, x, axes, true);
        t = mdl_ir_binary(ir, MDL_BIN_SUB, x, mean);
        mdl_l_give(l, 1, mean);
    }
    t = mdl_ir_binary(ir, MDL_BIN_MUL, t, t);
    t = mdl_ir_reduce(ir, MDL_RED_MEAN, t, axes, true);
    t = mdl_ir_binary(ir, MDL_BIN_ADD, t,
                      mdl_ir_scalar(ir, MDL_F32, (double)op->op.attr.norm.epsilon));
    t = mdl_ir_unary(ir, MDL_ACT_SQRT, 0, 0, t);
    t = mdl_ir_unary(ir, MDL_ACT_RECIPROCAL, 0, 0, t);
    mdl_l_give(l, inverse_out, t);
}

/* LayerNormalization, RMSNormalization; ONNX Runtime's optimiser wrote the former before ONNX had
 * it, and calls the latter SimplifiedLayerNormalization. */
static size_t lower_layer_norm(struct mdl_lower *l, int rms)
{
    struct mdl_ir_op op = norm_op(l, 1e-5f, rms != 0);
    size_t rank = mdl_l_value(l, l->in[0])->rank, y;

    for (size_t i = mdl_l_axis(l, mdl_l_int(l, "axis", -1), rank, false); i < rank; i++) {
        op.op.attr.norm.axes[i] = true;
    }
    y = make_norm(l, &op, l->in[0], l->in[1], rms ? MDL_NONE : mdl_l_in(l, 2));
    if (mdl_l_wants(l, 1) || mdl_l_wants(l, 2)) {
        /* RMS norms have the inverse as their second output */
        moments(l, &op, l->in[0], rms ? 1 : 2);
    }
    return y;
}

/* Input 1 added to input 0, then a bias if there is one, then the norm. Output 3 is the sum. */
static size_t lower_skip_norm(struct mdl_lower *l, int rms)
{
    struct mdl_ir_op op = norm_op(l, 1e-12f, rms != 0);
    size_t beta = rms ? MDL_NONE : mdl_l_in(l, 3), bias = mdl_l_in(l, rms ? 3 : 4);
    size_t x = mdl_ir_binary(l->ir, MDL_BIN_ADD, l->in[0], l->in[1]), rank, y;

    if (bias != MDL_NONE) {
        x = mdl_ir_binary(l->ir, MDL_BIN_ADD, x, bias);
    }
    rank = mdl_l_value(l, x)->rank;
    mdl_bad_if(l, rank == 0 || !mdl_ir_same_dims(mdl_l_value(l, x), mdl_l_value(l, l->in[0])),
               "inputs 1 and 4 do not broadcast to input 0");
    op.op.attr.norm.axes[rank - 1] = true;
    mdl_l_give(l, 3, x);
    y = make_norm(l, &op, x, l->in[2], beta);
    if (mdl_l_wants(l, 1) || mdl_l_wants(l, 2)) {
        moments(l, &op, x, 2);
    }
    return y;
}

static void check_channels(struct mdl_lower *l, size_t values)
{
    for (size_t i = 1; i < 3; i++) {
        const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

        mdl_bad_if(l, mdl_ir_elements(v) != values, "input %zu has %zu values; it must have %zu", i,
                   mdl_ir_elements(v), values);
    }
}

static size_t lower_instance_norm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = norm_op(l, 1e-5f, false);
    size_t scale, bias, rank = mdl_l_value(l, l->in[0])->rank;

    mdl_unserved_if(l, rank < 2, "input of rank %zu is not supported (2 and more are)", rank);
    for (size_t i = 2; i < rank; i++) {
        op.op.attr.norm.axes[i] = true;
    }
    check_channels(l, mdl_l_value(l, l->in[0])->dim[1]);
    scale = mdl_lower_beside(l, l->in[1], rank, 1);
    bias = mdl_lower_beside(l, l->in[2], rank, 1);
    return make_norm(l, &op, l->in[0], scale, bias);
}

/* Values per channel, or per group, of images [N, groups, C / groups, ...] of @rank. */
static size_t beside_groups(struct mdl_lower *l, size_t v, size_t rank, size_t groups)
{
    size_t dim[MDL_RANK_MAX] = {1, groups, mdl_ir_elements(mdl_l_value(l, v)) / groups};

    for (size_t i = 3; i < rank; i++) {
        dim[i] = 1;
    }
    return mdl_ir_reshape(l->ir, v, rank, dim);
}

/* [N, C, ...] as [N, groups, C / groups, ...]; from opset 21 on scale and bias are per channel,
 * before per group. */
static size_t lower_group_norm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = norm_op(l, 1e-5f, false);
    int64_t groups = mdl_l_int(l, "num_groups", 0);
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX], scale, bias, y;

    mdl_bad_if(
        l, x.rank < 2 || x.rank >= MDL_RANK_MAX || groups <= 0 || x.dim[1] % (size_t)groups != 0,
        "num_groups is %lld for an input of rank %zu with %zu channels; it "
        "must divide them",
        (long long)groups, x.rank, x.rank < 2 ? (size_t)0 : x.dim[1]);
    dim[0] = x.dim[0];
    dim[1] = (size_t)groups;
    dim[2] = x.dim[1] / (size_t)groups;
    op.op.attr.norm.axes[2] = true;
    for (size_t i = 2; i < x.rank; i++) {
        dim[i + 1] = x.dim[i];
        op.op.attr.norm.axes[i + 1] = true;
    }
    check_channels(l, l->opset < 21 ? (size_t)groups : x.dim[1]);
    y = mdl_ir_reshape(l->ir, l->in[0], x.rank + 1, dim);
    scale = beside_groups(l, l->in[1], x.rank + 1, (size_t)groups);
    bias = beside_groups(l, l->in[2], x.rank + 1, (size_t)groups);
    return mdl_ir_reshape(l->ir, make_norm(l, &op, y, scale, bias), x.rank, x.dim);
}

/* ---- (sum |x|^p)^(1/p) ---- */

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

const struct mdl_lower_row mdl_lower_norms[] = {
    {"LayerNormalization", lower_layer_norm, 2, 3, 0, MDL_LOWER_BOTH},
    {"RMSNormalization", lower_layer_norm, 2, 2, 1},
    {"SimplifiedLayerNormalization", lower_layer_norm, 2, 2, 1, MDL_LOWER_BOTH},
    {"SkipLayerNormalization", lower_skip_norm, 3, 5, 0, MDL_LOWER_MICROSOFT},
    {"SkipSimplifiedLayerNormalization", lower_skip_norm, 3, 5, 1, MDL_LOWER_MICROSOFT},
    {"InstanceNormalization", lower_instance_norm, 3, 3},
    {"GroupNormalization", lower_group_norm, 3, 3},
    {"LpPool", lower_lp_pool, 1, 1},
    {"GlobalLpPool", lower_global_lp_pool, 1, 1},
    {"LpNormalization", lower_lp_normalization, 1, 1},
    {"MeanVarianceNormalization", lower_mean_variance, 1, 1},
    {0},
};
