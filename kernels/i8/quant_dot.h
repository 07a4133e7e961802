/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_dot.h - sums of products of quantised values
 *
 * A group is four bytes of neighbouring factors. One instruction multiplies them and adds the
 * products into a lane of 32 bits:
 *
 *  - without an instruction for dot products, two factors of 16 bits (x - x_zero and w - w_zero, 9
 *    bits each): the sum of two products is exact, and nothing can saturate;
 *  - with one, four bytes: u8 by i8 (VNNI) or i8 by i8 (Arm). An input of the other signedness is
 * shifted by 128. The zero point adds a constant, which packing adds to the bias.
 *
 * All functions are inlined and exact; sums wrap at 32 bits. Any thread.
 */
#pragma once

#include "kernels/i8/quant_vec.h"

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
