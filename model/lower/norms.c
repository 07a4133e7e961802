/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/lower/lowering.h"

/* Norms over some dims of each element of the others: layer, instance, group and RMS norms. */

/* Makes the norm of f32 value @x, which has rank @rank and dims @dim. @scale, @bias: broadcast to
 * that, or MDL_NONE. */
static int make_norm(struct mdl_lower *l, struct mdl_ir_op *op, size_t x, size_t scale, size_t bias,
                     size_t *ret)
{
    const struct mdl_ir_value v = *mdl_l_value(l, x);
    size_t in[3] = {x, scale, bias}, count = scale == MDL_NONE ? 1 : bias == MDL_NONE ? 2 : 3;
    int r;

    for (size_t i = 0; i < v.rank; i++) {
        if (op->op.attr.norm.axes[i] && v.dim[i] == 0) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu, which is normalised, is 0", i);
        }
    }
    r = mdl_ir_spread(l->ir, in, count, v.rank, v.dim, op->op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, op, MDL_F32, v.rank, v.dim, ret);
}

static int need_f32(struct mdl_lower *l, size_t needed, size_t count)
{
    int r = mdl_l_need(l, needed);

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = mdl_l_f32(l, i);
    }
    return r;
}

/* Epsilon, which must not make a square root of a negative number. */
static int take_epsilon(struct mdl_lower *l, float fallback, struct mdl_ir_op *op)
{
    op->op.attr.norm.epsilon = mdl_l_float(l, "epsilon", fallback);
    if (!(op->op.attr.norm.epsilon >= 0)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "epsilon is %g; it must be 0 or more",
                             (double)op->op.attr.norm.epsilon);
    }
    return l->error;
}

/* Mean and 1 / sqrt(var + epsilon), which only some models read. */
static int moments(struct mdl_lower *l, const struct mdl_ir_op *op, size_t x, size_t mean_out,
                   size_t inverse_out)
{
    const bool *axes = op->op.attr.norm.axes;
    struct mdl_ir *ir = l->ir;
    size_t mean, t = x, eps;
    int r = 0;

    if (!op->op.attr.norm.rms) {
        r = mdl_ir_reduce(ir, MDL_RED_MEAN, x, axes, true, &mean);
        r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_SUB, x, mean, &t);
        if (r == 0 && mean_out < l->out_count && l->node->outputs[mean_out][0]) {
            l->out[mean_out] = mean;
        }
    }
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_MUL, t, t, &t);
    r = r < 0 ? r : mdl_ir_reduce(ir, MDL_RED_MEAN, t, axes, true, &t);
    r = r < 0 ? r : mdl_ir_scalar(ir, MDL_F32, (double)op->op.attr.norm.epsilon, &eps);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_ADD, t, eps, &t);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_SQRT, 0, 0, t, &t);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_RECIPROCAL, 0, 0, t, &t);
    if (r == 0 && inverse_out < l->out_count && l->node->outputs[inverse_out][0]) {
        l->out[inverse_out] = t;
    }
    return r;
}

static bool any_output(const struct mdl_lower *l, size_t from, size_t to)
{
    for (size_t i = from; i <= to && i < l->out_count; i++) {
        if (l->node->outputs[i][0]) {
            return true;
        }
    }
    return false;
}

/* LayerNormalization, RMSNormalization; ONNX Runtime's optimiser wrote the former before ONNX had
 * it, and calls the latter SimplifiedLayerNormalization. */
static int lower_layer_norm(struct mdl_lower *l, int rms)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NORM);
    int64_t axis = mdl_l_int(l, "axis", -1);
    size_t at, rank;
    int r = need_f32(l, 2, rms ? 2 : 3);

    r = r < 0 ? r : take_epsilon(l, 1e-5f, &op);
    if (r < 0) {
        return r;
    }
    rank = mdl_l_value(l, l->in[0])->rank;
    r = mdl_l_axis(l, axis, rank, false, &at);
    if (r < 0) {
        return r;
    }
    for (size_t i = at; i < rank; i++) {
        op.op.attr.norm.axes[i] = true;
    }
    op.op.attr.norm.rms = rms != 0;
    r = make_norm(l, &op, l->in[0], l->in[1], rms ? MDL_NONE : mdl_l_in(l, 2), &l->out[0]);
    if (r == 0 && any_output(l, 1, 2)) {
        /* RMS norms have the inverse as their second output */
        r = moments(l, &op, l->in[0], 1, rms ? 1 : 2);
    }
    return r;
}

