/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/winograd.h - the four steps of a convolution by F(m x m, r x r) or F(m, r), for some
 * tiles
 *
 * Y = A^T [ sum_c (G g_c G^T) * (B^T d_c B) ] A with the matrices below, where d is
 * an input tile of (m + r - 1)^2 pixels and Y its m^2 results. Per point of the (m + r - 1)^2 this
 * is a product [tiles x channels] [channels x outputs], summed over blocks of channels. Filters
 * with one row or column need one direction: y = A^T [ sum_c (G g_c) * (B^T d_c) ].
 *
 *   v  transformed input    [point][group of tiles][channel / 16][row of the group][16]
 *   u  transformed weights  [point][channel][lane], one panel of outputs (kernels/f32/igemm.h)
 *   m  products             [point][tile][lane], one panel
 *
 * Tiles are in groups of at most KRN_TILE_ROWS, cut as krn_tile_first() says, so that one
 * register tile walks v, u and m from end to end. The caller chooses the strides between points.
 * They should not be multiples of a page, or all points share one cache set.
 */
#pragma once

#include "kernels/f32/igemm.h"
#include "kernels/f32/wino_team.h"

#define KRN_WINO_CHANNELS 16u /* per piece of v: a cache line */

/* most floats per point of u; for v and m see kernels/f32/wino_team.h */
static inline size_t krn_wino_u_point(size_t channels)
{
    return channels * KRN_TILE_LANES + KRN_WINO_CHANNELS;
}

/* Forms that there are, as X(p, r, line, ...); see struct krn_wino_form. */
#define KRN_WINO_FORMS(X, ...)                                                                     \
    X(1, 3, false, __VA_ARGS__)                                                                    \
    X(2, 3, false, __VA_ARGS__)                                                                    \
    X(3, 3, false, __VA_ARGS__)                                                                    \
    X(2, 5, false, __VA_ARGS__)                                                                    \
    X(2, 3, true, __VA_ARGS__)                                                                     \
    X(3, 5, true, __VA_ARGS__)                                                                     \
    X(4, 7, true, __VA_ARGS__)

/**
 * krn_wino_filter() - transforms weights of one panel, some channels
 * @w: [tap][channel][lane], taps @w_tap floats apart     @lanes: KRN_VL or 2 KRN_VL
 */
void KRN_ISA_FN(krn_wino_filter)(struct krn_wino_form form, const float *w, size_t w_tap,
                                 size_t channels, size_t lanes, float *u, size_t u_point);

/**
 * krn_wino_input() - transforms some channels of one tile
 * @at: its pixels, row by row, at the first channel; pixels in the padding point to zeros
 * @v: of point 0, channel 0, this tile
 */
void KRN_ISA_FN(krn_wino_input)(struct krn_wino_form form, const void *const *at, size_t channels,
                                float *v, size_t v_point);

/* krn_wino_product() - multiplies all points; a unit is a channel */
void KRN_ISA_FN(krn_wino_product)(const struct krn_wino_product *p);

