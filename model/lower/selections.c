/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that choose by value: TopK, NonMaxSuppression, NonZero; and ReverseSequence. */
#include "model/lower/lowering.h"

/* The number of elements to take: *ret at most, and *ret_rows of them (MDL_NONE: all). */
static void top_k_count(struct mdl_lower *l, size_t *ret, size_t *ret_rows)
{
    int64_t k = 0;
    size_t count;

    *ret_rows = MDL_NONE;
    if (l->opset < 10) {
        mdl_bad_if(l, !mdl_l_attr(l, "k"), "attribute k is missing");
        k = mdl_l_int(l, "k", 0);
    } else {
        mdl_l_need(l, 2, 0);
        if (!mdl_ir_is_const(l->ir, l->in[1])) {
            mdl_rows_dim(l->ir, l->in[1], 0, &k, ret_rows);
        } else {
            mdl_bad_if(l, !mdl_l_const_ints(l, 1, &k, 1, &count) || count != 1,
                       "k is not one number");
        }
    }
    mdl_bad_if(l, k < 0, "k is %lld; it must not be negative", (long long)k);
    *ret = (size_t)k;
}

static size_t lower_top_k(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_TOP_K, 1);
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t axis = mdl_l_axis(l, mdl_l_int(l, "axis", -1), x.rank, false), k = 0, rows, y[2];

    top_k_count(l, &k, &rows);
    mdl_bad_if(l, k > x.dim[axis] && rows == MDL_NONE, "k is %zu; dimension %zu is %zu", k, axis,
               x.dim[axis]);
    x.dim[axis] = base_min(k, x.dim[axis]);
    op.op.attr.top_k.axis = axis;
    op.op.attr.top_k.largest = l->opset < 11 || mdl_l_int(l, "largest", 1) != 0;
    op.op.out[1] = mdl_ir_value_new(l->ir, MDL_I64, x.rank, x.dim);
    y[0] = mdl_ir_emit(l->ir, &op, x.dtype, x.rank, x.dim);
    y[1] = op.op.out[1];
    for (size_t i = 0; i < base_min(l->out_count, (size_t)2); i++) {
        l->out[i] = rows == MDL_NONE ? y[i] : mdl_rows_limit(l->ir, y[i], axis, rows);
    }
    return l->out[0];
}

/* At most so many boxes of each class and image. */
static size_t nms_limit(struct mdl_lower *l, size_t boxes)
{
    int64_t limit = 0;
    size_t count;

    mdl_bad_if(
        l, mdl_l_in(l, 2) != MDL_NONE && (!mdl_l_const_ints(l, 2, &limit, 1, &count) || count != 1),
        "max_output_boxes_per_class is not one number");
    return limit < 0 ? 0 : base_min((size_t)limit, boxes);
}

static size_t nms_threshold(struct mdl_lower *l, size_t i)
{
    size_t threshold = mdl_l_in(l, i);
    const struct mdl_ir_value *v = mdl_l_value(l, threshold);

    mdl_bad_if(l, threshold != MDL_NONE && (v->dtype != MDL_F32 || mdl_ir_elements(v) != 1),
               "input %zu must be one float", i);
    return threshold;
}

static void nms_check(struct mdl_lower *l)
{
    const struct mdl_ir_value *b = mdl_l_value(l, l->in[0]), *s = mdl_l_value(l, l->in[1]);

    mdl_bad_if(l, b->dtype != MDL_F32 || s->dtype != MDL_F32, "boxes and scores must be float");
    mdl_bad_if(l,
               b->rank != 3 || s->rank != 3 || b->dim[2] != 4 || b->dim[0] != s->dim[0] ||
                   b->dim[1] != s->dim[2] || b->dim[1] > UINT32_MAX,
               "boxes must be [batch][boxes][4] and scores [batch][classes][boxes]");
}

/* Emits an op whose second output is the number of valid rows of its first. */
static size_t emit_counted(struct mdl_lower *l, struct mdl_ir_op *op, const size_t dim[2],
                           size_t dim_of_rows)
{
    size_t y, count;

    op->op.out[1] = mdl_ir_value_new(l->ir, MDL_I64, 1, (size_t[]){1});
    y = mdl_ir_emit(l->ir, op, MDL_I64, 2, dim);
    if (mdl_ir_is_const(l->ir, y)) { /* all inputs were: as many rows as were found */
        count = (size_t)mdl_const_int(mdl_l_value(l, op->op.out[1]), 0);
        return mdl_ir_part(l->ir, y, dim_of_rows, 0, count);
    }
    mdl_rows_set(l->ir, y, dim_of_rows, op->op.out[1]);
    return y;
}

