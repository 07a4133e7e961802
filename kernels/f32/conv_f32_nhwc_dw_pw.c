/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses a depthwise convolution and the 1x1 convolution after or before it: each part computes a
 * strip of rows of the value between into its scratch and consumes it while it is in the
 * second-level cache. Before a depthwise convolution, strips overlap by its window; the common rows
 * move to the front of the scratch.
 *
 * If parts would have few rows each, the team runs one convolution after the other over the whole
 * image instead, and shares them as the unfused primitives do (channels, panels).
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/uneven.h"
#include "kernels/f32/dw.h"
#include "kernels/f32/igemm.h"

#define STRIP_BYTES (224u * 1024u)
#define ROWS_PER_MEMBER 16u

struct plan {
    struct krn_conv first, second;
    bool dw_first;
    size_t row;        /* floats per row of the value between; its pixels are dense */
    size_t strip;      /* output rows of a strip */
    size_t strip_rows; /* rows of the value between that they need */
    bool whole;        /* one convolution after the other */
    size_t parts;
    size_t strip_floats; /* of one part, or of all if whole */
};

static const struct krn_conv *dw_of(const struct plan *p)
{
    return p->dw_first ? &p->first : &p->second;
}

static const struct krn_conv *pw_of(const struct plan *p)
{
    return p->dw_first ? &p->second : &p->first;
}

static bool team_plan_of(const struct mdl_model *m, const struct mdl_op *op, size_t width,
                         struct plan *p)
{
    const struct krn_conv *dw, *pw;
    size_t rows, reach, most, strips;

    if (op[1].kind != MDL_OP_CONV || op[1].in[0] != op->out[0] ||
        op->residual != MDL_RESIDUAL_NONE || !krn_conv_of(m, op, &p->first) ||
        !krn_conv_of(m, op + 1, &p->second) || !krn_img_same(&p->first.y, &p->second.x)) {
        return false;
    }
    p->dw_first = krn_conv_is_depthwise(&p->first);
    dw = dw_of(p);
    pw = pw_of(p);
    if (!krn_conv_is_depthwise(dw) || dw->x.c == 1 || !krn_conv_is_pointwise(pw) ||
        pw->groups != 1) {
        return false;
    }
    p->row = p->first.y.w * p->first.y.c;
    rows = p->second.y.n * p->second.y.h;
    p->parts = base_max(width, (size_t)1);
    p->whole = p->parts > 1 && rows < ROWS_PER_MEMBER * krn_uneven_members(p->parts);
    most = base_max(STRIP_BYTES / sizeof(float) / p->row, (size_t)1);
    reach = p->dw_first ? 1 : (dw->win.kh - 1) * dw->win.dh + 1; /* rows under one output row */
    p->strip = most <= reach ? 1 : (most - reach) / (p->dw_first ? 1 : dw->win.sh) + 1;
    p->strip = base_min(p->strip, p->second.y.h);
    strips = (p->second.y.h + p->strip - 1) / p->strip; /* of nearly equal height */
    p->strip = (p->second.y.h + strips - 1) / strips;
    p->strip_rows = p->dw_first ? p->strip : (p->strip - 1) * dw->win.sh + reach;
    if (p->whole) {
        p->strip_rows = p->first.y.n * p->first.y.h;
    }
    p->strip_floats = base_align_up(p->strip_rows * p->row, BASE_CACHE_LINE_BYTES / 4);
    return true;
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    return team_plan_of(m, op, 1, p);
}

static bool dw_pw_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    return plan_of(m, op, p) && p->dw_first;
}

static bool pw_dw_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    return plan_of(m, op, p) && !p->dw_first;
}

KRN_SUPPORTS_AS(dw_pw_supports, struct plan, dw_pw_of)
KRN_SUPPORTS_AS(pw_dw_supports, struct plan, pw_dw_of)

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    struct plan p;

    return team_plan_of(m, op, width, &p) ? (p.whole ? 1 : p.parts) * p.strip_floats * sizeof(float)
                                          : 0;
}

static size_t dw_floats(const struct plan *p)
{
    return base_align_up(krn_dw_packed(dw_of(p)), BASE_CACHE_LINE_BYTES / sizeof(float));
}

/* the depthwise weights, then the panels of the other */
KRN_PACKED_BYTES_BY(struct plan, plan_of,
                    (dw_floats(&p) + krn_igemm_packed(pw_of(&p)->cg, pw_of(&p)->og)) *
                        sizeof(float))

