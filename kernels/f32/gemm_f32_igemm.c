/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with constant weights by indirect GEMM: a row of a is the single tap. For one row of a,
 * reading the weights is the limit; each panel is one sequential stream, which memory delivers
 * fastest.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/igemm.h"

static bool product(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *p)
{
    return krn_product_of(m, op, p) && p->b_const;
}

KRN_SUPPORTS_BY(struct krn_product, product)

KRN_PACKED_BYTES_BY(struct krn_product, product, krn_igemm_packed(p.k, p.n) * sizeof(float))

/* Weights of hundreds of megabytes are packed piece by piece, and the file's pages are released
 * after each piece, so that they are never in memory twice. */
#define PACK_PIECE_BYTES (16u << 20)

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    struct krn_product p;
    const uint8_t *src;
    size_t piece;

    if (!product(m, op, &p)) {
        return;
    }
    src = krn_const_ptr(m, op->in[1]);
    piece = PACK_PIECE_BYTES / sizeof(float) / base_max(p.k, (size_t)1) / KRN_IGEMM_LANES;
    piece = base_max(piece, (size_t)1) * KRN_IGEMM_LANES;
    for (size_t n = 0; n < p.n; n += piece) {
        KRN_ISA_FN(krn_igemm_pack)
        ((float *)dst + krn_igemm_packed(p.k, n),
         src + (ptrdiff_t)n * p.b_n * (ptrdiff_t)sizeof(float), 1, p.k, base_min(piece, p.n - n),
         p.b_n, 0, p.b_k, op->scale ? op->scale + n : NULL, p.alpha);
        mdl_drop_op_weights(m, (size_t)(op - m->ops));
    }
}

#define CHUNK_TILES 16u

struct job {
    const struct krn_call *call;
    struct krn_product p;
    struct krn_igemm g;
    size_t parts;
    bool by_panels;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const float *a = j->call->in[0];
    struct krn_range panels = {0, krn_igemm_panels(j->p.n)}, all = {0, j->p.m};

    if (j->by_panels) {
        panels = krn_share(panels.end, 1, part, j->parts);
    } else {
        all = krn_share(j->p.m, KRN_IGEMM_DENSE_ROWS, part, j->parts);
    }
    for (size_t first = all.begin; first < all.end && panels.begin < panels.end;) {
        size_t now = base_min(all.end - first, (size_t)CHUNK_TILES * KRN_IGEMM_DENSE_ROWS);

        KRN_ISA_FN(krn_igemm_dense)
        (&j->g, a + first * j->p.lda, (ptrdiff_t)j->p.lda, first, now, panels);
        first += now;
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (!krn_product_of_call(call, &j.p)) {
        return;
    }
    j.g = (struct krn_igemm){
        .taps = 1,
        .len = j.p.k,
        .out = j.p.n,
        .packed = call->packed,
        .epilogue = krn_product_epilogue(call),
        .y = call->out[0],
        .y_pixel = j.p.ldy,
    };
    j.by_panels = krn_igemm_tiles(j.p.m) < 4 * j.parts && krn_igemm_panels(j.p.n) >= j.parts;
    krn_parallel(call->pool, j.parts, part_run, &j);
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_ISA_PRIMITIVE(what##_f32_igemm, kind, KRN_ISA_NEEDS, .supports = supports,                 \
                      .packed_bytes = packed_bytes, .pack = pack,                                  \
                      .frames_at_once = krn_product_frames, .run = run);
KRN_PRODUCTS(PRIMITIVE)
