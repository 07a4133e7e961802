/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/qgemm.h - products of bytes over rows that are found by pointers
 *
 * y[p][o] = epilogue( sum_{t,c} a[p][t][c] w[t][c][o] + bias[o] ), as in kernels/igemm.h, but a and
 * w are groups of quant_vec.h: a[p][t] points at `groups` groups of four bytes, which may reach
 * into what follows the last element (its weights are 0). Packed are panels of two vectors (the
 * last of one, if that is enough), [panel][tap][group][lane][4 bytes], then the biases and the
 * multipliers, padded to whole panels, in the order of lanes.
 */
#pragma once

#include "kernels/i8/quant_common.h"
#include "kernels/i8/quant_vec.h"
#include "kernels/tiles.h"

#define KRN_QGEMM_ROWS KRN_TILE_ROWS
#define KRN_QGEMM_LANES KRN_TILE_LANES

struct krn_qgemm {
    size_t taps, groups, out;
    bool narrow; /* weights are kept as bytes and widened when read: for one pixel */
    const uint8_t *packed;
    struct krn_quant_epilogue epilogue;
    size_t channel; /* of y and the epilogue that `out` starts at (grouped convolutions) */
    uint8_t *y;     /* pixel 0, channel 0 */
    size_t y_pixel; /* elements of y's type */
};

static inline size_t krn_qgemm_panels(size_t out)
{
    return (out + KRN_QGEMM_LANES - 1) / KRN_QGEMM_LANES;
}
/* bytes before the biases; the bytes of everything, a multiple of 64 */
static inline size_t krn_qgemm_panel_bytes(size_t taps, size_t groups, size_t out, bool narrow)
{
    size_t full = out / KRN_QGEMM_LANES, rest = out % KRN_QGEMM_LANES;
    size_t last = rest == 0 ? 0 : rest <= KRN_VL ? KRN_VL : 2 * KRN_VL;

    return taps * groups * (narrow ? 2 : 4) * (full * KRN_QGEMM_LANES + last);
}
static inline size_t krn_qgemm_packed(size_t taps, size_t groups, size_t out, bool narrow)
{
    return (krn_qgemm_panel_bytes(taps, groups, out, narrow) +
            krn_qgemm_panels(out) * KRN_QGEMM_LANES * 8 + 63) /
           64 * 64;
}
static inline size_t krn_qgemm_groups(size_t len)
{
    return (len + KRN_QGROUP - 1) / KRN_QGROUP;
}
static inline size_t krn_qgemm_tiles(size_t pixels)
{
    return (pixels + KRN_QGEMM_ROWS - 1) / KRN_QGEMM_ROWS;
}
/* tiles of nearly equal height: first pixel of tile @t of @tiles */
static inline size_t krn_qgemm_first(size_t pixels, size_t tiles, size_t t)
{
    return pixels / tiles * t + pixels % tiles * t / tiles;
}

/* The weights of one product and where element (o, t, c) of them is: o so + t st + c sc, but that
 * c runs over rows of `inner` elements, sc apart, which are si apart. */
struct krn_qgemm_weights {
    const uint8_t *w;
    bool is_signed;
    size_t taps, len, out, inner;
    ptrdiff_t so, st, sc, si;
    const int32_t *zero, *bias; /* per o, or NULL */
    const float *scale;
    int32_t x_zero;
    bool x_signed;
    bool narrow; /* as struct krn_qgemm's; all w - zero are bytes */
};
void KRN_ISA_FN(krn_qgemm_pack)(uint8_t *dst, const struct krn_qgemm_weights *w);

/** krn_qgemm_widen() - @n bytes of an input as elements of groups; krn_qgemm_pad() - @n elements of
 * what stands for 0. */
void KRN_ISA_FN(krn_qgemm_widen)(krn_qel *dst, const uint8_t *src, size_t n, bool is_signed,
                                 int32_t zero);
void KRN_ISA_FN(krn_qgemm_pad)(krn_qel *dst, size_t n, bool is_signed, int32_t zero);

/**
 * krn_qgemm_block() - one block of pixels by some panels
 * @rows: for each tile of the block KRN_QGEMM_ROWS pointers per tap, [tile][tap][row]
 * @first, @pixels: the block     @panels: which panels of `out`
 */
void KRN_ISA_FN(krn_qgemm_block)(const struct krn_qgemm *g, const krn_qel *const *rows,
                                 size_t first, size_t pixels, struct krn_range panels);
