/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of matrices, of reals and of bytes. */
#include "base/base.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/* Factors of inputs 0 and 1, whose products are summed: where the first are, and the steps. */
struct line {
    ptrdiff_t a, b, a_step, b_step;
    size_t count;
};

struct sum {
    double real;
    uint32_t whole; /* of an op with quant; wraps */
};

static void add_line(const struct krn_call *c, struct line l, size_t channel, struct sum *s)
{
    const struct mdl_quant *q = c->op->quant;
    enum mdl_dtype a = ref_in(c, 0)->dtype, b = ref_in(c, 1)->dtype;
    int32_t a_zero, b_zero;

    if (!q) {
        for (size_t i = 0; i < l.count; i++, l.a += l.a_step, l.b += l.b_step) {
            s->real += (double)ref_f32(c->in[0], l.a) * (double)ref_f32(c->in[1], l.b);
        }
        return;
    }
    a_zero =
        c->op->in[2] == MDL_NONE ? q->x_zero : (int32_t)ref_i64(c->in[2], ref_in(c, 2)->dtype, 0);
    b_zero = q->w_zero ? q->w_zero[channel] : 0;
    for (size_t i = 0; i < l.count; i++, l.a += l.a_step, l.b += l.b_step) {
        s->whole += (uint32_t)(((int32_t)ref_i64(c->in[0], a, l.a) - a_zero) *
                               ((int32_t)ref_i64(c->in[1], b, l.b) - b_zero));
    }
}

/* scale, shift, @bias, epilogue; @residual: the operand of @w */
static void store(const struct krn_call *c, const struct ref_walk *w, const struct sum *s,
                  size_t channel, double bias, size_t residual)
{
    const struct mdl_op *op = c->op;
    double t = s->real;

    if (op->quant) {
        krn_ref_quant_sum(c, s->whole, channel, w->at[0], w->at[residual]);
        return;
    }
    t *= op->scale ? (double)op->scale[channel] : 1;
    t += op->shift ? (double)op->shift[channel] : 0;
    ref_set_f32(c->out[0], w->at[0], ref_finish(c, t + bias, w->at[residual]));
}

/*
 * CONV  y[n,o,p] = finish( scale[o] sum_{c,k} w[o,c,k] x[n, g C/G + c, p s + k d - pad] + shift[o]
 *                          + bias[o] ),  g = o / (O/G); x is 0 outside        Source: ONNX Conv
 * CONV_TRANSPOSE  y[n,o,p] = finish( scale[o] sum_{c,k: i s + k d - pad = p} w[c,o',k] x[n,c,i] +
 *                            shift[o] + bias[o] ), c over the group of o
 * Source: ONNX ConvTranspose. Gathered: for each y the taps that reach it.
 */
static void conv_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0), *k = ref_in(c, 1);
    bool back = c->op->kind == MDL_OP_CONV_TRANSPOSE, biased = c->op->in[2] != MDL_NONE;
    size_t groups = c->op->attr.conv.groups, o = w->index[1], channels = x->dim[1] / groups;
    size_t per_group = ref_out(c, 0)->dim[1] / groups, first = o / per_group * channels;
    struct ref_taps t = {
        .win = &c->op->attr.conv.window, .x = x, .w = k, .p = &w->index[2], .back = back};
    ptrdiff_t a = (ptrdiff_t)w->index[0] * x->stride[0] + (ptrdiff_t)first * x->stride[1];
    ptrdiff_t b = back ? (ptrdiff_t)first * k->stride[0] + (ptrdiff_t)(o % per_group) * k->stride[1]
                       : (ptrdiff_t)o * k->stride[0];
    struct sum s = {0};

    while (ref_next_tap(&t)) {
        if (t.inside) {
            add_line(c,
                     (struct line){a + t.at, b + t.w_at, x->stride[1], k->stride[back ? 0 : 1],
                                   channels},
                     o, &s);
        }
    }
    store(c, w, &s, o,
          biased && !c->op->quant
              ? (double)ref_f32(c->in[2], (ptrdiff_t)o * ref_in(c, 2)->stride[0])
              : 0,
          1);
}

REF_EACH_ELEMENT(conv, 0)

static bool conv_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *w = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    const struct mdl_tensor *bias = op->in[2] == MDL_NONE ? NULL : &m->tensors[op->in[2]];
    const struct mdl_window *win = &op->attr.conv.window;
    size_t groups = op->attr.conv.groups;
    bool forward = op->kind == MDL_OP_CONV;

    if (!ref_window_ok(win, x, y) || w->rank != x->rank || groups == 0 || x->dim[1] % groups ||
        y->dim[1] % groups || w->dim[0] != (forward ? y : x)->dim[1] ||
        w->dim[1] * groups != (forward ? x : y)->dim[1] ||
        memcmp(win->kernel, &w->dim[2], win->rank * sizeof(w->dim[0])) != 0) {
        return false;
    }
    if (op->quant) {
        return forward && op->channels == y->dim[1] && krn_ref_quant_product_ok(m, op);
    }
    return ref_all_f32(m, op) && ref_epilogue_ok(m, op) &&
           (!bias || (bias->rank == 1 && bias->dim[0] == y->dim[1])) &&
           (!(op->scale || op->shift) || op->channels == y->dim[1]);
}

