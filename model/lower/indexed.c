/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that take elements by index, or put updates there: Gather, GatherElements, GatherND,
 * Compress, ScatterElements, Scatter, ScatterND. */
#include "model/lower/lowering.h"

/* ---- indices: constant ones are checked here, others are made safe by the kernels ---- */

/* Refuses input @i unless it is i32 or i64. */
static void check_index_type(struct mdl_lower *l, size_t i)
{
    enum mdl_dtype t = mdl_l_value(l, l->in[i])->dtype;

    mdl_bad_if(l, t != MDL_I64 && t != MDL_I32,
               "the indices have type %s; they must be int32 or int64", mdl_dtype_name(t));
}

/* Constant indices, the k-th of a dim of n[k % period], as a new constant. */
static size_t fix(struct mdl_lower *l, const struct mdl_ir_value *v, const size_t *n, size_t period)
{
    size_t count = mdl_ir_elements(v);
    int64_t *fixed = mdl_ir_fold_alloc(l->ir, count * sizeof(*fixed));

    for (size_t i = 0; i < count; i++) {
        int64_t at = mdl_const_int(v, i), end = (int64_t)n[i % period];

        mdl_bad_if(l, at < -end || at >= end, "index %lld is outside a dimension of %lld",
                   (long long)at, (long long)end);
        fixed[i] = at < 0 ? at + end : at;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, v->rank, v->dim, fixed, false);
}

/* Input @i, or a constant with its indices, which are of a dim of @n, in 0..n-1. */
static size_t indices_of(struct mdl_lower *l, size_t i, size_t n)
{
    struct mdl_ir_value v = *mdl_l_value(l, l->in[i]);

    check_index_type(l, i);
    return v.data ? fix(l, &v, &n, 1) : l->in[i];
}

/* Input 1 as indices along *ret_axis, which attribute axis says; refused if they are outside
 * input 0 in another dim. */
static size_t indices_along(struct mdl_lower *l, size_t *ret_axis)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *v;
    size_t axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false);
    size_t index = indices_of(l, 1, x->dim[axis]);

    *ret_axis = axis;
    x = mdl_l_value(l, l->in[0]);
    v = mdl_l_value(l, index);
    mdl_bad_if(l, v->rank != x->rank, "the indices have rank %zu, the input has rank %zu", v->rank,
               x->rank);
    for (size_t d = 0; d < x->rank; d++) {
        mdl_bad_if(l, d != axis && v->dim[d] > x->dim[d],
                   "dimension %zu of the indices is %zu, of the input %zu", d, v->dim[d],
                   x->dim[d]);
    }
    return index;
}

/* Input 1 as rows of indices, of the dims of input 0 after @batch_dims; *ret_width: indices in a
 * row. */
static void tuples(struct mdl_lower *l, int64_t batch_dims, size_t *ret, size_t *ret_width)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), v = *mdl_l_value(l, l->in[1]);
    size_t batch = (size_t)batch_dims, width;

    check_index_type(l, 1);
    mdl_bad_if(
        l, v.rank == 0 || batch_dims < 0 || batch >= v.rank || batch >= base_max(x.rank, (size_t)1),
        "%lld batch dimensions do not fit indices of rank %zu and an input of "
        "rank %zu",
        (long long)batch_dims, v.rank, x.rank);
    width = v.dim[v.rank - 1];
    mdl_bad_if(l, width > x.rank - batch,
               "%zu indices in a row; the input has %zu dimensions for them", width,
               x.rank - batch);
    for (size_t d = batch; d < batch + width; d++) {
        mdl_bad_if(l, x.dim[d] == 0 && mdl_ir_elements(&v), "dimension %zu of input 0 is empty", d);
    }
    *ret_width = width;
    *ret = v.data && width ? fix(l, &v, &x.dim[batch], width) : l->in[1];
}

/* ---- gathers ---- */

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

    mdl_large_if(l, x->rank - 1 + at->rank > MDL_RANK_MAX, "the output's rank is more than %u",
                 MDL_RANK_MAX);
    if (at->data && mdl_ir_elements(at) == 1 && source == l->in[0] &&
        !mdl_rows_along(l->ir, source, axis)) {
        return gather_one(l, axis, (size_t)mdl_const_int(at, 0), at);
    }
    mdl_bad_if(l, x->dim[axis] == 0 && mdl_ir_elements(at), "dimension %zu of input 0 is empty",
               axis);
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
        index = indices_of(l, 1, x->dim[axis]);
    } else {
        check_index_type(l, 1); /* an index counts within the valid rows */
    }
    return gather(l, l->in[0], index, axis);
}

static size_t lower_gather_elements(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_GATHER_ELEMENTS, 1);
    size_t axis, index = indices_along(l, &axis);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *at = mdl_l_value(l, index);

    mdl_bad_if(l, x->dim[axis] == 0 && mdl_ir_elements(at), "dimension %zu of input 0 is empty",
               axis);
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

    tuples(l, batch_dims, &index, &width);
    x = mdl_l_value(l, l->in[0]);
    at = mdl_l_value(l, index);
    batch = (size_t)batch_dims;
    for (size_t i = 0; i < batch; i++) {
        mdl_bad_if(l, x->dim[i] != at->dim[i], "batch dimension %zu is %zu and %zu", i, x->dim[i],
                   at->dim[i]);
    }
    mdl_large_if(l, at->rank - 1 + x->rank - batch - width > MDL_RANK_MAX,
                 "the output's rank is more than %u", MDL_RANK_MAX);
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

    for (size_t i = 0; i < c->dim[0]; i++) {
        if (!mdl_const_int(c, i)) {
            continue;
        }
        mdl_bad_if(l, i >= n, "the condition is true at %zu, outside a dimension of %zu", i, n);
        at[count++] = (int64_t)i;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, 1, &count, at, false);
}

