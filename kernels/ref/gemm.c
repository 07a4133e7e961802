/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices. */
#include "base/base.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/* A matrix view: element (i, j) is at i * row + j * column. */
struct matrix {
    const char *p;
    ptrdiff_t row, column;
};

static double dot(const struct matrix *a, const struct matrix *b, size_t i, size_t j, size_t k)
{
    double sum = 0;

    for (size_t q = 0; q < k; q++) {
        sum += (double)ref_f32(a->p, (ptrdiff_t)i * a->row + (ptrdiff_t)q * a->column) *
               (double)ref_f32(b->p, (ptrdiff_t)q * b->row + (ptrdiff_t)j * b->column);
    }
    return sum;
}

/* scale and shift of output column j */
static double folded(const struct mdl_op *op, double t, size_t j)
{
    t *= op->scale ? (double)op->scale[j] : 1;
    return t + (op->shift ? (double)op->shift[j] : 0);
}

/*
 * GEMM  y[i,j] = finish( scale[j] alpha sum_q A'[i,q] B'[q,j] + shift[j] + beta C[i,j] )
 * A' = A or its transpose, C broadcast to y by strides                          Source: ONNX Gemm
 */
static void gemm_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_op *op = c->op;
    const struct mdl_tensor *ta = ref_in(c, 0), *tb = ref_in(c, 1);
    bool trans_a = op->attr.gemm.trans_a, trans_b = op->attr.gemm.trans_b;
    struct matrix a = {c->in[0], ta->stride[trans_a], ta->stride[!trans_a]};
    struct matrix b = {c->in[1], tb->stride[trans_b], tb->stride[!trans_b]};
    double t =
        (double)op->attr.gemm.alpha * dot(&a, &b, w->index[0], w->index[1], ta->dim[!trans_a]);

    t = folded(op, t, w->index[1]);
    if (op->in[2] != MDL_NONE) {
        t += (double)op->attr.gemm.beta * (double)ref_f32(c->in[2], w->at[3]);
    }
    ref_set_f32(c->out[0], w->at[0], ref_finish(c, t, w->at[4]));
}

REF_EACH_OR_QUANT(gemm, 3)

static bool gemm_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *a = &m->tensors[op->in[0]], *b = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    bool ta = op->attr.gemm.trans_a, tb = op->attr.gemm.trans_b;

    if (op->quant) {
        return krn_ref_quant_supports(m, op);
    }
    return ref_all_f32(m, op) && a->rank == 2 && b->rank == 2 && y->rank == 2 &&
           a->dim[ta] == y->dim[0] && b->dim[!tb] == y->dim[1] && a->dim[!ta] == b->dim[tb] &&
           (!(op->scale || op->shift) || op->channels == y->dim[1]) && ref_epilogue_ok(m, op);
}

REF_PRIMITIVE(gemm, MDL_OP_GEMM, gemm_supports, gemm_run);

/*
 * MATMUL  y[...,i,j] = finish( scale[j] sum_q a[...,i,q] b[...,q,j] + shift[j] )
 * numpy's rules: batch dims broadcast from the right; a vector a is one row, a vector b one column,
 * and y then lacks that dim.                                                  Source: ONNX MatMul
 */
struct matmul {
    struct mdl_tensor batch_y, batch_a, batch_b; /* only dims and strides are used */
    size_t rows, columns, k;
    struct matrix a, b;
    ptrdiff_t y_row, y_column;
};

/* The batch dims of t: all but the last @drop. */
static struct mdl_tensor batch_of(const struct mdl_tensor *t, size_t drop)
{
    struct mdl_tensor r = *t;

    r.rank = t->rank > drop ? t->rank - drop : 0;
    return r;
}

static struct matmul matmul_of(const struct mdl_tensor *a, const struct mdl_tensor *b,
                               const struct mdl_tensor *y)
{
    bool row = a->rank > 1, column = b->rank > 1;
    struct matmul v = {.rows = row ? a->dim[a->rank - 2] : 1,
                       .columns = column ? b->dim[b->rank - 1] : 1,
                       .k = a->dim[a->rank - 1],
                       .batch_a = batch_of(a, 2),
                       .batch_b = batch_of(b, 2),
                       .batch_y = batch_of(y, (size_t)row + column)};

    v.a = (struct matrix){NULL, row ? a->stride[a->rank - 2] : 0, a->stride[a->rank - 1]};
    v.b = (struct matrix){NULL, b->stride[column ? b->rank - 2 : 0],
                          column ? b->stride[b->rank - 1] : 0};
    v.y_column = column ? y->stride[y->rank - 1] : 0;
    v.y_row = row ? y->stride[y->rank - 1 - column] : 0;
    return v;
}

static void matmul_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *y = ref_out(c, 0);
    struct matmul v = matmul_of(ref_in(c, 0), ref_in(c, 1), y);
    struct matmul vr =
        matmul_of(ref_in(c, 0), ref_in(c, 1), ref_residual(c)); /* its y strides are r's */

    for (size_t i = begin; i < end; i++) {
        size_t row = i % v.rows;
        struct ref_walk w;

        ref_walk_start(&w, &v.batch_y, i / v.rows);
        ref_walk_add(&w, &v.batch_y);
        ref_walk_add(&w, &v.batch_a);
        ref_walk_add(&w, &v.batch_b);
        ref_walk_add(&w, &vr.batch_y);
        v.a.p = (const char *)c->in[0] + w.at[1] * 4;
        v.b.p = (const char *)c->in[1] + w.at[2] * 4;
        for (size_t j = 0; j < v.columns; j++) {
            double t = folded(c->op, dot(&v.a, &v.b, row, j, v.k), j);
            ptrdiff_t at_r = w.at[3] + (ptrdiff_t)row * vr.y_row + (ptrdiff_t)j * vr.y_column;

            ref_set_f32(c->out[0], w.at[0] + (ptrdiff_t)row * v.y_row + (ptrdiff_t)j * v.y_column,
                        ref_finish(c, t, at_r));
        }
    }
}

static void matmul_run(const struct krn_call *c)
{
    const struct mdl_tensor *y = ref_out(c, 0);
    size_t columns;

    if (c->op->quant) {
        krn_ref_quant_run(c);
        return;
    }
    columns = matmul_of(ref_in(c, 0), ref_in(c, 1), y).columns;
    ref_share(c, columns ? mdl_elements(y) / columns : 0, matmul_body);
}

static bool matmul_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *a = &m->tensors[op->in[0]], *b = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    if (op->quant) {
        return krn_ref_quant_supports(m, op);
    }
    if (!ref_all_f32(m, op) || a->rank == 0 || b->rank == 0 || !ref_epilogue_ok(m, op)) {
        return false;
    }
    bool row = a->rank > 1, column = b->rank > 1;
    size_t batch = base_max(batch_of(a, 2).rank, batch_of(b, 2).rank);
    size_t columns = column ? b->dim[b->rank - 1] : 1;

    return y->rank == batch + row + column &&
           a->dim[a->rank - 1] == b->dim[column ? b->rank - 2 : 0] &&
           (!row || y->dim[y->rank - 1 - column] == a->dim[a->rank - 2]) &&
           (!column || y->dim[y->rank - 1] == columns) &&
           (!(op->scale || op->shift) || op->channels == columns);
}

REF_PRIMITIVE(matmul, MDL_OP_MATMUL, matmul_supports, matmul_run);
