/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and products of bytes by qgemm.h. The input rows under a band of output rows are
 * first widened into a padded copy, in which the kx and c of one ky are contiguous, so that a tap
 * is a whole row of the window (with groups or a dilation, one pixel of it). A product is a 1x1
 * convolution of a row of pixels. If a 1x1 window can read the input as it is, nothing is copied.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/i8/qgemm.h"

#define BAND_BYTES (96u * 1024u) /* widened input of a band; fits L2 with a panel of weights */
#define BAND_PIXELS 1024u
#define BAND_FRAMES 8u /* of a product of one row, which read the weights once */

struct plan {
    struct krn_conv c;
    bool whole;   /* a tap is a row of the window */
    bool one_row; /* of each frame: reading the weights is the limit */
    bool narrow;  /* weights are stored as bytes, see struct krn_qgemm */
    bool direct;  /* the input is read in place */
    size_t taps, len, groups;
    size_t band_w;    /* elements of a band's row */
    size_t band_rows; /* output rows of a band */
    size_t band_cols; /* output columns of a band: all, unless it is a product */
    size_t part_bytes;
    int32_t x_zero;
    bool x_signed;
};

static void plan_band(struct plan *p, size_t width)
{
    const struct krn_conv *c = &p->c;
    size_t rows = base_max(width, 1u), pointers, height, elements;

    p->band_cols = c->y.w;
    if (c->y.h == 1 && c->taps == 1 && c->win.sw == 1 && c->win.left == 0) {
        p->band_cols = BAND_BYTES / sizeof(krn_qel) / c->x.c / KRN_TILE_ROWS * KRN_TILE_ROWS;
        p->band_cols = base_min(base_max(p->band_cols, KRN_TILE_ROWS), BAND_PIXELS);
        p->band_cols = base_min(p->one_row ? BAND_FRAMES : p->band_cols, c->y.w);
    }
    p->band_w = ((p->band_cols - 1) * c->win.sw + (c->win.kw - 1) * c->win.dw + 1) * c->x.c;
    p->band_rows = BAND_BYTES / sizeof(krn_qel) / p->band_w / c->win.sh;
    p->band_rows = base_min(p->band_rows, BAND_PIXELS / p->band_cols);
    p->band_rows = base_min(base_max(p->band_rows, 1u), (c->y.h + rows - 1) / rows);
    height = (p->band_rows - 1) * c->win.sh + (c->win.kh - 1) * c->win.dh + 1;
    pointers = krn_tile_count(p->band_rows * p->band_cols) * p->taps * KRN_TILE_ROWS;
    elements = p->band_w * height + KRN_QGROUP; /* the last group may reach past the last row */
    elements = p->direct ? 0 : elements;
    p->part_bytes = base_align_up(pointers * sizeof(void *), BASE_CACHE_LINE_BYTES) +
                    base_align_up(elements * sizeof(krn_qel), BASE_CACHE_LINE_BYTES);
}

/* Do the input's bytes serve as groups: 1x1 without padding, and whole groups of a dot product's
 * signedness? */
static bool is_direct(const struct plan *p)
{
    const struct krn_conv *c = &p->c;
    bool inside = c->win.top == 0 && c->win.left == 0 && (c->y.h - 1) * c->win.sh < c->x.h &&
                  (c->y.w - 1) * c->win.sw < c->x.w;

    return KRN_QDOT && p->x_signed == (KRN_QDOT_SIGNED != 0) && c->taps == 1 && inside &&
           c->cg % KRN_QGROUP == 0;
}

/* @frames: to compute at once, each a row of the product; 0 and 1: one */
static bool team_plan_of(const struct mdl_model *m, const struct mdl_op *op, size_t width,
                         size_t frames, struct plan *p)
{
    struct krn_product r;

    if (op->kind == MDL_OP_CONV) {
        if (!krn_quant_conv_of(m, op, &p->c)) {
            return false;
        }
        p->one_row = p->c.y.n * p->c.y.h * p->c.y.w == 1;
    } else {
        if (!krn_quant_product_of(m, op, &r)) {
            return false;
        }
        krn_product_take_frames(&r, frames);
        p->one_row = frames > 1 || r.m == 1;
        p->c = krn_product_as_conv(&r);
    }
    if (KRN_QDOT && !krn_quant_weights_fit(m, op)) {
        return false;
    }
    p->whole = p->c.groups == 1 && p->c.win.dw == 1;
    p->taps = p->whole ? p->c.win.kh : p->c.taps;
    p->len = p->whole ? p->c.win.kw * p->c.cg : p->c.cg;
    p->groups = krn_qgemm_groups(p->len);
    p->narrow = !KRN_QDOT && p->one_row && krn_quant_weights_fit(m, op);
    p->x_zero = op->quant->x_zero;
    p->x_signed = m->tensors[op->in[0]].dtype == MDL_I8;
    p->direct = is_direct(p);
    plan_band(p, width);
    return true;
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    return team_plan_of(m, op, 1, 1, p);
}

KRN_SUPPORTS_BY(struct plan, plan_of)

