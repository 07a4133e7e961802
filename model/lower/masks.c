/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that compare positions: masks, one-hot codes, and running sums. */
#include "model/lower/lowering.h"

/* The integers 0 .. n-1 along dimension @at of @rank. */
static size_t positions(struct mdl_lower *l, size_t n, size_t rank, size_t at)
{
    return mdl_lower_beside(l, mdl_lower_count_to(l, n), rank, at);
}

/* y is 1 at the first maximum along @axis of x, else 0. */
static size_t one_at_max(struct mdl_lower *l, size_t x, size_t axis)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_ARG);
    struct mdl_ir_value v = *mdl_l_value(l, x);
    size_t n = v.dim[axis], y;

    mdl_bad_if(l, n == 0, "dimension %zu of the input is 0", axis);
    op.op.attr.arg.axis = axis;
    op.op.attr.arg.max = true;
    op.op.in[0] = x;
    v.dim[axis] = 1;
    y = mdl_ir_emit(l->ir, &op, MDL_I64, v.rank, v.dim);
    y = mdl_ir_binary(l->ir, MDL_BIN_EQUAL, y, positions(l, n, v.rank, axis));
    return mdl_ir_cast(l->ir, y, MDL_F32);
}

/* Before opset 13 over all dims from axis on, as if flattened. */
static size_t lower_hardmax(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    bool old = l->opset < 13;
    size_t at = mdl_l_axis(l, mdl_l_int(l, "axis", old ? 1 : -1), x.rank, old);
    size_t y;

    if (!old) {
        return one_at_max(l, l->in[0], at);
    }
    y = mdl_lower_flatten(l, at);
    return mdl_ir_reshape(l->ir, one_at_max(l, y, 1), x.rank, x.dim);
}

/* The one value of constant input 1 as an integer. */
static int64_t one_integer(struct mdl_lower *l)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[1]);

    mdl_unserved_if(l, !v->data, "input 1 (\"%s\") must be a constant", v->name);
    mdl_bad_if(l, mdl_ir_elements(v) != 1, "input 1 has %zu values; it must have one",
               mdl_ir_elements(v));
    return mdl_const_int(v, 0);
}

/* Indices below zero count from the end. Return: as integers, of @rank dims with one of 1 at @at */
static size_t one_hot_indices(struct mdl_lower *l, int64_t depth, size_t rank, size_t at)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX], v[3];

    for (size_t i = 0; i < rank; i++) {
        dim[i] = i == at ? 1 : x.dim[i - (i > at ? 1 : 0)];
    }
    v[2] = mdl_ir_reshape(l->ir, mdl_ir_cast(l->ir, l->in[0], MDL_I64), rank, dim);
    v[0] = mdl_ir_binary(l->ir, MDL_BIN_LESS, v[2], mdl_ir_scalar(l->ir, MDL_I64, 0));
    v[1] = mdl_ir_binary(l->ir, MDL_BIN_ADD, v[2], mdl_ir_scalar(l->ir, MDL_I64, (double)depth));
    return mdl_ir_where(l->ir, v, rank, dim);
}

/* y = values[1] where the index is that position, values[0] elsewhere: also for all positions if
 * the index is outside -depth .. depth-1 */
static size_t lower_one_hot(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *values = mdl_l_value(l, l->in[2]);
    size_t dim[MDL_RANK_MAX], rank = mdl_l_value(l, l->in[0])->rank + 1, at, index, v[3];
    int64_t depth = one_integer(l);

    mdl_bad_if(l, depth < 1 || depth > INT32_MAX || rank > MDL_RANK_MAX,
               "depth %lld or rank %zu is out of range", (long long)depth, rank);
    mdl_bad_if(l, values->rank != 1 || values->dim[0] != 2,
               "input 2 must hold two values: off and on");
    at = mdl_l_axis(l, mdl_l_int(l, "axis", -1), rank, false);
    index = one_hot_indices(l, depth, rank, at);
    v[0] = mdl_ir_binary(l->ir, MDL_BIN_EQUAL, index, positions(l, (size_t)depth, rank, at));
    v[1] = mdl_ir_part(l->ir, l->in[2], 0, 1, 1);
    v[2] = mdl_ir_part(l->ir, l->in[2], 0, 0, 1);
    rank = mdl_ir_broadcast(l->ir, v, 3, dim);
    return mdl_ir_where(l->ir, v, rank, dim);
}

