/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/quant_vec.h - vectors of bytes, of 16-bit and of 32-bit integers, for ops on quantised
 * values
 *
 * Two vectors of 32-bit lanes hold 2 KRN_VL channels as the instructions that narrow and widen
 * within blocks of 128 bits leave them: lane l of vector v is channel vq_channel(v, l). A group is
 * four bytes of neighbouring factors, two of 16 bits or four of 8, that one instruction multiplies
 * and adds into a lane:
 *
 *  - without a dot product instruction, pairs of 16 bits (x - x_zero and w - w_zero, 9 bits each):
 *    the sum of two products is exact, and nothing can saturate;
 *  - with one, four bytes: u8 by i8 (VNNI) or i8 by i8 (Arm). An input of the other sign is moved
 *    by 128, and what the zero point adds is a constant that packing puts into the bias.
 */
#pragma once

#include "kernels/common/vec_math.h"
#include "model/model.h"

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define KRN_QDOT 1
#define KRN_QDOT_SIGNED 0 /* the input's bytes are unsigned */
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#define KRN_QDOT 1
#define KRN_QDOT_SIGNED 1
#elif defined(KRN_QDOT_EMULATED) /* for tests: what VNNI does, on any CPU */
#define KRN_QDOT 1
#define KRN_QDOT_SIGNED 0
#else
#define KRN_QDOT 0
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
/* four bytes at any address in every lane */
KRN_INLINE vi vi_group(const krn_qel *p)
{
    int32_t x;

    memcpy(&x, p, sizeof(x));
    return vi_set(x);
}
KRN_INLINE vf vi_to_vf(vi x)
{
    return __builtin_convertvector(x, vf);
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

/* acc + the products of a group */
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
    return (vi)__builtin_shuffle(a, b, (vh){0, 8, 1, 9, 2, 10, 3, 11});
}
KRN_INLINE vi vh_zip_high(vh a, vh b)
{
    return (vi)__builtin_shuffle(a, b, (vh){4, 12, 5, 13, 6, 14, 7, 15});
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

/* round(t) + zero in the low byte, for |t| < 2^22; ties to even, a NaN gives zero. Adding
 * 1.5 * 2^23, whose low byte is 0, rounds to an integer in the low bits. */
KRN_INLINE vi vq_round(vf t, vi zero)
{
    return (vi)(t + 12582912.0f) + zero;
}

/* round(t) + zero of both vectors' channels in order, as u8 with saturation, then ^ flip, for
 * |t| < 2^31, ties to even: instructions round and saturate by themselves. vq_sat1() - of one
 * vector. */
#if defined(__SSE2__)
#define KRN_QSAT 1
#else
#define KRN_QSAT 0
#endif
#if KRN_VL == 16
KRN_INLINE void vq_sat2(uint8_t *p, vf low, vf high, vh zero, vq2 flip)
{
    __m512i h =
        _mm512_packs_epi32(_mm512_cvtps_epi32((__m512)low), _mm512_cvtps_epi32((__m512)high));

    h = _mm512_max_epi16(_mm512_adds_epi16(h, (__m512i)zero), _mm512_setzero_si512());
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtusepi16_epi8(h) ^ (__m256i)flip);
}
KRN_INLINE void vq_sat1(uint8_t *p, vf t, vh zero, vq2 flip)
{
    uint8_t both[2 * KRN_VL];
    __m512i q = _mm512_cvtps_epi32((__m512)t);
    __m512i h = _mm512_castsi256_si512(_mm512_cvtsepi32_epi16(q));

    h = _mm512_max_epi16(_mm512_adds_epi16(h, (__m512i)zero), _mm512_setzero_si512());
    _mm256_storeu_si256((__m256i *)(void *)both, _mm512_cvtusepi16_epi8(h) ^ (__m256i)flip);
    memcpy(p, both, KRN_VL);
}
#elif KRN_VL == 8
KRN_INLINE __m128i vh_sat(__m256i h, vh zero, vq2 flip)
{
    h = _mm256_adds_epi16(h, (__m256i)zero);
    return _mm_packus_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)) ^
           (__m128i)flip;
}
KRN_INLINE void vq_sat2(uint8_t *p, vf low, vf high, vh zero, vq2 flip)
{
    __m256i h =
        _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)low), _mm256_cvtps_epi32((__m256)high));

    _mm_storeu_si128((__m128i *)(void *)p, vh_sat(h, zero, flip));
}
KRN_INLINE void vq_sat1(uint8_t *p, vf t, vh zero, vq2 flip)
{
    __m256i q = _mm256_cvtps_epi32((__m256)t);
    __m128i b = vh_sat(_mm256_packs_epi32(q, q), zero, flip);

    /* four bytes of the first block, twice, then of the second */
    _mm_storel_epi64((__m128i *)(void *)p, _mm_shuffle_epi32(b, 0x08));
}
#elif KRN_QSAT
KRN_INLINE void vq_sat2(uint8_t *p, vf low, vf high, vh zero, vq2 flip)
{
    __m128i h = _mm_packs_epi32(_mm_cvtps_epi32((__m128)low), _mm_cvtps_epi32((__m128)high));
    vq2 y;

    h = _mm_adds_epi16(h, (__m128i)zero);
    h = _mm_packus_epi16(h, h);
    memcpy(&y, &h, sizeof(y));
    y ^= flip;
    memcpy(p, &y, sizeof(y));
}
KRN_INLINE void vq_sat1(uint8_t *p, vf t, vh zero, vq2 flip)
{
    uint8_t both[2 * KRN_VL];

    vq_sat2(both, t, t, zero, flip);
    memcpy(p, both, KRN_VL);
}
#endif
