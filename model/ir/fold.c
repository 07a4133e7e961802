/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base.h"
#include "model/compile.h"

/* Constant evaluation. Integer shape arithmetic, moves and the plain arithmetic on floats are done
 * here; what needs a kernel goes to options->const_eval. Constants may be unaligned (file bytes):
 * everything goes through memcpy. */

/* A broadcast of a constant past this stays a view, so that a file cannot make us fill memory. */
#define EXPAND_BYTES_MAX ((size_t)1 << 20)

int64_t mdl_const_int(const struct mdl_ir_value *v, size_t i)
{
    const unsigned char *p = (const unsigned char *)v->data + i * mdl_dtype_bytes(v->dtype);
    int64_t i64;
    int32_t i32;
    float f;

    switch (v->dtype) {
    case MDL_I64:
        memcpy(&i64, p, sizeof(i64));
        return i64;
    case MDL_I32:
        memcpy(&i32, p, sizeof(i32));
        return i32;
    case MDL_I8:
        return (int8_t)*p;
    case MDL_U8:
        return *p;
    case MDL_BOOL:
        return *p != 0;
    default:
        memcpy(&f, p, sizeof(f));
        /* saturate: a conversion out of range is undefined */
        return f != f ? 0 : f >= 9.2e18f ? INT64_MAX : f <= -9.2e18f ? INT64_MIN : (int64_t)f;
    }
}

double mdl_const_real(const struct mdl_ir_value *v, size_t i)
{
    float f;

    if (v->dtype != MDL_F32) {
        return (double)mdl_const_int(v, i);
    }
    memcpy(&f, (const unsigned char *)v->data + i * sizeof(f), sizeof(f));
    return f;
}

void mdl_const_store(void *data, enum mdl_dtype dtype, size_t i, double real, int64_t integer)
{
    unsigned char *p = (unsigned char *)data + i * mdl_dtype_bytes(dtype);
    int32_t i32 = (int32_t)integer;
    float f = (float)real;

    switch (dtype) {
    case MDL_I64:
        memcpy(p, &integer, sizeof(integer));
        break;
    case MDL_I32:
        memcpy(p, &i32, sizeof(i32));
        break;
    case MDL_F32:
        memcpy(p, &f, sizeof(f));
        break;
    case MDL_BOOL:
        *p = integer != 0;
        break;
    default:
        *p = (unsigned char)integer;
        break;
    }
}

static int make_const(struct mdl_ir *ir, size_t v, void **ret)
{
    int r = mdl_ir_fold_alloc(ir, mdl_ir_bytes(&ir->values[v]), ret);

    if (r == 0) {
        ir->values[v].data = *ret;
        ir->values[v].in_file = false;
    }
    return r;
}

/* Steps through @dim in row-major order, keeping the element position for @stride. */
struct walk {
    size_t rank, index[MDL_RANK_MAX];
    ptrdiff_t at;
};

static void walk_next(struct walk *w, const size_t *dim, const ptrdiff_t *stride)
{
    for (size_t k = w->rank; k-- > 0;) {
        w->at += stride[k];
        if (++w->index[k] < dim[k]) {
            return;
        }
        w->at -= stride[k] * (ptrdiff_t)dim[k];
        w->index[k] = 0;
    }
}

static void copy_strided(unsigned char *dst, const unsigned char *src, size_t size, size_t rank,
                         const size_t *dim, ptrdiff_t start, const ptrdiff_t *stride, size_t count)
{
    struct walk w = {.rank = rank, .at = start};

    for (size_t i = 0; i < count; i++) {
        memcpy(dst + i * size, src + w.at * (ptrdiff_t)size, size);
        walk_next(&w, dim, stride);
    }
}

