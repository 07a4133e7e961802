/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/tile_finish.h - finishes the sums of a register tile and stores the results
 *
 * A tile is `height` pixels by 1 or 2 vectors of channels, acc[pixel][vector]. Height and vectors
 * are constants after inlining, so the sums stay in registers. The epilogue is that of
 * kernels/common/epilogue.h. Any thread; never allocates.
 */
#pragma once

#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"

#define KRN_TILE_HIGHEST 16u /* limit of a tile's height; the loops below are unrolled to it */

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
