/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products over OpenBLAS, weights in [n][k] order as exporters write fully connected layers: one
 * row is sgemv, more are sgemm. A b that the network computes is used in place.
 */
#include <cblas.h>

#include "base/base.h"
#include "kernels/common/conv_common.h"
#include "kernels/common/planned.h"
#include "kernels/lib/blas.h"

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_product p;

    if (!krn_product_of(m, op, &p) || p.m > INT32_MAX || p.n > INT32_MAX || p.k > INT32_MAX ||
        p.lda > INT32_MAX || p.ldy > INT32_MAX || krn_epilogue_aliased(m, op)) {
        return false;
    }
    /* a computed b must be a matrix to BLAS: dense rows, one way or the other */
    return p.b_const || (p.b_n == 1 && p.b_k >= (ptrdiff_t)p.n && p.b_k <= INT32_MAX) ||
           (p.b_k == 1 && p.b_n >= (ptrdiff_t)p.k && p.b_n <= INT32_MAX);
}

static bool const_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *p)
{
    return krn_product_of(m, op, p) && p->b_const;
}

KRN_PACKED_BYTES_BY(struct krn_product, const_of, p.n *p.k * sizeof(float))
KRN_PACK_BY(struct krn_product, const_of,
            krn_product_pack(m, op, &p, (struct krn_range){0, p.n}, dst))

struct job {
    const struct krn_call *call;
    struct krn_product p;
    struct krn_epilogue epilogue;
    size_t parts;
    bool by_columns;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_product *p = &j->p;
    struct krn_range m = {0, p->m}, n = {0, p->n};
    const float *a = j->call->in[0], *b = p->b_const ? j->call->packed : j->call->in[1];
    ptrdiff_t b_n = p->b_const ? (ptrdiff_t)p->k : p->b_n, b_k = p->b_const ? 1 : p->b_k;
    bool trans = p->b_const || (b_k == 1 && b_n >= (ptrdiff_t)p->k);
    float alpha = p->b_const ? 1.0f : p->alpha, *y;

    if (j->by_columns) {
        n = krn_share_run(p->n, 16, part, j->parts);
    } else {
        m = krn_share_run(p->m, 8, part, j->parts);
    }
    if (m.begin >= m.end || n.begin >= n.end) {
        return;
    }
    a += m.begin * p->lda;
    b += (ptrdiff_t)n.begin * b_n;
    y = (float *)j->call->out[0] + m.begin * p->ldy + n.begin;
    if (trans && m.end - m.begin == 1) {
        krn_blas_take();
        cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)(n.end - n.begin), (int)p->k, alpha, b,
                    (int)b_n, a, 1, 0.0f, y, 1);
        krn_blas_give();
    } else {
        krn_blas_take();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, trans ? CblasTrans : CblasNoTrans,
                    (int)(m.end - m.begin), (int)(n.end - n.begin), (int)p->k, alpha, a,
                    (int)p->lda, b, (int)(trans ? b_n : b_k), 0.0f, y, (int)p->ldy);
        krn_blas_give();
    }
    if (!krn_epilogue_empty(&j->epilogue)) {
        krn_epilogue_run(&j->epilogue, y, p->ldy, m.begin, m.end - m.begin, n.begin,
                         n.end - n.begin);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {
        .call = call, .epilogue = krn_epilogue_of(call), .parts = base_max(call->width, 1u)};

    if (krn_product_of(call->model, call->op, &j.p)) {
        krn_product_take_frames(&j.p, call->frames);
        j.by_columns = j.p.m < 16 * j.parts;
        krn_parallel(call->pool, j.parts, part_run, &j);
    }
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_PRIMITIVE(what##_f32__blas, kind, .supports = supports, .packed_bytes = packed_bytes,      \
                  .pack = pack, .prepare = krn_blas_prepare, .release = krn_blas_release,          \
                  .frames_at_once = krn_product_frames, .run = run);
KRN_PRODUCTS(PRIMITIVE)
