/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and products with constant weights by indirect GEMM: a chunk of output pixels gets a
 * table of row pointers, then all panels of weights pass over it while its input stays in cache.
 * 1x1 convolutions of stride 1 need no pointers, nor do products, which are 1x1 convolutions of a
 * row of pixels. For one row, reading the weights is the limit; each panel is one sequential
 * stream, which memory delivers fastest. First layers, which would spend their time on pointers,
 * have conv_f32_nhwc_stem.c.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/igemm.h"

#define CHUNK_BYTES (256u * 1024u) /* input under a chunk; fits L2 with a panel of weights */
#define CHUNK_POINTERS 8192u
#define CHUNK_TILES 16u /* of a product */

struct plan {
    struct krn_conv c;
    bool dense;        /* one tap, whose pixels are at equal distances: no pointers */
    size_t tiles_max;  /* per chunk */
    size_t part_bytes; /* scratch of one part: pointers */
};

/* pixels of a tile */
static size_t rows_of(const struct plan *p)
{
    return p->dense ? KRN_IGEMM_DENSE_ROWS : KRN_TILE_ROWS;
}

static bool product_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *ret)
{
    return krn_product_of(m, op, ret) && ret->b_const;
}

/* @frames: to compute at once, each a row of the product; 0 and 1: one */
static bool frames_plan_of(const struct mdl_model *m, const struct mdl_op *op, size_t frames,
                           struct plan *p)
{
    size_t tile_pointers, pixel_bytes;
    struct krn_product r;

    if (product_of(m, op, &r)) {
        krn_product_take_frames(&r, frames);
        *p = (struct plan){.c = krn_product_as_conv(&r), .dense = true, .tiles_max = CHUNK_TILES};
        return true;
    }
    if (!krn_conv_of(m, op, &p->c)) {
        return false;
    }
    p->dense = krn_conv_is_pointwise(&p->c) && krn_img_flat(&p->c.x);
    tile_pointers = p->dense ? 0 : p->c.taps * KRN_TILE_ROWS;
    pixel_bytes = p->c.x.c * sizeof(float) * base_min(p->c.win.sh, p->c.win.kh) *
                  base_min(p->c.win.sw, p->c.win.kw);
    p->tiles_max = base_max(CHUNK_BYTES / pixel_bytes / rows_of(p), 4u);
    if (!p->dense) {
        p->tiles_max = base_min(p->tiles_max, CHUNK_POINTERS / tile_pointers);
        p->tiles_max = base_max(p->tiles_max, 1u);
    }
    p->part_bytes =
        base_align_up(p->tiles_max * tile_pointers * sizeof(float *), BASE_CACHE_LINE_BYTES);
    return true;
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    return frames_plan_of(m, op, 1, p);
}

KRN_SUPPORTS_BY(struct plan, plan_of)

static size_t group_floats(const struct plan *p)
{
    return krn_igemm_packed(p->c.taps * p->c.cg, p->c.og);
}

/* a row of zeros for the taps in the padding */
static size_t zeros_floats(const struct plan *p)
{
    return p->dense ? 0 : p->c.cg;
}

/* the panels of every group, then the zeros */
KRN_PACKED_BYTES_BY(struct plan, plan_of,
                    (p.c.groups * group_floats(&p) + zeros_floats(&p)) * sizeof(float))

/* Weights of hundreds of megabytes are packed piece by piece, and the file's pages are released
 * after each piece, so that they are never in memory twice. */
#define PACK_PIECE_BYTES (16u << 20)

static void pack_product(const struct mdl_model *m, const struct mdl_op *op,
                         const struct krn_product *p, float *dst)
{
    const uint8_t *src = krn_const_ptr(m, op->in[1]);
    size_t piece = PACK_PIECE_BYTES / sizeof(float) / p->k / KRN_TILE_LANES;

    piece = base_max(piece, (size_t)1) * KRN_TILE_LANES;
    for (size_t n = 0; n < p->n; n += piece) {
        KRN_ISA_FN(krn_igemm_pack)
        (dst + krn_igemm_packed(p->k, n), src + (ptrdiff_t)n * p->b_n * (ptrdiff_t)sizeof(float), 1,
         p->k, base_min(piece, p->n - n), p->b_n, 0, p->b_k, op->scale ? op->scale + n : NULL,
         p->alpha);
        mdl_drop_op_weights(m, (size_t)(op - m->ops));
    }
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    struct krn_product product;
    struct plan p;
    float *out = dst;

    if (product_of(m, op, &product)) {
        pack_product(m, op, &product, dst);
        return;
    }
    if (!plan_of(m, op, &p)) {
        return;
    }
    for (size_t g = 0; g < p.c.groups; g++, out += group_floats(&p)) {
        krn_igemm_pack_group(m, op, &p.c, g, out);
    }
    memset(out, 0, zeros_floats(&p) * sizeof(float));
}

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_igemm g;
    const float *zeros;
    size_t parts;
    bool by_panels; /* parts share the panels, not the pixels */
};

/* a window, or one tap, that lies wholly inside the image */
static inline void point_inside(const struct krn_conv *c, const float *x, const float **p)
{
    for (size_t y = 0; y < c->win.kh; y++) {
        const float *at = x + y * c->win.dh * c->x.row;

        for (size_t k = 0; k < c->win.kw; k++, p += KRN_TILE_ROWS) {
            *p = at + k * c->win.dw * c->x.pixel;
        }
    }
}

