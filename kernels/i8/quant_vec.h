/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_vec.h - vectors of 32-bit and 16-bit integers, loaded from bytes and stored to
 * bytes, and sums of their products
 *
 * A pair of vectors holds 2 KRN_VL channels in the order in which narrowing within 128-bit blocks
 * stores them: lane l of vector v is channel vq_channel(v, l). A single vector holds KRN_VL
 * channels in order. Rounding is in quant_epilogue.h. Any alignment, any thread.
 *
 * A group is four bytes of neighbouring factors. One instruction multiplies them and adds the
 * products into a lane of 32 bits:
 *
 *  - without an instruction for dot products, two factors of 16 bits (x - x_zero and w - w_zero, 9
 *    bits each): the sum of two products is exact, and nothing can saturate;
 *  - with one, four bytes: u8 by i8 (VNNI) or i8 by i8 (Arm). An input of the other signedness is
 * shifted by 128. The zero point adds a constant, which packing adds to the bias.
 *
 * All functions are inlined and exact; sums wrap at 32 bits.
 */
#pragma once

#include <stdbool.h>

#include "kernels/common/vec.h"

typedef int16_t vh __attribute__((vector_size(4 * KRN_VL))); /* 2 KRN_VL lanes */
typedef uint8_t vq1 __attribute__((vector_size(KRN_VL)));    /* KRN_VL bytes */
typedef int8_t vq1s __attribute__((vector_size(KRN_VL)));
typedef uint8_t vq2 __attribute__((vector_size(2 * KRN_VL))); /* 2 KRN_VL bytes */
typedef int8_t vq2s __attribute__((vector_size(2 * KRN_VL)));
typedef int32_t vi_mem __attribute__((vector_size(4 * KRN_VL), aligned(4), may_alias));

/* channel of lane @l of vector @v in a pair of vectors */
static inline size_t vq_channel(size_t v, size_t l)
{
    return 8 * (l / 4) + 4 * v + l % 4;
}

KRN_INLINE vi vi_set(int32_t x)
{
    return x - (vi){0};
}
KRN_INLINE vi vi_load(const int32_t *p)
{
    return *(const vi_mem *)p;
}
KRN_INLINE vf vi_to_vf(vi x)
{
    return __builtin_convertvector(x, vf);
}

/* halves of pairs side by side: (a0, b0, a1, b1 ...) in blocks of 128 bits */
#if KRN_VL == 16
KRN_INLINE vi vh_zip_low(vh a, vh b)
{
    return (vi)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
}
KRN_INLINE vi vh_zip_high(vh a, vh b)
{
    return (vi)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
}
#elif KRN_VL == 8
KRN_INLINE vi vh_zip_low(vh a, vh b)
{
    return (vi)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
}
KRN_INLINE vi vh_zip_high(vh a, vh b)
{
    return (vi)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
}
#else
KRN_INLINE vi vh_zip_low(vh a, vh b)
{
    return (vi)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
KRN_INLINE vi vh_zip_high(vh a, vh b)
{
    return (vi)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
#endif

/* 2 KRN_VL bytes as 16-bit lanes */
KRN_INLINE vh vh_load(const uint8_t *p, bool is_signed)
{
#if KRN_VL == 16
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);

    return is_signed ? (vh)_mm512_cvtepi8_epi16(x) : (vh)_mm512_cvtepu8_epi16(x);
#elif KRN_VL == 8
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);

    return is_signed ? (vh)_mm256_cvtepi8_epi16(x) : (vh)_mm256_cvtepu8_epi16(x);
#else
    vq2 x;

    memcpy(&x, p, sizeof(x));
    return is_signed ? __builtin_convertvector((vq2s)x, vh) : __builtin_convertvector(x, vh);
#endif
}
/* the same as two vectors of channels vq_channel() */
KRN_INLINE void vq_load2(const uint8_t *p, bool is_signed, vi *low, vi *high)
{
    vh x = vh_load(p, is_signed);

    *low = vh_zip_low(x, x) >> 16;
    *high = vh_zip_high(x, x) >> 16;
}
KRN_INLINE vi vq_load1(const uint8_t *p, bool is_signed)
{
#if KRN_VL == 16
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);

    return is_signed ? (vi)_mm512_cvtepi8_epi32(x) : (vi)_mm512_cvtepu8_epi32(x);
#elif KRN_VL == 8
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);

    return is_signed ? (vi)_mm256_cvtepi8_epi32(x) : (vi)_mm256_cvtepu8_epi32(x);
