/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/tiles.h - register tiles of products: how high they are, and one function for each height
 *
 * A tile is KRN_TILE_ROWS rows by two vectors, so that its sums, a row of weights and one factor
 * fill the registers (32, 16 and 16 of them). KRN_TILE_HEIGHTS(X) is X(1) X(2) ... for every height
 * that a block's tiles may have; a file says what X makes of it.
 */
#pragma once

#include "kernels/common/vec_math.h"

#if KRN_VL == 16
#define KRN_TILE_ROWS 12u
#define KRN_TILE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#else
#define KRN_TILE_ROWS 6u
#define KRN_TILE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
#define KRN_TILE_LANES (2u * KRN_VL)