static void point_edge(const struct job *j, const float *image, ptrdiff_t iy, ptrdiff_t ix,
                       const float **p)
{
    const struct krn_conv *c = &j->p.c;
    struct krn_range ky = krn_taps(iy, c->win.kh, c->win.dh, c->x.h);
    struct krn_range kx = krn_taps(ix, c->win.kw, c->win.dw, c->x.w);

    for (size_t y = 0; y < c->win.kh; y++) {
        bool in_y = y >= ky.begin && y < ky.end;
        ptrdiff_t at =
            (iy + (ptrdiff_t)(y * c->win.dh)) * (ptrdiff_t)c->x.row + ix * (ptrdiff_t)c->x.pixel;

        for (size_t k = 0; k < c->win.kw; k++, p += KRN_TILE_ROWS) {
            bool in = in_y && k >= kx.begin && k < kx.end;

            *p = in ? image + at + (ptrdiff_t)(k * c->win.dw * c->x.pixel) : j->zeros;
        }
    }
}

/* pointers for the pixels [first, first + pixels) of group @group */
static void point(const struct job *j, size_t group, size_t first, size_t pixels,
                  const float **rows)
{
    const struct krn_conv *c = &j->p.c;
    const float *image = (const float *)j->call->in[0] + group * c->cg;
    size_t tiles = krn_tile_count(pixels), next = 0;
    size_t ox = first % c->y.w, oy = first / c->y.w % c->y.h, n = first / c->y.w / c->y.h;
    size_t span_h = (c->win.kh - 1) * c->win.dh, span_w = (c->win.kw - 1) * c->win.dw;

    image += n * c->x.batch;
    for (size_t t = 0; t < tiles; t++, rows += c->taps * KRN_TILE_ROWS) {
        size_t from = next;

        next = krn_tile_first(pixels, tiles, t + 1);
        for (size_t i = 0; i < next - from; i++) {
            ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh) - c->win.top;
            ptrdiff_t ix = (ptrdiff_t)(ox * c->win.sw) - c->win.left;

            if (iy >= 0 && ix >= 0 && (size_t)iy + span_h < c->x.h &&
                (size_t)ix + span_w < c->x.w) {
                point_inside(c, image + (size_t)iy * c->x.row + (size_t)ix * c->x.pixel, rows + i);
            } else {
                point_edge(j, image, iy, ix, rows + i);
            }
            if (++ox == c->y.w) {
                ox = 0;
                if (++oy == c->y.h) {
                    oy = 0;
                    image += c->x.batch;
                }
            }
        }
    }
}

static void run_pixels(const struct job *j, struct krn_range pixels, struct krn_range panels,
                       uint8_t *scratch)
{
    const float **rows = (const float **)scratch, *x = j->call->in[0];
    const size_t pixel = j->p.c.x.pixel;
    struct krn_igemm g = j->g;

    for (size_t group = 0; group < j->p.c.groups; group++) {
        for (size_t first = pixels.begin; first < pixels.end;) {
            size_t left = pixels.end - first, max = j->p.tiles_max * rows_of(&j->p);
            size_t chunks = (left + max - 1) / max, now = (left + chunks - 1) / chunks;

            if (j->p.dense) {
                KRN_ISA_FN(krn_igemm_dense)
                (&g, x + first * pixel, (ptrdiff_t)pixel, first, now, panels);
            } else {
                point(j, group, first, now, rows);
                KRN_ISA_FN(krn_igemm_block)(&g, rows, first, now, panels);
            }
            first += now;
        }
        g.packed += group_floats(&j->p);
        g.channel += j->p.c.og;
        x += j->p.c.cg;
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_conv *c = &j->p.c;
    size_t pixels = c->y.n * c->y.h * c->y.w, panels = krn_panel_count(c->og);
    uint8_t *scratch = j->call->scratch + part * j->p.part_bytes;

    if (j->by_panels) {
        struct krn_range share = krn_share_run(panels, 1, part, j->parts);

        if (share.begin < share.end) {
            run_pixels(j, (struct krn_range){0, pixels}, share, scratch);
        }
    } else {
        run_pixels(j, krn_share_run(pixels, rows_of(&j->p), part, j->parts),
                   (struct krn_range){0, panels}, scratch);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (!frames_plan_of(call->model, call->op, call->frames, &j.p)) {
        return;
    }
    j.g = (struct krn_igemm){
        .taps = j.p.c.taps,
        .len = j.p.c.cg,
        .out = j.p.c.og,
        .packed = call->packed,
        .epilogue = krn_epilogue_of(call),
        .y = call->out[0],
        .y_pixel = j.p.c.y.pixel,
    };
    j.g.zeros = j.zeros = (const float *)call->packed + j.p.c.groups * group_floats(&j.p);
    j.by_panels = krn_by_panels(krn_tile_count(j.p.c.y.n * j.p.c.y.h * j.p.c.y.w),
                                krn_panel_count(j.p.c.og), j.parts);
    krn_parallel(call->pool, j.parts, part_run, &j);
}

KRN_SCRATCH_BYTES_BY(struct plan, plan_of, p.part_bytes)

#define PRIMITIVE(what, kind)                                                                      \
    KRN_ISA_PRIMITIVE(what##_igemm, kind, KRN_ISA_NEEDS, .supports = supports,                     \
                      .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,  \
                      .frames_at_once = krn_product_frames, .run = run)
PRIMITIVE(conv_f32_nhwc, MDL_OP_CONV);
PRIMITIVE(gemm_f32, MDL_OP_GEMM);
PRIMITIVE(matmul_f32, MDL_OP_MATMUL);
