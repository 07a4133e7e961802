/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution.
 *
 * A block of pixels of an output row shares the loads of weights, and for windows of width 3 and 5
 * also those of the input columns; the last block of a row overlaps its predecessor. Blocks of
 * these windows leave out the columns in the padding. Of other windows, pixels that reach into the
 * padding are computed one by one over the existing taps. A whole cache line of channels is
 * computed at a time: with many channels, the columns of a window compete for the same few cache
 * sets.
 */
#include "kernels/f32/dw.h"

#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/planned.h"
#include "kernels/common/uneven.h"

/* pixels of a block, and of a wide one, whose sums need 32 registers */
#define BLOCK 4
#if KRN_VL == 16
#define WIDE 7
#else
#define WIDE BLOCK
#endif
/* hides the pointer's value from the compiler */
#define OPAQUE(pointer) __asm__("" : "+r"(pointer))

void KRN_ISA_FN(krn_dw_pack)(const struct mdl_model *m, const struct mdl_op *op,
                             const struct krn_conv *c, float *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);

    for (size_t o0 = 0; o0 < c->x.c; o0 += KRN_VL) {
        for (size_t t = 0; t < c->taps; t++) {
            for (size_t o = o0; o < o0 + KRN_VL; o++) {
                *dst++ = o >= c->x.c
                             ? 0.0f
                             : (op->scale ? op->scale[o] : 1.0f) *
                                   krn_load_unaligned(src, (ptrdiff_t)o * w->stride[0] +
                                                               (ptrdiff_t)t * c->tap_stride);
            }
        }
    }
}

enum finish { FINISH_CLAMP, FINISH_HARD_SWISH, FINISH_ANY };

/* one pixel or a block of pixels of an output row */
struct run {
    const struct krn_dw *d;
    const float *x; /* first existing tap of the first pixel, channel 0 */
    const float *w; /* that tap */
    float *y;
    size_t first;         /* pixel, for the residual */
    size_t rows, columns; /* existing taps; columns: of a single pixel */
    size_t begin, end;    /* of a block of known width: which of its columns exist */
    struct krn_range channels;
    float low, high; /* FINISH_CLAMP */
};

/* initial value of the sums of some channels */
KRN_INLINE vf shift_of(const struct run *r, size_t c, size_t n)
{
    const float *shift = r->d->epilogue.shift;

    return shift ? vf_load_any(shift + c, n) : vf_set(0.0f);
}

/* finishes the channels from c of @pixels neighbours, whose sums lie @step vectors apart */
KRN_INLINE void store(const struct run *r, size_t pixels, size_t c, size_t n, const vf *sums,
                      const size_t step, const enum finish how)
{
    const struct krn_epilogue *e = &r->d->epilogue;
    const size_t y_pixel = r->d->c.y.pixel;
    const vf low = vf_set(r->low), high = vf_set(r->high);
    float *y = r->y + c;

#pragma GCC unroll 8
    for (size_t i = 0; i < pixels; i++, y += y_pixel) {
        vf sum = sums[i * step];

        if (how == FINISH_ANY) {
            const float *res = e->res ? e->res + (r->first + i) * e->res_pixel + c : NULL;

            sum = krn_epilogue_vec(e, sum, vf_set(0.0f), res ? vf_load_any(res, n) : vf_set(0.0f));
        } else if (how == FINISH_HARD_SWISH) {
            sum = krn_act_vec(MDL_ACT_HARD_SWISH, sum, 0.0f, 0.0f);
        } else {
            sum = vf_min(high, vf_max(low, sum));
        }
        vf_store_any(y, sum, n);
    }
}

/* columns under the windows of a block of @pixels */
KRN_INLINE size_t columns_of(const size_t pixels, const size_t kw, const size_t sw)
{
    return (pixels - 1) * sw + kw;
}