/* A constant matrix of bytes, 1 where column - row >= k (@upper) or <= k. */
static size_t triangle(struct mdl_lower *l, size_t rows, size_t columns, int64_t k, bool upper)
{
    unsigned char *mask;
    size_t bytes;

    mdl_large_if(l, !base_mul(rows, columns, &bytes), "%zu x %zu is too large", rows, columns);
    mdl_large_if(l, !mdl_ir_fold_work(l->ir, (double)bytes),
                 "computing this at load takes too long");
    mask = mdl_ir_fold_alloc(l->ir, bytes);
    for (size_t i = 0; i < bytes; i++) {
        int64_t diagonal = (int64_t)(i % columns) - (int64_t)(i / columns);

        mask[i] = upper ? diagonal >= k : diagonal <= k;
    }
    return mdl_ir_const_new(l->ir, MDL_BOOL, 2, (size_t[]){rows, columns}, mask, false);
}

static size_t lower_trilu(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    bool upper = mdl_l_int(l, "upper", 1) != 0;
    size_t v[3] = {MDL_NONE, l->in[0], MDL_NONE};
    int64_t k = mdl_l_in(l, 1) != MDL_NONE ? one_integer(l) : 0;

    mdl_bad_if(l, x.rank < 2, "the input has rank %zu; it must have 2 or more", x.rank);
    v[0] = triangle(l, x.dim[x.rank - 2], x.dim[x.rank - 1], k, upper);
    v[2] = mdl_ir_scalar(l->ir, x.dtype, 0);
    return mdl_ir_where(l->ir, v, x.rank, x.dim);
}

static size_t lower_eye_like(struct mdl_lower *l, int arg)
{
    int64_t k = mdl_l_int(l, "k", 0);
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    enum mdl_dtype dtype;
    size_t upper, lower;

    mdl_bad_if(l, x.rank != 2, "the input has rank %zu; it must have rank 2", x.rank);
    dtype = mdl_l_dtype(l, x.dtype);
    upper = triangle(l, x.dim[0], x.dim[1], k, true);
    lower = triangle(l, x.dim[0], x.dim[1], k, false);
    upper = mdl_ir_binary(l->ir, MDL_BIN_AND, upper, lower);
    return mdl_ir_cast(l->ir, upper, dtype);
}

/* All elements in reverse order along @axis: a view. */
static size_t reversed(struct mdl_lower *l, size_t x, size_t axis)
{
    struct mdl_ir_value v = *mdl_l_value(l, x);
    size_t start[MDL_RANK_MAX] = {0};
    ptrdiff_t step[MDL_RANK_MAX];

    for (size_t i = 0; i < v.rank; i++) {
        step[i] = i == axis ? -1 : 1;
    }
    start[axis] = v.dim[axis] ? v.dim[axis] - 1 : 0;
    return mdl_ir_slice(l->ir, x, start, step, v.dim);
}

static size_t lower_cumsum(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_CUMSUM, 1);
    bool reverse = mdl_l_int(l, "reverse", 0) != 0;
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t at, y;

    mdl_bad_if(l, x.dtype == MDL_BOOL, "the input is of type bool; it must be a number");
    at = mdl_l_axis(l, one_integer(l), x.rank, false);
    op.op.attr.cumsum.axis = at;
    op.op.attr.cumsum.exclusive = mdl_l_int(l, "exclusive", 0) != 0;
    op.op.in[0] = reverse ? reversed(l, l->in[0], at) : l->in[0];
    y = mdl_ir_emit(l->ir, &op, x.dtype, x.rank, x.dim);
    return reverse ? reversed(l, y, at) : y;
}

const struct mdl_lower_row mdl_lower_masks[] = {
    {"Hardmax", lower_hardmax, 1, 1},
    {"OneHot", lower_one_hot, 3, .narrow = MDL_NARROW_KEEPS, .like = 2},
    {"Trilu", lower_trilu, 1, .narrow = MDL_NARROW_KEEPS},
    {"EyeLike", lower_eye_like, 1, .narrow = MDL_NARROW_KEEPS},
    {"CumSum", lower_cumsum, 2},
    {0},
};
