/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/stem.h"

#include "base/base.h"
#include "kernels/f32/tile_finish.h"

#define NEAR_BYTES (16u * 1024u) /* of weights */

bool KRN_ISA_FN(krn_stem_supports)(const struct krn_conv *c)
{
    return c->groups == 1 && c->cg == KRN_STEM_CHANNELS && c->win.dh == 1 && c->win.dw == 1 &&
           (c->win.sw == 1 || c->win.sw == 2 || c->win.sw == 4) && c->win.kh <= KRN_STEM_ROWS_MAX &&
           c->win.kw > 1 && c->y.w >= KRN_TILE_ROWS;
}

/* Adjacent output pixels in a row: window i begins @at + i step in each row of the window. */
struct strip {
    const float *const *rows;
    size_t at;
    const float *panel;
    size_t kh, len;
    struct krn_tile_out out;
};

/* @height, @vectors and @step are constants wherever this is inlined */
KRN_INLINE void run_strip(const struct strip *s, const size_t height, const size_t vectors,
                          const size_t step)
{
    const float *panel = s->panel;
    vf acc[KRN_TILE_ROWS][2];

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        acc[i][0] = acc[i][1] = vf_set(0.0f);
    }
    for (size_t u = 0; u < s->kh; u++) {
        const float *a = s->rows[u] + s->at;

#pragma GCC unroll 1
        for (const float *end = a + s->len; a < end; a += KRN_STEM_CHANNELS) {
#pragma GCC unroll 3
            for (size_t k = 0; k < KRN_STEM_CHANNELS; k++, panel += vectors * KRN_VL) {
                /* Windows overlap, so the next steps read the same floats. The compiler would keep
                 * all of them in registers, and spill the sums. */
                __asm__("" : "+r"(a));
                vf b0 = vf_load(panel), b1 = vectors > 1 ? vf_load(panel + KRN_VL) : b0;

#pragma GCC unroll 16
                for (size_t i = 0; i < height; i++) {
                    vf x = vf_set(a[i * step + k]);

                    acc[i][0] += x * b0;
                    if (vectors > 1) {
                        acc[i][1] += x * b1;
                    }
                }
            }
        }
    }
    krn_tile_store(&s->out, height, vectors, acc);
}

/* Tiles of a row have nearly equal heights: at least half of the highest. */
/* clang-format off */
#if KRN_VL == 16
#define LOWEST 6u
#define STEM_HEIGHTS(X, ...)                                                                       \
    X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__)     \
    X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#else
#define LOWEST 3u
#define STEM_HEIGHTS(X, ...)                                                                       \
    X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#endif
/* clang-format on */
#define HEIGHTS (KRN_TILE_ROWS - LOWEST + 1)
KRN_TILE_TABLE(strips_3, const struct strip, run_strip, STEM_HEIGHTS, HEIGHTS, 3)
KRN_TILE_TABLE(strips_6, const struct strip, run_strip, STEM_HEIGHTS, HEIGHTS, 6)
KRN_TILE_TABLE(strips_12, const struct strip, run_strip, STEM_HEIGHTS, HEIGHTS, 12)

typedef void strip_fn(const struct strip *s);
static strip_fn *const (*const strips_of[])[2] = {strips_3_of, strips_6_of, strips_12_of};

/* A row of pixels in tiles of height `low`; some are one higher: krn_tile_first() without
 * divisions, which would take as long as a small tile. */
struct split {
    size_t tiles, low, higher;
};
struct place {
    size_t first, left; /* pixel; remainder */
};

/* Computes @tiles tiles from @p of the panel at channel @o of y. Return: the place after them. */
static struct place run_panel(const struct krn_stem *s, struct strip *t, float *y, size_t o,
                              size_t tiles, struct place p, struct split row)
{
    const size_t begin = t->out.first;
    strip_fn *const(*by_height)[2] = strips_of[s->stride / 2];

    t->panel = s->packed + o * s->kh * s->len;
    t->out.channel = o;
    t->out.channels = base_min(s->out - o, (size_t)KRN_TILE_LANES);
    for (; tiles > 0; tiles--) {
        size_t height = row.low;

        p.left += row.higher;
        if (p.left >= row.tiles) {
            p.left -= row.tiles;
            height++;
        }
        t->at = p.first * s->stride * KRN_STEM_CHANNELS;
        t->out.first = begin + p.first;
        t->out.y = y + p.first * s->y_pixel + o;
        by_height[height - LOWEST][t->out.channels > KRN_VL](t);
        p.first += height;
    }
    t->out.first = begin;
    return p;
}

/* Tile by tile if all weights stay in the first-level cache, so that lines are written in order;
 * else panel by panel. */
void KRN_ISA_FN(krn_stem_row)(const struct krn_stem *s, const float *const *rows, size_t first,
                              float *y)
{
    size_t tiles = krn_tile_count(s->width), weights = s->kh * s->len * s->out;
    size_t step = weights * sizeof(float) <= NEAR_BYTES ? 1 : tiles;
    struct split row = {tiles, s->width / tiles, s->width % tiles};
    struct strip t = {.rows = rows, .kh = s->kh, .len = s->len, .out = {.y_pixel = s->y_pixel}};
    struct place here = {0, 0};

    krn_tile_finish_of(&s->epilogue, &t.out);
    t.out.first = first;
    for (size_t i = 0; i < tiles; i += step) {
        struct place next = here;

        for (size_t o = 0; o < s->out; o += KRN_TILE_LANES) {
            next = run_panel(s, &t, y, o, step, here, row);
        }
        here = next;
    }
}
