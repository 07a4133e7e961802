/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1x1 convolution by Strassen's algorithm (kernels/f32/strassen.h): the rows and sums of a block of
 * pixels are arranged, then all pairs of panels pass over them. Rows are read in order, so they may
 * lie in the last-level cache. The panels are read again for each block, so blocks are large.
 *
 * A team shares pixels. If there are few, it arranges them together and then shares panels.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/strassen.h"

#define BLOCK_BYTES (1024u * 1024u) /* rows and sums under a block */
#define PAIRS_MIN (4u * KRN_TILE_ROWS)

/* lower limits for a likely gain */
#define K_WORTH 64u
#define OUT_WORTH 128u
#define PIXELS_WORTH 32u
#define GROWTH_BYTES (2u << 20) /* limit per layer for packed weights minus plain ones */

struct plan {
    struct krn_conv c;
    size_t k, pixels, pairs;
    size_t block; /* most pairs per block */
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_win *w = &p->c.win;

    if (!krn_conv_of(m, op, &p->c) || p->c.taps != 1 || p->c.groups != 1 || w->top != 0 ||
        w->left != 0 || (p->c.y.h - 1) * w->sh >= p->c.x.h || (p->c.y.w - 1) * w->sw >= p->c.x.w ||
        !krn_strassen_fits(p->c.cg, p->c.og)) {
        return false;
    }
    p->k = p->c.cg;
    p->pixels = p->c.y.n * p->c.y.h * p->c.y.w;
    p->pairs = krn_strassen_pairs(p->pixels);
    p->block =
        BLOCK_BYTES / (krn_strassen_rows(p->k, KRN_TILE_ROWS) * sizeof(float)) * KRN_TILE_ROWS;
    p->block = base_min(base_max(p->block, (size_t)PAIRS_MIN), p->pairs);
    return true;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct plan p;

    return plan_of(m, op, &p) && p.k >= K_WORTH && p.c.og >= OUT_WORTH &&
           p.pixels >= PIXELS_WORTH &&
           krn_strassen_packed(p.k, p.c.og) <=
               krn_igemm_packed(p.k, p.c.og) + GROWTH_BYTES / sizeof(float);
}

KRN_PACKED_BYTES_BY(struct plan, plan_of, krn_strassen_packed(p.k, p.c.og) * sizeof(float))

static void pack_plan(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                      float *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];

    KRN_ISA_FN(krn_strassen_pack)
    (dst, krn_const_ptr(m, op->in[1]), p->k, p->c.og, w->stride[0], w->stride[1], op->scale);
}

KRN_PACK_BY(struct plan, plan_of, pack_plan(m, op, &p, dst))

/* How a team of some width works, and the layout of its scratch (in bytes). */
struct layout {
    size_t parts;
    bool by_panels;    /* parts share panels, not pixels */
    size_t rows;       /* of one block */
    size_t rows_count; /* blocks kept at a time */
    size_t part;       /* slots and pointers of one part */
    size_t slots;      /* of that */
};

static struct layout layout_of(const struct plan *p, size_t width)
{
    struct layout l = {.parts = base_max(width, 1u)};
    size_t blocks = (p->pairs + p->block - 1) / p->block;

    l.by_panels = l.parts > 1 &&
                  krn_by_panels(krn_tile_count(p->pairs), krn_strassen_panels(p->c.og), l.parts);
    l.rows = krn_strassen_rows(p->k, p->block) * sizeof(float);
    l.rows_count = l.by_panels ? blocks : l.parts;
    l.slots = krn_strassen_slots(p->block) * sizeof(float);
    l.part = l.slots + base_align_up(krn_tile_count(2 * p->block) * KRN_TILE_ROWS * sizeof(float *),
                                     BASE_CACHE_LINE_BYTES);
    return l;
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    struct layout l;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return 0;
    }
    l = layout_of(&p, width);
    return l.rows * l.rows_count + l.part * l.parts;
}

