/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution: channels side by side in vectors, weights packed [tap][channel]. BLOCK
 * pixels of an output row share the loads of weights, and for windows of width 3 and 5 also those
 * of the input columns. Columns in the padding are left out by their number, so that the blocks at
 * the edges are no special case. A whole cache line of channels is done at a time: with many
 * channels the columns of a window fall into the same few sets of the cache and do not stay.
 */
#include <math.h>

#include "base.h"
#include "kernels/conv_common.h"
#include "kernels/epilogue_vec.h"

#define BLOCK 4u
/* with fewer rows a part they are shared unevenly, and parts take channels if those are many */
#define ROWS_PER_PART 8u
#define CHANNELS_PER_PART 64u

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *c)
{
    return krn_conv_of(m, op, c) && c->groups == c->x.c && c->cg == 1 && c->og == 1;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_conv c;

    return shape_of(m, op, &c);
}

static size_t padded_channels(const struct krn_conv *c)
{
    return base_align_up(c->x.c, KRN_VL);
}

static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_conv c;

    return shape_of(m, op, &c) ? c.taps * padded_channels(&c) * sizeof(float) : 0;
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);
    struct krn_conv c;

    if (!shape_of(m, op, &c)) {
        return;
    }
    for (size_t t = 0; t < c.taps; t++) {
        float *row = (float *)dst + t * padded_channels(&c);

        for (size_t o = 0; o < padded_channels(&c); o++) {
            row[o] = o >= c.x.c ? 0.0f
                                : (op->scale ? op->scale[o] : 1.0f) *
                                      krn_load_unaligned(src, (ptrdiff_t)o * w->stride[0] +
                                                                  (ptrdiff_t)t * c.tap_stride);
        }
    }
}

enum finish { FINISH_CLAMP, FINISH_HARD_SWISH, FINISH_ANY };

struct job {
    const struct krn_call *call;
    struct krn_conv c;
    struct krn_epilogue epilogue;
    float low, high; /* FINISH_CLAMP */
    size_t parts;
    bool by_channels; /* parts take channels of all rows */
};

/* a block of output pixels of one row: windows start at x, with rows [ky) of the window and columns
 * [low, high) of the block's columns inside the image */
struct run {
    const struct job *j;
    const float *x; /* window row ky.begin, column 0 of the first pixel, channel 0 */
    const float *w; /* tap (ky.begin, 0) */
    float *y;
    size_t pixels;          /* of the block, 1 .. BLOCK */
    size_t first;           /* pixel, for the residual */
    size_t rows, low, high; /* window rows and block columns that exist */
    struct krn_range channels;
};

KRN_INLINE vf load(const float *p, size_t n)
{
    return n == KRN_VL ? vf_load(p) : vf_load_n(p, n);
}

KRN_INLINE void store(const struct run *r, size_t pixel, size_t c, size_t n, vf sum,
                      const enum finish how)
{
    const struct krn_epilogue *e = &r->j->epilogue;
    float *y = r->y + pixel * r->j->c.y.pixel + c;
    const float *res = e->res ? e->res + (r->first + pixel) * e->res_pixel + c : NULL;

    if (how == FINISH_ANY) {
        vf rv = res ? load(res, n) : vf_set(0.0f);

        sum = krn_epilogue_vec(e, sum, e->shift ? load(e->shift + c, n) : vf_set(0.0f), rv);
    } else {
        sum = e->shift ? sum + load(e->shift + c, n) : sum;
        sum = how == FINISH_CLAMP ? vf_min(vf_set(r->j->high), vf_max(vf_set(r->j->low), sum))
                                  : krn_act_vec(MDL_ACT_HARD_SWISH, sum, 0.0f, 0.0f);
    }
    if (n == KRN_VL) {
        vf_store(y, sum);
    } else {
        vf_store_n(y, sum, n);
    }
}

/* @vectors of channels from c, the last of n. kw and sw are constants where this is inlined for a
 * known window, and a column is loaded once for all windows that it is in. */
