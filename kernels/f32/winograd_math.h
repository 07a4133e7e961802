/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/winograd_math.h - the one-dimensional transforms of Winograd's minimal filtering, on
 * vectors
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
 * Points: 1 for F(2,3); 1/2, 2 for F(4,3) and F(2,5); 1/2, 1, 2 for F(6,3). Among all multiples of
 * 1/8, these have the smallest sum |A^T| |G| |B^T| |A| for r = 3, the growth of rounding errors (at
 * most 7, 54 and 509 times a direct sum's, 35 for F(2,5); 256 for F(4,3) with the usual points 1,
 * 2). They are powers of two, so that no coefficient of A and B is rounded.
 * Sources: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015; B.
 * Barabasz, A. Anderson, K. Soodhalter, D. Gregg, "Error Analysis and Improving the Accuracy of
 * Winograd Convolution for Deep Neural Networks", ACM TOMS 46(4), 2020, on the choice of points.
 *
 * @p and @r are constants after inlining, so only vector arithmetic remains.
 */
#pragma once

#include "kernels/common/vec.h"

#define KRN_WINO_PAIRS_MAX 3u
#define KRN_WINO_SPAN_MAX (2u * KRN_WINO_PAIRS_MAX + 2u)
#define KRN_WINO_SIZE_MAX 6u /* results on a tile's side */
#define KRN_WINO_SIDE_MAX 5u /* taps on a filter's side */

/* m of F(m,r) */
KRN_INLINE size_t krn_wino_size(const size_t p, const size_t r)
{
    return 2 * p + 3 - r;
}

/* q_i of 2p + 2 points */
KRN_INLINE float krn_wino_q(const size_t p, const size_t i)
{
    return p == 1 || (p == 3 && i == 1) ? 1.0f : i == 0 ? 0.5f : 2.0f;
}

/* coefficient of x^k in the product of (x - q_n^2) over all n but @but (p: over all) */
KRN_INLINE float krn_wino_poly(const size_t p, const size_t but, const size_t k)
{
    float c[KRN_WINO_PAIRS_MAX + 2] = {1.0f, 0, 0, 0, 0}; /* c[0] is that of the highest power */
    size_t degree = 0;

#pragma GCC unroll 8
    for (size_t n = 0; n < p; n++) {
        if (n != but) {
            float q = krn_wino_q(p, n);

            degree++;
#pragma GCC unroll 8
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
#pragma GCC unroll 8
    for (size_t k = 0; k < p; k++) {
        r[0] += krn_wino_poly(p, p, k) * d[2 * k];
        r[2 * p + 1] += krn_wino_poly(p, p, k) * d[2 * k + 1];
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < p; i++) {
        vf even = d[2 * p], odd = d[2 * p - 1];

#pragma GCC unroll 8
        for (size_t k = 0; k + 1 < p; k++) {
            even += krn_wino_poly(p, i, k) * d[2 * k + 2];
            odd += krn_wino_poly(p, i, k) * d[2 * k + 1];
        }
        r[1 + 2 * i] = even + krn_wino_q(p, i) * odd;
        r[2 + 2 * i] = even - krn_wino_q(p, i) * odd;
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < 2 * p + 2; i++) {
        d[i] = r[i];
    }
}

/* G g: r vectors to 2p + 2 */
KRN_INLINE void krn_wino_g(const size_t p, const size_t r, const vf *g, vf *u)
{
    u[0] = g[0] * (1.0f / krn_wino_poly(p, p, 0));
    u[2 * p + 1] = g[r - 1];
#pragma GCC unroll 8
    for (size_t i = 0; i < p; i++) {
        float q = krn_wino_q(p, i), n = 0, power = 2.0f * q * q;
        vf even, odd;

#pragma GCC unroll 8
        for (size_t k = 0; k < p; k++) {
            n += power * krn_wino_poly(p, i, k);
            power *= q * q;
        }
        even = g[0] * (1.0f / n) + g[2] * (q * q / n);
        odd = g[1] * (q / n);
        power = q * q;
#pragma GCC unroll 2
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

#pragma GCC unroll 8
    for (size_t i = 0; i < p; i++) {
        even[i] = u[1 + 2 * i] + u[2 + 2 * i];
        odd[i] = u[1 + 2 * i] - u[2 + 2 * i];
        power[i] = 1.0f;
    }
#pragma GCC unroll 8
    for (size_t j = 0; j < m; j++) {
        vf sum = (j % 2 ? odd[0] : even[0]) * power[0];

#pragma GCC unroll 8
        for (size_t i = 1; i < p; i++) {
            sum += (j % 2 ? odd[i] : even[i]) * power[i];
        }
        y[j] = j == 0 ? sum + u[0] : j == m - 1 ? sum + u[2 * p + 1] : sum;
#pragma GCC unroll 8
        for (size_t i = 0; i < p; i++) {
            power[i] *= krn_wino_q(p, i);
        }
    }
}
