/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/lower/lowering.h"

/* Operators that compare positions: masks, one-hot codes, and running sums. */

/* The integers 0 .. n-1 along dimension @at of @rank. */
static int positions(struct mdl_lower *l, size_t n, size_t rank, size_t at, size_t *ret)
{
    size_t dim[MDL_RANK_MAX];
    int64_t *value;
    void *data;
    size_t bytes;
    int r;

    if (!base_mul(n, sizeof(*value), &bytes)) {
        return mdl_ir_refuse(l->ir, -E2BIG, "%zu positions are too many", n);
    }
    r = mdl_ir_fold_alloc(l->ir, bytes, &data);
    if (r < 0) {
        return r;
    }
    value = data;
    for (size_t i = 0; i < n; i++) {
        value[i] = (int64_t)i;
    }
    for (size_t i = 0; i < rank; i++) {
        dim[i] = i == at ? n : 1;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, rank, dim, data, false, ret);
}

/* y is 1 at the first maximum along @axis of x, else 0. */
static int one_at_max(struct mdl_lower *l, size_t x, size_t axis, size_t *ret)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_ARG);
    struct mdl_ir_value v = *mdl_l_value(l, x);
    size_t at, n = v.dim[axis], y;
    int r;

    if (n == 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of the input is 0", axis);
    }
    op.op.attr.arg.axis = axis;
    op.op.attr.arg.max = true;
    op.op.in[0] = x;
    v.dim[axis] = 1;
    r = mdl_ir_emit(l->ir, &op, MDL_I64, v.rank, v.dim, &y);
    r = r < 0 ? r : positions(l, n, v.rank, axis, &at);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_EQUAL, y, at, &y);
    return r < 0 ? r : mdl_ir_cast(l->ir, y, MDL_F32, ret);
}

/* Before opset 13 over all dims from axis on, as if flattened. */
static int lower_hardmax(struct mdl_lower *l, int arg)
{
    int64_t axis = mdl_l_int(l, "axis", l->opset < 13 ? 1 : -1);
    struct mdl_ir_value x;
    size_t flat[2] = {1, 1}, at, y;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, axis, x.rank, l->opset < 13, &at);
    if (r < 0 || l->opset >= 13) {
        return r < 0 ? r : one_at_max(l, l->in[0], at, &l->out[0]);
    }
    for (size_t i = 0; i < x.rank; i++) {
        flat[i < at ? 0 : 1] *= x.dim[i];
    }
    r = mdl_ir_reshape(l->ir, l->in[0], 2, flat, &y);
    r = r < 0 ? r : one_at_max(l, y, 1, &y);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, x.rank, x.dim, &l->out[0]);
}

/* The one value of constant input @i as an integer. */
static int one_integer(struct mdl_lower *l, size_t i, int64_t *ret)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

    if (!v->data) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input %zu (\"%s\") must be a constant", i,
                             v->name);
    }
    if (mdl_ir_elements(v) != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input %zu has %zu values; it must have one", i,
                             mdl_ir_elements(v));
    }
    *ret = mdl_const_int(v, 0);
    return 0;
}

/* Indices below zero count from the end; @ret: as integers, of @rank dims with one of 1 at @at */
static int one_hot_indices(struct mdl_lower *l, int64_t depth, size_t rank, size_t at, size_t *ret)
{
    struct mdl_ir_op where = mdl_ir_op_make(l->ir, MDL_OP_WHERE);
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX], v[3], zero, n, index;
    int r;

    for (size_t i = 0; i < rank; i++) {
        dim[i] = i == at ? 1 : x.dim[i - (i > at ? 1 : 0)];
    }
    r = mdl_ir_cast(l->ir, l->in[0], MDL_I64, &index);
    r = r < 0 ? r : mdl_ir_reshape(l->ir, index, rank, dim, &index);
    r = r < 0 ? r : mdl_ir_scalar(l->ir, MDL_I64, 0, &zero);
    r = r < 0 ? r : mdl_ir_scalar(l->ir, MDL_I64, (double)depth, &n);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_LESS, index, zero, &v[0]);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_ADD, index, n, &v[1]);
    v[2] = index;
    r = r < 0 ? r : mdl_ir_spread(l->ir, v, 3, rank, dim, where.op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, &where, MDL_I64, rank, dim, ret);
}

/* y = values[1] where the index is that position, values[0] elsewhere: also for all positions if
 * the index is outside -depth .. depth-1 */
static int lower_one_hot(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_WHERE);
    size_t dim[MDL_RANK_MAX], rank, at, index, position, v[3];
    enum mdl_dtype dtype;
    int64_t depth = 0;
    int r = mdl_l_need(l, 3);

    r = r < 0 ? r : one_integer(l, 1, &depth);
    if (r < 0) {
        return r;
    }
    rank = mdl_l_value(l, l->in[0])->rank + 1;
    dtype = mdl_l_value(l, l->in[2])->dtype;
    if (depth < 1 || depth > INT32_MAX || rank > MDL_RANK_MAX) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "depth %lld or rank %zu is out of range",
                             (long long)depth, rank);
    }
    if (mdl_l_value(l, l->in[2])->rank != 1 || mdl_l_value(l, l->in[2])->dim[0] != 2) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input 2 must hold two values: off and on");
    }
    r = mdl_l_axis(l, mdl_l_int(l, "axis", -1), rank, false, &at);
    r = r < 0 ? r : one_hot_indices(l, depth, rank, at, &index);
    r = r < 0 ? r : positions(l, (size_t)depth, rank, at, &position);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_EQUAL, index, position, &v[0]);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        r = mdl_ir_slice(l->ir, l->in[2], &(size_t){1 - i}, &(ptrdiff_t){1}, &(size_t){1},
                         &v[1 + i]);
    }
    r = r < 0 ? r : mdl_ir_broadcast(l->ir, v, 3, &rank, dim);
    r = r < 0 ? r : mdl_ir_spread(l->ir, v, 3, rank, dim, op.op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, dtype, rank, dim, &l->out[0]);
}

