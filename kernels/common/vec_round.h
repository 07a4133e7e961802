/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/vec_round.h - functions of vectors of floats that only element operators need:
 * rounding, ln, sine and cosine
 *
 * Each function states its error; ulp is the distance to the next float. NaN gives NaN. The
 * polynomials come from the Cephes functions named (S. Moshier, single precision). All functions
 * are pure; any thread.
 */
#pragma once

#include <math.h>

#include "kernels/common/vec_arith.h"

/* to the nearest integer, ties to even; exact. Floats of 2^23 and more are integers. */
KRN_INLINE vf vf_round(vf x)
{
    vi sign = (vi)x & INT32_MIN;
    vf big = (vf)((vi)vf_set(8388608.0f) | sign);
    vf y = (x + big) - big;

    return vf_select(vf_abs(x) < 8388608.0f, (vf)((vi)y | sign), x);
}

KRN_INLINE vf vf_floor(vf x)
{
    vf y = vf_round(x);

    return y - vf_select(y > x, vf_set(1.0f), vf_set(0.0f));
}

KRN_INLINE vf vf_ceil(vf x)
{
    vf y = vf_round(x);

    y = y + vf_select(y < x, vf_set(1.0f), vf_set(0.0f));
    return (vf)((vi)y | ((vi)x & INT32_MIN)); /* -0.5 gives -0 */
}

/* -1, 0 or 1; keeps the sign of 0 */
KRN_INLINE vf vf_sign(vf x)
{
    return vf_select(x > 0.0f, vf_set(1.0f), vf_select(x < 0.0f, vf_set(-1.0f), x));
}

/* ln x within 2 ulp, for every x: Cephes' logf */
KRN_INLINE vf vf_log(vf x)
{
    vi small = x < 1.17549435e-38f; /* denormals are scaled first */
    vf v = vf_select(small, x * 8388608.0f, x), m, e, z, p, y;
    vi bits = (vi)v, shift = (bits >> 23) - 126, low;

    m = (vf)((bits & 0x007fffff) | 0x3f000000); /* in [0.5, 1) */
    low = m < 0.707106781f;
    e = __builtin_convertvector(shift, vf) - vf_select(small, vf_set(23.0f), vf_set(0.0f));
    e = e - vf_select(low, vf_set(1.0f), vf_set(0.0f));
    m = m + vf_select(low, m, vf_set(0.0f)) - 1.0f;
    z = m * m;
    p = vf_log_poly(m);
    y = p * (m * z) + e * -2.12194440e-4f - 0.5f * z;
    y = (m + y) + e * 0.693359375f;
    y = vf_select(x < vf_set(INFINITY), y, x); /* infinity and NaN */
    y = vf_select(x == 0.0f, vf_set(-INFINITY), y);
    return vf_select(x < 0.0f, vf_set(NAN), y);
}

/* libm's, for the lanes that leave the range of the reduction, which models hardly have */
static __attribute__((noinline, unused)) vf vf_sin_far(vf x, bool cosine)
{
    for (size_t i = 0; i < KRN_VL; i++) {
        x[i] = cosine ? cosf(x[i]) : sinf(x[i]);
    }
    return x;
}

/* sin x, or cos x if @cosine, within 1.2e-7: Cephes' sinf. x minus a multiple of pi / 2 is taken
 * in three exact steps; the polynomial depends on the quadrant. */
KRN_INLINE vf vf_sin_cos(vf x, bool cosine)
{
    vi near = vf_abs(x) < 8192.0f, n, odd, minus;
    vf q = vf_round(vf_select(near, x, vf_set(0.0f)) * 0.636619772f), r, z, s, c, y;
    int32_t all = -1;

    r = ((x - q * 1.5703125f) - q * 4.837512969970703125e-4f) - q * 7.549789954891879e-8f;
    n = __builtin_convertvector(q, vi) + (cosine ? 1 : 0);
    odd = -(n & 1);
    minus = (n & 2) << 30;
    z = r * r;
    s = vf_set(-1.9515295891e-4f);
    s = s * z + 8.3321608736e-3f;
    s = s * z + -1.6666654611e-1f;
    s = s * (z * r) + r;
    c = vf_set(2.443315711809948e-5f);
    c = c * z + -1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * (z * z) - 0.5f * z + 1.0f;
    y = (vf)((vi)vf_select(odd, c, s) ^ minus);
    for (size_t i = 0; i < KRN_VL; i++) {
        all &= near[i];
    }
    return all ? y : vf_select(near, y, vf_sin_far(x, cosine));
}
