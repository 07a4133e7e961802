/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/ir/rows.h"
#include "model/lower/lowering.h"

/* Operators that choose by value: TopK, NonMaxSuppression, NonZero; and ReverseSequence. */

/* The number of elements to take: *ret at most, and *ret_rows of them (MDL_NONE: all). */
static int top_k_count(struct mdl_lower *l, size_t *ret, size_t *ret_rows)
{
    int64_t k = 0;
    size_t count;
    int r;

    *ret_rows = MDL_NONE;
    if (l->opset < 10) {
        if (!mdl_l_attr(l, "k")) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "attribute k is missing");
        }
        k = mdl_l_int(l, "k", 0);
    } else if (mdl_l_in(l, 1) == MDL_NONE) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input 1 is missing");
    } else if (!mdl_ir_is_const(l->ir, l->in[1])) {
        r = mdl_rows_dim(l->ir, l->in[1], 0, &k, ret_rows);
        if (r < 0) {
            return r;
        }
    } else if (!mdl_l_const_ints(l, 1, &k, 1, &count) || count != 1) {
        return l->error < 0 ? l->error : mdl_ir_refuse(l->ir, -EBADMSG, "k is not one number");
    }
    if (l->error < 0 || k < 0) {
        return l->error < 0 ? l->error
                            : mdl_ir_refuse(l->ir, -EBADMSG, "k is %lld; it must not be negative",
                                            (long long)k);
    }
    *ret = (size_t)k;
    return 0;
}

static int lower_top_k(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_TOP_K);
    struct mdl_ir_value x;
    size_t axis, k = 0, rows, y[2];
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : top_k_count(l, &k, &rows);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, mdl_l_int(l, "axis", -1), x.rank, false, &axis);
    if (r < 0) {
        return r;
    }
    if (k > x.dim[axis] && rows == MDL_NONE) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "k is %zu; dimension %zu is %zu", k, axis,
                             x.dim[axis]);
    }
    x.dim[axis] = base_min(k, x.dim[axis]);
    op.op.attr.top_k.axis = axis;
    op.op.attr.top_k.largest = l->opset < 11 || mdl_l_int(l, "largest", 1) != 0;
    op.op.in[0] = l->in[0];
    r = mdl_ir_value_new(l->ir, MDL_I64, x.rank, x.dim, &op.op.out[1]);
    r = r < 0 ? r : mdl_ir_emit(l->ir, &op, x.dtype, x.rank, x.dim, &y[0]);
    y[1] = op.op.out[1];
    for (size_t i = 0; r == 0 && i < base_min(l->out_count, (size_t)2); i++) {
        r = rows == MDL_NONE ? 0 : mdl_rows_limit(l->ir, y[i], axis, rows);
        l->out[i] = y[i];
    }
    return r;
}

/* At most so many boxes of each class and image. */
static int nms_limit(struct mdl_lower *l, size_t boxes, size_t *ret)
{
    int64_t limit = 0;
    size_t count;

    if (mdl_l_in(l, 2) != MDL_NONE && (!mdl_l_const_ints(l, 2, &limit, 1, &count) || count != 1)) {
        return l->error < 0
                   ? l->error
                   : mdl_ir_refuse(l->ir, -EBADMSG, "max_output_boxes_per_class is not one number");
    }
    *ret = limit < 0 ? 0 : base_min((size_t)limit, boxes);
    return 0;
}

static int nms_threshold(struct mdl_lower *l, size_t i, size_t *ret)
{
    const struct mdl_ir_value *v;

    *ret = mdl_l_in(l, i);
    if (*ret == MDL_NONE) {
        return 0;
    }
    v = mdl_l_value(l, *ret);
    if (v->dtype != MDL_F32 || mdl_ir_elements(v) != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input %zu must be one float", i);
    }
    return 0;
}

static int nms_check(struct mdl_lower *l)
{
    const struct mdl_ir_value *b = mdl_l_value(l, l->in[0]), *s = mdl_l_value(l, l->in[1]);

    if (b->dtype != MDL_F32 || s->dtype != MDL_F32) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "boxes and scores must be float");
    }
    if (b->rank != 3 || s->rank != 3 || b->dim[2] != 4 || b->dim[0] != s->dim[0] ||
        b->dim[1] != s->dim[2] || b->dim[1] > UINT32_MAX) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "boxes must be [batch][boxes][4] and scores [batch][classes][boxes]");
    }
    return 0;
}

/* Where all inputs were constant, the result has as many rows as were found. */
static int cut_constant(struct mdl_lower *l, size_t y, size_t dim_of_rows, size_t count,
                        size_t *ret)
{
    size_t start[MDL_RANK_MAX] = {0}, dim[MDL_RANK_MAX];
    ptrdiff_t step[MDL_RANK_MAX];
    const struct mdl_ir_value *v = mdl_l_value(l, y);

    for (size_t i = 0; i < v->rank; i++) {
        dim[i] = v->dim[i];
        step[i] = 1;
    }
    dim[dim_of_rows] = (size_t)mdl_const_int(mdl_l_value(l, count), 0);
    return mdl_ir_slice(l->ir, y, start, step, dim, ret);
}

