/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base.h"
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

static int lower_reduce(struct mdl_lower *l, int which)
{
    int64_t axis[MDL_RANK_MAX];
    bool axes[MDL_RANK_MAX] = {0}, keep_dims = mdl_l_int(l, "keepdims", 1) != 0;
    const struct mdl_ir_value *x;
    size_t count;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if (!mdl_l_const_ints(l, 1, axis, MDL_RANK_MAX, &count) && l->error == 0) {
        mdl_l_ints(l, "axes", axis, MDL_RANK_MAX, &count);
    }
    if (l->error < 0) {
        return l->error;
    }
    if (count == 0 && mdl_l_int(l, "noop_with_empty_axes", 0)) {
        l->out[0] = l->in[0];
        return 0;
    }
    for (size_t i = 0; i < x->rank; i++) {
        axes[i] = count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at;

        r = mdl_l_axis(l, axis[i], x->rank, false, &at);
        if (r < 0) {
            return r;
        }
        axes[at] = true;
    }
    for (size_t i = 0; i < x->rank; i++) {
        if (axes[i] && x->dim[i] == 0 && which != MDL_RED_SUM) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "a reduced dimension is empty");
        }
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
    bool keep_dims = mdl_l_int(l, "keepdims", 1) != 0;
    size_t dim[MDL_RANK_MAX], left[MDL_RANK_MAX], rank = 0, at, y;
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
        dim[i] = i == at ? 1 : x->dim[i];
        if (i != at) {
            left[rank++] = x->dim[i];
        }
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
    return mdl_ir_reshape(l->ir, y, rank, left, &l->out[0]);
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
    {"ArgMax", lower_arg, 1},
    {"ArgMin", lower_arg, 0},
    {0},
};
