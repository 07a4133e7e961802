/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/qwino.h - a 3x3 convolution of integers by F(4x4, 3x3), exactly
 *
 * Winograd's minimal filtering with the points 0, +-1, +-2 and infinity (A. Lavin, S. Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2015), its matrices made integer:
 *
 *     r0 =  4 d0        - 5 d2        + d4         u0 = g0
 *     r1 =      - 4 d1  - 4 d2  + d3  + d4         u1 = g0 +   g1 +   g2
 *     r2 =        4 d1  - 4 d2  - d3  + d4         u2 = g0 -   g1 +   g2
 *     r3 =      - 2 d1  -   d2  + 2 d3 + d4        u3 = g0 + 2 g1 + 4 g2
 *     r4 =        2 d1  -   d2  - 2 d3 + d4        u4 = g0 - 2 g1 + 4 g2
 *     r5 =        4 d1        - 5 d3        + d5   u5 = g2
 *
 *     24 y0 = 6 m0 - 4 (m1 + m2) +   (m3 + m4)
 *     24 y1 =      - 4 (m1 - m2) + 2 (m3 - m4)
 *     24 y2 =      - 4 (m1 + m2) + 4 (m3 + m4)
 *     24 y3 =      - 4 (m1 - m2) + 8 (m3 - m4) + 24 m5      with m = r u
 *
 * In two dimensions |d| <= 255 gives |r| <= 100 * 255 and |g| <= 255 gives |u| <= 49 * 255, both
 * fit 16 bits, and the sum of two products fits 32. Sums wrap, which does no harm: the result is
 * 576 y modulo 2^32, and hence 64 y, since 9 has an inverse modulo 2^32. The weights of an output
 * channel bound its y; if that range is narrower than 2^26, y is unique in it.
 *
 *   v  transformed input    [point][group of tiles][channel / 32][row of the group][32], 16 bits
 *   u  transformed weights  [point][pair of channels][lane][2], 16 bits, one panel of outputs
 *   m  products             [point][tile][lane], 32 bits, one panel
 *
 * Tiles are in groups of at most KRN_TILE_ROWS, cut by krn_tile_first().
 */
#pragma once

#include "kernels/common/tiles.h"
#include "kernels/f32/wino_team.h"
#include "kernels/i8/quant_epilogue.h"

#define KRN_QWINO_SIZE 4u
#define KRN_QWINO_SPAN 6u
#define KRN_QWINO_POINTS 36u
#define KRN_QWINO_CHANNELS 32u      /* per piece of v: a cache line */
#define KRN_QWINO_RANGE (1ll << 26) /* limit of y's range */

/* elements per point of u; for v and m see kernels/f32/wino_team.h */
static inline size_t krn_qwino_u_point(size_t channels, size_t lanes)
{
    return (channels + 1) / 2 * 2 * lanes + 32;
}

/**
 * krn_qwino_filter() - transforms weights of one panel, some channels
 * @w: [tap][@count], i8 if @narrow, else 16 bits; taps @w_tap elements apart
 * @count: elements of one tap, a multiple of 2 KRN_VL
 */
void KRN_ISA_FN(krn_qwino_filter)(const void *w, bool narrow, size_t w_tap, size_t count,
                                  int16_t *u, size_t u_point);

/**
 * krn_qwino_input() - transforms some channels of one tile
 * @at: its 36 pixels, row by row, at the first channel; pixels in the padding point to @zero
 * @v: of point 0, channel 0, this tile; whole vectors are written, the last one filled up as if
 * with @zero
 */
void KRN_ISA_FN(krn_qwino_input)(const void *const *at, bool is_signed, int32_t zero,
                                 size_t channels, int16_t *v, size_t v_point);

/* krn_qwino_product() - multiplies all points; a unit is a pair of channels */
void KRN_ISA_FN(krn_qwino_product)(const struct krn_wino_product *p);

struct krn_qwino_output {
    const struct krn_quant_epilogue *epilogue;
    size_t m_point;
    size_t lanes, channels; /* of the panel; of these, channels are stored */
    const int32_t *centre;  /* [lane]: - 64 times the middle of the range of y */
    const int32_t *bias;    /* [lane]: the middle and the bias */
    const float *scale;     /* [lane] */
    uint8_t *y;             /* pixel 0, first channel of the panel */
    const uint8_t *res;     /* likewise, or NULL */
    size_t y_pixel, y_width;
};
/**
 * krn_qwino_output() - transforms, finishes and stores the results of one tile, one panel
 * @m: of point 0, this tile     @first: pixel of y at the tile's corner
 * @rows, @cols: of the tile that lie in y
 */
void KRN_ISA_FN(krn_qwino_output)(const struct krn_qwino_output *o, const int32_t *m, size_t first,
                                  size_t rows, size_t cols);