/* Input 1 added to input 0, then a bias if there is one, then the norm. Output 3 is the sum. */
static int lower_skip_norm(struct mdl_lower *l, int rms)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NORM);
    size_t beta = rms ? MDL_NONE : mdl_l_in(l, 3), bias = mdl_l_in(l, rms ? 3 : 4), x, rank;
    int r = need_f32(l, 3, 5);

    r = r < 0 ? r : take_epsilon(l, 1e-12f, &op);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_ADD, l->in[0], l->in[1], &x);
    if (r == 0 && bias != MDL_NONE) {
        r = mdl_ir_binary(l->ir, MDL_BIN_ADD, x, bias, &x);
    }
    if (r < 0) {
        return r;
    }
    rank = mdl_l_value(l, x)->rank;
    if (rank == 0 || !mdl_ir_same_dims(mdl_l_value(l, x), mdl_l_value(l, l->in[0]))) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "inputs 1 and 4 do not broadcast to input 0");
    }
    op.op.attr.norm.axes[rank - 1] = true;
    op.op.attr.norm.rms = rms != 0;
    if (any_output(l, 3, 3)) {
        l->out[3] = x;
    }
    r = make_norm(l, &op, x, l->in[2], beta, &l->out[0]);
    return r < 0 || !any_output(l, 1, 2) ? r : moments(l, &op, x, 1, 2);
}

/* Values per channel, or per group, in the rank of the images. */
static int channel_view(struct mdl_lower *l, size_t v, size_t rank, const size_t *head,
                        size_t head_rank, size_t *ret)
{
    size_t dim[MDL_RANK_MAX];

    for (size_t i = 0; i < rank; i++) {
        dim[i] = i >= 1 && i <= head_rank ? head[i - 1] : 1;
    }
    return mdl_ir_reshape(l->ir, v, rank, dim, ret);
}

static int check_channels(struct mdl_lower *l, size_t values)
{
    for (size_t i = 1; i < 3; i++) {
        const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

        if (mdl_ir_elements(v) != values) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "input %zu has %zu values; it must have %zu", i,
                                 mdl_ir_elements(v), values);
        }
    }
    return 0;
}

static int lower_instance_norm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NORM);
    size_t scale, bias, rank, channels;
    int r = need_f32(l, 3, 3);

    r = r < 0 ? r : take_epsilon(l, 1e-5f, &op);
    if (r < 0) {
        return r;
    }
    rank = mdl_l_value(l, l->in[0])->rank;
    if (rank < 2) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "input of rank %zu is not supported (2 and more are)", rank);
    }
    channels = mdl_l_value(l, l->in[0])->dim[1];
    for (size_t i = 2; i < rank; i++) {
        op.op.attr.norm.axes[i] = true;
    }
    r = check_channels(l, channels);
    r = r < 0 ? r : channel_view(l, l->in[1], rank, &channels, 1, &scale);
    r = r < 0 ? r : channel_view(l, l->in[2], rank, &channels, 1, &bias);
    return r < 0 ? r : make_norm(l, &op, l->in[0], scale, bias, &l->out[0]);
}

/* [N, C, ...] as [N, groups, C / groups, ...]; from opset 21 on scale and bias are per channel,
 * before per group. */
static int lower_group_norm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NORM);
    int64_t groups = mdl_l_int(l, "num_groups", 0);
    struct mdl_ir_value x;
    size_t dim[MDL_RANK_MAX], scale, bias, y, split = l->opset < 21 ? 1 : 2;
    int r = need_f32(l, 3, 3);

    r = r < 0 ? r : take_epsilon(l, 1e-5f, &op);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    if (x.rank < 2 || x.rank >= MDL_RANK_MAX || groups <= 0 || x.dim[1] % (size_t)groups != 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "num_groups is %lld for an input of rank %zu with %zu channels; it "
                             "must divide them",
                             (long long)groups, x.rank, x.rank < 2 ? (size_t)0 : x.dim[1]);
    }
    dim[0] = x.dim[0];
    dim[1] = (size_t)groups;
    dim[2] = x.dim[1] / (size_t)groups;
    op.op.attr.norm.axes[2] = true;
    for (size_t i = 2; i < x.rank; i++) {
        dim[i + 1] = x.dim[i];
        op.op.attr.norm.axes[i + 1] = true;
    }
    r = check_channels(l, split == 1 ? (size_t)groups : x.dim[1]);
    r = r < 0 ? r : mdl_ir_reshape(l->ir, l->in[0], x.rank + 1, dim, &y);
    r = r < 0 ? r : channel_view(l, l->in[1], x.rank + 1, dim + 1, split, &scale);
    r = r < 0 ? r : channel_view(l, l->in[2], x.rank + 1, dim + 1, split, &bias);
    r = r < 0 ? r : make_norm(l, &op, y, scale, bias, &y);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, x.rank, x.dim, &l->out[0]);
}

#define MICROSOFT "com.microsoft"

const struct mdl_lower_row mdl_lower_norms[] = {
    {"LayerNormalization", lower_layer_norm, 0, MDL_LOWER_BOTH},
    {"RMSNormalization", lower_layer_norm, 1},
    {"SimplifiedLayerNormalization", lower_layer_norm, 1, MDL_LOWER_BOTH},
    {"SkipLayerNormalization", lower_skip_norm, 0, MICROSOFT},
    {"SkipSimplifiedLayerNormalization", lower_skip_norm, 1, MICROSOFT},
    {"InstanceNormalization", lower_instance_norm, 0},
    {"GroupNormalization", lower_group_norm, 0},
    {0},
};
