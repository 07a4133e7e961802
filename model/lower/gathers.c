/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/ir/rows.h"
#include "model/lower/indices.h"

/* Operators that take elements by index: Gather, GatherElements, GatherND, Compress. */

/* One constant index is a slice. */
static int gather_one(struct mdl_lower *l, size_t axis, size_t index, size_t index_rank)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t start[MDL_RANK_MAX] = {0}, dim[MDL_RANK_MAX], rank = 0, at = 0, y;
    ptrdiff_t step[MDL_RANK_MAX];
    int r;

    for (size_t i = 0; i < x.rank; i++) {
        step[i] = 1;
        if (i != axis) {
            at = i == x.rows_dim ? 1 + rank : at;
            dim[rank++] = x.dim[i];
            continue;
        }
        for (size_t k = 0; k < index_rank; k++) {
            dim[rank++] = 1;
        }
    }
    start[axis] = index;
    x.dim[axis] = 1;
    r = mdl_ir_slice(l->ir, l->in[0], start, step, x.dim, &y);
    return r < 0 ? r : mdl_ir_reshape_rows(l->ir, y, rank, dim, at, &l->out[0]);
}

/* y = x gathered by the value @index along @axis; *ret unchanged on failure. */
static int gather(struct mdl_lower *l, size_t source, size_t index, size_t axis, size_t *ret)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GATHER);
    const struct mdl_ir_value *x = mdl_l_value(l, source), *at = mdl_l_value(l, index);
    size_t dim[MDL_RANK_MAX], rank = 0;

    if (x->rank - 1 + at->rank > MDL_RANK_MAX) {
        return mdl_ir_refuse(l->ir, -E2BIG, "the output's rank is more than %u", MDL_RANK_MAX);
    }
    if (x->dim[axis] == 0 && mdl_ir_elements(at)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of input 0 is empty", axis);
    }
    for (size_t i = 0; i < x->rank; i++) {
        if (i != axis) {
            dim[rank++] = x->dim[i];
            continue;
        }
        for (size_t k = 0; k < at->rank; k++) {
            dim[rank++] = at->dim[k];
        }
    }
    op.op.attr.gather.axis = axis;
    op.op.in[0] = source;
    op.op.in[1] = index;
    return mdl_ir_emit(l->ir, &op, x->dtype, rank, dim, ret);
}

static int lower_gather(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x, *at;
    size_t axis, index;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    index = l->in[1];
    x = mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false, &axis);
    if (r < 0) {
        return r;
    }
    if (mdl_rows_along(l->ir, l->in[0], axis)) { /* an index counts within the valid rows */
        r = mdl_l_index_type(l, 1);
        return r < 0 ? r : gather(l, l->in[0], index, axis, &l->out[0]);
    }
    r = mdl_l_indices(l, 1, x->dim[axis], &index);
    if (r < 0) {
        return r;
    }
    at = mdl_l_value(l, index);
    if (at->data && mdl_ir_elements(at) == 1) {
        x = mdl_l_value(l, l->in[0]);
        if (x->rank - 1 + at->rank > MDL_RANK_MAX) {
            return mdl_ir_refuse(l->ir, -E2BIG, "the output's rank is more than %u", MDL_RANK_MAX);
        }
        return gather_one(l, axis, (size_t)mdl_const_int(at, 0), at->rank);
    }
    return gather(l, l->in[0], index, axis, &l->out[0]);
}

static int lower_gather_elements(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GATHER_ELEMENTS);
    const struct mdl_ir_value *x, *at;
    size_t axis, index;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false, &axis);
    r = r < 0 ? r : mdl_l_indices(l, 1, x->dim[axis], &index);
    r = r < 0 ? r : mdl_l_index_shape(l, index, axis);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    at = mdl_l_value(l, index);
    if (x->dim[axis] == 0 && mdl_ir_elements(at)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of input 0 is empty", axis);
    }
    op.op.attr.gather.axis = axis;
    op.op.in[0] = l->in[0];
    op.op.in[1] = index;
    return mdl_ir_emit(l->ir, &op, x->dtype, at->rank, at->dim, &l->out[0]);
}

