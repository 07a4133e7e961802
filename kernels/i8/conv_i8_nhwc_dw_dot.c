/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of bytes by dot products. Four taps below each other are one group: the
 * input rows under some outputs are interleaved once, a column of the image at a time, and kx taps
 * of the outputs read each column. Columns stay in the first cache. What lies outside the image
 * reads as the zero point, which therefore adds the same constant to every sum; packing puts that
 * into the bias.
 */
#include "kernels/common/planned.h"
#include "kernels/i8/quant_quad.h"

#define LANES KRN_QUAD_LANES
#define COLUMNS 40u   /* that are kept at a time */
#define GROUPS_MAX 2u /* of a column */
#define ROWS_MAX (4 * GROUPS_MAX)
#define HELD_MAX 3u /* groups of weights that registers hold */

struct plan {
    struct krn_conv c;
    size_t groups;  /* of four taps, in a column */
    size_t outputs; /* that one set of columns is enough for */
    size_t blocks;  /* of channels */
    bool x_signed;
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_win *w = &p->c.win;
    size_t span;

    if (!krn_quant_conv_of(m, op, &p->c) || p->c.groups != p->c.x.c || p->c.cg != 1 ||
        p->c.og != 1 || w->kh > ROWS_MAX || !krn_quant_weights_fit(m, op)) {
        return false;
    }
    if (w->kw > COLUMNS || w->dw > COLUMNS) {
        return false;
    }
    span = (w->kw - 1) * w->dw + 1;
    if (span > COLUMNS) {
        return false;
    }
    p->groups = (w->kh + 3) / 4;
    p->outputs = (COLUMNS - span) / w->sw + 1;
    p->blocks = (p->c.x.c + LANES - 1) / LANES;
    p->x_signed = m->tensors[op->in[0]].dtype == MDL_I8;
    return true;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

/* Packed: [block][group][kx][vector][lane] as groups of four bytes, biases and scales by lane. */
static size_t block_vectors(const struct plan *p)
{
    return p->groups * p->c.win.kw * 4;
}
KRN_PACKED_BYTES_BY(struct plan, plan_of, p.blocks *LANES *(block_vectors(&p) + 4 + 4))
KRN_SCRATCH_BYTES_BY(struct plan, plan_of, COLUMNS *p.groups * 4 * sizeof(vi))

static struct krn_quant_lanes lanes_of(const struct plan *p, const void *packed)
{
    size_t lanes = p->blocks * LANES;

    return krn_quant_lanes_at((const uint8_t *)packed + lanes * block_vectors(p), lanes);
}

/* Packs the weights of output @o into its lane. Return: their sum. */
static int32_t pack_lane(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                         size_t o, uint8_t *lane)
{
    const uint8_t *w = krn_const_ptr(m, op->in[1]);
    uint8_t flip = m->tensors[op->in[1]].dtype == MDL_I8 ? 0 : 0x80;
    size_t kw = p->c.win.kw;
    int32_t sum = 0;

    for (size_t t = 0; t < p->c.taps; t++) {
        size_t ky = t / kw, vector = (ky / 4 * kw + t % kw) * 4;

        lane[vector * LANES + ky % 4] = w[o * p->c.taps + t] ^ flip;
        sum += (int8_t)(w[o * p->c.taps + t] ^ flip);
    }
    return sum;
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    const struct mdl_quant *q = op->quant;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return;
    }
    memset(dst, 0, packed_bytes(m, op));
    for (size_t i = 0; i < p.blocks * LANES; i++) {
        size_t v = i % LANES / KRN_VL, l = i % KRN_VL, block = i / LANES;
        size_t o = block * LANES + vq4_channel(v, l);
        uint8_t *lane = (uint8_t *)dst + (block * block_vectors(&p) + v) * LANES + l * 4;
        int32_t sum;

        if (o >= p.c.x.c) {
            continue;
        }
        sum = pack_lane(m, op, &p, o, lane);
        lanes_of(&p, dst).bias[i] =
            (int32_t)((uint32_t)(q->bias ? q->bias[o] : 0) -
                      (uint32_t)((q->x_zero + krn_qdot_shift(p.x_signed)) * sum));
        lanes_of(&p, dst).scale[i] = op->scale[o];
    }
}

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_quant_epilogue e;
    size_t parts;
};

