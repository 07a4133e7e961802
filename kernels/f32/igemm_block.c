/* SPDX-License-Identifier: Apache-2.0 */
/* igemm: packed weights, and the inner block of a few pixels by two vectors of channels. */
#include "kernels/f32/igemm.h"

#include "base/base.h"
#include "kernels/f32/igemm_tile.h"

/* Reading the source in blocks keeps the panel's lines in cache while each o writes one lane. */
#define PACK_BLOCK 64u

void KRN_ISA_FN(krn_igemm_pack)(float *dst, const uint8_t *w, size_t taps, size_t len, size_t out,
                                ptrdiff_t so, ptrdiff_t st, ptrdiff_t sc, const float *scale,
                                float alpha)
{
    for (size_t o0 = 0; o0 < out; o0 += KRN_TILE_LANES) {
        size_t used = base_min(out - o0, (size_t)KRN_TILE_LANES);
        size_t lanes = krn_panel_lanes(used);

        for (size_t c0 = 0; c0 < len; c0 += PACK_BLOCK) {
            size_t c1 = base_min(len, c0 + PACK_BLOCK);

            for (size_t o = 0; o < lanes; o++) {
                float f = o >= used ? 0.0f : scale ? scale[o0 + o] * alpha : alpha;
                const uint8_t *src = w + (ptrdiff_t)(o0 + o) * so * (ptrdiff_t)sizeof(float);

                for (size_t c = c0; c < c1; c++) {
                    for (size_t t = 0; t < taps; t++) {
                        dst[(t * len + c) * lanes + o] =
                            o < used
                                ? f * krn_load_unaligned(src, (ptrdiff_t)c * sc + (ptrdiff_t)t * st)
                                : 0.0f;
                    }
                }
            }
        }
        dst += taps * len * lanes;
    }
}

struct tile {
    const float *const *rows;
    const float *panel;
    struct krn_tile_ahead *ahead; /* goes on from tile to tile */
    const float *zeros;
    size_t taps, len;
    struct krn_tile_out out;
};

/* Return: whether all rows of a tap are in the padding */
KRN_INLINE bool is_padding(const float *const *a, const float *zeros, const size_t height)
{
    size_t i = 0;

    while (i < height && a[i] == zeros) {
        i++;
    }
    return i == height;
}

/* @height and @vectors are constants wherever this is inlined, so the accumulators are registers */
KRN_INLINE void run_tile(const struct tile *t, const size_t height, const size_t vectors)
{
    vf acc[KRN_TILE_ROWS][2];
    const float *panel = t->panel;
    struct krn_tile_ahead ahead = *t->ahead;

    krn_tile_expect(&t->out, height, vectors);
    krn_tile_zero(acc, height);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const float *a[KRN_TILE_ROWS];

#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            a[i] = t->rows[tap * KRN_TILE_ROWS + i];
        }
        if (is_padding(t->rows + tap * KRN_TILE_ROWS, t->zeros, height)) {
            panel += t->len * vectors * KRN_VL;
            continue;
        }
        panel = krn_tile_add(acc, a, t->len, panel, &ahead, height, vectors);
    }
    *t->ahead = ahead;
    krn_tile_store(&t->out, height, vectors, acc);
}

KRN_TILE_TABLE(tiles, const struct tile, run_tile, KRN_TILE_HEIGHTS, KRN_TILE_ROWS)

void KRN_ISA_FN(krn_igemm_block)(const struct krn_igemm *g, const float *const *rows, size_t first,
                                 size_t pixels, struct krn_range panels)
{
    size_t count = krn_tile_count(pixels), height = pixels / count, higher = pixels % count;
    size_t k = g->taps * g->len;
    struct tile t = {
        .zeros = g->zeros, .taps = g->taps, .len = g->len, .out = {.y_pixel = g->y_pixel}};

    krn_tile_finish_of(&g->epilogue, &t.out);
    for (size_t p = panels.begin; p < panels.end; p++) {
        size_t o = p * KRN_TILE_LANES, from = first, left = 0;
        size_t bytes = p + 1 >= panels.end ? 0 : k * KRN_TILE_LANES * sizeof(float);
        struct krn_tile_ahead ahead;

        t.out.channels = base_min(g->out - o, (size_t)KRN_TILE_LANES);
        t.out.channel = g->channel + o;
        t.panel = g->packed + o * k;
        ahead = krn_tile_ahead_of(t.panel + bytes / sizeof(float), bytes, count);
        t.ahead = &ahead;
        t.rows = rows;
        for (size_t i = 0; i < count; i++) {
            size_t now = height;

            /* as krn_tile_first() */
            left += higher;
            if (left >= count) {
                left -= count;
                now++;
            }
            t.out.first = from;
            t.out.y = g->y + from * g->y_pixel + t.out.channel;
            tiles_of[now - 1][t.out.channels > KRN_VL](&t);
            from += now;
            t.rows += g->taps * KRN_TILE_ROWS;
        }
    }
}
