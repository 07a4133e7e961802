/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/ir/rows.h"
#include "model/lower/indices.h"

/* Operators that take elements by index: Gather, GatherElements, GatherND, Compress. */

/* Dims of x with those of the index in place of @axis. Return: how many. */
static size_t gathered_dims(const struct mdl_ir_value *x, size_t axis, size_t index_rank,
                            const size_t *index_dim, size_t *ret)
{
    size_t rank = 0;

    for (size_t i = 0; i < x->rank; i++) {
        for (size_t k = 0; k < (i == axis ? index_rank : 1); k++) {
            ret[rank++] = i == axis ? index_dim[k] : x->dim[i];
        }
    }
    return rank;
}

/* One constant index is a slice. */
static size_t gather_one(struct mdl_lower *l, size_t axis, size_t index,
                         const struct mdl_ir_value *at)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX], rank = gathered_dims(&x, axis, at->rank, at->dim, dim), y;
    size_t rows_at = x.rows_dim < axis                          ? 1 + x.rows_dim
                     : x.rows_dim > axis && x.rows_dim < x.rank ? x.rows_dim + at->rank
                                                                : 0;

    y = mdl_ir_part(l->ir, l->in[0], axis, index, 1);
    return mdl_ir_reshape_rows(l->ir, y, rank, dim, rows_at);
}

/* y = x gathered by the value @index along @axis */
static size_t gather(struct mdl_lower *l, size_t source, size_t index, size_t axis)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GATHER);
    const struct mdl_ir_value *x = mdl_l_value(l, source), *at = mdl_l_value(l, index);
    size_t dim[MDL_RANK_MAX];

    if (x->rank - 1 + at->rank > MDL_RANK_MAX) {
        return mdl_l_refuse(l, -E2BIG, "the output's rank is more than %u", MDL_RANK_MAX);
    }
    if (at->data && mdl_ir_elements(at) == 1 && source == l->in[0] &&
        !mdl_rows_along(l->ir, source, axis)) {
        return gather_one(l, axis, (size_t)mdl_const_int(at, 0), at);
    }
    if (x->dim[axis] == 0 && mdl_ir_elements(at)) {
        return mdl_l_refuse(l, -EBADMSG, "dimension %zu of input 0 is empty", axis);
    }
    op.op.attr.gather.axis = axis;
    op.op.in[0] = source;
    op.op.in[1] = index;
    return mdl_ir_emit(l->ir, &op, x->dtype, gathered_dims(x, axis, at->rank, at->dim, dim), dim);
}

static size_t lower_gather(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false), index = l->in[1];

    if (!mdl_rows_along(l->ir, l->in[0], axis)) {
        index = mdl_l_indices(l, 1, x->dim[axis]);
    } else {
        mdl_l_index_type(l, 1); /* an index counts within the valid rows */
    }
    return l->ir->failure ? MDL_NONE : gather(l, l->in[0], index, axis);
}

static size_t lower_gather_elements(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_GATHER_ELEMENTS, 1);
    size_t axis, index = mdl_l_along(l, &axis);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *at = mdl_l_value(l, index);

    if (x->dim[axis] == 0 && mdl_ir_elements(at)) {
        return mdl_l_refuse(l, -EBADMSG, "dimension %zu of input 0 is empty", axis);
    }
    op.op.attr.gather.axis = axis;
    op.op.in[1] = index;
    return mdl_ir_emit(l->ir, &op, x->dtype, at->rank, at->dim);
}

static size_t lower_gather_nd(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_GATHER_ND, 1);
    const struct mdl_ir_value *x, *at;
    size_t dim[MDL_RANK_MAX], rank = 0, width, batch, index;
    int64_t batch_dims = mdl_l_int(l, "batch_dims", 0);

    if (mdl_l_tuples(l, batch_dims, &index, &width) != 0) {
        return MDL_NONE;
    }
    x = mdl_l_value(l, l->in[0]);
    at = mdl_l_value(l, index);
    batch = (size_t)batch_dims;
    for (size_t i = 0; i < batch; i++) {
        if (x->dim[i] != at->dim[i]) {
            return mdl_l_refuse(l, -EBADMSG, "batch dimension %zu is %zu and %zu", i, x->dim[i],
                                at->dim[i]);
        }
    }
    if (at->rank - 1 + x->rank - batch - width > MDL_RANK_MAX) {
        return mdl_l_refuse(l, -E2BIG, "the output's rank is more than %u", MDL_RANK_MAX);
    }
    for (size_t i = 0; i + 1 < at->rank; i++) {
        dim[rank++] = at->dim[i];
    }
    for (size_t i = batch + width; i < x->rank; i++) {
        dim[rank++] = x->dim[i];
    }
    op.op.attr.gather.batch_dims = batch;
    op.op.in[1] = index;
    return mdl_ir_emit(l->ir, &op, x->dtype, rank, dim);
}

/* A constant condition: its true places are the indices of a Gather. */
static size_t places_of_constant(struct mdl_lower *l, size_t n)
{
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[1]);
    size_t count = 0;
    int64_t *at = mdl_ir_fold_alloc(l->ir, c->dim[0] * sizeof(*at));

    for (size_t i = 0; at && i < c->dim[0]; i++) {
        if (!mdl_const_int(c, i)) {
            continue;
        }
        if (i >= n) {
            return mdl_l_refuse(l, -EBADMSG,
                                "the condition is true at %zu, outside a dimension of %zu", i, n);
        }
        at[count++] = (int64_t)i;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, 1, &count, at, false);
}

/* A computed condition: as many indices as it has true places. */
static size_t places_of_computed(struct mdl_lower *l, size_t n)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NON_ZERO);
    size_t dim[2] = {1, mdl_l_value(l, l->in[1])->dim[0]}, y;

    if (dim[1] > n || dim[1] == 0) {
        return mdl_l_refuse(l, -EOPNOTSUPP,
                            "the condition has %zu elements; a computed one must have 1 to %zu",
                            dim[1], n);
    }
    op.op.in[0] = l->in[1];
    mdl_ir_value_new(l->ir, MDL_I64, 1, (size_t[]){1}, &op.op.out[1]);
    y = mdl_ir_emit(l->ir, &op, MDL_I64, 2, dim);
    return y == MDL_NONE || mdl_rows_set(l->ir, y, 1, op.op.out[1]) != 0
               ? MDL_NONE
               : mdl_ir_reshape(l->ir, y, 1, &dim[1]);
}

static size_t lower_compress(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[1]), *v = mdl_l_value(l, l->in[0]);
    size_t axis = 0, x = l->in[0], all = mdl_ir_elements(v);

    if (c->dtype != MDL_BOOL || c->rank != 1) {
        return mdl_l_refuse(l, -EBADMSG, "the condition must be a list of bool");
    }
    if (mdl_l_attr(l, "axis")) {
        axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), v->rank, false);
    } else {
        x = mdl_ir_reshape(l->ir, x, 1, &all);
    }
    if (l->ir->failure != 0 || mdl_rows_fixed(l->ir, x, axis) != 0) {
        return MDL_NONE;
    }
    all = mdl_l_value(l, x)->dim[axis];
    return gather(l, x,
                  mdl_ir_is_const(l->ir, l->in[1]) ? places_of_constant(l, all)
                                                   : places_of_computed(l, all),
                  axis);
}

const struct mdl_lower_row mdl_lower_gathers[] = {
    {"Gather", lower_gather, 2},
    {"GatherElements", lower_gather_elements, 2},
    {"GatherND", lower_gather_nd, 2},
    {"Compress", lower_compress, 2},
    {0},
};