#else
    vq1 x;

    memcpy(&x, p, sizeof(x));
    return is_signed ? __builtin_convertvector((vq1s)x, vi) : __builtin_convertvector(x, vi);
#endif
}

/* the low bytes of both vectors, in order of channels */
KRN_INLINE void vq_store2(uint8_t *p, vi low, vi high)
{
#if KRN_VL == 16
    __m512i h = _mm512_packus_epi32((__m512i)(low & 0xff), (__m512i)(high & 0xff));

    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi16_epi8(h));
#elif KRN_VL == 8
    __m256i h = _mm256_packus_epi32((__m256i)(low & 0xff), (__m256i)(high & 0xff));

    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_packus_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
#else
    vq1 a = __builtin_convertvector(low, vq1), b = __builtin_convertvector(high, vq1);

    memcpy(p, &a, sizeof(a));
    memcpy(p + sizeof(a), &b, sizeof(b));
#endif
}
KRN_INLINE void vq_store1(uint8_t *p, vi x)
{
#if KRN_VL == 16
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)x));
#elif KRN_VL == 8
    __m256i h = _mm256_packus_epi32((__m256i)(x & 0xff), (__m256i)(x & 0xff));
    __m128i b = _mm_packus_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));

    /* four bytes of the first block, twice, then of the second */
    b = _mm_shuffle_epi32(b, 0x08);
    memcpy(p, &b, 8);
#else
    vq1 a = __builtin_convertvector(x, vq1);

    memcpy(p, &a, sizeof(a));
#endif
}

/* ---- sums of products ---- */

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define KRN_QDOT 1
#define KRN_QDOT_SIGNED 0 /* the input's bytes are unsigned */
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#define KRN_QDOT 1
#define KRN_QDOT_SIGNED 1
#elif defined(KRN_QDOT_EMULATED) /* for tests: emulates VNNI on any CPU */
#define KRN_QDOT 1
#define KRN_QDOT_SIGNED 0
#else
#define KRN_QDOT 0
#define KRN_QDOT_SIGNED 0
#endif

#if defined(__AVX512VNNI__)
#define KRN_QUANT_NEEDS (KRN_CPU_AVX2 | KRN_CPU_AVX512 | KRN_CPU_AVX512VNNI)
#elif defined(__AVXVNNI__)
#define KRN_QUANT_NEEDS (KRN_CPU_AVX2 | KRN_CPU_AVXVNNI)
#elif defined(__ARM_FEATURE_DOTPROD)
#define KRN_QUANT_NEEDS (KRN_CPU_NEON | KRN_CPU_DOTPROD)
#else
#define KRN_QUANT_NEEDS KRN_ISA_NEEDS
#endif

#if KRN_QDOT
typedef uint8_t krn_qel; /* an element of a group */
#else
typedef int16_t krn_qel;
#endif
#define KRN_QGROUP (4u / sizeof(krn_qel))

#if KRN_QDOT
/* added to an input to give its bytes the signedness of the dot product */
static inline int32_t krn_qdot_shift(bool is_signed)
{
    return KRN_QDOT_SIGNED ? (is_signed ? 0 : -128) : (is_signed ? 128 : 0);
}
#endif

/* the four bytes at @p in every lane; any alignment */
KRN_INLINE vi vi_group(const krn_qel *p)
{
    int32_t x;

    memcpy(&x, p, sizeof(x));
    return vi_set(x);
}
/* the sum of the products of both 16-bit halves of every lane, exact for halves of 9 bits */
KRN_INLINE vi vi_madd(vi a, vi b)
{
#if KRN_VL == 16
    return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif KRN_VL == 8
    return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return (a >> 16) * (b >> 16) + ((a << 16) >> 16) * ((b << 16) >> 16);
#endif
}

/* acc + the sum of a group's products */
KRN_INLINE vi vi_dot(vi acc, vi a, vi b)
{
#if defined(__AVX512VNNI__)
    return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVXVNNI__)
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)a, (__m256i)b);
#elif defined(__ARM_FEATURE_DOTPROD)
    return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)a, (int8x16_t)b);
#elif KRN_QDOT
    const vi low = vi_set(0x00ff00ff);
    vi even = a & low, odd = (a >> 8) & low; /* unsigned bytes in halves */
    vi w_even = (vi)(((vh)b << 8) >> 8), w_odd = (vi)((vh)b >> 8);

    return acc + vi_madd(even, w_even) + vi_madd(odd, w_odd);
#else
    return acc + vi_madd(a, b);
#endif
}
