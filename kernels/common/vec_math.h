/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/vec.h - float vectors of the width that this source file is compiled for
 *
 * A source file that includes this is compiled once per instruction set (kernels/meson.build): the
 * symbols that it exports carry the name of the set, KRN_ISA_FN(name) -> name__avx512. Most of it
 * is GCC's vector arithmetic, so that NEON and anything else works without a line of its own;
 * intrinsics stand only where the compiler does not find the instruction by itself. Partial loads
 * and stores touch the elements asked for and no byte beyond.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#ifndef KRN_ISA
#define KRN_ISA vec
#endif
#define KRN_PASTE_(a, b) a##__##b
#define KRN_PASTE(a, b) KRN_PASTE_(a, b)
#define KRN_ISA_FN(name) KRN_PASTE(name, KRN_ISA)

#define KRN_TEXT_(x) #x
#define KRN_TEXT(x) KRN_TEXT_(x)
#define KRN_ISA_TEXT KRN_TEXT(KRN_ISA) /* for variant names */

#if defined(__AVX512F__)
#define KRN_VL 16
#define KRN_ISA_NEEDS (KRN_CPU_AVX2 | KRN_CPU_AVX512)
#elif defined(__AVX2__)
#define KRN_VL 8
#define KRN_ISA_NEEDS KRN_CPU_AVX2
#else
#define KRN_VL 4
#define KRN_ISA_NEEDS 0
#endif

typedef float vf __attribute__((vector_size(4 * KRN_VL)));
typedef int32_t vi __attribute__((vector_size(4 * KRN_VL)));
typedef float vf_mem __attribute__((vector_size(4 * KRN_VL), aligned(4), may_alias));

#define KRN_INLINE static inline __attribute__((always_inline))

KRN_INLINE vf vf_set(float x)
{
    return x - (vf){0}; /* x - 0 is x for every x, so this is a plain broadcast */
}
KRN_INLINE vf vf_load(const float *p)
{
    return *(const vf_mem *)p;
}
KRN_INLINE void vf_store(float *p, vf x)
{
    *(vf_mem *)p = x;
}

#if KRN_VL == 16
KRN_INLINE vf vf_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
KRN_INLINE void vf_store_n(float *p, vf x, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), x);
}
#elif KRN_VL == 8
KRN_INLINE __m256i vf_mask_n(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
KRN_INLINE vf vf_load_n(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, vf_mask_n(n));
}
/* in pieces: AMD's masked stores take many times as long as plain ones */
KRN_INLINE void vf_store_n(float *p, vf x, size_t n)
{
    __m128 piece = _mm256_castps256_ps128(x);

    if (n >= KRN_VL) {
        _mm256_storeu_ps(p, x);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(p, piece);
        piece = _mm256_extractf128_ps(x, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, piece);
        piece = _mm_movehl_ps(piece, piece);
        p += 2;
    }
    if (n & 1) {
        _mm_store_ss(p, piece);
    }
}
#else
KRN_INLINE vf vf_load_n(const float *p, size_t n)
{
    vf x = {0};

    for (size_t i = 0; i < n; i++) {
        x[i] = p[i];
    }
    return x;
}
KRN_INLINE void vf_store_n(float *p, vf x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = x[i];
    }
}
#endif

KRN_INLINE vf vf_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* max and min give the second operand where one is not a number, as the x86 instructions do: with
 * the constant first, a NaN in the data stays one. */
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

KRN_INLINE vf vf_abs(vf x)
{
    return (vf)((vi)x & 0x7fffffff);
}

/* 2^n for n in [-126, 127] */
KRN_INLINE vf vf_pow2(vi n)
{
    return (vf)((n + 127) << 23);
}

/* Splits x = n ln 2 + r, |r| <= ln 2 / 2, and gives e^r - 1 = r + r^2 q(r) by the polynomial of
 * Cephes' expf (relative error of e^r below 2e-8). x must be within +-126 ln 2 or so. */
KRN_INLINE vf vf_expm1_reduced(vf x, vi *ret_n)
{
    const vf magic = vf_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    vf t = x * 1.44269504088896341f + magic;
    vf nf = t - magic;
    vf r = (x - nf * 0.693359375f) - nf * -2.12194440e-4f;
    vf q = vf_set(1.9875691500e-4f);

    *ret_n = (vi)t - (vi)magic;
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
    vi n, half;
    vf p;

    x = vf_min(vf_set(89.0f), vf_max(vf_set(-104.0f), x));
    p = vf_expm1_reduced(x, &n) + 1.0f;
    half = n >> 1; /* in two steps, so that neither power leaves the range */
    return p * vf_pow2(half) * vf_pow2(n - half);
}

/* e^x - 1 for x <= 0, within 3 ulp, without the cancellation near 0 */
KRN_INLINE vf vf_expm1_neg(vf x)
{
    vi n;
    vf m, s;

    x = vf_max(vf_set(-80.0f), x);
    m = vf_expm1_reduced(x, &n);
    s = vf_pow2(n);
    return s * m + (s - 1.0f);
}

/* ln(1 + t) for t in [0, 1], within 4 ulp. The polynomial is that of Cephes' logf; the division
 * repairs what 1 + t lost by rounding. */
KRN_INLINE vf vf_log1p_unit(vf t)
{
    vf u = 1.0f + t, m, z, p, y;
    vi high = u > 1.41421356f;

    m = vf_select(high, u * 0.5f, u) - 1.0f;
    z = m * m;
    p = vf_set(7.0376836292e-2f);
    p = p * m + -1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m + -1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m + -1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m + -2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    y = p * (m * z) - 0.5f * z + m;
    y = y + vf_select(high, vf_set(0.693147181f), vf_set(0.0f));
    return vf_select(u == 1.0f, t, y * (t / (u - 1.0f)));
}

KRN_INLINE vf vf_sigmoid(vf x)
{
    return 1.0f / (1.0f + vf_exp(-x));
}

/* x / (1 + e^-x) within 5 ulp, or 1e-36 where that is 0. The power of two is added to the exponent
 * of e^-x, which stays a number up to 88 so; what is larger makes it infinite. */
KRN_INLINE vf vf_silu(vf x)
{
    vf above = (-88.0f - x) * 1e38f, e;
    vi n;

    e = vf_expm1_reduced(vf_min(vf_set(88.0f), vf_max(vf_set(-87.0f), -x)), &n) + 1.0f;
    e = vf_max(above, (vf)((vi)e + (n << 23)));
    return x / (1.0f + e);
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

KRN_INLINE float vf_sum(vf x)
{
    float s = 0;

    for (size_t i = 0; i < KRN_VL; i++) {
        s += x[i];
    }
    return s;
}
