/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/winograd.h - the four steps of a convolution by F(m x m, r x r), for some tiles
 *
 * Y = A^T [ sum_c (G g_c G^T) * (B^T d_c B) ] A with the matrices of winograd_math.h, where d is
 * an input tile of (m + r - 1)^2 pixels and Y its m^2 results. Per point of the (m + r - 1)^2 this
 * is a product [tiles x channels] [channels x outputs], summed over blocks of channels:
 *
 *   v  transformed input    [point][group of tiles][channel / 16][row of the group][16]
 *   u  transformed weights  [point][channel][lane], one panel of outputs (kernels/f32/igemm.h)
 *   m  products             [point][tile][lane], one panel
 *
 * Tiles are in groups of at most KRN_IGEMM_ROWS, cut as krn_igemm_tile_first() says, so that one
 * register tile walks v, u and m from end to end. The caller chooses the strides between points.
 * They should not be multiples of a page, or all points share one cache set.
 */
#pragma once

#include "kernels/f32/igemm.h"
#include "kernels/f32/wino_team.h"
#include "kernels/f32/winograd_math.h"

#define KRN_WINO_CHANNELS 16u /* per piece of v: a cache line */

/* most floats per point of u; for v and m see kernels/f32/wino_team.h */
static inline size_t krn_wino_u_point(size_t channels)
{
    return channels * KRN_IGEMM_LANES + KRN_WINO_CHANNELS;
}

/* Which F(m x m, r x r): (1, 3), (2, 3), (3, 3) or (2, 5). */
struct krn_wino_form {
    size_t pairs; /* p: m + r - 1 = 2 p + 2 */
    size_t side;  /* r */
};

/**
 * krn_wino_filter() - transforms weights of one panel, some channels
 * @w: [tap][channel][lane], taps @w_tap floats apart     @lanes: KRN_VL or 2 KRN_VL
 */
void KRN_ISA_FN(krn_wino_filter)(struct krn_wino_form form, const float *w, size_t w_tap,
                                 size_t channels, size_t lanes, float *u, size_t u_point);

/**
 * krn_wino_input() - transforms some channels of one tile
 * @pairs: as in struct krn_wino_form
 * @at: its pixels, row by row, at the first channel; pixels in the padding point to zeros
 * @v: of point 0, channel 0, this tile
 */
void KRN_ISA_FN(krn_wino_input)(size_t pairs, const void *const *at, size_t channels, float *v,
                                size_t v_point);

/* krn_wino_product() - multiplies all points; a unit is a channel */
void KRN_ISA_FN(krn_wino_product)(const struct krn_wino_product *p);

struct krn_wino_output {
    struct krn_wino_form form;
    size_t m_point;
    size_t lanes, channels; /* of the panel; of these, channels are stored */
    size_t channel;         /* that the panel starts at */
    const struct krn_epilogue *epilogue;
    float *y; /* pixel 0, channel 0 */
    size_t y_pixel, y_width;
};
/**
 * krn_wino_output() - transforms, finishes and stores the results of one tile, one panel
 * @m: of point 0, this tile     @first: pixel of y at the tile's corner
 * @rows, @cols: of the tile that lie in y
 */
void KRN_ISA_FN(krn_wino_output)(const struct krn_wino_output *o, const float *m, size_t first,
                                 size_t rows, size_t cols);
