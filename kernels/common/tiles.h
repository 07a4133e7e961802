/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/tiles.h - register tiles of products, and the panels of weights that they read
 *
 * A tile is up to KRN_TILE_ROWS rows by two vectors, so that its sums, a row of weights and one
 * factor fill the registers (32, 16 and 16 of them). Outputs lie in panels of KRN_TILE_LANES; the
 * last panel has one vector if that is enough. KRN_TILE_HEIGHTS(X, ...) expands to X(1, ...)
 * X(2, ...) and so on for every height of a tile. Any thread.
 */
#pragma once

#include "kernels/common/vec.h"

/* clang-format off */
#define KRN_TILE_HEIGHTS_6(X, ...)                                                                 \
    X(1, ##__VA_ARGS__) X(2, ##__VA_ARGS__) X(3, ##__VA_ARGS__) X(4, ##__VA_ARGS__)                \
    X(5, ##__VA_ARGS__) X(6, ##__VA_ARGS__)
#if KRN_VL == 16
#define KRN_TILE_ROWS 12u
#define KRN_TILE_HEIGHTS(X, ...)                                                                   \
    KRN_TILE_HEIGHTS_6(X, ##__VA_ARGS__) X(7, ##__VA_ARGS__) X(8, ##__VA_ARGS__)                   \
    X(9, ##__VA_ARGS__) X(10, ##__VA_ARGS__) X(11, ##__VA_ARGS__) X(12, ##__VA_ARGS__)
#else
#define KRN_TILE_ROWS 6u
#define KRN_TILE_HEIGHTS KRN_TILE_HEIGHTS_6
#endif
/* clang-format on */
#define KRN_TILE_LANES (2u * KRN_VL)

/* KRN_TILE_TABLE() - NAME_of[height - 1][vectors - 1], functions of a TYPE that call RUN(t, height,
 * vectors, ...) with constants. HEIGHTS: as KRN_TILE_HEIGHTS; ROWS: how many these are */
#define KRN_TILE_FNS(height, NAME, TYPE, RUN, ...)                                                 \
    static __attribute__((noinline)) void NAME##_##height##_1(TYPE *t)                             \
    {                                                                                              \
        RUN(t, height, 1, ##__VA_ARGS__);                                                          \
    }                                                                                              \
    static __attribute__((noinline)) void NAME##_##height##_2(TYPE *t)                             \
    {                                                                                              \
        RUN(t, height, 2, ##__VA_ARGS__);                                                          \
    }
#define KRN_TILE_PAIR(height, NAME) {NAME##_##height##_1, NAME##_##height##_2},
#define KRN_TILE_TABLE(NAME, TYPE, RUN, HEIGHTS, ROWS, ...)                                        \
    HEIGHTS(KRN_TILE_FNS, NAME, TYPE, RUN, ##__VA_ARGS__)                                          \
    static void (*const NAME##_of[ROWS][2])(TYPE *) = {HEIGHTS(KRN_TILE_PAIR, NAME)};

/* number of tiles of a block of @rows */
static inline size_t krn_tile_count(size_t rows)
{
    return (rows + KRN_TILE_ROWS - 1) / KRN_TILE_ROWS;
}
/* The first row of tile @t of @tiles. Tiles have nearly equal heights, so that no single row
 * remains. */
static inline size_t krn_tile_first(size_t rows, size_t tiles, size_t t)
{
    return rows / tiles * t + rows % tiles * t / tiles;
}

static inline size_t krn_panel_count(size_t outputs)
{
    return (outputs + KRN_TILE_LANES - 1) / KRN_TILE_LANES;
}
/* lanes of the next panel, with @outputs left */
static inline size_t krn_panel_lanes(size_t outputs)
{
    return outputs <= KRN_VL ? KRN_VL : KRN_TILE_LANES;
}
/* lanes of all panels of @outputs */
static inline size_t krn_panels_lanes(size_t outputs)
{
    size_t rest = outputs % KRN_TILE_LANES;

    return outputs - rest + (rest == 0 ? 0 : krn_panel_lanes(rest));
}