static void pack_plan(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                      float *dst)
{
    memset(dst, 0, dw_floats(p) * sizeof(float));
    KRN_ISA_FN(krn_dw_pack)(m, p->dw_first ? op : op + 1, dw_of(p), dst);
    krn_igemm_pack_group(m, p->dw_first ? op + 1 : op, pw_of(p), 0, dst + dw_floats(p));
}

KRN_PACK_BY(struct plan, plan_of, pack_plan(m, op, &p, dst))

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_dw dw;
    struct krn_igemm pw;
    float *whole; /* the value between, if whole */
    bool by_panels;
};

/* Computes @pixels of the 1x1 convolution, from image @x, whose element 0 is @image. @to: pixel in
 * g->y of the first one. Rows of the image may be any distance apart; if they do not follow each
 * other, they are computed one by one. */
static void pointwise(const struct krn_igemm *g, const struct krn_img *x, const float *image,
                      struct krn_range pixels, size_t to, struct krn_range panels)
{
    const bool flat = krn_img_flat(x);

    for (size_t p = pixels.begin; p < pixels.end;) {
        size_t left = pixels.end - p, now = flat ? left : base_min(left, x->w - p % x->w);
        size_t at = p % x->w * x->pixel + p / x->w % x->h * x->row + p / x->w / x->h * x->batch;

        KRN_ISA_FN(krn_igemm_dense)(g, image + at, (ptrdiff_t)x->pixel, to, now, panels);
        p += now;
        to += now;
    }
}

static struct krn_range all_panels(const struct job *j)
{
    return (struct krn_range){0, krn_panel_count(j->pw.out)};
}

/* the value between as an image, dense from @at */
static struct krn_img between(const struct job *j)
{
    struct krn_img i = j->p.first.y;

    i.pixel = i.c;
    i.row = j->p.row;
    i.batch = i.h * i.row;
    return i;
}

/* rows [begin, end) of the depthwise convolution; @image: row 0 of image 0 where it would be, @y:
 * row begin */
static void dw_rows(const struct job *j, const float *image, size_t batch, struct krn_range rows,
                    float *y, struct krn_range channels)
{
    const struct krn_img *out = &j->dw.c.y;

    for (size_t r = rows.begin; r < rows.end; r++, y += out->w * out->pixel) {
        KRN_ISA_FN(krn_dw_row)
        (&j->dw, image + r / out->h * batch, r % out->h, y, r * out->w, channels);
    }
}

static void strips_dw_pw(const struct job *j, struct krn_range rows, float *strip)
{
    const struct krn_img image = between(j);
    const size_t w = image.w;

    for (size_t r = rows.begin; r < rows.end;) {
        size_t now = base_min(j->p.strip, rows.end - r);

        dw_rows(j, j->call->in[0], j->dw.c.x.batch, (struct krn_range){r, r + now}, strip,
                (struct krn_range){0, image.c});
        pointwise(&j->pw, &image, strip, (struct krn_range){0, now * w}, r * w, all_panels(j));
        r += now;
    }
}

/* computes rows [begin, end) of the value between, of image @n, to @strip */
static void expand(const struct job *j, size_t n, struct krn_range rows, float *strip)
{
    const struct krn_img *x = &j->p.first.x;
    struct krn_igemm g = j->pw;

    if (rows.begin >= rows.end) {
        return;
    }
    g.y = strip;
    pointwise(&g, x, j->call->in[0],
              (struct krn_range){(n * x->h + rows.begin) * x->w, (n * x->h + rows.end) * x->w}, 0,
              all_panels(j));
}

static void strips_pw_dw(const struct job *j, struct krn_range rows, float *strip)
{
    const struct krn_conv *dw = &j->p.second;
    const size_t reach = (dw->win.kh - 1) * dw->win.dh + 1, row = j->p.row;
    struct krn_range have = {0, 0};

    for (size_t r = rows.begin; r < rows.end;) {
        size_t n = r / dw->y.h, oy = r % dw->y.h;
        size_t now = base_min(base_min(j->p.strip, rows.end - r), dw->y.h - oy);
        ptrdiff_t top = (ptrdiff_t)(oy * dw->win.sh) - dw->win.top;
        ptrdiff_t bottom = top + (ptrdiff_t)((now - 1) * dw->win.sh + reach);
        struct krn_range need = {(size_t)base_max(top, (ptrdiff_t)0),
                                 (size_t)base_max(bottom, (ptrdiff_t)0)};

        need.end = base_min(need.end, dw->x.h);
        need.begin = base_min(need.begin, need.end);
        if (r == rows.begin || oy == 0 || have.end <= need.begin) {
            have = (struct krn_range){need.begin, need.begin};
        }
        memmove(strip, strip + (need.begin - have.begin) * row,
                (have.end - need.begin) * row * sizeof(float));
        expand(j, n, (struct krn_range){have.end, need.end}, strip + (have.end - need.begin) * row);
        have = need;
        dw_rows(j, strip - need.begin * row, 0, (struct krn_range){r, r + now},
                (float *)j->call->next->out[0] + r * dw->y.w * dw->y.pixel,
                (struct krn_range){0, dw->y.c});
        r += now;
    }
}

