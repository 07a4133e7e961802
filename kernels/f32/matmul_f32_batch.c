/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MATMUL of matrices that are both computed per frame: the second of each batch is packed into
 * panels of the indirect GEMM, some columns at a time, in a member's own scratch.
 */
#include "kernels/common/planned.h"
#include "kernels/f32/pack_panels.h"

#define CHUNK_TILES 16u
#define CHUNK_ROWS (CHUNK_TILES * KRN_TILE_ROWS)
#define PANEL_BYTES 262144u /* of packed columns, if that is at least one panel */

struct batch {
    const struct mdl_tensor *a, *b, *y;
    size_t batches, m, n, k, last;
    size_t columns; /* packed at once */
    bool copy_a;    /* rows of a are not dense */
    size_t floats;  /* scratch of a member */
};

static bool batch_of(const struct mdl_model *m, const struct mdl_op *op, struct batch *ret)
{
    struct batch p = {.a = &m->tensors[op->in[0]],
                      .b = &m->tensors[op->in[1]],
                      .y = &m->tensors[op->out[0]],
                      .batches = 1};

    p.last = p.y->rank - 1;
    if (op->quant || op->scale || op->shift || op->in[2] != MDL_NONE ||
        op->residual != MDL_RESIDUAL_NONE || op->act > MDL_ACT_SOFTPLUS || p.a->dtype != MDL_F32 ||
        p.b->dtype != MDL_F32 || p.y->rank < 2 || p.a->rank != p.y->rank ||
        (p.b->rank != p.y->rank && p.b->rank != 2) || mdl_elements(p.a) == 0 ||
        mdl_elements(p.b) == 0 || (p.b->rank == 2 && krn_is_const_f32(m, op->in[1]))) {
        return false;
    }
    p.m = p.y->dim[p.last - 1];
    p.n = p.y->dim[p.last];
    p.k = p.a->dim[p.last];
    if (p.n > 1 && p.y->stride[p.last] != 1) {
        return false;
    }
    for (size_t i = 0; i + 1 < p.last; i++) {
        if (p.a->dim[i] != p.y->dim[i] || (p.b->rank > 2 && p.b->dim[i] != p.y->dim[i])) {
            return false;
        }
        p.batches *= p.y->dim[i];
    }
    p.columns = PANEL_BYTES / sizeof(float) / p.k / KRN_TILE_LANES * KRN_TILE_LANES;
    p.columns = base_min(base_max(p.columns, (size_t)KRN_TILE_LANES), p.n);
    p.copy_a = p.k > 1 && p.a->stride[p.last] != 1;
    p.floats = krn_igemm_packed(p.k, p.columns) + (p.copy_a ? CHUNK_ROWS * p.k : 0);
    p.floats = base_align_up(p.floats, 16);
    *ret = p;
    return true;
}

KRN_SUPPORTS_BY(struct batch, batch_of)
KRN_SCRATCH_BYTES_BY(struct batch, batch_of, p.floats * sizeof(float))

struct job {
    const struct krn_call *call;
    struct batch p;
    size_t parts;
};

/* some rows of one batch times the columns that are packed, @from to @to */
static void rows_run(const struct job *j, float *scratch, size_t batch, struct krn_range r,
                     struct krn_range columns)
{
    const struct batch *p = &j->p;
    const ptrdiff_t row = p->a->stride[p->last - 1], step = p->a->stride[p->last];
    size_t y_row = (size_t)p->y->stride[p->last - 1], n = columns.end - columns.begin;
    const float *a = (const float *)j->call->in[0] + krn_matrix_at(p->a, p->y, batch);
    float *y = (float *)j->call->out[0] + krn_matrix_at(p->y, p->y, batch) + columns.begin;
    float *dense = scratch + krn_igemm_packed(p->k, p->columns);
    struct krn_igemm g = {.taps = 1,
                          .len = p->k,
                          .out = n,
                          .packed = scratch,
                          .epilogue = krn_epilogue_without(j->call->op),
                          .y = y,
                          .y_pixel = y_row};

    for (size_t first = r.begin; first < r.end; first += CHUNK_ROWS) {
        size_t count = base_min(r.end - first, (size_t)CHUNK_ROWS);
        const float *x = a + (ptrdiff_t)first * row;

        for (size_t i = 0; p->copy_a && i < count; i++) {
            for (size_t k = 0; k < p->k; k++) {
                dense[i * p->k + k] = x[(ptrdiff_t)i * row + (ptrdiff_t)k * step];
            }
        }
        KRN_ISA_FN(krn_igemm_dense)
        (&g, p->copy_a ? dense : x, p->copy_a ? (ptrdiff_t)p->k : row, first, count,
         (struct krn_range){0, krn_panel_count(n)});
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct batch *p = &j->p;
    struct krn_range all = krn_share_run(p->batches * p->m, 1, part, j->parts);
    float *scratch = (float *)j->call->scratch + part * p->floats;

    while (all.begin < all.end) {
        size_t batch = all.begin / p->m, first = all.begin % p->m;
        struct krn_range r = {first, base_min(p->m, first + all.end - all.begin)};
        const float *b = (const float *)j->call->in[1] + krn_matrix_at(p->b, p->y, batch);
        const ptrdiff_t k = p->b->stride[p->b->rank - 2], n = p->b->stride[p->b->rank - 1];

        for (size_t from = 0; from < p->n; from += p->columns) {
            struct krn_range columns = {from, base_min(p->n, from + p->columns)};

            krn_pack_panels(scratch, b + (ptrdiff_t)from * n, p->k, columns.end - from, k, n);
            rows_run(j, scratch, batch, r, columns);
        }
        all.begin += r.end - r.begin;
    }
}

KRN_RUN_PARTS_BY(struct job, batch_of, p, part_run)

KRN_ISA_PRIMITIVE(matmul_f32_batch, MDL_OP_MATMUL, KRN_ISA_NEEDS, .supports = supports,
                  .scratch_bytes = scratch_bytes, .run = run);
