/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ATTENTION: a block of queries at a time, so that its scores stay in cache. Keys and values are
 * packed once for each batch and head into panels of the indirect GEMM, in a member's own scratch.
 */
#include <math.h>

#include "kernels/common/planned.h"
#include "kernels/common/vec_math.h"
#include "kernels/f32/pack_panels.h"

#define BLOCK_TILES 12u
#define BLOCK_ROWS (BLOCK_TILES * KRN_TILE_ROWS)
#define SCORE_BYTES 65536u /* of a block, if that is at least one tile */

struct attention {
    const struct mdl_tensor *q, *k, *v, *y, *mask; /* mask: or NULL */
    size_t batches, m, n, d, e, last;
    size_t row;    /* floats between rows of scores, all panels of the keys */
    size_t block;  /* rows of scores at once */
    size_t blocks; /* in m */
    bool copy_q;   /* the queries are not dense */
    size_t floats; /* scratch of a member */
};

static bool attention_of(const struct mdl_model *m, const struct mdl_op *op, struct attention *ret)
{
    struct attention a = {.q = &m->tensors[op->in[0]],
                          .k = &m->tensors[op->in[1]],
                          .v = &m->tensors[op->in[2]],
                          .y = &m->tensors[op->out[0]],
                          .mask = op->in[3] == MDL_NONE ? NULL : &m->tensors[op->in[3]],
                          .batches = 1};
    const struct mdl_tensor *all[] = {a.q, a.k, a.v, a.y, a.mask ? a.mask : a.q};

    a.last = a.y->rank - 1;
    if (a.y->rank < 2 || op->act != MDL_ACT_NONE || op->residual != MDL_RESIDUAL_NONE) {
        return false;
    }
    for (size_t i = 0; i < base_array_count(all); i++) {
        if (all[i]->dtype != MDL_F32 || all[i]->rank != a.y->rank || mdl_elements(all[i]) == 0) {
            return false;
        }
    }
    a.m = a.y->dim[a.last - 1];
    a.n = a.k->dim[a.last - 1];
    a.d = a.q->dim[a.last];
    a.e = a.y->dim[a.last];
    if (a.e > 1 && a.y->stride[a.last] != 1) {
        return false;
    }
    for (size_t i = 0; i + 1 < a.last; i++) {
        a.batches *= a.y->dim[i];
    }
    a.row = krn_panels_lanes(a.n);
    a.block = base_min((size_t)BLOCK_TILES, SCORE_BYTES / sizeof(float) / KRN_TILE_ROWS / a.row);
    a.block = base_max(a.block, (size_t)1) * KRN_TILE_ROWS;
    a.blocks = (a.m + a.block - 1) / a.block;
    a.copy_q = a.d > 1 && a.q->stride[a.last] != 1;
    a.floats = krn_igemm_packed(a.d, a.n) + krn_igemm_packed(a.n, a.e) + a.block * a.row +
               (a.copy_q ? a.block * a.d : 0);
    a.floats = base_align_up(a.floats, 16);
    *ret = a;
    return true;
}

KRN_SUPPORTS_BY(struct attention, attention_of)
KRN_SCRATCH_BYTES_BY(struct attention, attention_of, p.floats * sizeof(float))

struct job {
    const struct krn_call *call;
    struct attention a;
    size_t parts;
};

/* Member's scratch, and what is in it. */
struct member {
    float *keys, *values, *scores, *queries;
    size_t batch; /* whose keys and values are packed; SIZE_MAX: none */
};

KRN_INLINE vf cap(vf s, float softcap)
{
    return softcap == 0.0f ? s : softcap * vf_tanh(s / softcap);
}

/* lanes of a mask from element @i on, the first @n; the others are 0 */
KRN_INLINE vf mask_at(const float *mask, ptrdiff_t step, size_t i, size_t n)
{
    vf v = vf_set(0.0f);

    if (!mask) {
        return v;
    }
    if (step == 1) {
        return vf_load_any(mask + i, n);
    }
    for (size_t l = 0; l < n; l++) {
        v[l] = mask[(ptrdiff_t)(i + l) * step];
    }
    return v;
}

/* A weight below e^LEAST of the largest counts as 0. Where a mask subtracts 100, as Swin's does, it
 * would be denormal, and products with such numbers are slow. */
#define LEAST (-60.0f)

/* Scores to weights e^(s - max) of the first @n, 0 up to @row. Return: 1 / their sum */
static float weigh(float *s, size_t n, size_t row, const struct mdl_op *op, const float *mask,
                   ptrdiff_t step)
{
    const float scale = op->attr.attention.scale, softcap = op->attr.attention.softcap;
    const size_t vectors = (n + KRN_VL - 1) / KRN_VL;
    vf max = vf_set(-INFINITY), sum = vf_set(0.0f);
    float highest = -INFINITY;

    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t k = base_min(n - i, (size_t)KRN_VL);
        vf v = cap(vf_load(s + i) * scale, softcap) + mask_at(mask, step, i, k);

        for (size_t l = k; l < KRN_VL; l++) {
            v[l] = -INFINITY;
        }
        vf_store(s + i, v);
        max = vf_max(max, v);
    }
    for (size_t l = 0; l < KRN_VL; l++) {
        highest = fmaxf(highest, max[l]);
    }
    for (size_t i = 0; i < vectors * KRN_VL; i += KRN_VL) {
        vf v = vf_load(s + i) - highest, e = vf_exp(vf_max(vf_set(LEAST), v));

        e = vf_select(v < LEAST, vf_set(0.0f), e); /* NaN stays */
        vf_store(s + i, e);
        sum += e;
    }
    for (size_t i = vectors * KRN_VL; i < row; i += KRN_VL) {
        vf_store(s + i, vf_set(0.0f));
    }
    return 1.0f / vf_sum(sum);
}