int mdl_fold_view(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]], y = ir->values[op->op.out[0]];
    ptrdiff_t dense[MDL_RANK_MAX], stride[MDL_RANK_MAX], start = 0;
    size_t order[MDL_RANK_MAX];
    void *data;
    int r;

    *ret_done = true;
    if (op->view.kind == MDL_VIEW_RESHAPE) {
        ir->values[op->op.out[0]].data = x.data;
        ir->values[op->op.out[0]].in_file = x.in_file;
        return 0;
    }
    if (op->view.kind == MDL_VIEW_EXPAND && mdl_ir_bytes(&y) > EXPAND_BYTES_MAX) {
        *ret_done = false;
        return 0;
    }
    mdl_order_rows(x.rank, order);
    mdl_strides_dense(x.rank, x.dim, order, dense);
    for (size_t i = 0; i < y.rank; i++) {
        if (op->view.kind == MDL_VIEW_PERMUTE) {
            stride[i] = dense[op->view.perm[i]];
        } else if (op->view.kind == MDL_VIEW_SLICE) {
            stride[i] = dense[i] * op->view.step[i];
            start += dense[i] * (ptrdiff_t)op->view.start[i];
        } else {
            size_t k = i + x.rank - y.rank; /* wraps below 0 for the new dims */

            stride[i] = i + x.rank >= y.rank && x.dim[k] != 1 ? dense[k] : 0;
        }
    }
    r = make_const(ir, op->op.out[0], &data);
    if (r < 0) {
        return r;
    }
    copy_strided(data, x.data, mdl_dtype_bytes(x.dtype), y.rank, y.dim, start, stride,
                 mdl_ir_elements(&y));
    return 0;
}

int mdl_fold_concat(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    struct mdl_ir_value y = ir->values[op->op.out[0]];
    size_t inner = mdl_dtype_bytes(y.dtype), outer = 1, at = 0, row;
    void *data;
    int r = make_const(ir, op->op.out[0], &data);

    if (r < 0) {
        return r;
    }
    *ret_done = true;
    for (size_t i = 0; i < y.rank; i++) {
        if (i < op->concat_axis) {
            outer *= y.dim[i];
        } else if (i > op->concat_axis) {
            inner *= y.dim[i];
        }
    }
    row = inner * y.dim[op->concat_axis];
    for (size_t i = 0; i < op->concat_count; i++) {
        const struct mdl_ir_value *x = &ir->values[op->concat_in[i]];
        size_t part = inner * x->dim[op->concat_axis];

        for (size_t k = 0; k < outer; k++) {
            memcpy((unsigned char *)data + k * row + at, (const unsigned char *)x->data + k * part,
                   part);
        }
        at += part;
    }
    return 0;
}

static int64_t int_binary(enum mdl_binary which, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;

    switch (which) {
    case MDL_BIN_ADD:
        return (int64_t)(ua + ub);
    case MDL_BIN_SUB:
        return (int64_t)(ua - ub);
    case MDL_BIN_MUL:
        return (int64_t)(ua * ub);
    case MDL_BIN_DIV:
        return b == 0 ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    case MDL_BIN_MAX:
        return base_max(a, b);
    case MDL_BIN_MIN:
        return base_min(a, b);
    case MDL_BIN_POW: {
        uint64_t y = 1;

        for (; b > 0; b >>= 1, ua *= ua) {
            y *= b & 1 ? ua : 1;
        }
        return b < 0 ? (a == 1) : (int64_t)y;
    }
    case MDL_BIN_EQUAL:
        return a == b;
    case MDL_BIN_LESS:
        return a < b;
    case MDL_BIN_GREATER:
        return a > b;
    case MDL_BIN_AND:
        return a && b;
    default:
        return a || b;
    }
}

static double real_binary(enum mdl_binary which, float a, float b)
{
    switch (which) {
    case MDL_BIN_ADD:
        return a + b;
    case MDL_BIN_SUB:
        return a - b;
    case MDL_BIN_MUL:
        return a * b;
    case MDL_BIN_DIV:
        return a / b;
    case MDL_BIN_MAX:
        return a != a ? a : b != b ? b : base_max(a, b);
    case MDL_BIN_MIN:
        return a != a ? a : b != b ? b : base_min(a, b);
    case MDL_BIN_POW:
        return powf(a, b);
    case MDL_BIN_EQUAL:
        return a == b;
    case MDL_BIN_LESS:
        return a < b;
    case MDL_BIN_GREATER:
        return a > b;
    case MDL_BIN_AND:
        return a != 0 && b != 0;
    default:
        return a != 0 || b != 0;
    }
}

