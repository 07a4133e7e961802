/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_quad.h - four vectors of sums of 4 KRN_VL adjacent channels, and their results
 *
 * Interleaving four rows of bytes gives the groups of quant_vec.h in an order that narrowing
 * undoes: lane l of vector v is channel vq4_channel(v, l). All results are those of
 * krn_quant_any(). Any alignment, any thread; never allocates.
 */
#pragma once

#include <math.h>

#include "base/base.h"
#include "kernels/i8/quant_epilogue.h"

#define KRN_QUAD_LANES (4u * KRN_VL)

typedef uint8_t vq4 __attribute__((vector_size(4 * KRN_VL))); /* a byte of each channel */

static inline size_t vq4_channel(size_t v, size_t l)
{
    return 16 * (l / 4) + 4 * v + l % 4;
}

KRN_INLINE vq4 vq4_set(uint8_t x)
{
    return (vq4){0} + x;
}
/* the first @n bytes, 1 .. KRN_QUAD_LANES */
KRN_INLINE vq4 vq4_load_n(const uint8_t *p, size_t n)
{
#if KRN_VL == 16
    return (vq4)_mm512_maskz_loadu_epi8(~(__mmask64)0 >> (KRN_QUAD_LANES - n), p);
#else
    vq4 x = {0};

    memcpy(&x, p, n);
    return x;
#endif
}
/* in pieces: on AMD, masked stores are many times slower than plain ones */
KRN_INLINE void vq4_store_n(uint8_t *p, vq4 x, size_t n)
{
    uint8_t all[KRN_QUAD_LANES];
    const uint8_t *from = all;

    if (n == KRN_QUAD_LANES) {
        memcpy(p, &x, sizeof(x));
        return;
    }
    memcpy(all, &x, sizeof(x));
#pragma GCC unroll 8
    for (size_t piece = KRN_QUAD_LANES / 2; piece > 0; piece /= 2) {
        if (n & piece) {
            memcpy(p, from, piece);
            p += piece;
            from += piece;
        }
    }
}

/* groups of the bytes of rows 0 to 3 */
KRN_INLINE void vq4_zip(const vq4 r[4], vi out[4])
{
#if KRN_VL == 16
    __m512i a = _mm512_unpacklo_epi8((__m512i)r[0], (__m512i)r[1]);
    __m512i b = _mm512_unpackhi_epi8((__m512i)r[0], (__m512i)r[1]);
    __m512i c = _mm512_unpacklo_epi8((__m512i)r[2], (__m512i)r[3]);
    __m512i d = _mm512_unpackhi_epi8((__m512i)r[2], (__m512i)r[3]);

    out[0] = (vi)_mm512_unpacklo_epi16(a, c);
    out[1] = (vi)_mm512_unpackhi_epi16(a, c);
    out[2] = (vi)_mm512_unpacklo_epi16(b, d);
    out[3] = (vi)_mm512_unpackhi_epi16(b, d);
#elif KRN_VL == 8
    __m256i a = _mm256_unpacklo_epi8((__m256i)r[0], (__m256i)r[1]);
    __m256i b = _mm256_unpackhi_epi8((__m256i)r[0], (__m256i)r[1]);
    __m256i c = _mm256_unpacklo_epi8((__m256i)r[2], (__m256i)r[3]);
    __m256i d = _mm256_unpackhi_epi8((__m256i)r[2], (__m256i)r[3]);

    out[0] = (vi)_mm256_unpacklo_epi16(a, c);
    out[1] = (vi)_mm256_unpackhi_epi16(a, c);
    out[2] = (vi)_mm256_unpacklo_epi16(b, d);
    out[3] = (vi)_mm256_unpackhi_epi16(b, d);
#else
    for (size_t v = 0; v < 4; v++) {
        vq4 groups;

        for (size_t i = 0; i < KRN_QUAD_LANES; i++) {
            groups[i] = r[i % 4][4 * v + i / 4];
        }
        out[v] = (vi)groups;
    }
#endif
}

/* the low bytes of four vectors, in order of channels */
KRN_INLINE vq4 vq4_bytes(const vi q[4])
{
#if KRN_VL == 16
    __m512i a = _mm512_packus_epi32((__m512i)(q[0] & 0xff), (__m512i)(q[1] & 0xff));
    __m512i b = _mm512_packus_epi32((__m512i)(q[2] & 0xff), (__m512i)(q[3] & 0xff));

    return (vq4)_mm512_packus_epi16(a, b);
#elif KRN_VL == 8
    __m256i a = _mm256_packus_epi32((__m256i)(q[0] & 0xff), (__m256i)(q[1] & 0xff));
    __m256i b = _mm256_packus_epi32((__m256i)(q[2] & 0xff), (__m256i)(q[3] & 0xff));

    return (vq4)_mm256_packus_epi16(a, b);
#else
    vq4 y;

    for (size_t i = 0; i < KRN_QUAD_LANES; i++) {
        y[i] = (uint8_t)q[i / 4][i % 4];
    }
    return y;
#endif
}

