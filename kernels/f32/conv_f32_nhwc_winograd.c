/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 3x3 and 5x5 convolutions of stride 1 by Winograd's minimal filtering, with table entries for
 * F(2x2, 3x3), F(4x4, 3x3), F(6x6, 3x3) and F(2x2, 5x5); and those of one row or column, with
 * entries for F(4, 3), F(4, 5) and F(4, 7).
 *
 * kernels/f32/wino_team.h describes how a team computes it. Transformed weights are 1.8, 4, 7 and
 * 1.4 times as large; those of lines 2, 1.6 and 1.4 times. If they would outgrow the cache, they
 * are kept untransformed and transformed on the fly: that takes a few percent of the time, less
 * than reading them from memory. Small ones are transformed once, when packed.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/winograd.h"

#define TAPS_MAX 25u                /* 5x5 */
#define CHANNELS_MAX 64u            /* of a block */
#define LINE_CHANNELS_MAX 192u      /* if tiles are lines */
#define READY_BYTES (1024u * 1024u) /* transformed when packed, if no larger */

struct plan {
    struct krn_wino_plan w;
    bool ready; /* weights are transformed when packed */
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_wino_form form,
                    struct plan *p)
{
    if (!krn_conv_of(m, op, &p->w.c) ||
        !krn_wino_plan(&p->w, form, sizeof(float), sizeof(float),
                       form.line ? LINE_CHANNELS_MAX : CHANNELS_MAX)) {
        return false;
    }
    p->ready = p->w.points * p->w.c.cg * p->w.lanes * sizeof(float) <= READY_BYTES;
    p->w.u_bytes = p->ready ? 0 : p->w.points * krn_wino_u_point(p->w.channels) * sizeof(float);
    return true;
}

/* Estimated time of an op, in vector multiplications, fitted to the layers of docs/kernels.md on
 * AVX2. */
#define PRODUCT_COST 1.08
#define IGEMM_COST 1.12

struct costs {
    double tile;   /* a vector of channels of one tile, in or out */
    double filter; /* a vector of output channels of one filter */
};

static double time_of(const struct plan *p)
{
    static const struct costs costs[] = {{220, 155}, {430, 230}, {1000, 440}}, wide = {430, 390};
    static const struct costs lines[] = {[1] = {70, 25}, {90, 25}, {110, 70}};
    const struct krn_wino_form *f = &p->w.form;
    const struct costs *c = f->line        ? &lines[f->pairs - 1]
                            : f->side == 5 ? &wide
                                           : &costs[f->pairs - 1];
    double tiles = (double)p->w.work.tiles, in = (double)p->w.c.cg, out = (double)p->w.lanes;
    double chunks = p->ready ? 0 : ceil(tiles / (double)p->w.work.tiles_max);

    return (PRODUCT_COST * tiles * (double)p->w.points * in * out + tiles * (in + out) * c->tile +
            chunks * in * out * c->filter) /
           KRN_VL;
}

/* It skips rows of taps that are padding. */
static double time_of_igemm(const struct plan *p)
{
    const struct krn_conv *c = &p->w.c;
    size_t rows = 0;

    for (size_t y = 0; y < c->y.h; y++) {
        struct krn_range in = krn_taps((ptrdiff_t)y - c->win.top, c->win.kh, 1, c->x.h);

        rows += in.end - in.begin;
    }
    return IGEMM_COST * (double)(c->y.n * c->y.w * rows * c->win.kw) * (double)c->cg *
           (double)p->w.lanes / KRN_VL;
}

/* Larger tiles are less exact, so supports() accepts one only if it is faster than every smaller
 * one. The largest comes first in the table, so the first primitive that accepts an op is the
 * fastest. */