static int fold_binary(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    const struct mdl_ir_value *a = &ir->values[op->op.in[0]], *b = &ir->values[op->op.in[1]];
    enum mdl_binary which = op->op.attr.binary;
    const struct mdl_ir_value *y;
    size_t count = mdl_ir_elements(a);
    void *data;
    int r = make_const(ir, op->op.out[0], &data);

    if (r < 0) {
        return r;
    }
    y = &ir->values[op->op.out[0]];
    for (size_t i = 0; i < count; i++) {
        if (a->dtype == MDL_F32) {
            double v = real_binary(which, (float)mdl_const_real(a, i), (float)mdl_const_real(b, i));

            mdl_const_store(data, y->dtype, i, v, v != 0);
        } else {
            int64_t v = int_binary(which, mdl_const_int(a, i), mdl_const_int(b, i));

            mdl_const_store(data, y->dtype, i, (double)v, v);
        }
    }
    *ret_done = true;
    return 0;
}

static bool real_unary(enum mdl_act act, float x, float *ret)
{
    switch (act) {
    case MDL_ACT_NEG:
        *ret = -x;
        return true;
    case MDL_ACT_ABS:
        *ret = fabsf(x);
        return true;
    case MDL_ACT_FLOOR:
        *ret = floorf(x);
        return true;
    case MDL_ACT_CEIL:
        *ret = ceilf(x);
        return true;
    case MDL_ACT_SQRT:
        *ret = sqrtf(x);
        return true;
    case MDL_ACT_RECIPROCAL:
        *ret = 1.0f / x;
        return true;
    case MDL_ACT_RELU:
        *ret = x < 0 ? 0 : x;
        return true;
    case MDL_ACT_EXP:
        *ret = expf(x);
        return true;
    case MDL_ACT_ROUND:
        *ret = nearbyintf(x);
        return true;
    default:
        return false;
    }
}

static bool int_unary(enum mdl_act act, int64_t x, int64_t *ret)
{
    switch (act) {
    case MDL_ACT_NEG:
        *ret = (int64_t)(0 - (uint64_t)x);
        return true;
    case MDL_ACT_ABS:
        *ret = x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
        return true;
    case MDL_ACT_RELU:
        *ret = x < 0 ? 0 : x;
        return true;
    case MDL_ACT_NOT:
        *ret = !x;
        return true;
    case MDL_ACT_FLOOR:
    case MDL_ACT_CEIL:
    case MDL_ACT_ROUND:
        *ret = x;
        return true;
    default:
        return false;
    }
}

static int fold_unary(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    size_t count = mdl_ir_elements(x);
    float f;
    int64_t n;
    void *data;
    int r;

    if (x->dtype == MDL_F32 ? !real_unary(op->op.act, 0, &f) : !int_unary(op->op.act, 0, &n)) {
        return 0;
    }
    r = make_const(ir, op->op.out[0], &data);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        f = 0;
        n = 0;
        if (x->dtype == MDL_F32) {
            real_unary(op->op.act, (float)mdl_const_real(x, i), &f);
        } else {
            int_unary(op->op.act, mdl_const_int(x, i), &n);
        }
        mdl_const_store(data, x->dtype, i, f, n);
    }
    *ret_done = true;
    return 0;
}

static int fold_cast(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    enum mdl_dtype to = ir->values[op->op.out[0]].dtype;
    size_t count = mdl_ir_elements(x);
    void *data;
    int r = make_const(ir, op->op.out[0], &data);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        double real = mdl_const_real(x, i);

        mdl_const_store(data, to, i, real, to == MDL_BOOL ? real != 0 : mdl_const_int(x, i));
    }
    *ret_done = true;
    return 0;
}

static int fold_gather(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]], *at = &ir->values[op->op.in[1]];
    size_t axis = op->op.attr.gather.axis, outer = 1, inner = mdl_dtype_bytes(x->dtype);
    size_t picks = mdl_ir_elements(at);
    void *data;
    int r = make_const(ir, op->op.out[0], &data);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < x->rank; i++) {
        if (i < axis) {
            outer *= x->dim[i];
        } else if (i > axis) {
            inner *= x->dim[i];
        }
    }
    for (size_t k = 0; inner && k < outer; k++) { /* empty rows may be very many */
        for (size_t i = 0; i < picks; i++) {
            size_t from = (size_t)mdl_const_int(at, i); /* checked when lowered */

            memcpy((unsigned char *)data + (k * picks + i) * inner,
                   (const unsigned char *)x->data + (k * x->dim[axis] + from) * inner, inner);
        }
    }
    *ret_done = true;
    return 0;
}

