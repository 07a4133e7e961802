/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/vec_arith.h - vector arithmetic that C operators lack: select, max and min, sqrt,
 * sums of lanes
 *
 * Every result is exact or rounded once. All functions are inlined and pure; any thread.
 */
#pragma once

#include "kernels/common/vec.h"

/* lane l gets x's lane order[l]; order must be a constant after inlining */
KRN_INLINE vf vf_pick(vf x, vi order)
{
#ifdef __clang__
    vf y;

    for (size_t l = 0; l < KRN_VL; l++) {
        y[l] = x[order[l]];
    }
    return y;
#else
    return __builtin_shuffle(x, order);
#endif
}

/* yes where the mask has all bits set, no where it has none */
KRN_INLINE vf vf_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* max and min return the second operand if either is NaN, as the x86 instructions do. So pass a
 * constant first: a NaN in the data then stays NaN. */
#if KRN_VL == 16
KRN_INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
KRN_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
KRN_INLINE vf vf_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}
#elif KRN_VL == 8
KRN_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
KRN_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
KRN_INLINE vf vf_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}
#else
#if defined(__SSE2__)
KRN_INLINE vf vf_max(vf a, vf b)
{
    return _mm_max_ps(a, b);
}
KRN_INLINE vf vf_min(vf a, vf b)
{
    return _mm_min_ps(a, b);
}
#else
KRN_INLINE vf vf_max(vf a, vf b)
{
    return vf_select(a > b, a, b);
}
KRN_INLINE vf vf_min(vf a, vf b)
{
    return vf_select(a < b, a, b);
}
#endif
KRN_INLINE vf vf_sqrt(vf x)
{
    vf y;

    for (size_t i = 0; i < KRN_VL; i++) {
        y[i] = __builtin_sqrtf(x[i]);
    }
    return y;
}
#endif

/* max and min where a NaN on either side gives NaN */
#if KRN_VL == 16
KRN_INLINE vf vf_nan_max(vf a, vf b)
{
    return _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}
KRN_INLINE vf vf_nan_min(vf a, vf b)
{
    return _mm512_mask_min_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}
#else
KRN_INLINE vf vf_nan_max(vf a, vf b)
{
    return (vf)((vi)vf_max(a, b) | (a != a));
}
KRN_INLINE vf vf_nan_min(vf a, vf b)
{
    return (vf)((vi)vf_min(a, b) | (a != a));
}
#endif

/* that of Cephes' logf, for ln(1 + m) = m - m^2 / 2 + m^3 p(m) */
KRN_INLINE vf vf_log_poly(vf m)
{
    vf p = vf_set(7.0376836292e-2f);

    p = p * m + -1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m + -1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m + -1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m + -2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    return p;
}

KRN_INLINE vf vf_abs(vf x)
{
    return (vf)((vi)x & 0x7fffffff);
}

KRN_INLINE float vf_sum(vf x)
{
    float s = 0;

    for (size_t i = 0; i < KRN_VL; i++) {
        s += x[i];
    }
    return s;
}
