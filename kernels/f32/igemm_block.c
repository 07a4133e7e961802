/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/igemm.h"

#include "base.h"
#include "kernels/f32/igemm_tile.h"

/* Reading the source in blocks keeps the panel's lines in cache while each o writes one lane. */
#define PACK_BLOCK 64u

void KRN_ISA_FN(krn_igemm_pack)(float *dst, const uint8_t *w, size_t taps, size_t len, size_t out,
                                ptrdiff_t so, ptrdiff_t st, ptrdiff_t sc, const float *scale,
                                float alpha)
{
    for (size_t o0 = 0; o0 < out; o0 += KRN_IGEMM_LANES) {
        size_t used = base_min(out - o0, (size_t)KRN_IGEMM_LANES);
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
    vf acc[KRN_IGEMM_ROWS][2];
    const float *panel = t->panel;
    struct krn_tile_ahead ahead = *t->ahead;

    krn_tile_zero(acc, height);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const float *a[KRN_IGEMM_ROWS];

#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            a[i] = t->rows[tap * KRN_IGEMM_ROWS + i];
        }
        if (is_padding(t->rows + tap * KRN_IGEMM_ROWS, t->zeros, height)) {
            panel += t->len * vectors * KRN_VL;
            continue;
        }
        panel = krn_tile_add(acc, a, t->len, panel, &ahead, height, vectors);
    }
    *t->ahead = ahead;
    krn_tile_store(&t->out, height, vectors, acc);
}

#define TILE(height)                                                                               \
    static __attribute__((noinline)) void tile_##height##_1(const struct tile *t)                  \
    {                                                                                              \
        run_tile(t, height, 1);                                                                    \
    }                                                                                              \
    static __attribute__((noinline)) void tile_##height##_2(const struct tile *t)                  \
    {                                                                                              \
        run_tile(t, height, 2);                                                                    \
    }
KRN_TILE_HEIGHTS(TILE)

#define PAIR(height) {tile_##height##_1, tile_##height##_2},
static void (*const tiles_of[KRN_IGEMM_ROWS][2])(const struct tile *) = {KRN_TILE_HEIGHTS(PAIR)};

/* One row by SPAN whole panels: the weights are read once, so memory bandwidth is the limit, and
 * several streams are faster than one. Each panel is read from its start and from its middle. */
#define SPAN 4u
#define AHEAD_BYTES 1024u

static void row_by_span(const struct krn_igemm *g, const float *x, struct tile *t)
{
    const size_t half = g->len / 2, lanes = KRN_IGEMM_LANES;
    const float *w = t->panel;
    size_t panel = g->len * lanes;
    vf acc[SPAN][2];

#pragma GCC unroll 4
    for (size_t s = 0; s < SPAN; s++) {
        acc[s][0] = acc[s][1] = vf_set(0.0f);
    }
    for (size_t c = 0; c < half; c++, w += lanes) {
        vf x0 = vf_set(x[c]), x1 = vf_set(x[half + c]);

#pragma GCC unroll 4
        for (size_t s = 0; s < SPAN; s++) {
            const float *a = w + s * panel, *b = a + half * lanes;

#pragma GCC unroll 2
            for (size_t line = 0; line < lanes * sizeof(float); line += BASE_CACHE_LINE_BYTES) {
                __builtin_prefetch((const uint8_t *)a + AHEAD_BYTES + line, 0, 0);
                __builtin_prefetch((const uint8_t *)b + AHEAD_BYTES + line, 0, 0);
            }
            acc[s][0] += x0 * vf_load(a);
            acc[s][1] += x0 * vf_load(a + KRN_VL);
            acc[s][0] += x1 * vf_load(b);
            acc[s][1] += x1 * vf_load(b + KRN_VL);
        }
    }
    for (size_t s = 0; s < SPAN; s++) {
        for (size_t c = 2 * half; c < g->len; c++) {
            const float *last = t->panel + s * panel + c * lanes;

            acc[s][0] += vf_set(x[c]) * vf_load(last);
            acc[s][1] += vf_set(x[c]) * vf_load(last + KRN_VL);
        }
        krn_tile_finish(&t->out, 1, 2, acc + s);
        t->out.y += lanes;
        t->out.channel += lanes;
    }
}

void KRN_ISA_FN(krn_igemm_block)(const struct krn_igemm *g, const float *const *rows, size_t first,
                                 size_t pixels, struct krn_range panels)
{
    size_t count = krn_igemm_tiles(pixels), height = pixels / count, higher = pixels % count;
    size_t k = g->taps * g->len, full = g->out / KRN_IGEMM_LANES;
    struct tile t = {
        .zeros = g->zeros, .taps = g->taps, .len = g->len, .out = {.y_pixel = g->y_pixel}};

    krn_tile_finish_of(&g->epilogue, &t.out);
    for (size_t p = panels.begin; p < panels.end; p++) {
        size_t o = p * KRN_IGEMM_LANES, from = first, left = 0;
        size_t bytes = p + 1 >= panels.end ? 0 : k * KRN_IGEMM_LANES * sizeof(float);
        struct krn_tile_ahead ahead;

        t.out.channels = base_min(g->out - o, (size_t)KRN_IGEMM_LANES);
        t.out.channel = g->channel + o;
        t.panel = g->packed + o * k;
        if (pixels == 1 && g->taps == 1 && base_min(full, panels.end) >= p + SPAN) {
            t.out.channels = KRN_IGEMM_LANES;
            t.out.first = first;
            t.out.y = g->y + first * g->y_pixel + t.out.channel;
            row_by_span(g, rows[0], &t);
            p += SPAN - 1;
            continue;
        }
        ahead = krn_tile_ahead_of(t.panel + bytes / sizeof(float), bytes, count);
        t.ahead = &ahead;
        t.rows = rows;
        for (size_t i = 0; i < count; i++) {
            size_t now = height;

            /* as krn_igemm_tile_first() */
            left += higher;
            if (left >= count) {
                left -= count;
                now++;
            }
            t.out.first = from;
            t.out.y = g->y + from * g->y_pixel + t.out.channel;
            tiles_of[now - 1][t.out.channels > KRN_VL](&t);
            from += now;
            t.rows += g->taps * KRN_IGEMM_ROWS;
        }
    }
}
