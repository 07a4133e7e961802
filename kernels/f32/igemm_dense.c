/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products over rows at equal distances. Every row of a tile is reached from a few pointers and one
 * distance. A pointer per row would not fit into the registers, and products of few terms spend a
 * large part of their time between two tiles. So tiles of one height follow each other in one call,
 * and sums start with the shift.
 */
#include "base/base.h"
#include "kernels/f32/igemm.h"
#include "kernels/f32/igemm_tile.h"

/* tiles of one height, one after the other, times one panel */
struct run {
    size_t tiles;
    const float *x; /* first row of the next tile */
    ptrdiff_t step; /* from row to row, in elements */
    const float *panel;
    size_t len;
    const float *shift; /* of the panel's channels, or NULL */
    struct krn_tile_ahead ahead;
    struct krn_tile_out out; /* of the next tile; its epilogue has no shift */
};

KRN_INLINE void start(vf (*acc)[2], const struct run *r, const size_t height, const size_t vectors)
{
    vf shift[2];

#pragma GCC unroll 2
    for (size_t v = 0; v < vectors; v++) {
        const size_t left = r->out.channels - v * KRN_VL;

        shift[v] = r->shift ? vf_load_any(r->shift + v * KRN_VL, base_min(left, (size_t)KRN_VL))
                            : vf_set(0.0f);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        acc[i][0] = shift[0];
        acc[i][1] = shift[vectors - 1];
    }
}

/* Rows of lines that a tile needs when its sums are done, to be fetched one with each step of k.
 * Where a vector is a whole line, a tile stores so many lines that the store queue fills if they
 * come from memory or a far cache. All fetches at once fill the queue of misses. Narrower tiles do
 * not gain. */
struct lines {
    const float *at; /* NULL: nothing to fetch */
    size_t pixel;
};
#define FETCHES (KRN_VL * sizeof(float) == BASE_CACHE_LINE_BYTES)

KRN_INLINE struct lines result_of(const struct krn_tile_out *out)
{
    return (struct lines){FETCHES ? out->y : NULL, out->y_pixel};
}

KRN_INLINE struct lines residual_of(const struct krn_tile_out *out)
{
    const struct krn_epilogue *e = out->epilogue;
    const float *res = e->res ? e->res + out->first * e->res_pixel + out->channel : out->y;

    return (struct lines){FETCHES && res != out->y ? res : NULL, e->res_pixel};
}

KRN_INLINE void fetch_row(struct lines *l, const size_t vectors)
{
#pragma GCC unroll 2
    for (size_t v = 0; v < vectors; v++) {
        __builtin_prefetch(l->at + v * KRN_VL, 1, 3);
    }
    l->at += l->pixel;
    KRN_OPAQUE(l->at);
}

#define BASES ((KRN_TILE_HIGHEST + 3) / 4) /* pointers of a tile: to every fourth row */

/* one step of k. Return: the weights of the next one */
KRN_INLINE const float *next(vf (*acc)[2], const float **row, ptrdiff_t step, const float *panel,
                             const size_t height, const size_t vectors)
{
    vf b0 = vf_load(panel), b1 = vectors > 1 ? vf_load(panel + KRN_VL) : b0;

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        vf factor = vf_set(row[i / 4][(ptrdiff_t)(i % 4) * step]);

        acc[i][0] += factor * b0;
        if (vectors > 1) {
            acc[i][1] += factor * b1;
        }
    }
#pragma GCC unroll 4
    for (size_t b = 0; 4 * b < height; b++) {
        row[b]++;
        KRN_OPAQUE(row[b]);
    }
    return panel + vectors * KRN_VL;
}

/* acc[i] += sum_c x[i * step + c] panel[c]. Fetches the result, then the residual. */
KRN_INLINE void sum(vf (*acc)[2], const struct run *r, const float *x,
                    const struct krn_tile_out *out, struct krn_tile_ahead *ahead,
                    const size_t height, const size_t vectors)
{
    const float *panel = r->panel, *row[BASES];
    struct lines lines = result_of(out), then = residual_of(out);
    const ptrdiff_t step = r->step;

#pragma GCC unroll 4
    for (size_t b = 0; 4 * b < height; b++) {
        row[b] = x + (ptrdiff_t)(4 * b) * step;
    }
    for (size_t left = r->len; left > 0;) {
        const size_t now = base_min(left, (size_t)KRN_TILE_PIECE);
        const float *end = panel + now * vectors * KRN_VL;

        krn_tile_fetch(ahead);
        if (FETCHES && lines.at) {
#pragma GCC unroll 1
            do {
                fetch_row(&lines, vectors);
                panel = next(acc, row, step, panel, height, vectors);
            } while (panel < end);
            lines = then;
            then.at = NULL;
        } else {
#pragma GCC unroll 1
            do {
                panel = next(acc, row, step, panel, height, vectors);
            } while (panel < end);
        }
        left -= now;
    }
}