static bool supports(const struct mdl_model *m, const struct mdl_op *op, struct krn_wino_form form)
{
    struct krn_wino_form smaller = {1, 3, false};
    struct plan p, other;
    double time;

    if (!plan_of(m, op, form, &p)) {
        return false;
    }
    time = time_of(&p);
    for (; form.side == 3 && !form.line && smaller.pairs < form.pairs; smaller.pairs++) {
        if (plan_of(m, op, smaller, &other) && time_of(&other) <= time) {
            return false;
        }
    }
    return time < time_of_igemm(&p);
}

/* the weights, then a row of zeros for the padding */
static size_t packed_floats(const struct plan *p)
{
    return (p->ready ? p->w.points : p->w.c.taps) * p->w.c.cg * p->w.lanes;
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                 float *out)
{
    const struct mdl_tensor *t = &m->tensors[op->in[1]];
    const uint8_t *w = krn_const_ptr(m, op->in[1]);

    memset(out + packed_floats(p), 0, p->w.channels * sizeof(float));
    if (!p->ready) {
        krn_igemm_pack_group(m, op, &p->w.c, 0, out);
        return;
    }
    for (size_t b = 0; b < p->w.work.blocks; b++) {
        struct krn_range block = krn_wino_block(&p->w, b);
        size_t count = block.end - block.begin;

        for (size_t panel = 0; panel < p->w.work.panels; panel++) {
            size_t o = panel * KRN_TILE_LANES, lanes = krn_wino_panel_lanes(&p->w, panel);
            float taps[TAPS_MAX * KRN_WINO_CHANNELS * KRN_TILE_LANES];

            for (size_t c = 0; c < count; c += KRN_WINO_CHANNELS) {
                size_t n = base_min(count - c, (size_t)KRN_WINO_CHANNELS);
                const uint8_t *from = w + ((ptrdiff_t)o * t->stride[0] +
                                           (ptrdiff_t)(block.begin + c) * t->stride[1]) *
                                              (ptrdiff_t)sizeof(float);

                KRN_ISA_FN(krn_igemm_pack)
                (taps, from, p->w.c.taps, n, krn_wino_panel_used(&p->w, panel), t->stride[0],
                 p->w.c.tap_stride, t->stride[1], op->scale ? op->scale + o : NULL, 1.0f);
                KRN_ISA_FN(krn_wino_filter)
                (p->w.form, taps, n * lanes, n, lanes, out + c * lanes, count * lanes);
            }
            out += p->w.points * count * lanes;
        }
    }
}

struct job {
    struct krn_wino_job team;
    struct plan p;
    struct krn_epilogue epilogue;
};

static const struct job *job_of(const struct krn_wino_job *team)
{
    return base_container_of(team, const struct job, team);
}

static void transform(const struct krn_wino_job *team, const void *const *at, size_t channels,
                      void *v, size_t v_point)
{
    KRN_ISA_FN(krn_wino_input)(team->plan->form, at, channels, v, v_point);
}

static void multiply(const struct krn_wino_job *team, size_t block, size_t panel, size_t tiles,
                     const void *v, void *u, void *m)
{
    const struct job *j = job_of(team);
    struct krn_range channels = krn_wino_block(&j->p.w, block);
    size_t count = channels.end - channels.begin, lanes = krn_wino_panel_lanes(&j->p.w, panel);
    const float *w = team->call->packed;
    struct krn_wino_product p = {
        .points = j->p.w.points,
        .tiles = tiles,
        .units = count,
        .lanes = lanes,
        .v = v,
        .v_point = krn_wino_v_point(team->plan, tiles, count),
        .m = m,
        .m_point = krn_wino_m_point(team->plan, tiles),
        .add = block > 0,
    };

    if (j->p.ready) {
        p.u = w + j->p.w.points * (channels.begin * j->p.w.lanes + panel * KRN_TILE_LANES * count);
        p.u_point = count * lanes;
    } else {
        w += j->p.w.c.taps * j->p.w.c.cg * panel * KRN_TILE_LANES + channels.begin * lanes;
        p.u = u;
        p.u_point = krn_wino_u_point(count);
        KRN_ISA_FN(krn_wino_filter)
        (j->p.w.form, w, j->p.w.c.cg * lanes, count, lanes, u, p.u_point);
    }
    KRN_ISA_FN(krn_wino_product)(&p);
}

