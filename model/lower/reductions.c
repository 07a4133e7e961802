/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>

#include "base/base.h"
#include "model/lower/lowering.h"

/* A mean or maximum over all spatial dims is a pool, which has fast primitives. */
static int as_global_pool(struct mdl_lower *l, int kind, bool keep_dims)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, kind);
    struct mdl_window *w = &op.op.attr.pool.window;
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t y;
    int r;

    w->rank = x.rank - 2;
    for (size_t i = 0; i < w->rank; i++) {
        w->kernel[i] = x.dim[i + 2];
        w->stride[i] = w->dilation[i] = 1;
        x.dim[i + 2] = 1;
    }
    op.op.in[0] = l->in[0];
    r = mdl_ir_emit(l->ir, &op, MDL_F32, x.rank, x.dim, &y);
    if (r < 0 || keep_dims) {
        l->out[0] = y;
        return r;
    }
    return mdl_ir_reshape(l->ir, y, 2, x.dim, &l->out[0]);
}

static bool is_global_pool(const struct mdl_lower *l, int which, const bool *axes)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    if (l->ir->options->no_fusion || x->dtype != MDL_F32 || x->rank < 4 || x->rank > 5 ||
        (which != MDL_RED_MEAN && which != MDL_RED_MAX) || mdl_ir_elements(x) == 0) {
        return false;
    }
    for (size_t i = 0; i < x->rank; i++) {
        if (axes[i] != (i >= 2)) {
            return false;
        }
    }
    return true;
}

/* Reductions of model operators, and two that are composed. */
enum { LOG_SUM = MDL_RED_COUNT, LOG_SUM_EXP };

/* Marks the axes to reduce. *ret_none: none, because the file asks for that. */
static int read_reduced(struct mdl_lower *l, bool *axes, bool *ret_none)
{
    int64_t axis[MDL_RANK_MAX];
    size_t count, rank = mdl_l_value(l, l->in[0])->rank;

    if (!mdl_l_const_ints(l, 1, axis, MDL_RANK_MAX, &count) && l->error == 0) {
        mdl_l_ints(l, "axes", axis, MDL_RANK_MAX, &count);
    }
    *ret_none = count == 0 && mdl_l_int(l, "noop_with_empty_axes", 0);
    if (l->error < 0) {
        return l->error;
    }
    for (size_t i = 0; i < rank; i++) {
        axes[i] = count == 0 && !*ret_none;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at;
        int r = mdl_l_axis(l, axis[i], rank, false, &at);

        if (r < 0) {
            return r;
        }
        axes[at] = true;
    }
    return 0;
}

/* A reduction over no axes: what it does to each element, before and after the sum. */
static int reduce_nothing(struct mdl_lower *l, int which)
{
    size_t x = l->in[0];

    switch (which) {
    case MDL_RED_L1:
    case MDL_RED_L2:
        return mdl_ir_unary(l->ir, MDL_ACT_ABS, 0, 0, x, &l->out[0]);
    case MDL_RED_SUM_SQUARE:
        return mdl_ir_binary(l->ir, MDL_BIN_MUL, x, x, &l->out[0]);
    case LOG_SUM:
        return mdl_ir_unary(l->ir, MDL_ACT_LOG, 0, 0, x, &l->out[0]);
    default:
        l->out[0] = x;
        return 0;
    }
}

/* ln(sum e^x) = m + ln(sum e^(x - m)), m the largest x, so that nothing overflows. Limiting m keeps
 * infinities right: inf - inf would be NaN. */
static int log_sum_exp(struct mdl_lower *l, const bool *axes, size_t *ret)
{
    struct mdl_ir *ir = l->ir;
    size_t m, y;
    int r = mdl_ir_reduce(ir, MDL_RED_MAX, l->in[0], axes, true, &m);

    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_CLIP, -FLT_MAX, FLT_MAX, m, &m);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_SUB, l->in[0], m, &y);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_EXP, 0, 0, y, &y);
    r = r < 0 ? r : mdl_ir_reduce(ir, MDL_RED_SUM, y, axes, true, &y);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_LOG, 0, 0, y, &y);
    return r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_ADD, y, m, ret);
}

