/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm, MatMul, BatchNormalization and Softmax. */
#include <math.h>

#include "model/lower/lowering.h"

/* The term beta * C: per output column and constant, it becomes op.shift; else in[2], broadcast. */
static void take_gemm_c(struct mdl_lower *l, struct mdl_ir_op *op, size_t m, size_t n)
{
    size_t dim[2] = {m, n}, c = mdl_l_in(l, 2);
    const struct mdl_ir_value *v = mdl_l_value(l, c);
    float *shift;

    if (c == MDL_NONE || op->op.attr.gemm.beta == 0) {
        return;
    }
    mdl_l_f32(l, 2);
    if (!v->data || !mdl_ir_is_const(l->ir, op->op.in[1]) || v->rank > 2 ||
        (v->rank == 2 && v->dim[0] != 1) || (mdl_ir_elements(v) != n && mdl_ir_elements(v) != 1)) {
        mdl_ir_spread(l->ir, (size_t[]){c, op->op.in[0]}, 1, 2, dim, &op->op.in[2]);
        return;
    }
    shift = mdl_ir_alloc(l->ir, n, sizeof(*shift));
    for (size_t i = 0; i < n; i++) {
        shift[i] = op->op.attr.gemm.beta * (float)mdl_const_channel(v, i);
    }
    op->op.shift = shift;
    op->op.channels = n;
}

void mdl_lower_gemm_of(struct mdl_lower *l, size_t x, size_t w, struct mdl_op *op,
                       size_t ret_dim[2])
{
    bool ta = mdl_l_int(l, "transA", 0) != 0, tb = mdl_l_int(l, "transB", 0) != 0;
    const struct mdl_ir_value *a = mdl_l_value(l, x), *b = mdl_l_value(l, w);
    size_t k = a->dim[!ta];

    mdl_bad_if(l, a->rank != 2 || b->rank != 2,
               "the inputs have rank %zu and %zu; both must have rank 2", a->rank, b->rank);
    mdl_bad_if(l, k != b->dim[tb], "inner dimensions %zu and %zu differ", k, b->dim[tb]);
    ret_dim[0] = a->dim[ta];
    ret_dim[1] = b->dim[!tb];
    op->attr.gemm.trans_a = ta;
    op->attr.gemm.trans_b = tb;
    op->attr.gemm.alpha = mdl_l_float(l, "alpha", 1);
    op->macs = (double)ret_dim[0] * (double)ret_dim[1] * (double)k;
}

static size_t lower_gemm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_GEMM, 2);
    size_t dim[2];

    mdl_lower_gemm_of(l, l->in[0], l->in[1], &op.op, dim);
    op.op.attr.gemm.beta = mdl_l_float(l, "beta", 1);
    take_gemm_c(l, &op, dim[0], dim[1]);
    return mdl_ir_emit(l->ir, &op, MDL_F32, 2, dim);
}

/* [..., M, K] x [K, N] is one product of all rows: consecutive rows need no batch. */
static size_t matmul_rows(struct mdl_lower *l, size_t a, size_t b, const struct mdl_ir_op *like,
                          enum mdl_dtype dtype)
{
    struct mdl_ir_op op = *like;
    struct mdl_ir_value x = *mdl_l_value(l, a), w = *mdl_l_value(l, b);
    size_t flat[2] = {1, x.dim[x.rank - 1]}, dim[2], y;

    for (size_t i = 0; i + 1 < x.rank; i++) {
        flat[0] *= x.dim[i];
    }
    op.op.in[0] = mdl_ir_reshape_rows(l->ir, a, 2, flat, x.rows_dim + 1 < x.rank ? 1 : 2);
    op.kind = op.op.kind = MDL_OP_GEMM;
    op.op.in[1] = b;
    op.op.attr.gemm.alpha = 1;
    dim[0] = flat[0];
    dim[1] = w.dim[1];
    op.op.macs = (double)dim[0] * (double)dim[1] * (double)flat[1];
    y = mdl_ir_emit(l->ir, &op, dtype, 2, dim);
    x.dim[x.rank - 1] = dim[1];
    return mdl_ir_reshape_rows(l->ir, y, x.rank, x.dim, x.rows_dim + 1);
}