/* One block of channels of some outputs of a row. */
struct strip {
    uint8_t zeros[LANES];          /* what lies outside the image */
    const uint8_t *rows[ROWS_MAX]; /* column 0 under the block, or zeros ... */
    size_t steps[ROWS_MAX];        /* ... and how far apart columns are */
    size_t ox, outputs;            /* the first one; how many */
    size_t channels;
    vi *columns; /* [column][group][vector] */
    const vi *w;
    const int32_t *bias;
    struct krn_quant_sums to; /* of the first output */
};

KRN_INLINE vq4 load(const uint8_t *p, size_t channels, const bool full)
{
    vq4 x;

    if (!full) {
        return vq4_load_n(p, channels);
    }
    memcpy(&x, p, sizeof(x));
    return x;
}

/* @kh and @full are constants wherever this is inlined */
KRN_INLINE void fill_columns(const struct job *j, const struct strip *s, const size_t kh,
                             const bool full)
{
    const struct krn_conv *c = &j->p.c;
    const size_t groups = (kh + 3) / 4;
    size_t count = (s->outputs - 1) * c->win.sw + (c->win.kw - 1) * c->win.dw + 1;
    ptrdiff_t left = (ptrdiff_t)(s->ox * c->win.sw) - c->win.left;
    struct krn_range inside = krn_taps(left, count, 1, c->x.w);
    const vq4 flip = vq4_set(krn_qdot_shift(j->p.x_signed) ? 0x80 : 0);
    const vi zero = (vi)(vq4_set(s->zeros[0]) ^ flip);
    vi *to = s->columns;

    for (size_t i = 0; i < inside.begin * groups * 4; i++) {
        *to++ = zero;
    }
    for (size_t x = inside.begin; x < inside.end; x++) {
        size_t ix = (size_t)(left + (ptrdiff_t)x);

#pragma GCC unroll 2
        for (size_t g = 0; g < groups; g++, to += 4) {
            vq4 r[4];

#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++) {
                size_t row = 4 * g + i;

                r[i] = (vq4)zero; /* of weights 0 */
                if (row < kh) {
                    r[i] = load(s->rows[row] + ix * s->steps[row], s->channels, full) ^ flip;
                }
            }
            vq4_zip(r, to);
        }
    }
    for (size_t i = 0; i < (count - inside.end) * groups * 4; i++) {
        *to++ = zero;
    }
}

/* What follows the sums of output @i, unless only y's type bounds it. */
static __attribute__((noinline)) void finish(const struct job *j, const struct strip *s, size_t i,
                                             const vi acc[4])
{
    const struct krn_quant_epilogue *e = &j->e;
    uint8_t *y = s->to.y + i * j->p.c.y.pixel * (e->y_type == MDL_F32 ? sizeof(float) : 1);

    if (e->clamp && !e->res) {
        vf scale[4];

        for (size_t v = 0; v < 4; v++) {
            scale[v] = vf_load(s->to.scale + v * KRN_VL);
        }
        vq4_store_n(y, krn_quad_clamp(e, scale, acc), s->channels);
    } else {
        struct krn_quant_sums to = {s->to.scale, e->res ? s->to.res + i * e->res_pixel : NULL, y};

        krn_quad_any(e, &to, acc, s->channels);
    }
}

/* @kw, @groups, @plain and @full are constants wherever this is inlined */
KRN_INLINE void run_outputs(const struct job *j, const struct strip *s, const size_t kw,
                            const size_t groups, const bool plain, const bool full)
{
    const size_t next = j->p.c.win.sw * groups * 4, tap = j->p.c.win.dw * groups * 4;
    const size_t y_pixel = j->p.c.y.pixel;
    const vi *at = s->columns, *w = s->w;
    const struct krn_quad_plain constants = krn_quad_plain_of(&j->e, s->to.scale);
    const int32_t *bias = s->bias;
    const bool held = kw * groups <= HELD_MAX;
    uint8_t *y = s->to.y;
    vi weights[HELD_MAX * 4] = {{0}};

    if (held) {
#pragma GCC unroll 12
        for (size_t t = 0; t < kw * groups * 4; t++) {
            weights[t] = w[t];
        }
    }
    for (size_t i = 0; i < s->outputs; i++, at += next, y += y_pixel) {
        vi acc[4];

#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++) {
            acc[v] = vi_load(bias + v * KRN_VL);
        }
#pragma GCC unroll 2
        for (size_t g = 0; g < groups; g++) {
#pragma GCC unroll 5
            for (size_t kx = 0; kx < kw; kx++) {
#pragma GCC unroll 4
                for (size_t v = 0; v < 4; v++) {
                    const size_t t = (g * kw + kx) * 4 + v;

                    acc[v] = vi_dot(acc[v], at[kx * tap + g * 4 + v], held ? weights[t] : w[t]);
                }
            }
        }
        if (!plain) {
            finish(j, s, i, acc);
        } else {
            vq4_store_n(y, krn_quad_plain(&constants, acc), full ? LANES : s->channels);
        }
    }
}