static int fold_where(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    const struct mdl_ir_value *c = &ir->values[op->op.in[0]];
    const struct mdl_ir_value *a = &ir->values[op->op.in[1]], *b = &ir->values[op->op.in[2]];
    size_t count = mdl_ir_elements(c), size = mdl_dtype_bytes(a->dtype);
    void *data;
    int r = make_const(ir, op->op.out[0], &data);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        const void *from = mdl_const_int(c, i) ? a->data : b->data;

        memcpy((unsigned char *)data + i * size, (const unsigned char *)from + i * size, size);
    }
    *ret_done = true;
    return 0;
}

static int64_t reduce_step(enum mdl_reduce which, int64_t sum, int64_t x)
{
    switch (which) {
    case MDL_RED_MAX:
        return base_max(sum, x);
    case MDL_RED_MIN:
        return base_min(sum, x);
    case MDL_RED_PROD:
        return (int64_t)((uint64_t)sum * (uint64_t)x);
    default:
        return (int64_t)((uint64_t)sum + (uint64_t)x);
    }
}

/* Integers only (a shape's product and the like); over all axes. */
static int fold_reduce(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    enum mdl_reduce which = op->op.attr.reduce.which;
    size_t count = mdl_ir_elements(x);
    int64_t sum = which == MDL_RED_PROD ? 1 : 0;
    void *data;
    int r;

    if (x->dtype == MDL_F32 || mdl_ir_elements(&ir->values[op->op.out[0]]) != 1 || count == 0 ||
        (which != MDL_RED_SUM && which != MDL_RED_PROD && which != MDL_RED_MAX &&
         which != MDL_RED_MIN)) {
        return 0;
    }
    if (which == MDL_RED_MAX || which == MDL_RED_MIN) {
        sum = mdl_const_int(x, 0);
    }
    for (size_t i = 0; i < count; i++) {
        sum = reduce_step(which, sum, mdl_const_int(x, i));
    }
    r = make_const(ir, op->op.out[0], &data);
    if (r < 0) {
        return r;
    }
    mdl_const_store(data, x->dtype, 0, (double)sum, sum);
    *ret_done = true;
    return 0;
}

/* Elements read and written, or the multiplications where those are more. */
static double work_of(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    double made = 0, read = 0, each = 1;

    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        made += op->op.out[i] == MDL_NONE ? 0 : (double)mdl_ir_elements(&ir->values[op->op.out[i]]);
    }
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        read += op->op.in[i] == MDL_NONE ? 0 : (double)mdl_ir_elements(&ir->values[op->op.in[i]]);
    }
    if (op->kind == MDL_OP_MAX_POOL || op->kind == MDL_OP_AVG_POOL) {
        for (size_t i = 0; i < op->op.attr.pool.window.rank; i++) {
            each *= (double)op->op.attr.pool.window.kernel[i];
        }
    } else if (op->kind == MDL_OP_LRN) {
        each = (double)op->op.attr.lrn.size;
    }
    return base_max(made * each + read, op->op.macs);
}

int mdl_fold_op(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done)
{
    int r = 0;

    *ret_done = false;
    if (!mdl_ir_fold_work(ir, work_of(ir, op))) {
        return 0; /* then it runs with every frame */
    }
    switch (op->kind) {
    case MDL_OP_COPY:
        r = fold_cast(ir, op, ret_done);
        break;
    case MDL_OP_BINARY:
        r = fold_binary(ir, op, ret_done);
        break;
    case MDL_OP_UNARY:
        r = fold_unary(ir, op, ret_done);
        break;
    case MDL_OP_GATHER:
        r = fold_gather(ir, op, ret_done);
        break;
    case MDL_OP_WHERE:
        r = fold_where(ir, op, ret_done);
        break;
    case MDL_OP_REDUCE:
        r = fold_reduce(ir, op, ret_done);
        break;
    default:
        break;
    }
    return r < 0 || *ret_done ? r : mdl_fold_eval(ir, op, ret_done);
}