/* @height and @vectors are constants wherever this is inlined, so the sums stay in registers */
KRN_INLINE void run_tiles(struct run *r, const size_t height, const size_t vectors)
{
    struct krn_tile_ahead ahead = r->ahead;
    struct krn_tile_out out = r->out;
    const float *x = r->x;

    for (size_t n = r->tiles; n > 0; n--) {
        vf acc[KRN_TILE_HIGHEST][2];

        start(acc, r, height, vectors);
        sum(acc, r, x, &out, &ahead, height, vectors);
        krn_tile_store(&out, height, vectors, acc);
        x += (ptrdiff_t)height * r->step;
        out.first += height;
        out.y += height * out.y_pixel;
    }
    r->ahead = ahead;
    r->out = out;
    r->x = x;
}

KRN_TILE_TABLE(tiles, struct run, run_tiles, KRN_IGEMM_DENSE_HEIGHTS, KRN_IGEMM_DENSE_ROWS)

/* One row by SPAN whole panels: the weights are read once, so memory bandwidth is the limit, and
 * several streams are faster than one. Each panel is read from its start and from its middle. */
#define SPAN 4u
#define AHEAD_BYTES 1024u

static void row_by_span(const struct krn_igemm *g, const float *x, const float *w,
                        struct krn_tile_out *out)
{
    const size_t half = g->len / 2, lanes = KRN_TILE_LANES, panel = g->len * lanes;
    const float *first = w;
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
            const float *last = first + s * panel + c * lanes;

            acc[s][0] += vf_set(x[c]) * vf_load(last);
            acc[s][1] += vf_set(x[c]) * vf_load(last + KRN_VL);
        }
        krn_tile_finish(out, 1, 2, acc + s);
        out->y += lanes;
        out->channel += lanes;
    }
}

/* Rows that are a multiple of 4096 bytes apart share a set of a first-level cache of 32 KB and 8
 * ways. Measured on 1024 and 2048 channels, Zen 4: 7 to 11 rows are equally fast, 14 take a sixth
 * longer. */
#define ALIAS_BYTES 4096
#define ALIAS_ROWS 9u

static size_t rows_max(ptrdiff_t step)
{
    bool alias = step * (ptrdiff_t)sizeof(float) % ALIAS_BYTES == 0;

    return alias ? base_min(ALIAS_ROWS, KRN_IGEMM_DENSE_ROWS) : KRN_IGEMM_DENSE_ROWS;
}

void KRN_ISA_FN(krn_igemm_dense)(const struct krn_igemm *g, const float *x, ptrdiff_t step,
                                 size_t first, size_t pixels, struct krn_range panels)
{
    const size_t most = rows_max(step), tiles = (pixels + most - 1) / most;
    const size_t full = g->out / KRN_TILE_LANES;
    struct krn_epilogue rest = g->epilogue;

    rest.shift = NULL;
    for (size_t p = panels.begin; p < panels.end; p++) {
        const size_t o = p * KRN_TILE_LANES, bytes = g->len * KRN_TILE_LANES * sizeof(float);
        const float *panel = g->packed + o * g->len;
        struct krn_tile_out out = {.y = g->y + first * g->y_pixel + g->channel + o,
                                   .y_pixel = g->y_pixel,
                                   .first = first,
                                   .channel = g->channel + o,
                                   .channels = base_min(g->out - o, (size_t)KRN_TILE_LANES)};

        if (pixels == 1 && base_min(full, panels.end) >= p + SPAN) {
            krn_tile_finish_of(&g->epilogue, &out);
            row_by_span(g, x, panel, &out);
            p += SPAN - 1;
            continue;
        }
        krn_tile_finish_of(&rest, &out);
        struct run r = {
            .x = x,
            .step = step,
            .panel = panel,
            .len = g->len,
            .shift = g->epilogue.shift ? g->epilogue.shift + out.channel : NULL,
            .ahead = krn_tile_ahead_of(panel + bytes / sizeof(float),
                                       p + 1 < panels.end ? bytes : 0, tiles),
            .out = out,
        };

        for (size_t higher = 2; higher-- > 0;) { /* tiles with an extra row come first */
            r.tiles = higher ? pixels % tiles : tiles - pixels % tiles;
            if (r.tiles > 0) {
                tiles_of[pixels / tiles + higher - 1][out.channels > KRN_VL](&r);
            }
        }
    }
}