/* Batch dims broadcast by stride 0, so that both inputs have y's rank. */
static size_t matmul_batch(struct mdl_lower *l, size_t a, size_t b, const struct mdl_ir_op *like,
                           enum mdl_dtype dtype)
{
    struct mdl_ir_op op = *like;
    struct mdl_ir_value x = *mdl_l_value(l, a), w = *mdl_l_value(l, b);
    size_t m = x.dim[x.rank - 2], k = x.dim[x.rank - 1], n = w.dim[w.rank - 1];
    size_t rank = base_max(x.rank, w.rank), dim[MDL_RANK_MAX];

    op.kind = op.op.kind = MDL_OP_MATMUL;
    op.op.macs = (double)m * (double)k * (double)n;
    for (size_t i = 0; i + 2 < rank; i++) {
        size_t xd = i + x.rank >= rank ? x.dim[i + x.rank - rank] : 1;
        size_t wd = i + w.rank >= rank ? w.dim[i + w.rank - rank] : 1;

        mdl_bad_if(l, xd != wd && xd != 1 && wd != 1, "batches %zu and %zu do not broadcast", xd,
                   wd);
        dim[i] = xd == 1 ? wd : xd;
        op.op.macs *= (double)dim[i];
    }
    dim[rank - 2] = m;
    dim[rank - 1] = k;
    op.op.in[0] = mdl_ir_expand(l->ir, a, rank, dim);
    dim[rank - 2] = k;
    dim[rank - 1] = n;
    /* one matrix for the whole batch stays as it is, to be packed once */
    op.op.in[1] = w.rank == 2 ? b : mdl_ir_expand(l->ir, b, rank, dim);
    dim[rank - 2] = m;
    return mdl_ir_emit(l->ir, &op, dtype, rank, dim);
}

size_t mdl_lower_product(struct mdl_lower *l, size_t x, size_t w, const struct mdl_ir_op *like,
                         enum mdl_dtype dtype)
{
    struct mdl_ir_value a = *mdl_l_value(l, x), b = *mdl_l_value(l, w);
    const struct mdl_ir_value *v;
    size_t y, dim[MDL_RANK_MAX], rank = 0;

    mdl_bad_if(l, a.rank == 0 || b.rank == 0, "an input is a scalar; both must have a dimension");
    mdl_bad_if(l, a.dim[a.rank - 1] != b.dim[b.rank == 1 ? 0 : b.rank - 2],
               "inner dimensions %zu and %zu differ", a.dim[a.rank - 1],
               b.dim[b.rank == 1 ? 0 : b.rank - 2]);
    if (a.rank == 1) {
        x = mdl_ir_reshape(l->ir, x, 2, (size_t[]){1, a.dim[0]});
    }
    if (b.rank == 1) {
        w = mdl_ir_reshape(l->ir, w, 2, (size_t[]){b.dim[0], 1});
    }
    y = mdl_l_value(l, w)->rank == 2 && !l->ir->options->no_fusion
            ? matmul_rows(l, x, w, like, dtype)
            : matmul_batch(l, x, w, like, dtype);
    if (a.rank > 1 && b.rank > 1) {
        return y;
    }
    v = mdl_l_value(l, y);
    for (size_t i = 0; i < v->rank; i++) {
        size_t from_end = v->rank - 1 - i;

        if (!(from_end == 1 && a.rank == 1) && !(from_end == 0 && b.rank == 1)) {
            dim[rank++] = v->dim[i];
        }
    }
    return mdl_ir_reshape(l->ir, y, rank, dim);
}

static size_t lower_matmul(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op like = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);

    return mdl_lower_product(l, l->in[0], l->in[1], &like, MDL_F32);
}

/* y = (x - mean) / sqrt(var + eps) * scale + bias as single ops, for values known only at run
 * time */