static size_t group_bytes(const struct plan *p)
{
    return krn_qgemm_packed(p->taps, p->groups, p->c.og, p->narrow);
}

KRN_PACKED_BYTES_BY(struct plan, plan_of, p.c.groups *group_bytes(&p))

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    struct krn_qgemm_weights w = {.w = krn_const_ptr(m, op->in[1]),
                                  .is_signed = m->tensors[op->in[1]].dtype == MDL_I8};
    struct krn_product r;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return;
    }
    w.taps = p.taps;
    w.len = p.len;
    w.out = p.c.og;
    w.inner = p.c.cg;
    w.x_zero = p.x_zero;
    w.x_signed = p.x_signed;
    w.narrow = p.narrow;
    if (op->kind == MDL_OP_CONV) { /* [o][c][ky][kx] */
        w.so = (ptrdiff_t)(p.c.cg * p.c.taps);
        w.sc = (ptrdiff_t)p.c.taps;
        w.st = p.whole ? (ptrdiff_t)p.c.win.kw : 1;
        w.si = 1;
    } else if (krn_quant_product_of(m, op, &r)) {
        w.so = r.b_n;
        w.sc = r.b_k;
    }
    for (size_t g = 0; g < p.c.groups; g++) {
        size_t o = g * p.c.og;

        w.scale = op->scale + o;
        w.bias = op->quant->bias ? op->quant->bias + o : NULL;
        w.zero = op->quant->w_zero ? op->quant->w_zero + o : NULL;
        KRN_ISA_FN(krn_qgemm_pack)((uint8_t *)dst + g * group_bytes(&p), &w);
        w.w += (ptrdiff_t)p.c.og * w.so;
    }
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    size_t frames = krn_quant_product_frames(m, op) ? BAND_FRAMES : 1;
    struct plan p;

    return team_plan_of(m, op, width, frames, &p) ? base_max(width, 1u) * p.part_bytes : 0;
}

struct job {
    struct plan p;
    struct krn_qgemm g;
    const struct krn_call *call;
    size_t parts;
    bool by_panels; /* parts share the panels; each computes all bands */
};

struct band {
    size_t n, oy, rows, ox, cols; /* which outputs */
    const krn_qel *at;            /* the inputs of the first one, ... */
    size_t row, pixel;            /* ... and how far apart rows and pixels are */
    krn_qel *copy;
    const krn_qel **pointers;
};

/* the input rows under @b, padded */
static void fill_band(const struct job *j, const struct band *b)
{
    const struct plan *p = &j->p;
    const struct krn_conv *c = &p->c;
    size_t height = (b->rows - 1) * c->win.sh + (c->win.kh - 1) * c->win.dh + 1;
    size_t width = (b->cols - 1) * c->win.sw + (c->win.kw - 1) * c->win.dw + 1;
    ptrdiff_t left = (ptrdiff_t)(b->ox * c->win.sw) - c->win.left;
    struct krn_range kx = krn_taps(left, width, 1, c->x.w);
    const uint8_t *x = (const uint8_t *)j->call->in[0] + b->n * c->x.batch;
    krn_qel *to = b->copy;

    for (size_t y = 0; y < height; y++, to += p->band_w) {
        ptrdiff_t iy = (ptrdiff_t)(b->oy * c->win.sh + y) - c->win.top;
        const uint8_t *src;
        krn_qel *dst = to + kx.begin * c->x.c;

        if (iy < 0 || iy >= (ptrdiff_t)c->x.h) {
            KRN_ISA_FN(krn_qgemm_pad)(to, width * c->x.c, p->x_signed, p->x_zero);
            continue;
        }
        src = x + (size_t)iy * c->x.row + ((ptrdiff_t)kx.begin + left) * (ptrdiff_t)c->x.pixel;
        KRN_ISA_FN(krn_qgemm_pad)(to, kx.begin * c->x.c, p->x_signed, p->x_zero);
        if (c->x.pixel == c->x.c) {
            KRN_ISA_FN(krn_qgemm_widen)
            (dst, src, (kx.end - kx.begin) * c->x.c, p->x_signed, p->x_zero);
        } else {
            for (size_t k = kx.begin; k < kx.end; k++, src += c->x.pixel, dst += c->x.c) {
                KRN_ISA_FN(krn_qgemm_widen)(dst, src, c->x.c, p->x_signed, p->x_zero);
            }
        }
        KRN_ISA_FN(krn_qgemm_pad)
        (to + kx.end * c->x.c, (width - kx.end) * c->x.c, p->x_signed, p->x_zero);
    }
    memset(b->copy + p->band_w * (height - 1) + width * c->x.c, 0, KRN_QGROUP * sizeof(*to));
}

/* finds, or makes, the inputs of @b */
static void point_band(const struct job *j, struct band *b)
{
    const struct krn_conv *c = &j->p.c;
    const uint8_t *x = (const uint8_t *)j->call->in[0] + b->n * c->x.batch;

    if (j->p.direct) {
        x += b->oy * c->win.sh * c->x.row + b->ox * c->win.sw * c->x.pixel;
        b->at = (const krn_qel *)(const void *)x;
        b->row = c->x.row;
        b->pixel = c->x.pixel;
        return;
    }
    fill_band(j, b);
    b->at = b->copy;
    b->row = j->p.band_w;
    b->pixel = c->x.c;
}

