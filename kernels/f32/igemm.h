/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/igemm.h - indirect GEMM: products over rows that pointers find
 *
 * y[p][o] = epilogue( sum_{t,c} a[p][t][c] w[t][c][o] ), where a[p][t] is a pointer to `len`
 * floats: a convolution needs no im2row copy, only a pointer per output pixel and tap (padding
 * points to zeros). A plain product has one tap. Weights are packed once into panels of two vectors
 * (the last of one, if that is enough), [panel][tap][c][lanes]; A register tile of KRN_TILE_ROWS
 * pixels by one panel is computed at a time; its epilogue runs before it is stored.
 */
#pragma once

#include "kernels/common/conv_common.h"
#include "kernels/common/tiles.h"

/* Heights of the tiles of krn_igemm_dense(). It needs few registers for addresses; the sums of 14
 * rows, two vectors of weights and a factor are 31 vectors. */
#if KRN_VL == 16
#define KRN_IGEMM_DENSE_ROWS 14u
#define KRN_IGEMM_DENSE_HEIGHTS(X, ...)                                                            \
    KRN_TILE_HEIGHTS(X, ##__VA_ARGS__) X(13, ##__VA_ARGS__) X(14, ##__VA_ARGS__)
#else
#define KRN_IGEMM_DENSE_ROWS KRN_TILE_ROWS
#define KRN_IGEMM_DENSE_HEIGHTS KRN_TILE_HEIGHTS
#endif

struct krn_igemm {
    size_t taps, len, out;
    const float *packed;
    const float *zeros; /* NULL, or target of taps in the padding: skips a tap that is padding in
                         * all of a tile */
    struct krn_epilogue epilogue;
    size_t channel; /* channel of y and the epilogue where `out` starts (groups) */
    float *y;       /* pixel 0, channel 0 */
    size_t y_pixel;
};

/* floats of packed weights for k = taps * len */
static inline size_t krn_igemm_packed(size_t k, size_t out)
{
    return k * krn_panels_lanes(out);
}

/**
 * krn_igemm_pack() - packs the weights of one product into panels
 * @w, strides in elements: w[o * so + t * st + c * sc]; @scale: per o, or NULL, times @alpha
 */
void KRN_ISA_FN(krn_igemm_pack)(float *dst, const uint8_t *w, size_t taps, size_t len, size_t out,
                                ptrdiff_t so, ptrdiff_t st, ptrdiff_t sc, const float *scale,
                                float alpha);

/** krn_igemm_pack_group() - packs the weights of a group of convolution @op. @c: krn_conv_of() */
static inline void krn_igemm_pack_group(const struct mdl_model *m, const struct mdl_op *op,
                                        const struct krn_conv *c, size_t group, float *dst)
{
    const ptrdiff_t *stride = m->tensors[op->in[1]].stride;
    const size_t first = group * c->og;

    KRN_ISA_FN(krn_igemm_pack)
    (dst, krn_const_ptr(m, op->in[1]) + (ptrdiff_t)first * stride[0] * (ptrdiff_t)sizeof(float),
     c->taps, c->cg, c->og, stride[0], c->tap_stride, stride[1],
     op->scale ? op->scale + first : NULL, 1.0f);
}

/**
 * krn_igemm_block() - multiplies one block of pixels by some panels
 * @rows: for each tile of the block KRN_TILE_ROWS pointers per tap, [tile][tap][row]
 * @first, @pixels: the block     @panels: which panels of `out`
 */
void KRN_ISA_FN(krn_igemm_block)(const struct krn_igemm *g, const float *const *rows, size_t first,
                                 size_t pixels, struct krn_range panels);

/**
 * krn_igemm_dense() - the same for one tap and rows at equal distances, without pointers
 * @x: the block's first row     @step: elements from row to row, of any sign
 *
 * Sums start with the shift, so results may differ from krn_igemm_block()'s in the last bits.
 */
void KRN_ISA_FN(krn_igemm_dense)(const struct krn_igemm *g, const float *x, ptrdiff_t step,
                                 size_t first, size_t pixels, struct krn_range panels);
