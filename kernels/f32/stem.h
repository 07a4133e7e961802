/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/stem.h - one output row of a first layer: a convolution of three input channels
 *
 * y[i][o] = epilogue( sum_{u,k} rows[u][i step + k] w[u][k][o] ), where rows[u] is a zero-padded
 * input row of interleaved channels, k runs over a row of the window (kw * 3 floats), and step is
 * the stride times 3. So a pixel's products are kh contiguous runs: no pointer per tap, and no
 * product with zero but in the padding. The step is a constant of the code, and so are the
 * distances between the windows of a register tile: one pointer reaches all of them. Weights lie
 * in panels [panel][u][k][lanes], as those of igemm.h. Any thread; never allocates.
 */
#pragma once

#include "kernels/common/conv_common.h"
#include "kernels/common/tiles.h"

#define KRN_STEM_CHANNELS 3u
#define KRN_STEM_ROWS_MAX 16u /* of a window */

struct krn_stem {
    size_t kh, len;      /* rows of the window; floats of one: kw * 3 */
    size_t stride;       /* 1, 2 or 4 pixels */
    size_t width;        /* of the output, at least KRN_TILE_ROWS */
    size_t out;          /* output channels */
    const float *packed; /* krn_igemm_pack_group() */
    size_t y_pixel;      /* floats between pixels of y */
    struct krn_epilogue epilogue;
};

/** krn_stem_supports() - Return: whether krn_stem_row() can compute the rows of @c */
bool KRN_ISA_FN(krn_stem_supports)(const struct krn_conv *c);

/** krn_stem_packed() - Return: floats of packed weights of @c */
static inline size_t krn_stem_packed(const struct krn_conv *c)
{
    return c->taps * c->cg * krn_panels_lanes(c->og);
}

/**
 * krn_stem_row() - computes one output row
 * @rows: kh pointers to padded rows, each of ((width - 1) stride + kw) * 3 floats
 * @first: index of the row's first pixel among all pixels, for the residual
 * @y: [width][y_pixel], of which the first `out` floats of each pixel are written
 */
void KRN_ISA_FN(krn_stem_row)(const struct krn_stem *s, const float *const *rows, size_t first,
                              float *y);
