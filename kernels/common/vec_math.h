/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/vec_math.h - functions of vectors of floats: exp, log, tanh and functions built on
 * them
 *
 * Each function states its error; ulp is the distance to the next float. NaN gives NaN. The
 * polynomials come from the Cephes functions named (S. Moshier, single precision). All functions
 * are inlined and pure; any thread.
 */
#pragma once

#include "kernels/common/vec_arith.h"

#define VF_ONE_BITS (127 << 23) /* of 1.0f */

/* Splits x = n ln 2 + r, |r| <= ln 2 / 2, and returns e^r - 1 = r + r^2 q(r) by the polynomial of
 * Cephes' expf (relative error of e^r below 2e-8). x must be within +-150 ln 2 or so.
 * @ret_power: n << 23, which multiplies a float by 2^n when it is added to its bits */
KRN_INLINE vf vf_expm1_reduced(vf x, vi *ret_power)
{
    const vf magic = vf_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    vf t = x * 1.44269504088896341f + magic;
    vf nf = t - magic;
    vf r = (x - nf * 0.693359375f) - nf * -2.12194440e-4f;
    vf q = vf_set(1.9875691500e-4f);

    *ret_power = (vi)t << 23; /* shifts all of magic out */
    q = q * r + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    return q * (r * r) + r;
}

/* e^x within 2 ulp (denormal results: one unit of the smallest), 0 and infinity at the ends */
KRN_INLINE vf vf_exp(vf x)
{
    vi power, half;
    vf p;

    x = vf_min(vf_set(89.0f), vf_max(vf_set(-104.0f), x));
    p = vf_expm1_reduced(x, &power) + 1.0f;
    /* in two steps, so that neither power leaves the range */
    half = power >> 1 & ~((1 << 23) - 1);
    return p * (vf)(half + VF_ONE_BITS) * (vf)(power - half + VF_ONE_BITS);
}

/* e^x for x <= 0 within 2 ulp, or 1e-38 where that is less: a power of two and a clamp cheaper */
KRN_INLINE vf vf_exp_neg(vf x)
{
    vf p;
    vi power;

    p = vf_expm1_reduced(vf_max(vf_set(-87.0f), x), &power) + 1.0f;
    return (vf)((vi)p + power);
}

/* e^x - 1 for x <= 0, within 3 ulp, without the cancellation near 0 */
KRN_INLINE vf vf_expm1_neg(vf x)
{
    vi power;
    vf m, s;

    x = vf_max(vf_set(-80.0f), x);
    m = vf_expm1_reduced(x, &power);
    s = (vf)(power + VF_ONE_BITS);
    return s * m + (s - 1.0f);
}

/* ln(1 + t) for t in [0, 1], within 4 ulp. The polynomial is that of Cephes' logf; the division
 * corrects the rounding of 1 + t. */
KRN_INLINE vf vf_log1p_unit(vf t)
{
    vf u = 1.0f + t, m, z, p, y;
    vi high = u > 1.41421356f;

    m = vf_select(high, u * 0.5f, u) - 1.0f;
    z = m * m;
    p = vf_log_poly(m);
    y = p * (m * z) - 0.5f * z + m;
    y = y + vf_select(high, vf_set(0.693147181f), vf_set(0.0f));
    return vf_select(u == 1.0f, t, y * (t / (u - 1.0f)));
}

KRN_INLINE vf vf_sigmoid(vf x)
{
    return 1.0f / (1.0f + vf_exp(-x));
}

/* x / (1 + e^-t) within 5 ulp, or 1e-36 where that is 0. The power of two is added to the exponent
 * of e^-t, which so stays finite for -t up to 88; beyond, it becomes infinite. */
KRN_INLINE vf vf_gate(vf x, vf t)
{
    vf above = (-88.0f - t) * 1e38f, e;
    vi power;

    e = vf_expm1_reduced(vf_min(vf_set(88.0f), vf_max(vf_set(-87.0f), -t)), &power) + 1.0f;
    e = vf_max(above, (vf)((vi)e + power));
    return x / (1.0f + e);
}

/* x / (1 + e^-x), like vf_gate() */
KRN_INLINE vf vf_silu(vf x)
{
    return vf_gate(x, x);
}

/* within 4 ulp: Cephes' tanhf */
KRN_INLINE vf vf_tanh(vf x)
{
    vf a = vf_abs(x), z = x * x, p, big;

    p = vf_set(-5.70498872745e-3f);
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    p = p * (z * x) + x;
    big = 1.0f - 2.0f / (vf_exp(a + a) + 1.0f);
    big = (vf)((vi)big | ((vi)x & INT32_MIN));
    return vf_select(a < 0.625f, p, big);
}

/* x tanh(ln(1 + e^x)) = x n / (n + 2) with n = e^2x + 2 e^x, within 6 ulp, or 1e-36 where that is
 * 0. From 20 on it is x. */
KRN_INLINE vf vf_mish(vf x)
{
    vf e = vf_exp(vf_min(vf_set(20.0f), x)), n = e * (e + 2.0f);

    return x * (n / (n + 2.0f));
}

/* erfc(|x| / sqrt(2)) / 2, the tail of the normal distribution: e^(-x^2 / 2) t p(t) with
 * t = 1 / (1 + c |x|), p fitted to a relative error of 2e-8. Rounding adds (6 + x^2) ulp. Where it
 * is less than 1e-38, up to that. */
KRN_INLINE vf vf_normal_tail(vf x)
{
    vf t = 1.0f / (1.0f + 0.212132034f * vf_abs(x)), p;

    p = vf_set(-0.129554018f);
    p = p * t + 0.485726655f;
    p = p * t + -0.512646139f;
    p = p * t + 0.548183382f;
    p = p * t + -0.0950068757f;
    p = p * t + 0.215096936f;
    p = p * t + 0.148289278f;
    p = p * t + 0.170723319f;
    p = p * t + 0.169187441f;
    return 0.5f * (p * t) * vf_exp_neg(-0.5f * x * x);
}

/* x / 2 (1 + erf(x / sqrt(2))), within (8 + x^2) ulp, or 1e-36 where that is 0 */
KRN_INLINE vf vf_gelu(vf x)
{
    vf tail = vf_normal_tail(x);

    return x * vf_select(x > 0.0f, 1.0f - tail, tail);
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), within (6 + x^2) ulp, or 1e-36 where that is
 * 0 */
KRN_INLINE vf vf_gelu_tanh(vf x)
{
    return vf_gate(x, x * (1.59576912f + 0.0713548163f * (x * x)));
}

/* within 4 ulp: for small x the Maclaurin series, else by the tail */
KRN_INLINE vf vf_erf(vf x)
{
    vf z = x * x, p, big;

    p = vf_set(-7.57575758e-4f);
    p = p * z + 4.62962963e-3f;
    p = p * z + -2.38095238e-2f;
    p = p * z + 0.1f;
    p = p * z + -0.333333333f;
    p = 1.12837917f * (p * (z * x) + x);
    big = 1.0f - 2.0f * vf_normal_tail(1.41421356f * x);
    big = (vf)((vi)big | ((vi)x & INT32_MIN));
    return vf_select(vf_abs(x) < 0.5f, p, big);
}