KRN_INLINE void run_strip(const struct job *j, const struct strip *s, const size_t kh,
                          const size_t kw)
{
    const size_t groups = (kh + 3) / 4;

    if (j->e.plain && !j->e.res && s->channels == LANES) {
        fill_columns(j, s, kh, true);
        run_outputs(j, s, kw, groups, true, true);
    } else if (j->e.plain && !j->e.res) {
        fill_columns(j, s, kh, false);
        run_outputs(j, s, kw, groups, true, false);
    } else {
        fill_columns(j, s, kh, false);
        run_outputs(j, s, kw, groups, false, false);
    }
}

static __attribute__((noinline)) void strip_3(const struct job *j, const struct strip *s)
{
    run_strip(j, s, 3, 3);
}
static __attribute__((noinline)) void strip_5(const struct job *j, const struct strip *s)
{
    run_strip(j, s, 5, 5);
}
static __attribute__((noinline)) void strip_any(const struct job *j, const struct strip *s)
{
    run_strip(j, s, j->p.c.win.kh, j->p.c.win.kw);
}

/* where the rows of the window of output row @oy are */
static void point_rows(const struct job *j, struct strip *s, const uint8_t *image, size_t oy)
{
    const struct krn_conv *c = &j->p.c;

    for (size_t ky = 0; ky < c->win.kh; ky++) {
        size_t iy = oy * c->win.sh + ky * c->win.dh - (size_t)c->win.top; /* below zero: huge */
        bool inside = iy < c->x.h;

        s->rows[ky] = inside ? image + iy * c->x.row : s->zeros;
        s->steps[ky] = inside ? c->x.pixel : 0;
    }
}

static void run_block(const struct job *j, size_t n, size_t oy, size_t block, vi *columns)
{
    const struct plan *p = &j->p;
    const struct krn_conv *c = &p->c;
    size_t from = block * LANES, pixel = (n * c->y.h + oy) * c->y.w;
    const uint8_t *image = (const uint8_t *)j->call->in[0] + n * c->x.batch + from;
    struct strip s = {.channels = base_min(c->x.c - from, (size_t)LANES),
                      .columns = columns,
                      .w = (const vi *)j->call->packed + block * block_vectors(p),
                      .bias = lanes_of(p, j->call->packed).bias + from};

    memset(s.zeros, (uint8_t)j->call->op->quant->x_zero, sizeof(s.zeros));
    point_rows(j, &s, image, oy);
    s.to.scale = lanes_of(p, j->call->packed).scale + from;
    for (s.ox = 0; s.ox < c->y.w; s.ox += s.outputs) {
        size_t to = pixel + s.ox;

        s.outputs = base_min(p->outputs, c->y.w - s.ox);
        s.to.res = j->e.res ? j->e.res + to * j->e.res_pixel + from : NULL;
        s.to.y =
            (uint8_t *)j->call->out[0] + (to * c->y.pixel + from) * mdl_dtype_bytes(j->e.y_type);
        if (c->win.kh == 3 && c->win.kw == 3) {
            strip_3(j, &s);
        } else if (c->win.kh == 5 && c->win.kw == 5) {
            strip_5(j, &s);
        } else {
            strip_any(j, &s);
        }
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    size_t h = j->p.c.y.h;
    struct krn_range rows = krn_share_run(j->p.c.y.n * h, 1, part, j->parts);
    vi *columns = (vi *)(void *)j->call->scratch + part * COLUMNS * j->p.groups * 4;

    for (size_t row = rows.begin; row < rows.end; row++) {
        for (size_t block = 0; block < j->p.blocks; block++) {
            run_block(j, row / h, row % h, block, columns);
        }
    }
}

KRN_RUN_PARTS_BY(struct job, plan_of, p, part_run, .e = krn_quant_epilogue_of(call))

KRN_ISA_PRIMITIVE(conv_i8_nhwc_dw_dot, MDL_OP_CONV, KRN_QUANT_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,
                  .run = run);