static void pack_batch(const struct job *j, struct member *w, size_t batch)
{
    const struct attention *a = &j->a;

    krn_pack_panels(w->keys, (const float *)j->call->in[1] + krn_matrix_at(a->k, a->y, batch), a->d,
                    a->n, a->k->stride[a->last], a->k->stride[a->last - 1]);
    krn_pack_panels(w->values, (const float *)j->call->in[2] + krn_matrix_at(a->v, a->y, batch),
                    a->n, a->e, a->v->stride[a->last - 1], a->v->stride[a->last]);
    w->batch = batch;
}

static const float *dense_queries(const struct job *j, struct member *w, size_t batch, size_t first,
                                  size_t count, size_t *ret_step)
{
    const struct mdl_tensor *q = j->a.q;
    const ptrdiff_t row = q->stride[j->a.last - 1], step = q->stride[j->a.last];
    const float *x =
        (const float *)j->call->in[0] + krn_matrix_at(q, j->a.y, batch) + (ptrdiff_t)first * row;

    *ret_step = (size_t)row;
    if (!j->a.copy_q) {
        return x;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < j->a.d; d++) {
            w->queries[i * j->a.d + d] = x[(ptrdiff_t)i * row + (ptrdiff_t)d * step];
        }
    }
    *ret_step = j->a.d;
    return w->queries;
}

/* the rows of one block of queries of one batch */
static void block_run(const struct job *j, struct member *w, size_t batch, size_t first,
                      size_t count)
{
    const struct attention *a = &j->a;
    const struct mdl_op *op = j->call->op;
    float inverse[BLOCK_ROWS];
    size_t step, keys = a->n, y_row = (size_t)a->y->stride[a->last - 1];
    const float *q = dense_queries(j, w, batch, first, count, &step);
    const float *mask = a->mask
                            ? (const float *)j->call->in[3] + krn_matrix_at(a->mask, a->y, batch) +
                                  (ptrdiff_t)first * a->mask->stride[a->last - 1]
                            : NULL;
    float *y = (float *)j->call->out[0] + krn_matrix_at(a->y, a->y, batch) + first * y_row;
    struct krn_igemm g = {.taps = 1,
                          .len = a->d,
                          .out = a->row,
                          .packed = w->keys,
                          .y = w->scores,
                          .y_pixel = a->row};

    KRN_ISA_FN(krn_igemm_dense)
    (&g, q, (ptrdiff_t)step, 0, count, (struct krn_range){0, krn_panel_count(a->n)});
    if (op->attr.attention.causal) {
        keys = base_min(keys, first + count); /* what no row of the block attends to */
    }
    for (size_t i = 0; i < count; i++) {
        size_t n = op->attr.attention.causal ? base_min(keys, first + i + 1) : keys;

        inverse[i] =
            weigh(w->scores + i * a->row, n, a->row, op, mask, mask ? a->mask->stride[a->last] : 0);
        mask = mask ? mask + a->mask->stride[a->last - 1] : NULL;
    }
    g = (struct krn_igemm){
        .taps = 1, .len = a->n, .out = a->e, .packed = w->values, .y = y, .y_pixel = y_row};
    KRN_ISA_FN(krn_igemm_dense)
    (&g, w->scores, (ptrdiff_t)a->row, 0, count, (struct krn_range){0, krn_panel_count(a->e)});
    for (size_t i = 0; i < count; i++) {
        for (size_t e = 0; e < a->e; e += KRN_VL) {
            size_t n = base_min(a->e - e, (size_t)KRN_VL);
            float *p = y + i * y_row + e;

            vf_store_n(p, vf_load_n(p, n) * inverse[i], n);
        }
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct attention *a = &j->a;
    struct krn_range items = krn_share_run(a->batches * a->blocks, 1, part, j->parts);
    struct member w = {.keys = (float *)j->call->scratch + part * a->floats, .batch = SIZE_MAX};

    w.values = w.keys + krn_igemm_packed(a->d, a->n);
    w.scores = w.values + krn_igemm_packed(a->n, a->e);
    w.queries = w.scores + a->block * a->row;
    for (size_t i = items.begin; i < items.end; i++) {
        size_t batch = i / a->blocks;
        struct krn_range rows = krn_share(a->m, 1, i % a->blocks, a->blocks);

        if (batch != w.batch) {
            pack_batch(j, &w, batch);
        }
        block_run(j, &w, batch, rows.begin, rows.end - rows.begin);
    }
}

KRN_RUN_PARTS_BY(struct job, attention_of, a, part_run)

KRN_ISA_PRIMITIVE(attention_f32, MDL_OP_ATTENTION, KRN_ISA_NEEDS, .supports = supports,
                  .scratch_bytes = scratch_bytes, .run = run);