static int log_of_sum(struct mdl_lower *l, int which, const bool *axes, bool keep_dims)
{
    size_t y;
    int r = mdl_l_f32(l, 0);

    if (r == 0 && which == LOG_SUM_EXP) {
        r = log_sum_exp(l, axes, &y);
    } else if (r == 0) {
        r = mdl_ir_reduce(l->ir, MDL_RED_SUM, l->in[0], axes, true, &y);
        r = r < 0 ? r : mdl_ir_unary(l->ir, MDL_ACT_LOG, 0, 0, y, &y);
    }
    axes = keep_dims ? (const bool[MDL_RANK_MAX]){false} : axes;
    return r < 0 ? r : mdl_ir_drop_dims(l->ir, y, axes, &l->out[0]);
}

static int lower_reduce(struct mdl_lower *l, int which)
{
    bool axes[MDL_RANK_MAX] = {0}, none, keep_dims = mdl_l_int(l, "keepdims", 1) != 0;
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : read_reduced(l, axes, &none);
    if (r < 0 || none) {
        return r < 0 ? r : reduce_nothing(l, which);
    }
    x = mdl_l_value(l, l->in[0]);
    for (size_t i = 0; i < x->rank; i++) {
        if (axes[i] && x->dim[i] == 0 && which == MDL_RED_MEAN) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "a reduced dimension is empty");
        }
    }
    if (which == LOG_SUM || which == LOG_SUM_EXP) {
        return log_of_sum(l, which, axes, keep_dims);
    }
    if (is_global_pool(l, which, axes)) {
        return as_global_pool(l, which == MDL_RED_MEAN ? MDL_OP_AVG_POOL : MDL_OP_MAX_POOL,
                              keep_dims);
    }
    return mdl_ir_reduce(l->ir, (enum mdl_reduce)which, l->in[0], axes, keep_dims, &l->out[0]);
}

static int lower_arg(struct mdl_lower *l, int max)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_ARG);
    bool keep_dims = mdl_l_int(l, "keepdims", 1) != 0, reduced[MDL_RANK_MAX] = {0};
    size_t dim[MDL_RANK_MAX], at, y;
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false, &at);
    if (r < 0) {
        return r;
    }
    if (x->dim[at] == 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of the input is 0", at);
    }
    for (size_t i = 0; i < x->rank; i++) {
        reduced[i] = i == at;
        dim[i] = i == at ? 1 : x->dim[i];
    }
    op.op.attr.arg.axis = at;
    op.op.attr.arg.max = max != 0;
    op.op.attr.arg.last = mdl_l_int(l, "select_last_index", 0) != 0;
    op.op.in[0] = l->in[0];
    r = mdl_ir_emit(l->ir, &op, MDL_I64, x->rank, dim, &y);
    if (r < 0 || keep_dims) {
        l->out[0] = y;
        return r;
    }
    return mdl_ir_drop_dims(l->ir, y, reduced, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_reduces[] = {
    {"ReduceMean", lower_reduce, MDL_RED_MEAN},
    {"ReduceSum", lower_reduce, MDL_RED_SUM},
    {"ReduceMax", lower_reduce, MDL_RED_MAX},
    {"ReduceMin", lower_reduce, MDL_RED_MIN},
    {"ReduceProd", lower_reduce, MDL_RED_PROD},
    {"ReduceL1", lower_reduce, MDL_RED_L1},
    {"ReduceL2", lower_reduce, MDL_RED_L2},
    {"ReduceSumSquare", lower_reduce, MDL_RED_SUM_SQUARE},
    {"ReduceLogSum", lower_reduce, LOG_SUM},
    {"ReduceLogSumExp", lower_reduce, LOG_SUM_EXP},
    {"ArgMax", lower_arg, 1},
    {"ArgMin", lower_arg, 0},
    {0},
};
