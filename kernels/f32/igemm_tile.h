/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/igemm_tile.h - the inner loop of the indirect GEMM (igemm.h): the sums of a register
 * tile, and how they are finished and stored
 *
 * acc[i][v] += sum over k of row i [k] * panel [k][v], for `height` rows and 1 or 2 vectors of a
 * panel of weights, [k][vectors * KRN_VL]. Height (at most KRN_TILE_HIGHEST) and vectors are
 * constants after inlining, so the sums stay in registers. The epilogue is that of
 * kernels/common/epilogue.h. Any thread; never allocates.
 */
#pragma once

#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/f32/igemm.h"

#define KRN_TILE_HIGHEST 16u /* limit of a tile's height; the loops below are unrolled to it */

/* ---- the sums ---- */

KRN_INLINE void krn_tile_zero(vf (*acc)[2], const size_t height)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        acc[i][0] = acc[i][1] = vf_set(0.0f);
    }
}

/* Prefetch into the second-level cache: this many lines before each KRN_TILE_PIECE steps of k, each
 * line once. */
#define KRN_TILE_PIECE 16u
struct krn_tile_ahead {
    const uint8_t *at, *end;
    size_t lines;
};

/* prefetches @bytes from @at while @tiles tiles with panels of two vectors are summed */
KRN_INLINE struct krn_tile_ahead krn_tile_ahead_of(const float *at, size_t bytes, size_t tiles)
{
    const size_t all = KRN_TILE_PIECE * KRN_TILE_LANES * sizeof(float) / BASE_CACHE_LINE_BYTES;

    return (struct krn_tile_ahead){.at = (const uint8_t *)at,
                                   .end = (const uint8_t *)at + bytes,
                                   .lines = (all + tiles - 1) / tiles};
}

KRN_INLINE void krn_tile_fetch(struct krn_tile_ahead *ahead)
{
    for (size_t i = ahead->lines; i > 0 && ahead->at < ahead->end; i--) {
        __builtin_prefetch(ahead->at, 0, 2);
        ahead->at += BASE_CACHE_LINE_BYTES;
    }
}

/* one step of k, for rows by their pointers, or, if @rows is NULL, packed rows */
KRN_INLINE void krn_tile_step(vf (*acc)[2], const float *const *rows, size_t c, const float *a,
                              const float *panel, const size_t height, const size_t vectors)
{
    vf b0 = vf_load(panel), b1 = vectors > 1 ? vf_load(panel + KRN_VL) : b0;

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        vf x = vf_set(rows ? rows[i][c] : a[i * KRN_TILE_PIECE]);

        acc[i][0] += x * b0;
        if (vectors > 1) {
            acc[i][1] += x * b1;
        }
    }
}

/* acc[i] += sum_c rows[i][c] panel[c]. Return: the end of the panel's piece */
KRN_INLINE const float *krn_tile_add(vf (*acc)[2], const float *const *rows, size_t len,
                                     const float *panel, struct krn_tile_ahead *ahead,
                                     const size_t height, const size_t vectors)
{
    for (size_t c = 0; c < len;) {
        const size_t end = base_min(len, c + KRN_TILE_PIECE);

        krn_tile_fetch(ahead);
#pragma GCC unroll 1
        for (; c < end; c++, panel += vectors * KRN_VL) {
            krn_tile_step(acc, rows, c, NULL, panel, height, vectors);
        }
    }
    return panel;
}

/* The same with rows packed for one tile, [k / KRN_TILE_PIECE][row][KRN_TILE_PIECE]: one stream is
 * fetched faster than one per row. */
KRN_INLINE void krn_tile_add_packed(vf (*acc)[2], const float *a, size_t len, const float *panel,
                                    struct krn_tile_ahead *ahead, const size_t height,
                                    const size_t vectors)
{
    for (size_t left = len; left > 0; a += (KRN_TILE_ROWS - 1) * KRN_TILE_PIECE) {
        const size_t now = base_min(left, (size_t)KRN_TILE_PIECE);
        const float *end = a + now;

        krn_tile_fetch(ahead);
#pragma GCC unroll 1
        for (; a < end; a++, panel += vectors * KRN_VL) {
            krn_tile_step(acc, NULL, 0, a, panel, height, vectors);
        }
        left -= now;
    }
}

/* ---- the results ---- */

/* How to finish the sums of a tile, and where to store them. */
struct krn_tile_out {
    const struct krn_epilogue *epilogue;
    /* the epilogue: any; or shift, residual, then clamping to [low, high] or the activation */
    enum { KRN_FINISH_ANY, KRN_FINISH_CLAMP, KRN_FINISH_ACT } how;
    float low, high;
    float *y;
    size_t y_pixel;
    size_t first;    /* pixel, for the residual */
    size_t channel;  /* for shift and residual */
    size_t channels; /* to be stored, 1 .. vectors * KRN_VL */
};

/* Sets the epilogue. NONE, RELU and CLIP all become clamping. */
KRN_INLINE void krn_tile_finish_of(const struct krn_epilogue *e, struct krn_tile_out *ret)
{
    ret->epilogue = e;
    ret->how = e->residual == MDL_RESIDUAL_AFTER_ACT && e->act != MDL_ACT_NONE ? KRN_FINISH_ANY
               : e->act <= MDL_ACT_CLIP                                        ? KRN_FINISH_CLAMP
                                                                               : KRN_FINISH_ACT;
    ret->low = e->act == MDL_ACT_RELU ? 0.0f : e->act == MDL_ACT_CLIP ? e->a : -INFINITY;
    ret->high = e->act == MDL_ACT_CLIP ? e->b : INFINITY;
}