static size_t lower_nms(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_NMS, 2);
    const struct mdl_ir_value *s = mdl_l_value(l, l->in[1]);
    int64_t centre = mdl_l_int(l, "center_point_box", 0);
    size_t dim[2] = {1, 3};

    nms_check(l);
    op.op.attr.nms.each = nms_limit(l, mdl_l_value(l, l->in[0])->dim[1]);
    op.op.in[2] = nms_threshold(l, 3);
    op.op.in[3] = nms_threshold(l, 4);
    mdl_bad_if(l, centre != 0 && centre != 1, "center_point_box is %lld; it must be 0 or 1",
               (long long)centre);
    mdl_large_if(l,
                 !base_mul(s->dim[0], s->dim[1], &dim[0]) ||
                     !base_mul(dim[0], op.op.attr.nms.each, &dim[0]),
                 "the result may have too many rows");
    if (dim[0] == 0) {
        return mdl_ir_const_new(l->ir, MDL_I64, 2, dim, NULL, false);
    }
    op.op.attr.nms.centre = centre == 1;
    return emit_counted(l, &op, dim, 0);
}

/* Of a constant, as a constant of the right length. */
static size_t non_zero_constant(struct mdl_lower *l)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t count = 0, found = 0;
    int64_t *at;

    mdl_large_if(
        l, !mdl_ir_fold_work(l->ir, 2 * (double)mdl_ir_elements(&x)),
        "computing this at load takes too long; fold constants when the model is exported");
    for (size_t i = 0; i < mdl_ir_elements(&x); i++) {
        count += mdl_const_real(&x, i) != 0;
    }
    at = mdl_ir_fold_alloc(l->ir, x.rank * count * sizeof(*at));
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
    return mdl_ir_const_new(l->ir, MDL_I64, 2, (size_t[]){x.rank, count}, at, false);
}

static size_t lower_non_zero(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_NON_ZERO, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t dim[2] = {x->rank, mdl_ir_elements(x)};

    if (x->data) {
        return non_zero_constant(l);
    }
    mdl_unserved_if(l, dim[0] == 0, "the input is a scalar that is not constant");
    if (dim[1] == 0) {
        return mdl_ir_const_new(l->ir, MDL_I64, 2, dim, NULL, false);
    }
    return emit_counted(l, &op, dim, 1);
}

static size_t lower_reverse_sequence(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_REVERSE_SEQUENCE, 2);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *lens = mdl_l_value(l, l->in[1]);
    int64_t time = mdl_l_int(l, "time_axis", 0), batch = mdl_l_int(l, "batch_axis", 1);

    mdl_bad_if(l, x->rank < 2 || !((time == 0 && batch == 1) || (time == 1 && batch == 0)),
               "time_axis and batch_axis must be 0 and 1 or 1 and 0, and the input "
               "of rank 2 or more");
    mdl_bad_if(l, lens->dtype != MDL_I64 || lens->rank != 1 || lens->dim[0] != x->dim[batch],
               "the lengths must be int64, one for each of %zu sequences", x->dim[batch]);
    for (size_t i = 0; lens->data && i < lens->dim[0]; i++) {
        int64_t n = mdl_const_int(lens, i);

        mdl_bad_if(l, n < 0 || (uint64_t)n > x->dim[time],
                   "length %lld is outside a dimension of %zu", (long long)n, x->dim[time]);
    }
    op.op.attr.reverse.time = (size_t)time;
    op.op.attr.reverse.batch = (size_t)batch;
    return mdl_ir_emit(l->ir, &op, x->dtype, x->rank, x->dim);
}

const struct mdl_lower_row mdl_lower_selections[] = {
    {"TopK", lower_top_k, 1, .narrow = MDL_NARROW_KEEPS},
    {"NonMaxSuppression", lower_nms, 2},
    {"NonZero", lower_non_zero, 1},
    {"ReverseSequence", lower_reverse_sequence, 2, .narrow = MDL_NARROW_KEEPS},
    {0},
};