REF_PRIMITIVE(conv, MDL_OP_CONV, conv_supports, conv_run);

REF_PRIMITIVE(conv_transpose, MDL_OP_CONV_TRANSPOSE, conv_supports, conv_run);

/*
 * GEMM  y[i,j] = finish( scale[j] alpha sum_q A'[i,q] B'[q,j] + shift[j] + beta C[i,j] )
 * A' = A or its transpose, C broadcast to y by strides                          Source: ONNX Gemm
 *
 * MATMUL  y[...,i,j] = finish( scale[j] sum_q a[...,i,q] b[...,q,j] + shift[j] )
 * numpy's rules: batch dims broadcast from the right; a vector a is one row, a vector b one column,
 * and y then lacks that dim.                                                  Source: ONNX MatMul
 */
struct product {
    bool row, column; /* y has the dim of i, of j */
    size_t batch;     /* its other dims */
    size_t ai, aq;    /* the dims of i and q in a ... */
    size_t bq, bj;    /* ... of q and j in b; ai only if row, bj only if column */
};

static struct product product_of(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *a = &m->tensors[op->in[0]], *b = &m->tensors[op->in[1]];
    bool gemm = op->kind == MDL_OP_GEMM;
    size_t ta = gemm && op->attr.gemm.trans_a, tb = gemm && op->attr.gemm.trans_b;
    struct product p = {.row = a->rank > 1, .column = b->rank > 1};

    p.batch = base_max(base_max(a->rank, b->rank), (size_t)2) - 2;
    p.ai = a->rank - 2 + ta;
    p.aq = a->rank - 1 - ta;
    p.bq = p.column ? b->rank - 2 + tb : 0;
    p.bj = b->rank - 1 - tb;
    return p;
}

/* Where the matrix of @t begins for element @index of y, which has @batch dims in front. */
static ptrdiff_t matrix_at(const struct mdl_tensor *t, size_t batch, const size_t *index)
{
    ptrdiff_t at = 0;

    for (size_t d = 0; d + 2 < t->rank; d++) {
        at += t->dim[d] == 1 ? 0 : (ptrdiff_t)index[batch + 2 - t->rank + d] * t->stride[d];
    }
    return at;
}

static void product_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *a = ref_in(c, 0), *b = ref_in(c, 1);
    const struct mdl_op *op = c->op;
    struct product p = product_of(c->model, op);
    size_t i = w->index[p.batch], j = p.column ? w->index[p.batch + p.row] : 0;
    struct line l = {.a = matrix_at(a, p.batch, w->index),
                     .b = matrix_at(b, p.batch, w->index),
                     .a_step = a->stride[p.aq],
                     .b_step = b->stride[p.bq],
                     .count = a->dim[p.aq]};
    double bias = 0;
    struct sum s = {0};

    l.a += p.row ? (ptrdiff_t)i * a->stride[p.ai] : 0;
    l.b += p.column ? (ptrdiff_t)j * b->stride[p.bj] : 0;
    add_line(c, l, j, &s);
    if (op->kind == MDL_OP_GEMM && !op->quant) {
        s.real *= (double)op->attr.gemm.alpha;
        if (op->in[2] != MDL_NONE) {
            bias = (double)op->attr.gemm.beta * (double)ref_f32(c->in[2], w->at[3]);
        }
    }
    store(c, w, &s, j, bias, 4);
}

REF_EACH_ELEMENT(product, 3)

static bool product_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *a = &m->tensors[op->in[0]], *b = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    struct product p;
    size_t columns;

    if (a->rank == 0 || b->rank == 0) {
        return false;
    }
    p = product_of(m, op);
    columns = p.column ? b->dim[p.bj] : 1;
    if (y->rank != p.batch + p.row + p.column || a->dim[p.aq] != b->dim[p.bq] ||
        (p.row && y->dim[p.batch] != a->dim[p.ai]) ||
        (p.column && y->dim[p.batch + p.row] != columns) ||
        (op->kind == MDL_OP_GEMM && (a->rank != 2 || b->rank != 2))) {
        return false;
    }
    if (op->quant) {
        return p.row && p.column && op->channels == columns && krn_ref_quant_product_ok(m, op);
    }
    return ref_all_f32(m, op) && ref_epilogue_ok(m, op) &&
           (!(op->scale || op->shift) || op->channels == columns);
}

REF_PRIMITIVE(gemm, MDL_OP_GEMM, product_supports, product_run);

REF_PRIMITIVE(matmul, MDL_OP_MATMUL, product_supports, product_run);