KRN_INLINE void block_known(const struct run *r, size_t c, size_t n, const size_t vectors,
                            const size_t kw, const size_t sw, const enum finish how)
{
    const struct krn_conv *v = &r->j->c;
    const size_t padded = padded_channels(v), row = v->win.dh * v->x.row, pixel = v->x.pixel;
    const size_t low = r->low, high = r->high;
    const float *x = r->x + c, *w = r->w + c;
    vf acc[BLOCK][2];

#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        acc[i][0] = acc[i][1] = vf_set(0.0f);
    }
    for (size_t y = 0; y < r->rows; y++, x += row, w += kw * padded) {
        vf weight[5][2];

#pragma GCC unroll 8
        for (size_t k = 0; k < kw; k++) {
#pragma GCC unroll 2
            for (size_t u = 0; u < vectors; u++) {
                weight[k][u] = vf_load(w + k * padded + u * KRN_VL);
            }
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < (BLOCK - 1) * sw + kw; i++) {
            if (i < low || i >= high) {
                continue;
            }
#pragma GCC unroll 2
            for (size_t u = 0; u < vectors; u++) {
                vf column = load(x + i * pixel + u * KRN_VL, u + 1 < vectors ? KRN_VL : n);

#pragma GCC unroll 8
                for (size_t k = 0; k < kw; k++) {
                    if (i >= k && (i - k) % sw == 0 && (i - k) / sw < BLOCK) {
                        acc[(i - k) / sw][u] += column * weight[k][u];
                    }
                }
            }
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        if (i == r->pixels) {
            break;
        }
#pragma GCC unroll 2
        for (size_t u = 0; u < vectors; u++) {
            store(r, i, c + u * KRN_VL, u + 1 < vectors ? KRN_VL : n, acc[i][u], how);
        }
    }
}

/* any window; columns are counted with its dilation */
KRN_INLINE void block_any(const struct run *r, size_t c, size_t n)
{
    const struct krn_conv *v = &r->j->c;
    size_t padded = padded_channels(v);
    vf acc[BLOCK];

#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        acc[i] = vf_set(0.0f);
    }
    for (size_t y = 0; y < r->rows; y++) {
        const float *x = r->x + y * v->win.dh * v->x.row + c;
        const float *w = r->w + y * v->win.kw * padded + c;

        for (size_t k = 0; k < v->win.kw; k++, w += padded) {
            vf weight = vf_load(w);

#pragma GCC unroll 4
            for (size_t i = 0; i < BLOCK; i++) {
                size_t column = i * v->win.sw + k * v->win.dw;

                if (column >= r->low && column < r->high && i < r->pixels) {
                    acc[i] += load(x + column * v->x.pixel, n) * weight;
                }
            }
        }
    }
    for (size_t i = 0; i < r->pixels; i++) {
        store(r, i, c, n, acc[i], FINISH_ANY);
    }
}

static void run_any(const struct run *r)
{
    for (size_t c = r->channels.begin; c < r->channels.end; c += KRN_VL) {
        size_t n = base_min(r->channels.end - c, (size_t)KRN_VL);

        if (n == KRN_VL) {
            block_any(r, c, KRN_VL);
        } else {
            block_any(r, c, n);
        }
    }
}

KRN_INLINE void run_known(const struct run *r, const size_t kw, const size_t sw,
                          const enum finish how)
{
    const size_t vectors = KRN_VL < 16 && kw == 3 ? 2 : 1;
    size_t c = r->channels.begin, end = r->channels.end;

    for (; c + vectors * KRN_VL <= end; c += vectors * KRN_VL) {
        block_known(r, c, KRN_VL, vectors, kw, sw, how);
    }
    for (; c < end; c += KRN_VL) {
        block_known(r, c, base_min(end - c, (size_t)KRN_VL), 1, kw, sw, how);
    }
}

#define RUNNER(kw, sw, name, how)                                                                  \
    static void run_##kw##_##sw##_##name(const struct run *r)                                      \
    {                                                                                              \
        run_known(r, kw, sw, how);                                                                 \
    }
#define RUNNERS(kw, sw)                                                                            \
    RUNNER(kw, sw, clamp, FINISH_CLAMP)                                                            \
    RUNNER(kw, sw, hard_swish, FINISH_HARD_SWISH)                                                  \
    RUNNER(kw, sw, any, FINISH_ANY)
RUNNERS(3, 1)
RUNNERS(3, 2)
RUNNERS(5, 1)
RUNNERS(5, 2)

typedef void runner_fn(const struct run *r);

