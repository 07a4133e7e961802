/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, ArgMax and ArgMin. */
#include <float.h>

#include "model/lower/lowering.h"

/* A mean or maximum over all spatial dims is a pool, which has fast primitives. */
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
static void read_reduced(struct mdl_lower *l, bool *axes, bool *ret_none)
{
    int64_t axis[MDL_RANK_MAX];
    size_t count, rank = mdl_l_value(l, l->in[0])->rank;

    if (!mdl_l_const_ints(l, 1, axis, MDL_RANK_MAX, &count)) {
        mdl_l_ints(l, "axes", axis, MDL_RANK_MAX, &count);
    }
    *ret_none = count == 0 && mdl_l_int(l, "noop_with_empty_axes", 0);
    mdl_l_marked(l, axis, count, rank, axes);
    for (size_t i = 0; i < rank; i++) {
        axes[i] |= count == 0 && !*ret_none;
    }
}

/* A reduction over no axes: what it does to each element, before and after the sum. */
static size_t reduce_nothing(struct mdl_lower *l, int which)
{
    size_t x = l->in[0];

    switch (which) {
    case MDL_RED_L1:
    case MDL_RED_L2:
        return mdl_ir_unary(l->ir, MDL_ACT_ABS, 0, 0, x);
    case MDL_RED_SUM_SQUARE:
        return mdl_ir_binary(l->ir, MDL_BIN_MUL, x, x);
    case LOG_SUM:
        return mdl_ir_unary(l->ir, MDL_ACT_LOG, 0, 0, x);
    default:
        return x;
    }
}

/* ln(sum e^x) = m + ln(sum e^(x - m)), m the largest x, so that nothing overflows. Limiting m keeps
 * infinities right: inf - inf would be NaN. */
static size_t log_sum_exp(struct mdl_lower *l, const bool *axes)
{
    struct mdl_ir *ir = l->ir;
    size_t m = mdl_ir_reduce(ir, MDL_RED_MAX, l->in[0], axes, true), y;

    m = mdl_ir_unary(ir, MDL_ACT_CLIP, -FLT_MAX, FLT_MAX, m);
    y = mdl_ir_binary(ir, MDL_BIN_SUB, l->in[0], m);
    y = mdl_ir_unary(ir, MDL_ACT_EXP, 0, 0, y);
    y = mdl_ir_reduce(ir, MDL_RED_SUM, y, axes, true);
    y = mdl_ir_unary(ir, MDL_ACT_LOG, 0, 0, y);
    return mdl_ir_binary(ir, MDL_BIN_ADD, y, m);
}

static size_t log_sum(struct mdl_lower *l, const bool *axes)
{
    size_t y = mdl_ir_reduce(l->ir, MDL_RED_SUM, l->in[0], axes, true);

    return mdl_ir_unary(l->ir, MDL_ACT_LOG, 0, 0, y);
}

static size_t lower_reduce(struct mdl_lower *l, int which)
{
    bool axes[MDL_RANK_MAX] = {0}, none, keep_dims = mdl_l_int(l, "keepdims", 1) != 0;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t y;

    read_reduced(l, axes, &none);
    if (none) {
        return reduce_nothing(l, which);
    }
    for (size_t i = 0; i < x->rank; i++) {
        mdl_unserved_if(l, axes[i] && x->dim[i] == 0 && which == MDL_RED_MEAN,
                        "a reduced dimension is empty");
    }
    if (which == LOG_SUM || which == LOG_SUM_EXP) {
        y = which == LOG_SUM ? log_sum(l, axes) : log_sum_exp(l, axes);
    } else if (is_global_pool(l, which, axes)) {
        y = mdl_lower_whole_pool(l, which == MDL_RED_MEAN ? MDL_OP_AVG_POOL : MDL_OP_MAX_POOL,
                                 l->in[0]);
    } else {
        return mdl_ir_reduce(l->ir, (enum mdl_reduce)which, l->in[0], axes, keep_dims);
    }
    return keep_dims ? y : mdl_ir_drop_dims(l->ir, y, axes);
}

static size_t lower_arg(struct mdl_lower *l, int max)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_ARG, 1);
    bool keep_dims = mdl_l_int(l, "keepdims", 1) != 0, reduced[MDL_RANK_MAX] = {0};
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t at = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x.rank, false), y;

    mdl_bad_if(l, x.rank > 0 && x.dim[at] == 0, "dimension %zu of the input is 0", at);
    reduced[at] = true;
    x.dim[at] = 1;
    op.op.attr.arg.axis = at;
    op.op.attr.arg.max = max != 0;
    op.op.attr.arg.last = mdl_l_int(l, "select_last_index", 0) != 0;
    y = mdl_ir_emit(l->ir, &op, MDL_I64, x.rank, x.dim);
    return keep_dims ? y : mdl_ir_drop_dims(l->ir, y, reduced);
}

const struct mdl_lower_row mdl_lower_reduces[] = {
    {"ReduceMean", lower_reduce, 1, 0, MDL_RED_MEAN},
    {"ReduceSum", lower_reduce, 1, 0, MDL_RED_SUM},
    {"ReduceMax", lower_reduce, 1, 0, MDL_RED_MAX},
    {"ReduceMin", lower_reduce, 1, 0, MDL_RED_MIN},
    {"ReduceProd", lower_reduce, 1, 0, MDL_RED_PROD},
    {"ReduceL1", lower_reduce, 1, 0, MDL_RED_L1},
    {"ReduceL2", lower_reduce, 1, 0, MDL_RED_L2},
    {"ReduceSumSquare", lower_reduce, 1, 0, MDL_RED_SUM_SQUARE},
    {"ReduceLogSum", lower_reduce, 1, 1, LOG_SUM},
    {"ReduceLogSumExp", lower_reduce, 1, 1, LOG_SUM_EXP},
    {"ArgMax", lower_arg, 1, 0, 1},
    {"ArgMin", lower_arg, 1, 0, 0},
    {0},
};