/* A constant matrix of bytes, 1 where column - row >= k (@upper) or <= k. */
static int triangle(struct mdl_lower *l, size_t rows, size_t columns, int64_t k, bool upper,
                    size_t *ret)
{
    unsigned char *mask;
    size_t bytes;
    void *data;
    int r;

    if (!base_mul(rows, columns, &bytes)) {
        return mdl_ir_refuse(l->ir, -E2BIG, "%zu x %zu is too large", rows, columns);
    }
    if (!mdl_ir_fold_work(l->ir, (double)bytes)) {
        return mdl_ir_refuse(l->ir, -E2BIG, "computing this at load takes too long");
    }
    r = mdl_ir_fold_alloc(l->ir, bytes, &data);
    if (r < 0) {
        return r;
    }
    mask = data;
    for (size_t i = 0; i < bytes; i++) {
        int64_t diagonal = (int64_t)(i % columns) - (int64_t)(i / columns);

        mask[i] = upper ? diagonal >= k : diagonal <= k;
    }
    return mdl_ir_const_new(l->ir, MDL_BOOL, 2, (size_t[]){rows, columns}, data, false, ret);
}

static int lower_trilu(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_WHERE);
    struct mdl_ir_value x;
    bool upper = mdl_l_int(l, "upper", 1) != 0;
    size_t v[3];
    int64_t k = 0;
    int r = mdl_l_need(l, 1);

    r = r < 0 || mdl_l_in(l, 1) == MDL_NONE ? r : one_integer(l, 1, &k);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    if (x.rank < 2) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the input has rank %zu; it must have 2 or more",
                             x.rank);
    }
    r = triangle(l, x.dim[x.rank - 2], x.dim[x.rank - 1], k, upper, &v[0]);
    v[1] = l->in[0];
    r = r < 0 ? r : mdl_ir_scalar(l->ir, x.dtype, 0, &v[2]);
    r = r < 0 ? r : mdl_ir_spread(l->ir, v, 3, x.rank, x.dim, op.op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, x.dtype, x.rank, x.dim, &l->out[0]);
}

static int lower_eye_like(struct mdl_lower *l, int arg)
{
    int64_t k = mdl_l_int(l, "k", 0);
    struct mdl_ir_value x;
    enum mdl_dtype dtype = MDL_F32;
    size_t upper, lower;
    int r = mdl_l_need(l, 1);

    if (r < 0 || l->error < 0) {
        return r < 0 ? r : l->error;
    }
    x = *mdl_l_value(l, l->in[0]);
    if (x.rank != 2) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the input has rank %zu; it must have rank 2",
                             x.rank);
    }
    r = mdl_l_dtype(l, "dtype", x.dtype, &dtype);
    r = r < 0 ? r : triangle(l, x.dim[0], x.dim[1], k, true, &upper);
    r = r < 0 ? r : triangle(l, x.dim[0], x.dim[1], k, false, &lower);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_AND, upper, lower, &upper);
    return r < 0 ? r : mdl_ir_cast(l->ir, upper, dtype, &l->out[0]);
}

/* All elements in reverse order along @axis: a view. */
static int reversed(struct mdl_lower *l, size_t x, size_t axis, size_t *ret)
{
    struct mdl_ir_value v = *mdl_l_value(l, x);
    size_t start[MDL_RANK_MAX] = {0};
    ptrdiff_t step[MDL_RANK_MAX];

    for (size_t i = 0; i < v.rank; i++) {
        step[i] = i == axis ? -1 : 1;
    }
    start[axis] = v.dim[axis] ? v.dim[axis] - 1 : 0;
    return mdl_ir_slice(l->ir, x, start, step, v.dim, ret);
}

static int lower_cumsum(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CUMSUM);
    bool reverse = mdl_l_int(l, "reverse", 0) != 0;
    struct mdl_ir_value x;
    int64_t axis = 0;
    size_t at, y;
    int r = mdl_l_need(l, 2);

    r = r < 0 ? r : one_integer(l, 1, &axis);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    if (x.dtype == MDL_BOOL) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the input is of type bool; it must be a number");
    }
    r = mdl_l_axis(l, axis, x.rank, false, &at);
    if (r < 0) {
        return r;
    }
    op.op.attr.cumsum.axis = at;
    op.op.attr.cumsum.exclusive = mdl_l_int(l, "exclusive", 0) != 0;
    op.op.in[0] = l->in[0];
    r = reverse ? reversed(l, l->in[0], at, &op.op.in[0]) : 0;
    r = r < 0 ? r : mdl_ir_emit(l->ir, &op, x.dtype, x.rank, x.dim, &y);
    if (r < 0) {
        return r;
    }
    l->out[0] = y;
    return reverse ? reversed(l, y, at, &l->out[0]) : 0;
}

const struct mdl_lower_row mdl_lower_masks[] = {
    {"Hardmax", lower_hardmax, 0},  {"OneHot", lower_one_hot, 0}, {"Trilu", lower_trilu, 0},
    {"EyeLike", lower_eye_like, 0}, {"CumSum", lower_cumsum, 0},  {0},
};
