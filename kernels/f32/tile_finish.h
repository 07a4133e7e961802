/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/igemm_tile.h - the register tile of the indirect GEMM, for the kernels that are made of
 * it: its inner loop, and what happens to the sums at its end
 *
 * Height (of KRN_TILE_HIGHEST at most) and vectors (1 or 2) are constants wherever these functions
 * are inlined, so that the accumulators are registers.
 */
#pragma once

#include <math.h>

#include "base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/f32/igemm.h"

/* no tile is higher, of whichever kernel; how far the loops over rows below are unrolled */
#define KRN_TILE_HIGHEST 16u

/* How the sums of a tile are finished and where they are stored. */
struct krn_tile_out {
    const struct krn_epilogue *epilogue;
    /* whether the epilogue is shift, residual before, then clamping to [low, high] or hard swish */
    enum { KRN_FINISH_ANY, KRN_FINISH_CLAMP, KRN_FINISH_HARD_SWISH } how;
    float low, high;
    float *y;
    size_t y_pixel;
    size_t first;    /* pixel, for the residual */
    size_t channel;  /* for shift and residual */
    size_t channels; /* to be stored, 1 .. vectors * KRN_VL */
};

/* Sets the epilogue. NONE, RELU and CLIP are all clamping. */
KRN_INLINE void krn_tile_finish_of(const struct krn_epilogue *e, struct krn_tile_out *ret)
{
    ret->epilogue = e;
    ret->how = e->residual == MDL_RESIDUAL_AFTER_ACT && e->act != MDL_ACT_NONE ? KRN_FINISH_ANY
               : e->act <= MDL_ACT_CLIP                                        ? KRN_FINISH_CLAMP
               : e->act == MDL_ACT_HARD_SWISH ? KRN_FINISH_HARD_SWISH
                                              : KRN_FINISH_ANY;
    ret->low = e->act == MDL_ACT_RELU ? 0.0f : e->act == MDL_ACT_CLIP ? e->a : -INFINITY;
    ret->high = e->act == MDL_ACT_CLIP ? e->b : INFINITY;
}

/* Any epilogue, any number of channels. Out of line: it would outgrow the kernels otherwise. */
static __attribute__((noinline, unused)) void
krn_tile_finish(const struct krn_tile_out *t, size_t height, size_t vectors, vf (*acc)[2])
{
    const struct krn_epilogue *e = t->epilogue;

    for (size_t v = 0; v < vectors; v++) {
        size_t from = v * KRN_VL, n = base_min(t->channels - from, (size_t)KRN_VL);
        size_t c = t->channel + from;
        vf shift = e->shift ? vf_load_n(e->shift + c, n) : vf_set(0.0f), res = vf_set(0.0f);

        for (size_t i = 0; i < height; i++) {
            if (e->res) {
                res = vf_load_n(e->res + (t->first + i) * e->res_pixel + c, n);
            }
            vf_store_n(t->y + i * t->y_pixel + from, krn_epilogue_vec(e, acc[i][v], shift, res), n);
        }
    }
}

/* The common epilogues straight from the registers. */
KRN_INLINE void krn_tile_finish_full(const struct krn_tile_out *t, const size_t height,
                                     const size_t vectors, vf (*acc)[2], const bool hard_swish)
{
    const struct krn_epilogue *e = t->epilogue;
    const vf low = vf_set(t->low), high = vf_set(t->high);
    float *y = t->y;

#pragma GCC unroll 2
    for (size_t v = 0; v < vectors; v++) {
        if (e->shift) {
            vf shift = vf_load(e->shift + t->channel + v * KRN_VL);

#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                acc[i][v] += shift;
            }
        }
        if (e->res) {
            const float *res = e->res + t->first * e->res_pixel + t->channel + v * KRN_VL;

#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                acc[i][v] += vf_load(res);
                res += e->res_pixel;
            }
        }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++) {
            vf sum = acc[i][v];

            vf_store(y + v * KRN_VL, hard_swish ? krn_act_vec(MDL_ACT_HARD_SWISH, sum, 0.0f, 0.0f)
                                                : vf_min(high, vf_max(low, sum)));
        }
        y += t->y_pixel;
    }
}

KRN_INLINE void krn_tile_store(const struct krn_tile_out *t, const size_t height,
                               const size_t vectors, vf (*acc)[2])
{
    if (t->how == KRN_FINISH_CLAMP && t->channels == vectors * KRN_VL) {
        krn_tile_finish_full(t, height, vectors, acc, false);
    } else if (t->how == KRN_FINISH_HARD_SWISH && t->channels == vectors * KRN_VL) {
        krn_tile_finish_full(t, height, vectors, acc, true);
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

KRN_INLINE void krn_tile_zero(vf (*acc)[2], const size_t height)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        acc[i][0] = acc[i][1] = vf_set(0.0f);
    }
}

/* What is wanted soon is fetched into the second-level cache: so many lines before each
 * KRN_TILE_PIECE steps of k, each line once. */
#define KRN_TILE_PIECE 16u
struct krn_tile_ahead {
    const uint8_t *at, *end;
    size_t lines;
};

/* @bytes from @at on, while @tiles tiles of panels of two vectors are added up */
KRN_INLINE struct krn_tile_ahead krn_tile_ahead_of(const float *at, size_t bytes, size_t tiles)
{
    const size_t all = KRN_TILE_PIECE * KRN_IGEMM_LANES * sizeof(float) / BASE_CACHE_LINE_BYTES;

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

/* one step of k, of rows by their pointers, or, where @rows is NULL, of packed ones */
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

/* acc[i] += sum_c rows[i][c] panel[c]. Return: behind the panel's piece */
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

/* The same with rows that were packed for one tile, [k / KRN_TILE_PIECE][row][KRN_TILE_PIECE]: they
 * are one stream, which is fetched faster than as many as there are rows. */
KRN_INLINE void krn_tile_add_packed(vf (*acc)[2], const float *a, size_t len, const float *panel,
                                    struct krn_tile_ahead *ahead, const size_t height,
                                    const size_t vectors)
{
    for (size_t left = len; left > 0; a += (KRN_IGEMM_ROWS - 1) * KRN_TILE_PIECE) {
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
