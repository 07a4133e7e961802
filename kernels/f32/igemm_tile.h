/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/igemm_tile.h - the inner loop of the indirect GEMM (igemm.h): the sums of a register
 * tile
 *
 * acc[i][v] += sum over k of row i [k] * panel [k][v], for `height` rows and 1 or 2 vectors of a
 * panel of weights, [k][vectors * KRN_VL]. Height (at most KRN_TILE_HIGHEST) and vectors are
 * constants after inlining, so the sums stay in registers. tile_finish.h stores them. Any thread.
 */
#pragma once

#include "base/base.h"
#include "kernels/f32/igemm.h"
#include "kernels/f32/tile_finish.h"

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