static size_t normalise(struct mdl_lower *l, float epsilon)
{
    struct mdl_ir *ir = l->ir;
    size_t rank = mdl_l_value(l, l->in[0])->rank, p[5], t;

    for (size_t i = 1; i < 5; i++) {
        p[i] = mdl_lower_beside(l, l->in[i], rank, 1);
    }
    t = mdl_ir_binary(ir, MDL_BIN_ADD, p[4], mdl_ir_scalar(ir, MDL_F32, epsilon));
    p[4] = mdl_ir_unary(ir, MDL_ACT_SQRT, 0, 0, t);
    t = mdl_ir_binary(ir, MDL_BIN_SUB, l->in[0], p[3]);
    t = mdl_ir_binary(ir, MDL_BIN_DIV, t, p[4]);
    t = mdl_ir_binary(ir, MDL_BIN_MUL, t, p[1]);
    return mdl_ir_binary(ir, MDL_BIN_ADD, t, p[2]);
}

static void check_norm(struct mdl_lower *l)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    mdl_unserved_if(l, x->rank < 2, "input of rank %zu is not supported (2 and more are)", x->rank);
    for (size_t i = 1; i < 5; i++) {
        const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

        mdl_bad_if(l, mdl_ir_elements(v) != x->dim[1], "input %zu has %zu values for %zu channels",
                   i, mdl_ir_elements(v), x->dim[1]);
    }
}

static size_t lower_batch_norm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_AFFINE, 1);
    float epsilon = mdl_l_float(l, "epsilon", 1e-5f), *scale, *shift;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *p[5];
    bool constant = true;

    check_norm(l);
    mdl_unserved_if(l,
                    mdl_l_int(l, "training_mode", 0) || !mdl_l_int(l, "spatial", 1) ||
                        (l->opset < 7 && !mdl_l_int(l, "is_test", 0)),
                    "only inference over channels is supported; export the model for inference");
    for (size_t i = 1; i < 5; i++) {
        p[i] = mdl_l_value(l, l->in[i]);
        constant &= p[i]->data != NULL;
    }
    if (!constant) {
        return normalise(l, epsilon);
    }
    op.op.channels = x->dim[1];
    scale = mdl_ir_alloc(l->ir, op.op.channels, sizeof(*scale));
    shift = mdl_ir_alloc(l->ir, op.op.channels, sizeof(*shift));
    for (size_t i = 0; i < op.op.channels; i++) {
        double s = mdl_const_real(p[1], i) / sqrt(mdl_const_real(p[4], i) + (double)epsilon);

        scale[i] = (float)s;
        shift[i] = (float)(mdl_const_real(p[2], i) - mdl_const_real(p[3], i) * s);
    }
    op.op.scale = scale;
    op.op.shift = shift;
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, x->dim);
}

/* Before opset 13 softmax runs over all dims from axis on, as if flattened. */
static size_t softmax_flat(struct mdl_lower *l, struct mdl_ir_op *op, size_t axis)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t last = axis, wide = 0, y;

    for (size_t i = axis; i < x.rank; i++) {
        if (x.dim[i] != 1) {
            last = i;
            wide++;
        }
    }
    op->op.attr.softmax.axis = last;
    if (wide <= 1 && axis < x.rank) { /* only one of them exceeds 1: no need to flatten */
        return mdl_ir_emit(l->ir, op, MDL_F32, x.rank, x.dim);
    }
    op->op.in[0] = mdl_lower_flatten(l, axis);
    op->op.attr.softmax.axis = 1;
    y = mdl_ir_emit(l->ir, op, MDL_F32, 2, mdl_l_value(l, op->op.in[0])->dim);
    return mdl_ir_reshape(l->ir, y, x.rank, x.dim);
}

static size_t lower_softmax(struct mdl_lower *l, int log)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_SOFTMAX, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    bool old = l->opset < 13;
    size_t at = mdl_l_axis(l, mdl_l_int(l, "axis", old ? 1 : -1), x->rank, old);

    op.op.attr.softmax.log = log != 0;
    op.op.attr.softmax.axis = at;
    return old ? softmax_flat(l, &op, at) : mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, x->dim);
}

const struct mdl_lower_row mdl_lower_products[] = {
    {"Gemm", lower_gemm, 2, 2},
    {"MatMul", lower_matmul, 2, 2},
    {"BatchNormalization", lower_batch_norm, 5, 5},
    {"Softmax", lower_softmax, 1, 1},
    {"LogSoftmax", lower_softmax, 1, 1, 1},
    {0},
};
