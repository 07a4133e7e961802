/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of few channels: the rows under a chunk of output are first copied into a
 * zero-padded band, in which the kx and c of one ky are contiguous, so that a tap is a whole row of
 * the window. The copy can also read an NCHW input, or the pixels of an image.
 */
#include "base/base.h"
#include "kernels/f32/conv_igemm.h"
#include "kernels/f32/igemm_tile.h"

#define NEAR_BYTES (16u * 1024u) /* of weights */

/* fills in the input rows under output rows [oy, ...) of image n, padded with zeros; the first
 * @have are there already */
static void fill_band(const struct krn_conv_igemm *j, size_t n, size_t oy, size_t rows, size_t have,
                      float *band)
{
    const struct krn_conv *c = &j->p.c;
    size_t height = (rows - 1) * c->win.sh + (c->win.kh - 1) * c->win.dh + 1;
    size_t width = j->p.band_w / c->cg;
    struct krn_range kx = krn_taps(-c->win.left, width, 1, c->x.w);

    band += have * j->p.band_w;
    for (size_t y = have; y < height; y++, band += j->p.band_w) {
        ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh + y) - c->win.top;

        if (iy < 0 || iy >= (ptrdiff_t)c->x.h) {
            memset(band, 0, j->p.band_w * sizeof(float));
            continue;
        }
        memset(band, 0, kx.begin * c->cg * sizeof(float));
        memset(band + kx.end * c->cg, 0, (width - kx.end) * c->cg * sizeof(float));
        krn_input_row(&j->rows, n, (size_t)iy, kx.end - kx.begin, band + kx.begin * c->cg);
    }
}

/* Moves rows that the next chunk also reads from the end of the band to its start. Return: how
 * many. */
static size_t keep_rows(const struct krn_conv_igemm *j, float *band)
{
    size_t step = j->p.band_rows * j->p.c.win.sh;

    if (step >= j->p.band_h) {
        return 0;
    }
    memmove(band, band + step * j->p.band_w, (j->p.band_h - step) * j->p.band_w * sizeof(*band));
    return j->p.band_h - step;
}

/* Adjacent output pixels in a row, over a band: window i begins at at + i step; its taps, which are
 * rows, are tap_step apart. */
struct strip {
    const float *at, *panel;
    size_t step, tap_step, taps, len;
    struct krn_tile_out out;
};

KRN_INLINE void run_strip(const struct strip *s, const size_t height, const size_t vectors)
{
    const float *panel = s->panel, *a[KRN_IGEMM_ROWS];
    const size_t len = s->len, tap_step = s->tap_step;
    vf acc[KRN_IGEMM_ROWS][2];

    krn_tile_zero(acc, height);
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        a[i] = s->at + i * s->step;
    }
    for (size_t tap = s->taps; tap > 0; tap--) {
#pragma GCC unroll 1
        for (size_t c = 0; c < len; c++, panel += vectors * KRN_VL) {
            krn_tile_step(acc, a, c, NULL, panel, height, vectors);
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            a[i] += tap_step;
        }
    }
    krn_tile_store(&s->out, height, vectors, acc);
}

KRN_TILE_TABLE(strips, const struct strip, run_strip, KRN_TILE_HEIGHTS, KRN_IGEMM_ROWS)

/* A tile of a row: where its windows begin, its first pixel, and the remainder of
 * krn_igemm_tile_first(). */
struct place {
    const float *at;
    size_t first, left;
};

/* A row of pixels in tiles of height low; some are one higher. */
struct split {
    size_t tiles, low, higher;
};

/* Computes @tiles tiles from @p of the panel at channel @o. Return: the place after them. */
KRN_INLINE struct place run_panel(const struct krn_conv_igemm *j, struct strip *s, size_t o,
                                  size_t tiles, struct place p, struct split row)
{
    s->panel = j->g.packed + o * j->p.taps * j->p.len;
    s->out.channel = o;
    s->out.channels = base_min(j->p.c.og - o, (size_t)KRN_IGEMM_LANES);
    for (size_t now; tiles > 0; tiles--) {
        p.left += row.higher;
        now = row.low + (p.left >= row.tiles);
        p.left -= p.left >= row.tiles ? row.tiles : 0;
        s->at = p.at;
        s->out.first = p.first;
        s->out.y = j->g.y + p.first * s->out.y_pixel + o;
        strips_of[now - 1][s->out.channels > KRN_VL](s);
        p.at += now * s->step;
        p.first += now;
    }
    return p;
}

/* Computes one row of output, whose first pixel is @first, from the start of its windows in the
 * band: tile by tile if all weights stay in the first-level cache, so that lines are written in
 * order, else panel by panel. */
static void run_row(const struct krn_conv_igemm *j, size_t first, const float *at)
{
    const struct krn_conv *c = &j->p.c;
    size_t tiles = krn_igemm_tiles(c->y.w), weights = c->og * j->p.taps * j->p.len;
    size_t step = weights * sizeof(float) <= NEAR_BYTES ? 1 : tiles;
    struct split row = {tiles, c->y.w / tiles, c->y.w % tiles};
    struct place here = {.at = at, .first = first};
    struct strip s = {.step = c->win.sw * c->cg,
                      .tap_step = c->win.dh * j->p.band_w,
                      .taps = j->p.taps,
                      .len = j->p.len,
                      .out = {.y_pixel = j->g.y_pixel}};

    krn_tile_finish_of(&j->g.epilogue, &s.out);
    for (size_t t = 0; t < tiles; t += step) {
        struct place next = here;

        for (size_t o = 0; o < c->og; o += KRN_IGEMM_LANES) {
            next = run_panel(j, &s, o, step, here, row);
        }
        here = next;
    }
}

void KRN_ISA_FN(krn_conv_igemm_bands)(const struct krn_conv_igemm *j, struct krn_range chunks,
                                      float *band)
{
    const struct krn_conv *c = &j->p.c;
    size_t each = (c->y.h + j->p.band_rows - 1) / j->p.band_rows;

    for (size_t chunk = chunks.begin; chunk < chunks.end; chunk++) {
        size_t n = chunk / each, oy = chunk % each * j->p.band_rows;
        size_t height = base_min(j->p.band_rows, c->y.h - oy);
        size_t have = chunk > chunks.begin && oy > 0 ? keep_rows(j, band) : 0;

        fill_band(j, n, oy, height, have, band);
        for (size_t y = 0; y < height; y++) {
            run_row(j, (n * c->y.h + oy + y) * c->y.w, band + y * c->win.sh * j->p.band_w);
        }
    }
}
