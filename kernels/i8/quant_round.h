/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_round.h - vectors of floats rounded to quantised values, ties to even
 *
 * All functions are inlined; any thread.
 */
#pragma once

#include "kernels/i8/quant_vec.h"

/* round(t) + zero in the low byte, for |t| < 2^22; NaN gives zero. Adding 1.5 * 2^23, whose low
 * byte is 0, rounds to an integer in the low bits. */
KRN_INLINE vi vq_round(vf t, vi zero)
{
    return (vi)(t + 12582912.0f) + zero;
}

/* KRN_QSAT: whether vq_sat2() and vq_sat1() exist. Their instructions round and saturate.
 *
 * vq_sat2() stores round(t) + zero of both vectors' channels, in order, as u8 with saturation, then
 * ^ flip, for |t| < 2^31. vq_sat1() does so with one vector. */
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
