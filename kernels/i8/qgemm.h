/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/qgemm.h - indirect GEMM of bytes: products over rows that pointers find
 *
 * y[p][o] = epilogue( sum_{t,c} a[p][t][c] w[t][c][o] + bias[o] ), as in kernels/f32/igemm.h, but a
 * and w are groups of quant_vec.h: a[p][t] points to `groups` groups of four bytes; the last group
 * may extend past the last element (its weights there are 0). Packed weights are panels of two
 * vectors (the last of one, if that is enough), [panel][tap][group][lane][4 bytes], then the biases
 * and the multipliers, padded to whole panels, in lane order.
 */
#pragma once

#include "kernels/common/tiles.h"
#include "kernels/i8/quant_common.h"
#include "kernels/i8/quant_vec.h"

struct krn_qgemm {
    size_t taps, groups, out;
    bool narrow; /* weights are stored as bytes and widened when read, for few pixels */
    const uint8_t *packed;
    struct krn_quant_epilogue epilogue;
    size_t channel; /* channel of y and the epilogue where `out` starts (grouped convolutions) */
    uint8_t *y;     /* pixel 0, channel 0 */
    size_t y_pixel; /* elements of y's type */
};

/* bytes before the biases; bytes in total, a multiple of 64 */
static inline size_t krn_qgemm_panel_bytes(size_t taps, size_t groups, size_t out, bool narrow)
{
    return taps * groups * (narrow ? 2 : 4) * krn_panels_lanes(out);
}
static inline size_t krn_qgemm_packed(size_t taps, size_t groups, size_t out, bool narrow)
{
    return (krn_qgemm_panel_bytes(taps, groups, out, narrow) +
            krn_panel_count(out) * KRN_TILE_LANES * 8 + 63) /
           64 * 64;
}
static inline size_t krn_qgemm_groups(size_t len)
{
    return (len + KRN_QGROUP - 1) / KRN_QGROUP;
}

/* The weights of one product. Element (o, t, c) is at o so + t st + c sc; c runs over rows of
 * `inner` elements, sc apart, and the rows are si apart. */
struct krn_qgemm_weights {
    const uint8_t *w;
    bool is_signed;
    size_t taps, len, out, inner;
    ptrdiff_t so, st, sc, si;
    const int32_t *zero, *bias; /* per o, or NULL */
    const float *scale;
    int32_t x_zero;
    bool x_signed;
    bool narrow; /* as in struct krn_qgemm; every w - zero fits a byte */
};
void KRN_ISA_FN(krn_qgemm_pack)(uint8_t *dst, const struct krn_qgemm_weights *w);

/** krn_qgemm_widen() - converts @n bytes of an input to elements of groups; krn_qgemm_pad() -
 * writes @n elements that represent 0. */
void KRN_ISA_FN(krn_qgemm_widen)(krn_qel *dst, const uint8_t *src, size_t n, bool is_signed,
                                 int32_t zero);
void KRN_ISA_FN(krn_qgemm_pad)(krn_qel *dst, size_t n, bool is_signed, int32_t zero);

/**
 * krn_qgemm_block() - multiplies one block of pixels by some panels
 * @rows: for each tile of the block KRN_TILE_ROWS pointers per tap, [tile][tap][row]
 * @first, @pixels: the block     @panels: which panels of `out`
 */
void KRN_ISA_FN(krn_qgemm_block)(const struct krn_qgemm *g, const krn_qel *const *rows,
                                 size_t first, size_t pixels, struct krn_range panels);