/* Any epilogue, any number of channels. Not inlined: it would bloat the loops. */
static __attribute__((noinline, unused)) void
krn_tile_finish(const struct krn_tile_out *t, size_t height, size_t vectors, vf (*acc)[2])
{
    const struct krn_epilogue *e = t->epilogue;
    vf y[KRN_TILE_HIGHEST * 2], res[KRN_TILE_HIGHEST * 2];

    for (size_t v = 0; v < vectors; v++) {
        size_t from = v * KRN_VL, n = base_min(t->channels - from, (size_t)KRN_VL);
        size_t c = t->channel + from;
        vf shift = e->shift ? vf_load_n(e->shift + c, n) : vf_set(0.0f);

        for (size_t i = 0; i < height; i++) {
            size_t k = v * height + i;

            res[k] =
                e->res ? vf_load_n(e->res + (t->first + i) * e->res_pixel + c, n) : vf_set(0.0f);
            y[k] = acc[i][v] + shift;
            y[k] += e->residual == MDL_RESIDUAL_BEFORE_ACT ? res[k] : vf_set(0.0f);
        }
    }
    krn_act_vecs(e->act, e->a, e->b, y, height * vectors);
    for (size_t v = 0; v < vectors; v++) {
        size_t from = v * KRN_VL, n = base_min(t->channels - from, (size_t)KRN_VL);

        for (size_t i = 0; i < height; i++) {
            size_t k = v * height + i;

            y[k] += e->residual == MDL_RESIDUAL_AFTER_ACT ? res[k] : vf_set(0.0f);
            vf_store_n(t->y + i * t->y_pixel + from, y[k], n);
        }
    }
}

/* Vectors straight from the registers; not if a residual comes after the activation. @ragged: the
 * last vector has fewer channels, which is for clamping only */
KRN_INLINE void krn_tile_finish_fast(const struct krn_tile_out *t, const size_t height,
                                     const size_t vectors, const bool ragged, vf (*acc)[2])
{
    const struct krn_epilogue *e = t->epilogue;
    const size_t last = ragged ? t->channels - (vectors - 1) * KRN_VL : KRN_VL;
    const vf low = vf_set(t->low), high = vf_set(t->high);
    const size_t y_pixel = t->y_pixel, res_pixel = e->res_pixel;
    float *y = t->y;

#pragma GCC unroll 2
    for (size_t v = 0; v < vectors; v++) {
        const size_t n = v + 1 < vectors ? KRN_VL : last;

        if (e->shift) {
            vf shift = vf_load_any(e->shift + t->channel + v * KRN_VL, n);

#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                acc[i][v] += shift;
            }
        }
        if (e->res) {
            const float *res = e->res + t->first * e->res_pixel + t->channel + v * KRN_VL;

#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                acc[i][v] += vf_load_any(res, n);
                res += res_pixel;
                KRN_OPAQUE(res);
            }
        }
        if (t->low > -INFINITY) {
#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                acc[i][v] = vf_max(low, acc[i][v]);
            }
        }
        if (t->high < INFINITY) {
#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                acc[i][v] = vf_min(high, acc[i][v]);
            }
        }
    }
    if (ragged || t->how == KRN_FINISH_CLAMP) {
#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
#pragma GCC unroll 2
            for (size_t v = 0; v < vectors; v++) {
                vf_store_any(y + v * KRN_VL, acc[i][v], v + 1 < vectors ? KRN_VL : last);
            }
            y += y_pixel;
            KRN_OPAQUE(y);
        }
        return;
    }
    vf all[KRN_TILE_HIGHEST * 2];

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++) {
            all[i * vectors + v] = acc[i][v];
        }
    }
    krn_act_vecs(e->act, e->a, e->b, all, height * vectors);
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++) {
            vf_store(y + i * y_pixel + v * KRN_VL, all[i * vectors + v]);
        }
    }
}

/* Fetches the lines that krn_tile_store() will write; call it before the sums. Where a vector is a
 * whole line, a tile stores so many lines at once that the store queue fills if they come from
 * memory or a far cache. Narrower tiles store fewer lines at a time; there this only costs. */
KRN_INLINE void krn_tile_expect(const struct krn_tile_out *t, const size_t height,
                                const size_t vectors)
{
    const size_t y_pixel = t->y_pixel;
    const float *y = t->y;

    if (KRN_VL * sizeof(float) < BASE_CACHE_LINE_BYTES) {
        return;
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++) {
            __builtin_prefetch(y + v * KRN_VL, 1, 3);
        }
        y += y_pixel;
        KRN_OPAQUE(y);
    }
}

KRN_INLINE void krn_tile_store(const struct krn_tile_out *t, const size_t height,
                               const size_t vectors, vf (*acc)[2])
{
    if (t->how != KRN_FINISH_ANY && t->channels == vectors * KRN_VL) {
        krn_tile_finish_fast(t, height, vectors, false, acc);
    } else if (t->how == KRN_FINISH_CLAMP) {
        krn_tile_finish_fast(t, height, vectors, true, acc);
    } else {
        vf out[KRN_TILE_HIGHEST][2];

#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            out[i][0] = acc[i][0];
            out[i][1] = acc[i][1];
        }
        krn_tile_finish(t, height, vectors, out);
    }
}