/* @pixels neighbours, @vectors of channels from c, the last of n. pixels, kw, sw and all are
 * constants after inlining; a column is loaded once for all windows that contain it. Unless @all
 * exist, at most kw / 2 columns at each end do not. */
KRN_INLINE void block_known(const struct run *r, size_t c, size_t n, const size_t vectors,
                            const size_t pixels, const size_t kw, const size_t sw, const bool all,
                            const enum finish how)
{
    const struct krn_conv *v = &r->d->c;
    const size_t row = v->win.dh * v->x.row, pixel = v->x.pixel, taps = kw * kw;
    const size_t columns = columns_of(pixels, kw, sw);
    const float *x = r->x + c, *w = r->w + c * taps, *second = w + (vectors - 1) * taps * KRN_VL;
    vf acc[WIDE][2];

#pragma GCC unroll 8
    for (size_t i = 0; i < pixels; i++) {
        acc[i][0] = vectors > 1 ? shift_of(r, c, KRN_VL) : shift_of(r, c, n);
        acc[i][1] = vectors > 1 ? shift_of(r, c + KRN_VL, n) : acc[i][0];
    }
    for (size_t y = 0; y < r->rows; y++, x += row) {
        const float *column = x;
        vf weight[5][2];

        OPAQUE(second); /* stops the compiler from reusing loads of w */

#pragma GCC unroll 8
        for (size_t k = 0; k < kw; k++) {
#pragma GCC unroll 2
            for (size_t u = 0; u < vectors; u++) {
                weight[k][u] = vf_load((u ? second : w) + k * KRN_VL);
            }
        }
        w += kw * KRN_VL;
        second += kw * KRN_VL;
#pragma GCC unroll 32
        for (size_t i = 0; i < columns; i++) {
            if (!all && ((i < kw / 2 && i < r->begin) || (i + kw / 2 >= columns && i >= r->end))) {
                continue;
            }
#pragma GCC unroll 2
            for (size_t u = 0; u < vectors; u++) {
                vf xv = vf_load_any(column + u * KRN_VL, u + 1 < vectors ? KRN_VL : n);

#pragma GCC unroll 8
                for (size_t k = 0; k < kw; k++) {
                    if (i >= k && (i - k) % sw == 0 && (i - k) / sw < pixels) {
                        acc[(i - k) / sw][u] += xv * weight[k][u];
                    }
                }
            }
            column += pixel;
            OPAQUE(column); /* one running pointer, not one offset per column */
        }
    }
#pragma GCC unroll 2
    for (size_t u = 0; u < vectors; u++) {
        store(r, pixels, c + u * KRN_VL, u + 1 < vectors ? KRN_VL : n, &acc[0][u], 2, how);
    }
}

/* BLOCK pixels of any window */
KRN_INLINE void block_any(const struct run *r, size_t c, size_t n)
{
    const struct krn_conv *v = &r->d->c;
    size_t step = v->win.sw * v->x.pixel;
    const float *w = r->w + c * v->taps;
    vf acc[BLOCK];

#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        acc[i] = shift_of(r, c, n);
    }
    for (size_t y = 0; y < r->rows; y++) {
        const float *x = r->x + y * v->win.dh * v->x.row + c;

        for (size_t k = 0; k < v->win.kw; k++, x += v->win.dw * v->x.pixel, w += KRN_VL) {
            vf weight = vf_load(w);

#pragma GCC unroll 4
            for (size_t i = 0; i < BLOCK; i++) {
                acc[i] += vf_load_any(x + i * step, n) * weight;
            }
        }
    }
    store(r, BLOCK, c, n, acc, 1, FINISH_ANY);
}

/* one pixel, @vectors of channels from c, the last of n, over the existing taps; several vectors,
 * since the sums of one depend on each other */