static runner_fn *runner_of(const struct job *j)
{
#define ROW(kw, sw)                                                                                \
    {                                                                                              \
        run_##kw##_##sw##_clamp, run_##kw##_##sw##_hard_swish, run_##kw##_##sw##_any               \
    }
    static runner_fn *const runners[2][2][3] = {{ROW(3, 1), ROW(3, 2)}, {ROW(5, 1), ROW(5, 2)}};
#undef ROW
    const struct krn_win *w = &j->c.win;
    const struct krn_epilogue *e = &j->epilogue;
    enum finish how = e->residual != MDL_RESIDUAL_NONE ? FINISH_ANY
                      : e->act <= MDL_ACT_CLIP         ? FINISH_CLAMP
                      : e->act == MDL_ACT_HARD_SWISH   ? FINISH_HARD_SWISH
                                                       : FINISH_ANY;

    return w->dw == 1 && w->sw <= 2 && (w->kw == 3 || w->kw == 5)
               ? runners[w->kw == 5][w->sw - 1][how]
               : run_any;
}

static void run_row(const struct job *j, runner_fn *runner, size_t n, size_t oy,
                    struct krn_range channels)
{
    const struct krn_conv *v = &j->c;
    const size_t span = (BLOCK - 1) * v->win.sw + (v->win.kw - 1) * v->win.dw + 1;
    ptrdiff_t iy = (ptrdiff_t)(oy * v->win.sh) - v->win.top;
    struct krn_range ky = krn_taps(iy, v->win.kh, v->win.dh, v->x.h);
    const float *image = (const float *)j->call->in[0] + n * v->x.batch;
    struct run r = {.j = j,
                    .w = (const float *)j->call->packed + ky.begin * v->win.kw * padded_channels(v),
                    .rows = ky.end - ky.begin,
                    .channels = channels};

    if (r.rows != 0) {
        image += (size_t)(iy + (ptrdiff_t)(ky.begin * v->win.dh)) * v->x.row;
    }
    for (size_t ox = 0; ox < v->y.w; ox += BLOCK) {
        ptrdiff_t ix = (ptrdiff_t)(ox * v->win.sw) - v->win.left;
        ptrdiff_t inside = (ptrdiff_t)v->x.w - ix;

        r.pixels = base_min(v->y.w - ox, (size_t)BLOCK);
        r.low = ix < 0 ? (size_t)-ix : 0;
        r.high = inside < 0 ? 0 : base_min((size_t)inside, span);
        r.first = (n * v->y.h + oy) * v->y.w + ox;
        r.y = (float *)j->call->out[0] + r.first * v->y.pixel;
        r.x = image + ix * (ptrdiff_t)v->x.pixel;
        runner(&r);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    runner_fn *runner = runner_of(j);
    struct krn_range rows = {0, j->c.y.n * j->c.y.h}, channels = {0, j->c.x.c};

    if (j->by_channels) {
        channels = krn_share(channels.end, BASE_CACHE_LINE_BYTES / sizeof(float), part, j->parts);
    } else {
        rows = krn_share(rows.end, 1, part, j->parts);
    }
    for (size_t row = rows.begin; row < rows.end && channels.begin < channels.end; row++) {
        run_row(j, runner, row / j->c.y.h, row % j->c.y.h, channels);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {
        .call = call, .epilogue = krn_epilogue_of(call), .parts = base_max(call->width, 1u)};
    const struct krn_epilogue *e = &j.epilogue;

    if (!shape_of(call->model, call->op, &j.c)) {
        return;
    }
    j.low = e->act == MDL_ACT_RELU ? 0.0f : e->act == MDL_ACT_CLIP ? e->a : -INFINITY;
    j.high = e->act == MDL_ACT_CLIP ? e->b : INFINITY;
    j.by_channels =
        j.c.y.n * j.c.y.h < ROWS_PER_PART * j.parts && j.c.x.c >= CHANNELS_PER_PART * j.parts;
    krn_parallel(call->pool, j.parts, part_run, &j);
}

const struct krn_variant KRN_ISA_FN(krn_conv_f32_nhwc_dw) = {
    .name = "conv_f32_nhwc_dw__" KRN_ISA_TEXT,
    .kind = MDL_OP_CONV,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
};
