/* SPDX-License-Identifier: Apache-2.0 */
/* Constant evaluation. This file evaluates integer shape arithmetic, moves and simple arithmetic on
 * floats; options->const_eval evaluates ops that need a primitive (fold_eval.c). Both share a
 * budget of bytes and of work (struct mdl_ir). Constants may be unaligned (file bytes), so they are
 * read by memcpy(). */
#include "model/common/arithmetic.h"
#include "model/ir/build.h"
#include "model/ir/strides.h"

/* A larger broadcast of a constant stays a view, so that a file cannot make us fill memory. */
#define EXPAND_BYTES_MAX ((size_t)1 << 20)

/* What is left to every frame of constant work. A small file may ask for any amount. */
#define UNFOLDED_WORK_MAX 4e9

/* Dims before @axis, and bytes of the elements behind one of its. */
static void around(const struct mdl_ir_value *v, size_t axis, size_t *ret_outer, size_t *ret_inner)
{
    *ret_outer = 1;
    *ret_inner = mdl_dtype_bytes(v->dtype);
    for (size_t i = 0; i < v->rank; i++) {
        *ret_outer *= i < axis ? v->dim[i] : 1;
        *ret_inner *= i > axis ? v->dim[i] : 1;
    }
}

static bool fold_view(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]], y = ir->values[op->op.out[0]];
    ptrdiff_t dense[MDL_RANK_MAX], stride[MDL_RANK_MAX], start;
    size_t order[MDL_RANK_MAX], size = mdl_dtype_bytes(x.dtype);
    void *data;

    if (op->view.kind == MDL_VIEW_RESHAPE) {
        ir->values[op->op.out[0]].data = x.data;
        ir->values[op->op.out[0]].in_file = x.in_file;
        return true;
    }
    if (op->view.kind == MDL_VIEW_EXPAND && mdl_ir_bytes(&y) > EXPAND_BYTES_MAX) {
        return false;
    }
    mdl_order_rows(x.rank, order);
    mdl_strides_dense(x.rank, x.dim, order, dense);
    start = mdl_strides_view(op, &x, dense, &y, stride);
    data = mdl_const_make(ir, op->op.out[0]);
    mdl_order_rows(y.rank, order);
    mdl_strides_dense(y.rank, y.dim, order, dense);
    mdl_const_move(size, y.rank, y.dim, data, dense,
                   (const unsigned char *)x.data + start * (ptrdiff_t)size, stride);
    return true;
}

static bool fold_concat(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *y = &ir->values[op->op.out[0]];
    size_t inner, outer, at = 0, row;
    void *data = mdl_const_make(ir, op->op.out[0]);

    around(y, op->concat_axis, &outer, &inner);
    row = inner * y->dim[op->concat_axis];
    for (size_t i = 0; i < op->concat_count; i++) {
        const struct mdl_ir_value *x = &ir->values[op->concat_in[i]];
        size_t part = inner * x->dim[op->concat_axis];

        for (size_t k = 0; k < outer; k++) {
            memcpy((unsigned char *)data + k * row + at, (const unsigned char *)x->data + k * part,
                   part);
        }
        at += part;
    }
    return true;
}

/* The nearest integer that @to has, as at run time (ref_set_f64()); @v is already one of i64. */
static int64_t saturated(enum mdl_dtype to, int64_t v)
{
    switch (to) {
    case MDL_I32:
        return base_min(base_max(v, (int64_t)INT32_MIN), (int64_t)INT32_MAX);
    case MDL_I8:
        return base_min(base_max(v, (int64_t)INT8_MIN), (int64_t)INT8_MAX);
    case MDL_U8:
        return base_min(base_max(v, (int64_t)0), (int64_t)UINT8_MAX);
    default:
        return v;
    }
}

static bool fold_cast(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    enum mdl_dtype to = ir->values[op->op.out[0]].dtype;
    size_t count = mdl_ir_elements(x);
    void *data = mdl_const_make(ir, op->op.out[0]);

    for (size_t i = 0; i < count; i++) {
        double real = mdl_const_real(x, i);
        int64_t integer = mdl_const_int(x, i);

        integer = x->dtype == MDL_F32 ? saturated(to, integer) : integer; /* others are cut */
        mdl_const_store(data, to, i, real, to == MDL_BOOL ? real != 0 : integer);
    }
    return true;
}

static bool fold_gather(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]], *at = &ir->values[op->op.in[1]];
    size_t axis = op->op.attr.gather.axis, outer, inner;
    size_t picks = mdl_ir_elements(at);
    void *data = mdl_const_make(ir, op->op.out[0]);

    around(x, axis, &outer, &inner);
    for (size_t k = 0; inner && k < outer; k++) { /* there may be very many empty rows */
        for (size_t i = 0; i < picks; i++) {
            size_t from = (size_t)mdl_const_int(at, i); /* checked when lowered */

            memcpy((unsigned char *)data + (k * picks + i) * inner,
                   (const unsigned char *)x->data + (k * x->dim[axis] + from) * inner, inner);
        }
    }
    return true;
}

static bool fold_where(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *c = &ir->values[op->op.in[0]];
    const struct mdl_ir_value *a = &ir->values[op->op.in[1]], *b = &ir->values[op->op.in[2]];
    size_t count = mdl_ir_elements(c), size = mdl_dtype_bytes(a->dtype);
    void *data = mdl_const_make(ir, op->op.out[0]);

    for (size_t i = 0; i < count; i++) {
        const void *from = mdl_const_int(c, i) ? a->data : b->data;

        memcpy((unsigned char *)data + i * size, (const unsigned char *)from + i * size, size);
    }
    return true;
}

