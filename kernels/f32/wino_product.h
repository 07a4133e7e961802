/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/wino_product.h - the products of Winograd's algorithm, one register tile after
 * another: of floats, unless a file that names another WINO_PRODUCT defines what units of 4 bytes
 * are multiplied
 */
#pragma once

#include "kernels/f32/wino_team.h"

#ifndef WINO_PRODUCT
#define WINO_PRODUCT krn_wino_product
typedef float wino_unit;        /* of v */
typedef vf wino_row, wino_sums; /* of u, of m */
#define wino_row_load vf_load
#define wino_row_set vf_set
#define wino_load vf_load
#define wino_store vf_store

KRN_INLINE vf wino_mac(vf acc, vf a, vf b)
{
    return acc + a * b;
}
#endif

#define WINO_PIECE (BASE_CACHE_LINE_BYTES / sizeof(wino_unit))

/* @height and @vectors are constants wherever this is inlined */
KRN_INLINE void wino_step(const wino_unit *a, const wino_unit *b, const size_t height,
                          const size_t vectors, wino_sums (*acc)[2])
{
    wino_row b0 = wino_row_load(b), b1 = vectors > 1 ? wino_row_load(b + KRN_VL) : b0;

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        wino_unit unit;
        wino_row x;

        memcpy(&unit, a + i * WINO_PIECE, sizeof(unit)); /* it may be two numbers */
        x = wino_row_set(unit);
        acc[i][0] = wino_mac(acc[i][0], x, b0);
        if (vectors > 1) {
            acc[i][1] = wino_mac(acc[i][1], x, b1);
        }
    }
}

KRN_INLINE void wino_tile(const wino_unit *a, const wino_unit *b, wino_unit *m, size_t units,
                          bool add, const size_t height, const size_t vectors)
{
    const size_t lanes = vectors * KRN_VL;
    wino_sums acc[KRN_TILE_ROWS][2];
    size_t c = 0;

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        acc[i][0] = acc[i][1] = (wino_sums){0};
        if (add) {
            acc[i][0] = wino_load(m + i * lanes);
            acc[i][1] = vectors > 1 ? wino_load(m + i * lanes + KRN_VL) : acc[i][0];
        }
    }
    for (; c + WINO_PIECE <= units; c += WINO_PIECE) {
#pragma GCC unroll 4
        for (size_t k = 0; k < WINO_PIECE; k++) {
            wino_step(a + k, b, height, vectors, acc);
            b += lanes;
        }
        a += KRN_TILE_ROWS * WINO_PIECE;
    }
    for (; c < units; c++) {
        wino_step(a++, b, height, vectors, acc);
        b += lanes;
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        wino_store(m + i * lanes, acc[i][0]);
        if (vectors > 1) {
            wino_store(m + i * lanes + KRN_VL, acc[i][1]);
        }
    }
}

typedef void wino_tile_fn(const wino_unit *a, const wino_unit *b, wino_unit *m, size_t units,
                          bool add);

#define WINO_TILE(height, vectors)                                                                 \
    static void wino_tile_##height##_##vectors(const wino_unit *a, const wino_unit *b,             \
                                               wino_unit *m, size_t units, bool add)               \
    {                                                                                              \
        wino_tile(a, b, m, units, add, height, vectors);                                           \
    }
#define WINO_TILES(height) WINO_TILE(height, 1) WINO_TILE(height, 2)
KRN_TILE_HEIGHTS(WINO_TILES)

#define WINO_PAIR(height) {wino_tile_##height##_1, wino_tile_##height##_2},
static wino_tile_fn *const wino_tiles[KRN_TILE_ROWS][2] = {KRN_TILE_HEIGHTS(WINO_PAIR)};

void KRN_ISA_FN(WINO_PRODUCT)(const struct krn_wino_product *p)
{
    size_t groups = krn_tile_count(p->tiles), pieces = (p->units + WINO_PIECE - 1) / WINO_PIECE;

    for (size_t point = 0; point < p->points; point++) {
        const wino_unit *v = (const wino_unit *)p->v + point * p->v_point;
        const wino_unit *u = (const wino_unit *)p->u + point * p->u_point;
        wino_unit *m = (wino_unit *)p->m + point * p->m_point;

        for (size_t g = 0; g < groups; g++) {
            size_t height =
                krn_tile_first(p->tiles, groups, g + 1) - krn_tile_first(p->tiles, groups, g);

            wino_tiles[height - 1][p->lanes > KRN_VL](v, u, m, p->units, p->add);
            v += KRN_TILE_ROWS * pieces * WINO_PIECE;
            m += height * p->lanes;
        }
    }
}