static void part_strips(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range rows = krn_share_run(j->p.second.y.n * j->p.second.y.h, 1, part, j->p.parts);
    float *strip = (float *)(void *)j->call->scratch + part * j->p.strip_floats;

    if (j->p.dw_first) {
        strips_dw_pw(j, rows, strip);
    } else {
        strips_pw_dw(j, rows, strip);
    }
}

static void part_whole_dw(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_img *x = &j->dw.c.x, *y = &j->dw.c.y;
    struct krn_range channels =
        krn_share_run(y->c, BASE_CACHE_LINE_BYTES / sizeof(float), part, j->p.parts);

    if (channels.begin < channels.end) {
        dw_rows(j, j->p.dw_first ? j->call->in[0] : j->whole,
                j->p.dw_first ? x->batch : x->h * j->p.row, (struct krn_range){0, y->n * y->h},
                j->p.dw_first ? j->whole : j->call->next->out[0], channels);
    }
}

static void part_whole_pw(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_img dense = between(j), *x = j->p.dw_first ? &dense : &j->p.first.x;
    struct krn_range pixels = {0, x->n * x->h * x->w}, panels = all_panels(j);

    if (j->by_panels) {
        panels = krn_share_run(panels.end, 1, part, j->p.parts);
    } else {
        pixels = krn_share_run(pixels.end, KRN_IGEMM_DENSE_ROWS, part, j->p.parts);
    }
    if (pixels.begin < pixels.end && panels.begin < panels.end) {
        pointwise(&j->pw, x, j->p.dw_first ? j->whole : j->call->in[0], pixels, pixels.begin,
                  panels);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .whole = (float *)(void *)call->scratch};
    const struct krn_call *next = call->next;
    struct plan *p = &j.p;

    if (!team_plan_of(call->model, call->op, call->width, p)) {
        return;
    }
    const struct krn_conv *pw = pw_of(p);

    j.dw = (struct krn_dw){.c = *dw_of(p),
                           .epilogue = krn_epilogue_of(p->dw_first ? call : next),
                           .packed = call->packed};
    if (p->dw_first) {
        j.dw.c.y = between(&j);
    } else {
        j.dw.c.x = between(&j);
    }
    j.pw = (struct krn_igemm){.taps = 1,
                              .len = pw->cg,
                              .out = pw->og,
                              .packed = (const float *)call->packed + dw_floats(p),
                              .epilogue = krn_epilogue_of(p->dw_first ? next : call),
                              .y = p->dw_first ? next->out[0] : j.whole,
                              .y_pixel = p->dw_first ? pw->y.pixel : pw->y.c};
    if (!p->whole) {
        krn_parallel(call->pool, p->parts, part_strips, &j);
        return;
    }
    j.by_panels = krn_by_panels(krn_tile_count(pw->y.n * pw->y.h * pw->y.w),
                                krn_panel_count(pw->og), p->parts);
    krn_parallel(call->pool, p->parts, p->dw_first ? part_whole_dw : part_whole_pw, &j);
    krn_parallel(call->pool, p->parts, p->dw_first ? part_whole_pw : part_whole_dw, &j);
}

KRN_ISA_PRIMITIVE(conv_f32_nhwc_dw_pw, MDL_OP_CONV, KRN_ISA_NEEDS, .fused = true,
                  .supports = dw_pw_supports, .packed_bytes = packed_bytes, .pack = pack,
                  .scratch_bytes = scratch_bytes, .run = run);

KRN_ISA_PRIMITIVE(conv_f32_nhwc_pw_dw, MDL_OP_CONV, KRN_ISA_NEEDS, .fused = true,
                  .supports = pw_dw_supports, .packed_bytes = packed_bytes, .pack = pack,
                  .scratch_bytes = scratch_bytes, .run = run);