static void output(const struct krn_wino_job *team, size_t panel, size_t first, size_t tiles,
                   const void *m)
{
    const struct job *j = job_of(team);
    const float *products = m;
    const struct krn_img *y = &j->p.w.c.y;
    const size_t lanes = krn_wino_panel_lanes(&j->p.w, panel);
    struct krn_wino_output o = {
        .form = j->p.w.form,
        .m_point = krn_wino_m_point(team->plan, tiles),
        .channels = krn_wino_panel_used(&j->p.w, panel),
        .channel = panel * KRN_TILE_LANES,
        .epilogue = &j->epilogue,
        .y = team->call->out[0],
        .y_pixel = y->pixel,
        .y_width = y->w,
    };

    for (size_t t = first; t < first + tiles; t++) {
        struct krn_wino_place to = krn_wino_place(&j->p.w, t);

        KRN_ISA_FN(krn_wino_output)(&o, products, to.pixel, to.rows, to.cols);
        products += lanes;
    }
}

static void run(const struct krn_call *call, struct krn_wino_form form)
{
    struct job j = {.epilogue = krn_epilogue_of(call)};

    if (!plan_of(call->model, call->op, form, &j.p)) {
        return;
    }
    krn_wino_take_frames(&j.p.w, call->frames);
    j.team = (struct krn_wino_job){.call = call,
                                   .plan = &j.p.w,
                                   .zeros = (const float *)call->packed + packed_floats(&j.p),
                                   .transform = transform,
                                   .multiply = multiply,
                                   .output = output};
    krn_wino_run(&j.team);
}

/* A primitive for each form; those that round more run only if requested. */
#define PRIMITIVE(size, form, rounds_more)                                                         \
    static bool size##_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)      \
    {                                                                                              \
        return plan_of(m, op, form, p);                                                            \
    }                                                                                              \
    static bool size##_supports(const struct mdl_model *m, const struct mdl_op *op)                \
    {                                                                                              \
        return supports(m, op, form);                                                              \
    }                                                                                              \
    KRN_PACKED_BYTES_AS(size##_packed_bytes, struct plan, size##_of,                               \
                        (packed_floats(&p) + p.w.channels) * sizeof(float))                        \
    KRN_PACK_AS(size##_pack, struct plan, size##_of, pack(m, op, &p, dst))                         \
    KRN_WINO_SCRATCH(size, struct plan, size##_of)                                                 \
    static void size##_run(const struct krn_call *call)                                            \
    {                                                                                              \
        run(call, form);                                                                           \
    }                                                                                              \
    KRN_ISA_PRIMITIVE(conv_f32_nhwc_##size, MDL_OP_CONV, KRN_ISA_NEEDS, .inexact = (rounds_more),  \
                      .supports = size##_supports, .packed_bytes = size##_packed_bytes,            \
                      .pack = size##_pack, .scratch_bytes = size##_scratch,                        \
                      .frames_at_once = size##_frames,                                             \
                      .frames_scratch_bytes = size##_frames_scratch, .run = size##_run)

#define F(pairs, side) ((struct krn_wino_form){pairs, side, false})
#define LINE(pairs, side) ((struct krn_wino_form){pairs, side, true})

/* F(6x6, 3x3) rounds beyond 1e-5 of sums of 576 terms of unit size, which ONNX's own tests allow.
 */
PRIMITIVE(wino2, F(1, 3), false);
PRIMITIVE(wino4, F(2, 3), false);
PRIMITIVE(wino6, F(3, 3), true);
PRIMITIVE(wino2_5x5, F(2, 5), false);
PRIMITIVE(wino4_1x3, LINE(2, 3), false);
PRIMITIVE(wino4_1x5, LINE(3, 5), false);
PRIMITIVE(wino4_1x7, LINE(4, 7), false);