/* round(t) + zero as u8 with saturation, for |t| < 2^31, as vq_sat2() */
KRN_INLINE vq4 vq4_sat(const vf t[4], vh zero)
{
#if KRN_VL == 16
    __m512i a =
        _mm512_packs_epi32(_mm512_cvtps_epi32((__m512)t[0]), _mm512_cvtps_epi32((__m512)t[1]));
    __m512i b =
        _mm512_packs_epi32(_mm512_cvtps_epi32((__m512)t[2]), _mm512_cvtps_epi32((__m512)t[3]));

    return (vq4)_mm512_packus_epi16(_mm512_adds_epi16(a, (__m512i)zero),
                                    _mm512_adds_epi16(b, (__m512i)zero));
#elif KRN_VL == 8
    __m256i a =
        _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)t[0]), _mm256_cvtps_epi32((__m256)t[1]));
    __m256i b =
        _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)t[2]), _mm256_cvtps_epi32((__m256)t[3]));

    return (vq4)_mm256_packus_epi16(_mm256_adds_epi16(a, (__m256i)zero),
                                    _mm256_adds_epi16(b, (__m256i)zero));
#else
    vq4 y;

    for (size_t i = 0; i < KRN_QUAD_LANES; i++) {
        float limited = base_min(base_max(t[i / 4][i % 4], -65536.0f), 65536.0f);

        y[i] = (uint8_t)base_min(base_max((int32_t)rintf(limited) + zero[0], 0), UINT8_MAX);
    }
    return y;
#endif
}

/* Without a residual, and if nothing but y's type bounds the results (e->plain). Signed bytes are
 * computed as unsigned ones, 128 higher. */
struct krn_quad_plain {
    vf scale[4];
    vh zero;
    vq4 flip;
};
KRN_INLINE struct krn_quad_plain krn_quad_plain_of(const struct krn_quant_epilogue *e,
                                                   const float *scale)
{
    bool y_signed = e->y_type == MDL_I8;
    struct krn_quad_plain p = {.zero = (int16_t)(e->y_zero + (y_signed ? 128 : 0)) - (vh){0},
                               .flip = vq4_set(y_signed ? 0x80 : 0)};

    for (size_t v = 0; v < 4; v++) {
        p.scale[v] = vf_load(scale + v * KRN_VL);
    }
    return p;
}
KRN_INLINE vq4 krn_quad_plain(const struct krn_quad_plain *p, const vi acc[4])
{
    vf t[4];

#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) {
        t[v] = vi_to_vf(acc[v]) * p->scale[v];
    }
    return vq4_sat(t, p->zero) ^ p->flip;
}

/* Without a residual, and with activations that only clamp (e->clamp). */
KRN_INLINE vq4 krn_quad_clamp(const struct krn_quant_epilogue *e, const vf scale[4],
                              const vi acc[4])
{
    vi q[4];

#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) {
        vf t = vi_to_vf(acc[v]) * scale[v];

        q[v] = vq_round(vf_min(vf_set(e->high), vf_max(vf_set(e->low), t)), vi_set(e->y_zero));
    }
    return vq4_bytes(q);
}

/* For any epilogue; the first @channels. @scale: of 4 KRN_VL lanes */
static __attribute__((noinline, unused)) void krn_quad_any(const struct krn_quant_epilogue *e,
                                                           const struct krn_quant_sums *s,
                                                           const vi acc[4], size_t channels)
{
    size_t size = mdl_dtype_bytes(e->y_type);
    int32_t sums[KRN_QUAD_LANES];
    float scales[KRN_QUAD_LANES], scale[KRN_QUANT_LANES];

    for (size_t v = 0; v < 4; v++) {
        for (size_t l = 0; l < KRN_VL; l++) {
            sums[vq4_channel(v, l)] = acc[v][l];
            scales[vq4_channel(v, l)] = s->scale[v * KRN_VL + l];
        }
    }
    for (size_t c = 0; c < channels; c += KRN_QUANT_LANES) {
        struct krn_quant_sums half = {scale, s->res ? s->res + c : NULL, s->y + c * size};
        vi pair[2];

        for (size_t v = 0; v < 2; v++) {
            for (size_t l = 0; l < KRN_VL; l++) {
                pair[v][l] = sums[c + vq_channel(v, l)];
                scale[v * KRN_VL + l] = scales[c + vq_channel(v, l)];
            }
        }
        krn_quant_any(e, &half, pair, 2, base_min(channels - c, (size_t)KRN_QUANT_LANES));
    }
}