/* Where the taps of @count pixels of one row are, the first of which has its window at @at: pixels
 * side by side, taps KRN_TILE_ROWS apart. */
static void point_taps(const struct plan *p, const struct band *b, const krn_qel *at, size_t count,
                       const krn_qel **to)
{
    const struct krn_win *w = &p->c.win;
    size_t per_row = p->whole ? 1 : w->kw, step = w->sw * b->pixel;

    for (size_t ky = 0; ky < w->kh; ky++, at += w->dh * b->row) {
        for (size_t kx = 0; kx < per_row; kx++, to += KRN_TILE_ROWS) {
            const krn_qel *tap = at + kx * w->dw * b->pixel;

            for (size_t i = 0; i < count; i++) {
                to[i] = tap + i * step;
            }
        }
    }
}

static void point_rows(const struct job *j, const struct band *b, size_t group)
{
    const struct plan *p = &j->p;
    const struct krn_win *w = &p->c.win;
    size_t pixels = b->rows * b->cols, tiles = krn_tile_count(pixels), ox = 0;
    const krn_qel *row = b->at + group * p->c.cg;

    for (size_t t = 0; t < tiles; t++) {
        const krn_qel **to = b->pointers + t * p->taps * KRN_TILE_ROWS;
        size_t count = krn_tile_first(pixels, tiles, t + 1) - krn_tile_first(pixels, tiles, t);

        for (size_t i = 0, n; i < count; i += n, ox += n) {
            if (ox == b->cols) {
                row += w->sh * b->row;
                ox = 0;
            }
            n = base_min(count - i, b->cols - ox);
            point_taps(p, b, row + ox * w->sw * b->pixel, n, to + i);
        }
    }
}

static void run_band(const struct job *j, struct band *b, struct krn_range panels)
{
    const struct krn_conv *c = &j->p.c;
    struct krn_qgemm g = j->g;
    size_t first = (b->n * c->y.h + b->oy) * c->y.w + b->ox;

    point_band(j, b);
    for (size_t group = 0; group < c->groups; group++) {
        point_rows(j, b, group);
        KRN_ISA_FN(krn_qgemm_block)
        (&g, b->pointers, first, b->rows * b->cols, panels);
        g.packed += group_bytes(&j->p);
        g.channel += c->og;
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct plan *p = &j->p;
    size_t down = (p->c.y.h + p->band_rows - 1) / p->band_rows;
    size_t across = (p->c.y.w + p->band_cols - 1) / p->band_cols;
    uint8_t *scratch = (uint8_t *)j->call->scratch + part * p->part_bytes;
    size_t pointers = krn_tile_count(p->band_rows * p->band_cols) * p->taps * KRN_TILE_ROWS;
    struct krn_range panels = {0, krn_panel_count(p->c.og)};
    struct krn_range share = {0, p->c.y.n * down * across};

    if (j->by_panels) {
        panels = krn_share_run(panels.end, 1, part, j->parts);
    } else {
        share = krn_share_run(share.end, 1, part, j->parts);
    }
    for (size_t i = share.begin; i < share.end && panels.begin < panels.end; i++) {
        size_t oy = i / across % down * p->band_rows, ox = i % across * p->band_cols;
        struct band b = {
            .n = i / across / down,
            .oy = oy,
            .rows = base_min(p->band_rows, p->c.y.h - oy),
            .ox = ox,
            .cols = base_min(p->band_cols, p->c.y.w - ox),
            .pointers = (const krn_qel **)(void *)scratch,
            .copy = (krn_qel *)(void *)(scratch + base_align_up(pointers * sizeof(void *),
                                                                BASE_CACHE_LINE_BYTES)),
        };

        run_band(j, &b, panels);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (!team_plan_of(call->model, call->op, call->width, call->frames, &j.p)) {
        return;
    }
    j.g = (struct krn_qgemm){
        .taps = j.p.taps,
        .groups = j.p.groups,
        .out = j.p.c.og,
        .narrow = j.p.narrow,
        .packed = call->packed,
        .epilogue = krn_quant_epilogue_of(call),
        .y = call->out[0],
        .y_pixel = j.p.c.y.pixel,
    };
    j.by_panels = krn_by_panels(krn_tile_count(j.p.c.y.n * j.p.c.y.h * j.p.c.y.w),
                                krn_panel_count(j.p.c.og), j.parts);
    krn_parallel(call->pool, j.parts, part_run, &j);
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_ISA_PRIMITIVE(what##_igemm, kind, KRN_QUANT_NEEDS, .supports = supports,                   \
                      .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,  \
                      .frames_at_once = krn_quant_product_frames, .run = run)
PRIMITIVE(conv_i8_nhwc, MDL_OP_CONV);
PRIMITIVE(gemm_i8, MDL_OP_GEMM);
PRIMITIVE(matmul_i8, MDL_OP_MATMUL);
