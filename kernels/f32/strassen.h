/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/strassen.h - a product of pixels by constant weights with seven multiplications in
 * place of eight
 *
 * Winograd's form of Strassen's algorithm, one level. With the pixels in pairs, the channels in
 * halves and the panels of outputs in pairs, y = x w is, for the even (1) and odd (2) pixels,
 *
 *   S1 = x21 + x22    T1 = w12 - w11    P1 = x11 w11    P5 = S1 T1    y11 = P1 + P2
 *   S2 = S1 - x11     T2 = w22 - T1     P2 = x12 w21    P6 = S2 T2    U2 = P1 + P6, U3 = U2 + P7
 *   S3 = x11 - x21    T3 = w22 - w12    P3 = S4 w22     P7 = S3 T3    y12 = U2 + P5 + P3
 *   S4 = x12 - S2     T4 = T2 - w21     P4 = x22 T4                   y21 = U3 - P4
 *                                                                     y22 = U3 + P5
 *
 * Source: N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 23.1.2.
 * Packing computes the T. The x and S of a block of pixels are copied into the order in which
 * register tiles read them. Then the panels pass over the block, product by product. A panel's
 * piece of one product is read once per block; scratch holds P1, U2 and U3 meanwhile. Results are
 * finished in registers and stored once.
 *
 * Rounding: the errors are bounded, element by element, by n u S with S the same sums over absolute
 * values and n = 3 k / 2 + 9 (section 3.1 there, applied to each step: a term goes through at most
 * three sums of k / 2 products, one sum between, the scale and two sums of three roundings each).
 * tests/kernels/strassen_bound.h computes it. For |x| <= X and |w| <= W, S is at most 9 k X W, nine
 * times that of a plain sum. A result depends only on its pair of pixels (2 i and 2 i + 1), so a
 * team of any width gives the same bits.
 */
#pragma once

#include "kernels/f32/igemm.h"

#define KRN_STRASSEN_PRODUCTS 7u
#define KRN_STRASSEN_SLOTS 2u

struct krn_strassen {
    size_t k, out;
    const float *packed;          /* by krn_strassen_pack() */
    struct krn_epilogue epilogue; /* of y */
    float *y;                     /* pixel 0, channel 0 */
    size_t y_pixel;
};

/* Where to read the pixels: output pixel (n, y, x) at x[n batch + y row + x pixel], w per row and h
 * rows per image. */
struct krn_strassen_in {
    const float *x;
    size_t w, h, pixel, row, batch;
};

/* A block of pairs of pixels, in tiles of KRN_TILE_ROWS pairs at most. */
struct krn_strassen_block {
    size_t first;       /* pixel; even */
    size_t pixels;      /* an odd last pixel is a pair of its own */
    float *rows;        /* [product][tile][krn_strassen_tile()] */
    float *slots;       /* [tile][KRN_STRASSEN_SLOTS][KRN_TILE_ROWS][KRN_TILE_LANES] */
    const float **rest; /* pointers to the pixels, for the panels without a pair */
};

static inline size_t krn_strassen_pairs(size_t pixels)
{
    return (pixels + 1) / 2;
}
/* pairs of whole panels; the rest of @out is an ordinary product */
static inline size_t krn_strassen_panels(size_t out)
{
    return out / KRN_TILE_LANES / 2;
}
/* whether the algorithm can gain anything; required by krn_strassen_pack() and the others */
static inline bool krn_strassen_fits(size_t k, size_t out)
{
    return k >= 2 && k % 2 == 0 && krn_strassen_panels(out) > 0;
}
/* floats of one tile's rows for one product */
static inline size_t krn_strassen_tile(size_t k)
{
    return (k / 2 + 15) / 16 * 16 * KRN_TILE_ROWS;
}
/* floats of a block of at most @pairs */
static inline size_t krn_strassen_rows(size_t k, size_t pairs)
{
    return krn_tile_count(pairs) * KRN_STRASSEN_PRODUCTS * krn_strassen_tile(k);
}
static inline size_t krn_strassen_slots(size_t pairs)
{
    return krn_tile_count(pairs) * KRN_STRASSEN_SLOTS * KRN_TILE_ROWS * KRN_TILE_LANES;
}

/* floats of packed weights: [pair of panels][w11, w21, T2, T3, -T4, T1, w22][k / 2][lane], then the
 * remaining panels as in kernels/f32/igemm.h */
static inline size_t krn_strassen_packed(size_t k, size_t out)
{
    size_t pairs = krn_strassen_panels(out);

    return pairs * KRN_STRASSEN_PRODUCTS * (k / 2) * KRN_TILE_LANES +
           krn_igemm_packed(k, out - pairs * 2 * KRN_TILE_LANES);
}
/** krn_strassen_pack() - as krn_igemm_pack() with one tap */
void KRN_ISA_FN(krn_strassen_pack)(float *dst, const uint8_t *w, size_t k, size_t out, ptrdiff_t so,
                                   ptrdiff_t sc, const float *scale);

/** krn_strassen_rows_of() - fills in x and S of some tiles of @b, whose first pixel is pixel @from
 * of @in */
void KRN_ISA_FN(krn_strassen_rows_of)(const struct krn_strassen_in *in, size_t from, size_t k,
                                      const struct krn_strassen_block *b, struct krn_range tiles);
/** krn_strassen_panels_run() - multiplies a block, which has pointers and sums, by some pairs of
 * panels */
void KRN_ISA_FN(krn_strassen_panels_run)(const struct krn_strassen *g,
                                         const struct krn_strassen_block *b,
                                         struct krn_range panels);
/** krn_strassen_rest() - multiplies by the remaining panels. Overwrites b->rows. */
void KRN_ISA_FN(krn_strassen_rest)(const struct krn_strassen *g, const struct krn_strassen_in *in,
                                   size_t from, const struct krn_strassen_block *b);
/** krn_strassen_block_run() - runs all steps of one block */
void KRN_ISA_FN(krn_strassen_block_run)(const struct krn_strassen *g,
                                        const struct krn_strassen_in *in, size_t from,
                                        const struct krn_strassen_block *b);