/* Emits an op whose second output is the number of valid rows of its first. */
static int emit_counted(struct mdl_lower *l, struct mdl_ir_op *op, const size_t dim[2],
                        size_t dim_of_rows)
{
    size_t one = 1, y;
    int r = mdl_ir_value_new(l->ir, MDL_I64, 1, &one, &op->op.out[1]);

    r = r < 0 ? r : mdl_ir_emit(l->ir, op, MDL_I64, 2, dim, &y);
    if (r < 0) {
        return r;
    }
    if (mdl_ir_is_const(l->ir, y)) {
        return cut_constant(l, y, dim_of_rows, op->op.out[1], &l->out[0]);
    }
    l->out[0] = y;
    return mdl_rows_set(l->ir, y, dim_of_rows, op->op.out[1]);
}

static int lower_nms(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NMS);
    const struct mdl_ir_value *s;
    int64_t centre = mdl_l_int(l, "center_point_box", 0);
    size_t dim[2] = {1, 3};
    int r = mdl_l_need(l, 2);

    r = r < 0 ? r : l->error;
    r = r < 0 ? r : nms_check(l);
    r = r < 0 ? r : nms_limit(l, mdl_l_value(l, l->in[0])->dim[1], &op.op.attr.nms.each);
    r = r < 0 ? r : nms_threshold(l, 3, &op.op.in[2]);
    r = r < 0 ? r : nms_threshold(l, 4, &op.op.in[3]);
    if (r < 0) {
        return r;
    }
    if (centre != 0 && centre != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "center_point_box is %lld; it must be 0 or 1",
                             (long long)centre);
    }
    s = mdl_l_value(l, l->in[1]);
    if (!base_mul(s->dim[0], s->dim[1], &dim[0]) ||
        !base_mul(dim[0], op.op.attr.nms.each, &dim[0])) {
        return mdl_ir_refuse(l->ir, -E2BIG, "the result may have too many rows");
    }
    if (dim[0] == 0) {
        return mdl_ir_const_new(l->ir, MDL_I64, 2, dim, NULL, false, &l->out[0]);
    }
    op.op.attr.nms.centre = centre == 1;
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[1];
    return emit_counted(l, &op, dim, 0);
}

/* Of a constant, as a constant of the right length. */
static int non_zero_constant(struct mdl_lower *l)
{
    struct mdl_ir_value x;
    size_t count = 0, found = 0, dim[2];
    int64_t *at;
    void *data;
    int r;

    x = *mdl_l_value(l, l->in[0]);
    if (!mdl_ir_fold_work(l->ir, 2 * (double)mdl_ir_elements(&x))) {
        return mdl_ir_refuse(
            l->ir, -E2BIG,
            "computing this at load takes too long; fold constants when the model is exported");
    }
    for (size_t i = 0; i < mdl_ir_elements(&x); i++) {
        count += mdl_const_real(&x, i) != 0;
    }
    dim[0] = x.rank;
    dim[1] = count;
    r = mdl_ir_fold_alloc(l->ir, x.rank * count * sizeof(*at), &data);
    if (r < 0) {
        return r;
    }
    at = data;
    for (size_t i = 0; i < mdl_ir_elements(&x); i++) {
        size_t rest = i;

        if (mdl_const_real(&x, i) == 0) {
            continue;
        }
        for (size_t k = x.rank; k-- > 0; rest /= x.dim[k]) {
            at[k * count + found] = (int64_t)(rest % x.dim[k]);
        }
        found++;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, 2, dim, data, false, &l->out[0]);
}

static int lower_non_zero(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_NON_ZERO);
    const struct mdl_ir_value *x;
    size_t dim[2];
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if (x->data) {
        return non_zero_constant(l);
    }
    dim[0] = x->rank;
    dim[1] = mdl_ir_elements(x);
    if (dim[0] == 0) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "the input is a scalar that is not constant");
    }
    if (dim[1] == 0) {
        return mdl_ir_const_new(l->ir, MDL_I64, 2, dim, NULL, false, &l->out[0]);
    }
    op.op.in[0] = l->in[0];
    return emit_counted(l, &op, dim, 1);
}

static int lower_reverse_sequence(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_REVERSE_SEQUENCE);
    const struct mdl_ir_value *x, *lens;
    int64_t time = mdl_l_int(l, "time_axis", 0), batch = mdl_l_int(l, "batch_axis", 1);
    int r = mdl_l_need(l, 2);

    r = r < 0 ? r : l->error;
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    lens = mdl_l_value(l, l->in[1]);
    if (x->rank < 2 || !((time == 0 && batch == 1) || (time == 1 && batch == 0))) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "time_axis and batch_axis must be 0 and 1 or 1 and 0, and the input "
                             "of rank 2 or more");
    }
    if (lens->dtype != MDL_I64 || lens->rank != 1 || lens->dim[0] != x->dim[batch]) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "the lengths must be int64, one for each of %zu sequences",
                             x->dim[batch]);
    }
    for (size_t i = 0; lens->data && i < lens->dim[0]; i++) {
        int64_t n = mdl_const_int(lens, i);

        if (n < 0 || (uint64_t)n > x->dim[time]) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "length %lld is outside a dimension of %zu",
                                 (long long)n, x->dim[time]);
        }
    }
    op.op.attr.reverse.time = (size_t)time;
    op.op.attr.reverse.batch = (size_t)batch;
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[1];
    return mdl_ir_emit(l->ir, &op, x->dtype, x->rank, x->dim, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_selections[] = {
    {"TopK", lower_top_k, 0},
    {"NonMaxSuppression", lower_nms, 0},
    {"NonZero", lower_non_zero, 0},
    {"ReverseSequence", lower_reverse_sequence, 0},
    {0},
};
