/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/igemm.h - products over rows that are found by pointers ("indirect" GEMM)
 *
 * y[p][o] = epilogue( sum_{t,c} a[p][t][c] w[t][c][o] ), where a[p][t] is a pointer to `len`
 * floats: a convolution needs no im2row copy, only a pointer per output pixel and tap (padding
 * points to zeros), and a plain product is the case of one tap. Weights are packed once into panels
 * of two vectors (the last of one, if that is enough), [panel][tap][c][lanes]; a register tile of
 * KRN_IGEMM_ROWS pixels by one panel is computed at a time and finished with its epilogue before it
 * is stored.
 */
#pragma once

#include "kernels/common/conv_common.h"
#include "kernels/tiles.h"

#define KRN_IGEMM_ROWS KRN_TILE_ROWS
#define KRN_IGEMM_LANES KRN_TILE_LANES

struct krn_igemm {
    size_t taps, len, out;
    const float *packed;
    const float *zeros; /* NULL, or what taps in the padding point to: a tap of a tile of them alone
                           is left out */
    struct krn_epilogue epilogue;
    size_t channel; /* of y and the epilogue that `out` starts at (groups) */
    float *y;       /* pixel 0, channel 0 */
    size_t y_pixel;
};

/* floats of packed weights for k = taps * len */
static inline size_t krn_igemm_packed(size_t k, size_t out)
{
    size_t full = out / KRN_IGEMM_LANES, rest = out % KRN_IGEMM_LANES;

    return k * (full * KRN_IGEMM_LANES + (rest == 0 ? 0 : rest <= KRN_VL ? KRN_VL : 2 * KRN_VL));
}
static inline size_t krn_igemm_panels(size_t out)
{
    return (out + KRN_IGEMM_LANES - 1) / KRN_IGEMM_LANES;
}
static inline size_t krn_igemm_tiles(size_t pixels)
{
    return (pixels + KRN_IGEMM_ROWS - 1) / KRN_IGEMM_ROWS;
}
/* Tiles of a block are of nearly equal height, so that no lonely row remains: first pixel of tile
 * @t of @tiles. */
static inline size_t krn_igemm_tile_first(size_t pixels, size_t tiles, size_t t)
{
    return pixels / tiles * t + pixels % tiles * t / tiles;
}

/**
 * krn_igemm_pack() - weights of one product into panels
 * @w, strides in elements: w[o * so + t * st + c * sc]; @scale: per o, or NULL, times @alpha
 */
void KRN_ISA_FN(krn_igemm_pack)(float *dst, const uint8_t *w, size_t taps, size_t len, size_t out,
                                ptrdiff_t so, ptrdiff_t st, ptrdiff_t sc, const float *scale,
                                float alpha);

/**
 * krn_igemm_block() - one block of pixels by some panels
 * @rows: for each tile of the block KRN_IGEMM_ROWS pointers per tap, [tile][tap][row]
 * @first, @pixels: the block     @panels: which panels of `out`
 */
void KRN_ISA_FN(krn_igemm_block)(const struct krn_igemm *g, const float *const *rows, size_t first,
                                 size_t pixels, struct krn_range panels);