/* ---- arithmetic ---- */

static bool fold_binary(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *a = &ir->values[op->op.in[0]], *b = &ir->values[op->op.in[1]];
    enum mdl_binary which = op->op.attr.binary;
    const struct mdl_ir_value *y;
    size_t count = mdl_ir_elements(a);
    void *data;

    if (a->dtype != b->dtype) {
        return false;
    }
    data = mdl_const_make(ir, op->op.out[0]);
    y = &ir->values[op->op.out[0]];
    for (size_t i = 0; i < count; i++) {
        if (a->dtype == MDL_F32) {
            double v = mdl_real_binary(which, mdl_const_real(a, i), mdl_const_real(b, i));

            mdl_const_store(data, y->dtype, i, v, v != 0);
        } else {
            int64_t v = mdl_int_binary(which, mdl_const_int(a, i), mdl_const_int(b, i));

            mdl_const_store(data, y->dtype, i, (double)v, v);
        }
    }
    return true;
}

static float negative(float x)
{
    return -x;
}

static float reciprocal(float x)
{
    return 1.0f / x;
}

static float rectified(float x)
{
    return x < 0 ? 0 : x;
}

/* Others are left to the primitives. */
static float (*const real_unary[MDL_ACT_COUNT])(float x) = {
    [MDL_ACT_NEG] = negative,   [MDL_ACT_ABS] = fabsf,  [MDL_ACT_FLOOR] = floorf,
    [MDL_ACT_CEIL] = ceilf,     [MDL_ACT_SQRT] = sqrtf, [MDL_ACT_RECIPROCAL] = reciprocal,
    [MDL_ACT_RELU] = rectified, [MDL_ACT_EXP] = expf,   [MDL_ACT_ROUND] = nearbyintf,
};

static bool fold_unary(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    size_t count = mdl_ir_elements(x);
    void *data;

    if (x->dtype == MDL_F32 && !real_unary[op->op.act]) {
        return false;
    }
    data = mdl_const_make(ir, op->op.out[0]);
    for (size_t i = 0; i < count; i++) {
        if (x->dtype == MDL_F32) {
            float v = real_unary[op->op.act]((float)mdl_const_real(x, i));

            mdl_const_store(data, x->dtype, i, (double)v, 0);
        } else {
            mdl_const_store(data, x->dtype, i, 0, mdl_int_unary(&op->op, mdl_const_int(x, i)));
        }
    }
    return true;
}

/* Integers only (a shape's product and the like); over all axes. */
static bool fold_reduce(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    static const enum mdl_binary joins[] = {[MDL_RED_SUM] = MDL_BIN_ADD,
                                            [MDL_RED_MAX] = MDL_BIN_MAX,
                                            [MDL_RED_MIN] = MDL_BIN_MIN,
                                            [MDL_RED_PROD] = MDL_BIN_MUL};
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    enum mdl_reduce which = op->op.attr.reduce.which;
    size_t count = mdl_ir_elements(x);
    int64_t all;

    if (x->dtype == MDL_F32 || mdl_ir_elements(&ir->values[op->op.out[0]]) != 1 || count == 0 ||
        which == MDL_RED_MEAN || which >= base_array_count(joins)) {
        return false;
    }
    all = mdl_const_int(x, 0);
    for (size_t i = 1; i < count; i++) {
        all = mdl_int_binary(joins[which], all, mdl_const_int(x, i));
    }
    mdl_const_store(mdl_const_make(ir, op->op.out[0]), x->dtype, 0, 0, all);
    return true;
}

/* ---- an op ---- */

/* Elements read and written, or the multiplications where those are more. */
static double work_of(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    double made = 0, read = 0;

    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        made += op->op.out[i] == MDL_NONE ? 0 : (double)mdl_ir_elements(&ir->values[op->op.out[i]]);
    }
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        read += op->op.in[i] == MDL_NONE ? 0 : (double)mdl_ir_elements(&ir->values[op->op.in[i]]);
    }
    return mdl_op_work(&op->op, made, read);
}

typedef bool (*fold_fn)(struct mdl_ir *ir, const struct mdl_ir_op *op);

static const fold_fn folds[MDL_OP_COUNT] = {
#define fold_reference NULL
#define FOLD(kind, name, fold, traits) [MDL_OP_##kind] = fold_##fold,
    MDL_OPERATORS(FOLD)
#undef FOLD
#undef fold_reference
};

bool mdl_fold_op(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    fold_fn fold = (size_t)op->kind < MDL_OP_COUNT ? folds[op->kind] : NULL;

    if (op->kind == MDL_IR_VIEW || op->kind == MDL_IR_CONCAT) { /* moves alone are no work */
        return op->kind == MDL_IR_VIEW ? fold_view(ir, op) : fold_concat(ir, op);
    }
    if (!mdl_ir_fold_work(ir, work_of(ir, op))) {
        ir->unfolded_work += work_of(ir, op);
        if (ir->unfolded_work > UNFOLDED_WORK_MAX) { /* else it runs in every frame */
            mdl_ir_refuse(ir, -E2BIG,
                          "it and other nodes compute constants by more than %.0f million "
                          "multiplications; fold them when the model is exported",
                          UNFOLDED_WORK_MAX / 1e6);
        }
        return false;
    }
    return (fold && fold(ir, op)) || mdl_fold_eval(ir, op);
}