struct krn_wino_output {
    struct krn_wino_form form;
    size_t m_point;
    size_t channels; /* of the panel, to be stored */
    size_t channel;  /* that the panel starts at */
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

/* ---- the transforms ---- */

/*
 * In one dimension, on vectors:
 *
 * F(m,r) for m outputs of a filter of r taps from m + r - 1 = 2p + 2 inputs, with the points 0,
 * +-q_1 .. +-q_p and infinity, by the construction of Toom and Cook: y = A^T ((G g) * (B^T d)).
 * With
 *
 *     Q_i(x) = prod_{k != i} (x - q_k^2),  R(x) = prod_k (x - q_k^2)   (in x = the point squared)
 *
 *     B^T:  row 0: sum_k R_k d_2k,   rows +-q_i: sum_k Q_ik d_2k+2 +- q_i sum_k Q_ik d_2k+1,
 *           last: sum_k R_k d_2k+1
 *     G:    g_0 / R_0,   (sum_j (+-q_i)^j g_j) / (2 q_i^2 Q_i(q_i^2)),   g_(r-1)
 *     A^T:  y_j = [j = 0] u_0 + sum_i q_i^j (u_+i + (-1)^j u_-i) + [j = m - 1] u_last
 *
 * Points: 1 for F(2,3); 1/2, 2 for F(4,3) and F(2,5); 1/2, 1, 2 for F(6,3) and F(4,5). Among all
 * multiples of 1/8, these have the smallest sum |A^T| |G| |B^T| |A| for r = 3, the growth of
 * rounding errors (in two directions at most 7, 54 and 509 times a direct sum's, 35 for F(2,5); 256
 * for F(4,3) with the usual points 1, 2). 3/8, 3/4, 5/4, 5/2 for F(4,7): 44 times in its one
 * direction, and the smallest mean error among points of numerators 1, 3 and 5. All have few bits,
 * so that no coefficient of A and B is rounded.
 * Sources: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015; B.
 * Barabasz, A. Anderson, K. Soodhalter, D. Gregg, "Error Analysis and Improving the Accuracy of
 * Winograd Convolution for Deep Neural Networks", ACM TOMS 46(4), 2020, on the choice of points.
 *
 * @p and @r are constants after inlining, so only vector arithmetic remains.
 */

#define KRN_WINO_PAIRS_MAX 4u
#define KRN_WINO_SPAN_MAX (2u * KRN_WINO_PAIRS_MAX + 2u)
#define KRN_WINO_SIZE_MAX 6u /* results on a tile's side */
#define KRN_WINO_SIDE_MAX 7u /* taps on a filter's side */

/* q_i of 2p + 2 points */
KRN_INLINE float krn_wino_q(const size_t p, const size_t i)
{
    static const float q[][KRN_WINO_PAIRS_MAX] = {
        {1.0f}, {0.5f, 2.0f}, {0.5f, 1.0f, 2.0f}, {0.375f, 0.75f, 1.25f, 2.5f}};

    return q[p - 1][i];
}

/* coefficient of x^k in the product of (x - q_n^2) over all n but @but (p: over all) */
KRN_INLINE float krn_wino_poly(const size_t p, const size_t but, const size_t k)
{
    float c[KRN_WINO_PAIRS_MAX + 2] = {1.0f}; /* c[0] is that of the highest power */
    size_t degree = 0;

#pragma GCC unroll 10
    for (size_t n = 0; n < p; n++) {
        if (n != but) {
            float q = krn_wino_q(p, n);

            degree++;
#pragma GCC unroll 10
            for (size_t d = KRN_WINO_PAIRS_MAX + 1; d > 0; d--) {
                c[d] -= q * q * c[d - 1];
            }
        }
    }
    return c[degree - k];
}

/* B^T d in place: 2p + 2 vectors */
KRN_INLINE void krn_wino_b(const size_t p, vf *d)
{
    vf r[KRN_WINO_SPAN_MAX];

    r[0] = d[2 * p];
    r[2 * p + 1] = d[2 * p + 1];
#pragma GCC unroll 10
    for (size_t k = 0; k < p; k++) {
        r[0] += krn_wino_poly(p, p, k) * d[2 * k];
        r[2 * p + 1] += krn_wino_poly(p, p, k) * d[2 * k + 1];
    }
#pragma GCC unroll 10
    for (size_t i = 0; i < p; i++) {
        vf even = d[2 * p], odd = d[2 * p - 1];

#pragma GCC unroll 10
        for (size_t k = 0; k + 1 < p; k++) {
            even += krn_wino_poly(p, i, k) * d[2 * k + 2];
            odd += krn_wino_poly(p, i, k) * d[2 * k + 1];
        }
        r[1 + 2 * i] = even + krn_wino_q(p, i) * odd;
        r[2 + 2 * i] = even - krn_wino_q(p, i) * odd;
    }
#pragma GCC unroll 10
    for (size_t i = 0; i < 2 * p + 2; i++) {
        d[i] = r[i];
    }
}

/* G g: r vectors to 2p + 2 */
KRN_INLINE void krn_wino_g(const size_t p, const size_t r, const vf *g, vf *u)
{
    u[0] = g[0] * (1.0f / krn_wino_poly(p, p, 0));
    u[2 * p + 1] = g[r - 1];
#pragma GCC unroll 10
    for (size_t i = 0; i < p; i++) {
        float q = krn_wino_q(p, i), n = 0, power = 2.0f * q * q;
        vf even, odd;

#pragma GCC unroll 10
        for (size_t k = 0; k < p; k++) {
            n += power * krn_wino_poly(p, i, k);
            power *= q * q;
        }
        even = g[0] * (1.0f / n) + g[2] * (q * q / n);
        odd = g[1] * (q / n);
        power = q * q;
#pragma GCC unroll 10
        for (size_t j = 3; j + 1 < r; j += 2) {
            odd += g[j] * (power * q / n);
            power *= q * q;
            even += g[j + 1] * (power / n);
        }
        u[1 + 2 * i] = even + odd;
        u[2 + 2 * i] = even - odd;
    }
}

/* A^T u: 2p + 2 vectors to m */
KRN_INLINE void krn_wino_a(const size_t p, const size_t r, const vf *u, vf *y)
{
    const size_t m = krn_wino_size(p, r);
    vf even[KRN_WINO_PAIRS_MAX], odd[KRN_WINO_PAIRS_MAX];
    float power[KRN_WINO_PAIRS_MAX];

#pragma GCC unroll 10
    for (size_t i = 0; i < p; i++) {
        even[i] = u[1 + 2 * i] + u[2 + 2 * i];
        odd[i] = u[1 + 2 * i] - u[2 + 2 * i];
        power[i] = 1.0f;
    }
#pragma GCC unroll 10
    for (size_t j = 0; j < m; j++) {
        vf sum = (j % 2 ? odd[0] : even[0]) * power[0];

#pragma GCC unroll 10
        for (size_t i = 1; i < p; i++) {
            sum += (j % 2 ? odd[i] : even[i]) * power[i];
        }
        y[j] = j == 0 ? sum + u[0] : j == m - 1 ? sum + u[2 * p + 1] : sum;
#pragma GCC unroll 10
        for (size_t i = 0; i < p; i++) {
            power[i] *= krn_wino_q(p, i);
        }
    }
}