KRN_INLINE void pixel_vectors(const struct run *r, size_t c, size_t n, const size_t vectors)
{
    const struct krn_conv *v = &r->d->c;
    const size_t apart = v->taps * KRN_VL, step = v->win.dw * v->x.pixel;
    vf acc[4];

#pragma GCC unroll 4
    for (size_t u = 0; u < vectors; u++) {
        acc[u] = shift_of(r, c + u * KRN_VL, u + 1 < vectors ? KRN_VL : n);
    }
    for (size_t y = 0; y < r->rows; y++) {
        const float *x = r->x + y * v->win.dh * v->x.row + c;
        const float *w = r->w + c * v->taps + y * v->win.kw * KRN_VL;

        for (size_t k = 0; k < r->columns; k++, w += KRN_VL, x += step) {
#pragma GCC unroll 4
            for (size_t u = 0; u < vectors; u++) {
                acc[u] += vf_load_any(x + u * KRN_VL, u + 1 < vectors ? KRN_VL : n) *
                          vf_load(w + u * apart);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t u = 0; u < vectors; u++) {
        store(r, 1, c + u * KRN_VL, u + 1 < vectors ? KRN_VL : n, &acc[u], 1, FINISH_ANY);
    }
}

static void run_pixel(const struct run *r)
{
    size_t c = r->channels.begin, end = r->channels.end;

    for (; c + 4 * KRN_VL <= end; c += 4 * KRN_VL) {
        pixel_vectors(r, c, KRN_VL, 4);
    }
    for (; c < end; c += KRN_VL) {
        pixel_vectors(r, c, base_min(end - c, (size_t)KRN_VL), 1);
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

KRN_INLINE void run_columns(const struct run *r, const size_t pixels, const size_t kw,
                            const size_t sw, const bool all, const enum finish how)
{
    const size_t vectors = KRN_VL < 16 && kw == 3 ? 2 : 1;
    size_t c = r->channels.begin, end = r->channels.end;

    for (; c + vectors * KRN_VL <= end; c += vectors * KRN_VL) {
        block_known(r, c, KRN_VL, vectors, pixels, kw, sw, all, how);
    }
    for (; c < end; c += KRN_VL) {
        block_known(r, c, base_min(end - c, (size_t)KRN_VL), 1, pixels, kw, sw, all, how);
    }
}

KRN_INLINE void run_known(const struct run *r, const size_t pixels, const size_t kw,
                          const size_t sw, const enum finish how)
{
    if (r->begin == 0 && r->end == columns_of(pixels, kw, sw)) {
        run_columns(r, pixels, kw, sw, true, how);
    } else {
        run_columns(r, pixels, kw, sw, false, how);
    }
}

#define RUNNER_OF(pixels, kw, sw, name, how)                                                       \
    static void run_##pixels##_##kw##_##sw##_##name(const struct run *r)                           \
    {                                                                                              \
        run_known(r, pixels, kw, sw, how);                                                         \
    }
#define RUNNERS_OF(pixels, kw, sw)                                                                 \
    RUNNER_OF(pixels, kw, sw, clamp, FINISH_CLAMP)                                                 \
    RUNNER_OF(pixels, kw, sw, hard_swish, FINISH_HARD_SWISH)                                       \
    RUNNER_OF(pixels, kw, sw, any, FINISH_ANY)
#define RUNNERS(pixels)                                                                            \
    RUNNERS_OF(pixels, 3, 1)                                                                       \
    RUNNERS_OF(pixels, 3, 2) RUNNERS_OF(pixels, 5, 1) RUNNERS_OF(pixels, 5, 2)
RUNNERS(BLOCK)
#if WIDE != BLOCK
RUNNERS(WIDE)
#endif

/* how the pixels of a row are computed */
struct way {
    void (*run)(const struct run *r); /* a block */
    size_t block;                     /* pixels */
    struct krn_range blocks, inside;  /* the pixels that may be in one; without padding */
};

/* vectors loaded for one vector of the sums of a row */
static size_t loads_of(const struct krn_conv *v, size_t block)
{
    size_t blocks = (v->y.w + block - 1) / block;

    return v->y.w < block ? SIZE_MAX
                          : blocks * (columns_of(block, v->win.kw, v->win.sw) + v->win.kw);
}

/* the pixels of a row whose windows lie inside the image's width */
static struct krn_range inside(const struct krn_conv *v)
{
    size_t span = (v->win.kw - 1) * v->win.dw + 1, left = (size_t)v->win.left;
    struct krn_range r = {.begin = (left + v->win.sw - 1) / v->win.sw};

    r.end = v->x.w + left < span ? 0 : (v->x.w + left - span) / v->win.sw + 1;
    r.end = base_min(r.end, v->y.w);
    r.begin = base_min(r.begin, v->y.w);
    r.end = base_max(r.end, r.begin);
    return r;
}

static bool is_known(const struct krn_win *w)
{
    return w->dw == 1 && w->sw <= 2 && w->kw == w->kh && (w->kw == 3 || w->kw == 5);
}

/* Return: whether no window of a row has more than kw / 2 columns in the padding of one side */
static bool is_little_padding(const struct krn_conv *v)
{
    size_t end = (v->y.w - 1) * v->win.sw + v->win.kw, most = v->win.kw / 2;

    return v->win.left >= 0 && (size_t)v->win.left <= most &&
           end <= v->x.w + (size_t)v->win.left + most;
}

static struct way way_of(const struct krn_dw *d)
{
#define ROW_OF(pixels, kw, sw)                                                                     \
    {                                                                                              \
        run_##pixels##_##kw##_##sw##_clamp, run_##pixels##_##kw##_##sw##_hard_swish,               \
            run_##pixels##_##kw##_##sw##_any                                                       \
    }
#define ROW(pixels, kw, sw) ROW_OF(pixels, kw, sw)
    static void (*const known[2][2][2][3])(const struct run *) = {
        {{ROW(BLOCK, 3, 1), ROW(WIDE, 3, 1)}, {ROW(BLOCK, 3, 2), ROW(WIDE, 3, 2)}},
        {{ROW(BLOCK, 5, 1), ROW(WIDE, 5, 1)}, {ROW(BLOCK, 5, 2), ROW(WIDE, 5, 2)}}};
#undef ROW
#undef ROW_OF
    const struct krn_conv *v = &d->c;
    const struct krn_epilogue *e = &d->epilogue;
    enum finish how = e->residual != MDL_RESIDUAL_NONE ? FINISH_ANY
                      : e->act <= MDL_ACT_CLIP         ? FINISH_CLAMP
                      : e->act == MDL_ACT_HARD_SWISH   ? FINISH_HARD_SWISH
                                                       : FINISH_ANY;
    struct way way = {.run = run_any, .block = BLOCK, .inside = inside(v)};

    way.blocks = way.inside;
    if (is_known(&v->win)) {
        /* less than a fifth is no gain: measured with windows of 3 and stride 2, a seventh */
        bool wide = loads_of(v, WIDE) <= loads_of(v, BLOCK) / 5 * 4;

        way.run = known[v->win.kw == 5][v->win.sw - 1][wide][how];
        way.block = wide ? WIDE : BLOCK;
        if (is_little_padding(v)) {
            way.blocks = (struct krn_range){0, v->y.w};
        }
    }
    return way;
}

void KRN_ISA_FN(krn_dw_row)(const struct krn_dw *d, const float *image, size_t oy, float *y,
                            size_t first, struct krn_range channels)
{
    const struct krn_conv *v = &d->c;
    const struct krn_epilogue *e = &d->epilogue;
    const struct way way = way_of(d);
    const struct krn_range in = way.blocks;
    ptrdiff_t iy = (ptrdiff_t)(oy * v->win.sh) - v->win.top;
    struct krn_range ky = krn_taps(iy, v->win.kh, v->win.dh, v->x.h);
    const float *taps = d->packed + ky.begin * v->win.kw * KRN_VL;
    struct run r = {.d = d, .rows = ky.end - ky.begin, .channels = channels};

    r.low = e->act == MDL_ACT_RELU ? 0.0f : e->act == MDL_ACT_CLIP ? e->a : -INFINITY;
    r.high = e->act == MDL_ACT_CLIP ? e->b : INFINITY;
    if (r.rows != 0) {
        image += (iy + (ptrdiff_t)(ky.begin * v->win.dh)) * (ptrdiff_t)v->x.row;
    }
    for (size_t ox = 0; ox < v->y.w;) {
        bool block = ox >= in.begin && ox < in.end && in.end - in.begin >= way.block;

        if (block && ox + way.block > in.end) {
            /* recomputing gives the same result, unless the residual shares memory with y */
            block = e->residual == MDL_RESIDUAL_NONE;
            ox = block ? in.end - way.block : ox;
        }
        ptrdiff_t ix = (ptrdiff_t)(ox * v->win.sw) - v->win.left;
        size_t width = block ? columns_of(way.block, v->win.kw, v->win.sw) : v->win.kw;
        struct krn_range kx = {0, width};

        if (ox < way.inside.begin || ox + (block ? way.block : 1) > way.inside.end) {
            kx = krn_taps(ix, width, v->win.dw, v->x.w);
        }
        r.begin = kx.begin;
        r.end = kx.end;
        r.columns = kx.end - kx.begin;
        r.first = first + ox;
        r.y = y + ox * v->y.pixel;
        r.w = taps + (block ? 0 : kx.begin * KRN_VL);
        r.x = image;
        if (r.columns != 0 && r.rows != 0) {
            r.x += (ix + (ptrdiff_t)(kx.begin * v->win.dw)) * (ptrdiff_t)v->x.pixel;
        }
        if (block) {
            way.run(&r);
            ox += way.block;
        } else {
            run_pixel(&r);
            ox++;
        }
    }
}

/* ---- the primitive: a team shares output rows, or channels if there are few rows ---- */

/* fewer rows per part would be shared unevenly; then parts take channels if there are many */
#define ROWS_PER_MEMBER 8u
#define CHANNELS_PER_MEMBER 64u

KRN_SUPPORTS_BY(struct krn_conv, krn_dw_of)
KRN_PACKED_BYTES_BY(struct krn_conv, krn_dw_of, krn_dw_packed(&p) * sizeof(float))
KRN_PACK_BY(struct krn_conv, krn_dw_of, KRN_ISA_FN(krn_dw_pack)(m, op, &p, dst))

struct job {
    const struct krn_call *call;
    struct krn_dw d;
    size_t parts;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_conv *c = &j->d.c;
    struct krn_range rows = {0, c->y.n * c->y.h}, channels = {0, c->x.c};
    size_t members = krn_uneven_members(j->parts);

    if (rows.end < ROWS_PER_MEMBER * members && channels.end >= CHANNELS_PER_MEMBER * members) {
        channels =
            krn_share_run(channels.end, BASE_CACHE_LINE_BYTES / sizeof(float), part, j->parts);
    } else {
        rows = krn_share_run(rows.end, 1, part, j->parts);
    }
    for (size_t row = rows.begin; row < rows.end && channels.begin < channels.end; row++) {
        const float *image = (const float *)j->call->in[0] + row / c->y.h * c->x.batch;
        size_t first = row * c->y.w;

        KRN_ISA_FN(krn_dw_row)
        (&j->d, image, row % c->y.h, (float *)j->call->out[0] + first * c->y.pixel, first,
         channels);
    }
}

KRN_RUN_PARTS_BY(struct job, krn_dw_of, d.c, part_run,
                 .d = {.epilogue = krn_epilogue_of(call), .packed = call->packed})

KRN_ISA_PRIMITIVE(conv_f32_nhwc_dw, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .run = run);
