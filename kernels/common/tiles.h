/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/tiles.h - register tiles of products, and the panels of weights that they read
 *
 * A tile is up to KRN_TILE_ROWS rows by two vectors, so that its sums, a row of weights and one
 * factor fill the registers (32, 16 and 16 of them). Outputs lie in panels of KRN_TILE_LANES; the
 * last panel has one vector if that is enough. KRN_TILE_HEIGHTS(X) expands to X(1) X(2) ... for
 * every height of a tile. Any thread.
 */
#pragma once

#include "kernels/common/vec.h"

#if KRN_VL == 16
#define KRN_TILE_ROWS 12u
#define KRN_TILE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#else
#define KRN_TILE_ROWS 6u
#define KRN_TILE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
#define KRN_TILE_LANES (2u * KRN_VL)

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