struct job {
    struct plan p;
    struct layout l;
    struct krn_strassen g;
    struct krn_strassen_in in;
    uint8_t *scratch;
};

/* block @i of @blocks of the pairs @share, with rows @rows and the scratch of part @part */
static struct krn_strassen_block block_of(const struct job *j, struct krn_range share, size_t i,
                                          size_t blocks, size_t part, size_t rows)
{
    struct krn_range pairs = krn_share(share.end - share.begin, 1, i, blocks);
    size_t first = 2 * (share.begin + pairs.begin), end = 2 * (share.begin + pairs.end);
    uint8_t *own = j->scratch + j->l.rows_count * j->l.rows + part * j->l.part;

    return (struct krn_strassen_block){
        .first = first,
        .pixels = base_min(end, j->p.pixels) - first,
        .rows = (float *)(void *)(j->scratch + rows * j->l.rows),
        .slots = (float *)(void *)own,
        .rest = (const float **)(void *)(own + j->l.slots),
    };
}

static size_t blocks_of(const struct job *j, struct krn_range share)
{
    return (share.end - share.begin + j->p.block - 1) / j->p.block;
}

/* all panels of a share of the pixels */
static void pixels_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range share = krn_share_run(j->p.pairs, KRN_TILE_ROWS, part, j->l.parts);
    size_t blocks = blocks_of(j, share);

    for (size_t i = 0; i < blocks; i++) {
        struct krn_strassen_block b = block_of(j, share, i, blocks, part, part);

        KRN_ISA_FN(krn_strassen_block_run)(&j->g, &j->in, b.first, &b);
    }
}

/* a share of the tiles of each block */
static void rows_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range all = {0, j->p.pairs};
    size_t blocks = blocks_of(j, all);

    for (size_t i = 0; i < blocks; i++) {
        struct krn_strassen_block b = block_of(j, all, i, blocks, part, i);
        size_t tiles = krn_tile_count(krn_strassen_pairs(b.pixels));

        KRN_ISA_FN(krn_strassen_rows_of)
        (&j->in, b.first, j->p.k, &b, krn_share(tiles, 1, part, j->l.parts));
    }
}

/* a share of the panels, for all pixels; the last part takes the unpaired ones */
static void panels_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range all = {0, j->p.pairs};
    size_t panels = krn_strassen_panels(j->p.c.og);
    struct krn_range share = krn_share_run(panels, 1, part, j->l.parts);
    size_t blocks = blocks_of(j, all);

    for (size_t i = 0; i < blocks; i++) {
        struct krn_strassen_block b = block_of(j, all, i, blocks, part, i);

        KRN_ISA_FN(krn_strassen_panels_run)(&j->g, &b, share);
        if (share.begin < share.end && share.end == panels) {
            KRN_ISA_FN(krn_strassen_rest)(&j->g, &j->in, b.first, &b);
        }
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.scratch = call->scratch};
    const struct krn_img *x = &j.p.c.x, *y = &j.p.c.y;

    if (!plan_of(call->model, call->op, &j.p)) {
        return;
    }
    j.l = layout_of(&j.p, call->width);
    j.g = (struct krn_strassen){
        .k = j.p.k,
        .out = j.p.c.og,
        .packed = call->packed,
        .epilogue = krn_epilogue_of(call),
        .y = call->out[0],
        .y_pixel = y->pixel,
    };
    j.in = (struct krn_strassen_in){
        .x = call->in[0],
        .w = y->w,
        .h = y->h,
        .pixel = x->pixel * j.p.c.win.sw,
        .row = x->row * j.p.c.win.sh,
        .batch = x->batch,
    };
    if (j.l.by_panels) {
        krn_parallel(call->pool, j.l.parts, rows_run, &j);
        krn_parallel(call->pool, j.l.parts, panels_run, &j);
    } else {
        krn_parallel(call->pool, j.l.parts, pixels_run, &j);
    }
}

KRN_ISA_PRIMITIVE(conv_f32_nhwc_strassen, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,
                  .run = run);