static int lower_gather_nd(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GATHER_ND);
    const struct mdl_ir_value *x, *at;
    size_t dim[MDL_RANK_MAX], rank = 0, width, batch, index;
    int64_t batch_dims = mdl_l_int(l, "batch_dims", 0);
    int r = mdl_l_need(l, 2);

    r = r < 0 ? r : l->error;
    r = r < 0 ? r : mdl_l_tuples(l, batch_dims, &index, &width);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    at = mdl_l_value(l, index);
    batch = (size_t)batch_dims;
    for (size_t i = 0; i < batch; i++) {
        if (x->dim[i] != at->dim[i]) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "batch dimension %zu is %zu and %zu", i,
                                 x->dim[i], at->dim[i]);
        }
    }
    if (at->rank - 1 + x->rank - batch - width > MDL_RANK_MAX) {
        return mdl_ir_refuse(l->ir, -E2BIG, "the output's rank is more than %u", MDL_RANK_MAX);
    }
    for (size_t i = 0; i + 1 < at->rank; i++) {
        dim[rank++] = at->dim[i];
    }
    for (size_t i = batch + width; i < x->rank; i++) {
        dim[rank++] = x->dim[i];
    }
    op.op.attr.gather.batch_dims = batch;
    op.op.in[0] = l->in[0];
    op.op.in[1] = index;
    return mdl_ir_emit(l->ir, &op, x->dtype, rank, dim, &l->out[0]);
}

/* A constant condition: its true places are the indices of a Gather. */
static int places_of_constant(struct mdl_lower *l, size_t n, size_t *ret)
{
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[1]);
    size_t count = 0;
    int64_t *at;
    void *data;
    int r = mdl_ir_fold_alloc(l->ir, c->dim[0] * sizeof(*at), &data);

    if (r < 0) {
        return r;
    }
    at = data;
    for (size_t i = 0; i < c->dim[0]; i++) {
        if (!mdl_const_int(c, i)) {
            continue;
        }
        if (i >= n) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "the condition is true at %zu, outside a dimension of %zu", i, n);
        }
        at[count++] = (int64_t)i;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, 1, &count, data, false, ret);
}

/* A computed condition: as many indices as it has true places. */
static int places_of_computed(struct mdl_lower *l, size_t n, size_t *ret)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NON_ZERO);
    size_t one = 1, dim[2] = {1, mdl_l_value(l, l->in[1])->dim[0]}, y;
    int r;

    if (dim[1] > n || dim[1] == 0) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "the condition has %zu elements; a computed one must have 1 to %zu",
                             dim[1], n);
    }
    op.op.in[0] = l->in[1];
    r = mdl_ir_value_new(l->ir, MDL_I64, 1, &one, &op.op.out[1]);
    r = r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_I64, 2, dim, &y);
    r = r < 0 ? r : mdl_rows_set(l->ir, y, 1, op.op.out[1]);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, 1, &dim[1], ret);
}

static int lower_compress(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *c;
    size_t axis = 0, x, index, all;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    x = l->in[0];
    c = mdl_l_value(l, l->in[1]);
    if (c->dtype != MDL_BOOL || c->rank != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the condition must be a list of bool");
    }
    if (mdl_l_attr(l, "axis")) {
        r = mdl_l_axis(l, mdl_l_int(l, "axis", 0), mdl_l_value(l, x)->rank, false, &axis);
    } else {
        all = mdl_ir_elements(mdl_l_value(l, x));
        r = mdl_ir_reshape(l->ir, x, 1, &all, &x);
    }
    r = r < 0 ? r : l->error;
    r = r < 0 ? r : mdl_rows_fixed(l->ir, x, axis);
    if (r < 0) {
        return r;
    }
    all = mdl_l_value(l, x)->dim[axis];
    r = mdl_ir_is_const(l->ir, l->in[1]) ? places_of_constant(l, all, &index)
                                         : places_of_computed(l, all, &index);
    return r < 0 ? r : gather(l, x, index, axis, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_gathers[] = {
    {"Gather", lower_gather, 0},
    {"GatherElements", lower_gather_elements, 0},
    {"GatherND", lower_gather_nd, 0},
    {"Compress", lower_compress, 0},
    {0},
};
