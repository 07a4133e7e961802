/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/vec.h - vectors of floats as wide as this source file's instruction set: types,
 * loads and stores
 *
 * A file that includes this is compiled once for each instruction set (kernels/meson.build). Its
 * exported symbols end in the name of the set: KRN_ISA_FN(name) is name__avx512.
 *
 * C operators work on vectors lane by lane (GCC's vector extensions), so NEON and others need no
 * code of their own. Intrinsics are used only where the compiler does not find the instruction by
 * itself. Other arithmetic is in vec_arith.h; functions such as exp are in vec_math.h.
 *
 * Partial loads and stores touch no byte beyond the requested elements. Addresses need at most the
 * alignment of float. Threads: any.
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

#include "kernels/common/cpu.h"

/* ---- the instruction set that this source file is compiled for ---- */

#ifndef KRN_ISA
#define KRN_ISA vec
#endif
#define KRN_PASTE_(a, b) a##__##b
#define KRN_PASTE(a, b) KRN_PASTE_(a, b)
#define KRN_ISA_FN(name) KRN_PASTE(name, KRN_ISA)

#define KRN_TEXT_(x) #x
#define KRN_TEXT(x) KRN_TEXT_(x)
#define KRN_ISA_TEXT KRN_TEXT(KRN_ISA) /* for primitive names */

/* KRN_VL: lanes of 4 bytes in a vector. KRN_ISA_NEEDS: the CPU features required. */
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

/* ---- vectors ---- */

typedef float vf __attribute__((vector_size(4 * KRN_VL)));
typedef int32_t vi __attribute__((vector_size(4 * KRN_VL)));
typedef float vf_mem __attribute__((vector_size(4 * KRN_VL), aligned(4), may_alias));

/* Hides how the pointer @p was computed. Otherwise the compiler keeps the addresses of all rows of
 * a tile, more than it has registers for. */
#define KRN_OPAQUE(p) __asm__("" : "+r"(p))

#define KRN_INLINE static inline __attribute__((always_inline))

KRN_INLINE vf vf_set(float x)
{
    return x - (vf){0}; /* x - 0 is x for every x, so this is a plain broadcast */
}
/* all lanes: KRN_VL elements from @p */
KRN_INLINE vf vf_load(const float *p)
{
    return *(const vf_mem *)p;
}
KRN_INLINE void vf_store(float *p, vf x)
{
    *(vf_mem *)p = x;
}

/* the first @n lanes, 1 .. KRN_VL; vf_load_n() makes the others 0 */
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
/* in pieces: on AMD, masked stores are many times slower than plain ones */
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

/* the same where @n is mostly KRN_VL: a whole vector needs no mask, which can be slow */
KRN_INLINE vf vf_load_any(const float *p, size_t n)
{
    return n == KRN_VL ? vf_load(p) : vf_load_n(p, n);
}
KRN_INLINE void vf_store_any(float *p, vf x, size_t n)
{
    if (n == KRN_VL) {
        vf_store(p, x);
    } else {
        vf_store_n(p, x, n);
    }
}