/* A computed condition: as many indices as it has true places. */
static size_t places_of_computed(struct mdl_lower *l, size_t n)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NON_ZERO);
    size_t dim[2] = {1, mdl_l_value(l, l->in[1])->dim[0]}, y;

    mdl_unserved_if(l, dim[1] > n || dim[1] == 0,
                    "the condition has %zu elements; a computed one must have 1 to %zu", dim[1], n);
    op.op.in[0] = l->in[1];
    op.op.out[1] = mdl_ir_value_new(l->ir, MDL_I64, 1, (size_t[]){1});
    y = mdl_ir_emit(l->ir, &op, MDL_I64, 2, dim);
    mdl_rows_set(l->ir, y, 1, op.op.out[1]);
    return mdl_ir_reshape(l->ir, y, 1, &dim[1]);
}

static size_t lower_compress(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[1]), *v = mdl_l_value(l, l->in[0]);
    size_t axis = 0, x = l->in[0], all = mdl_ir_elements(v);

    mdl_bad_if(l, c->dtype != MDL_BOOL || c->rank != 1, "the condition must be a list of bool");
    if (mdl_l_attr(l, "axis")) {
        axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), v->rank, false);
    } else {
        x = mdl_ir_reshape(l->ir, x, 1, &all);
    }
    mdl_rows_fixed(l->ir, x, axis);
    all = mdl_l_value(l, x)->dim[axis];
    return gather(l, x,
                  mdl_ir_is_const(l->ir, l->in[1]) ? places_of_constant(l, all)
                                                   : places_of_computed(l, all),
                  axis);
}

/* ---- scatters ---- */

/* "add" and "mul" came with opset 16, "min" and "max" with opset 18. */
static enum mdl_scatter reduction(struct mdl_lower *l)
{
    static const struct {
        const char *name;
        int64_t since;
    } names[MDL_SCATTER_COUNT] = {
        [MDL_SCATTER_NONE] = {"none", 0}, [MDL_SCATTER_ADD] = {"add", 16},
        [MDL_SCATTER_MUL] = {"mul", 16},  [MDL_SCATTER_MIN] = {"min", 18},
        [MDL_SCATTER_MAX] = {"max", 18},
    };
    const char *name = mdl_l_string(l, "reduction", "none");

    for (size_t i = 0; i < MDL_SCATTER_COUNT; i++) {
        if (strcmp(name, names[i].name) == 0 && l->opset >= names[i].since) {
            return (enum mdl_scatter)i;
        }
    }
    mdl_l_refuse(l, -EOPNOTSUPP, "reduction \"%s\" is not known in opset %lld", name,
                 (long long)l->opset);
}

static void same_type(struct mdl_lower *l)
{
    enum mdl_dtype x = mdl_l_value(l, l->in[0])->dtype, u = mdl_l_value(l, l->in[2])->dtype;

    mdl_bad_if(l, x != u, "the updates have type %s, the input has type %s", mdl_dtype_name(u),
               mdl_dtype_name(x));
}

static size_t emit_scatter(struct mdl_lower *l, struct mdl_ir_op *op, size_t index)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    op->op.in[1] = index;
    return mdl_ir_emit(l->ir, op, x->dtype, x->rank, x->dim);
}

static size_t lower_scatter_elements(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_SCATTER_ELEMENTS, 3);
    size_t index;

    same_type(l);
    op.op.attr.scatter.which = reduction(l);
    index = indices_along(l, &op.op.attr.scatter.axis);
    mdl_bad_if(l, !mdl_ir_same_dims(mdl_l_value(l, index), mdl_l_value(l, l->in[2])),
               "the updates and the indices differ in shape");
    return emit_scatter(l, &op, index);
}

static size_t lower_scatter_nd(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_SCATTER_ND, 3);
    struct mdl_ir_value want;
    const struct mdl_ir_value *x, *at, *u;
    size_t index, width;

    same_type(l);
    op.op.attr.scatter.which = reduction(l);
    tuples(l, 0, &index, &width);
    x = mdl_l_value(l, l->in[0]);
    at = mdl_l_value(l, index);
    u = mdl_l_value(l, l->in[2]);
    want = (struct mdl_ir_value){.rank = at->rank - 1 + x->rank - width};
    if (u->rank == want.rank) {
        memcpy(want.dim, at->dim, (at->rank - 1) * sizeof(want.dim[0]));
        memcpy(want.dim + at->rank - 1, x->dim + width, (x->rank - width) * sizeof(want.dim[0]));
    }
    mdl_bad_if(l, !mdl_ir_same_dims(u, &want),
               "the shape of the updates is not that of the indices' rows and of the "
               "dimensions that they leave");
    return emit_scatter(l, &op, index);
}

const struct mdl_lower_row mdl_lower_indexed[] = {
    {"Gather", lower_gather, 2, .narrow = MDL_NARROW_KEEPS},
    {"GatherElements", lower_gather_elements, 2, .narrow = MDL_NARROW_KEEPS},
    {"GatherND", lower_gather_nd, 2, .narrow = MDL_NARROW_KEEPS},
    {"Compress", lower_compress, 2, .narrow = MDL_NARROW_KEEPS},
    {"Scatter", lower_scatter_elements, 3, .narrow = MDL_NARROW_KEEPS},
    {"ScatterElements", lower_scatter_elements, 3, .narrow = MDL_NARROW_WRAPS},
    {"ScatterND", lower_scatter_nd, 3, .narrow = MDL_NARROW_WRAPS},
    {0},
};
