/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_epilogue.h - turns the sums of pixels, in registers, into results in memory
 *
 * The formulas are those of struct mdl_quant (model/op.h); each step is rounded by itself. Any
 * thread; never allocates.
 */
#pragma once

#include "kernels/common/epilogue_vec.h"
#include "kernels/i8/quant_common.h"
#include "kernels/i8/quant_vec.h"

#define KRN_QUANT_LANES (2u * KRN_VL)

/* ---- vectors of floats rounded to quantised values, ties to even ---- */

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

/* ---- results of one pixel ---- */

/* The sums of one pixel, biases included: two vectors in the order of vq_channel(), or one in
 * channel order; the scales are in the same order. */
struct krn_quant_sums {
    const float *scale;
    const uint8_t *res; /* residual of the first channel, or NULL */
    uint8_t *y;         /* the first channel */
};

KRN_INLINE vf krn_quant_real(const struct krn_quant_sums *s, vi acc, size_t v)
{
    return vi_to_vf(acc) * vf_load(s->scale + v * KRN_VL);
}

/* For whole vectors of bytes and activations that only clamp (e->clamp). */
KRN_INLINE void krn_quant_clamp(const struct krn_quant_epilogue *e, const struct krn_quant_sums *s,
                                const vi acc[2], const size_t vectors)
{
    const vf low = vf_set(e->low), high = vf_set(e->high);
    vi q[2], r[2];

    if (s->res) {
        if (vectors == 2) {
            vq_load2(s->res, e->res_signed, &r[0], &r[1]);
        } else {
            r[0] = vq_load1(s->res, e->res_signed);
        }
    }
#pragma GCC unroll 2
    for (size_t v = 0; v < vectors; v++) {
        vf t = krn_quant_real(s, acc[v], v);

        if (s->res) {
            t = t + vi_to_vf(r[v] - e->r_zero) * e->r_scale;
        }
        q[v] = vq_round(vf_min(high, vf_max(low, t)), vi_set(e->y_zero));
    }
    if (vectors == 2) {
        vq_store2(s->y, q[0], q[1]);
    } else {
        vq_store1(s->y, q[0]);
    }
}

/* For any type of y, any activation and residual; the first @channels of the vectors. */
static __attribute__((noinline, unused)) void krn_quant_any(const struct krn_quant_epilogue *e,
                                                            const struct krn_quant_sums *s,
                                                            const vi acc[2], size_t vectors,
                                                            size_t channels)
{
    uint8_t out[KRN_QUANT_LANES], in[KRN_QUANT_LANES] = {0};
    float real[KRN_QUANT_LANES];
    vi q[2] = {{0}}, r[2] = {{0}};

    if (s->res) {
        memcpy(in, s->res, channels);
        if (vectors == 2) {
            vq_load2(in, e->res_signed, &r[0], &r[1]);
        } else {
            r[0] = vq_load1(in, e->res_signed);
        }
    }
    for (size_t v = 0; v < vectors; v++) {
        vf t = krn_quant_real(s, acc[v], v);
        vf residual = vi_to_vf(r[v] - e->r_zero) * e->r_scale;

        t = e->residual == MDL_RESIDUAL_BEFORE_ACT ? t + residual : t;
        t = krn_act_vec(e->act, t, e->a, e->b);
        t = e->residual == MDL_RESIDUAL_AFTER_ACT ? t + residual : t;
        q[v] = vq_round(vf_min(vf_set(e->high), vf_max(vf_set(e->low), t)), vi_set(e->y_zero));
        for (size_t l = 0; l < KRN_VL; l++) {
            real[vectors == 2 ? vq_channel(v, l) : l] = t[l];
        }
    }
    if (e->y_type == MDL_F32) {
        memcpy(s->y, real, channels * sizeof(float));
        return;
    }
    if (vectors == 2) {
        vq_store2(out, q[0], q[1]);
    } else {
        vq_store1(out, q[0]);
    }
    memcpy(s->y, out, channels);
}

/* ---- results of several pixels ---- */

#define KRN_QUANT_PIXELS_MAX 16u

/* Pixels at one distance, each as struct krn_quant_sums. */
struct krn_quant_pixels {
    const float *scale;
    const uint8_t *res; /* residual of the first pixel and channel, or NULL */
    uint8_t *y;         /* the first pixel and channel */
    size_t y_pixel;     /* bytes */
};

#if KRN_QSAT
/* Whole vectors of bytes that nothing but y's type bounds (e->plain), the most common ones. Signed
 * bytes are computed as unsigned ones, 128 higher. */
KRN_INLINE void krn_quant_plain(const struct krn_quant_epilogue *e,
                                const struct krn_quant_pixels *s, vi (*acc)[2], const size_t pixels,
                                const size_t vectors)
{
    const bool y_signed = e->y_type == MDL_I8;
    const vh zero = (int16_t)(e->y_zero + (y_signed ? 128 : 0)) - (vh){0};
    const vq2 flip = (vq2){0} + (uint8_t)(y_signed ? 0x80 : 0);
    const vq2 r_flip = (vq2){0} + (uint8_t)(e->res_signed ? 0x80 : 0);
    const vi r_zero = vi_set(e->r_zero + (e->res_signed ? 128 : 0));
    const vf r_scale = vf_set(e->r_scale), scale0 = vf_load(s->scale);
    const vf scale1 = vectors > 1 ? vf_load(s->scale + KRN_VL) : scale0;
    const uint8_t *res = s->res;
    uint8_t *y = s->y;

#pragma GCC unroll 16
    for (size_t i = 0; i < pixels; i++) {
        vf t0 = vi_to_vf(acc[i][0]) * scale0;
        vf t1 = vectors > 1 ? vi_to_vf(acc[i][1]) * scale1 : t0;

        if (res) {
            vi r0, r1;
            uint8_t bytes[2 * KRN_VL];
            vq2 r;

            if (vectors > 1) {
                memcpy(&r, res, sizeof(r));
                r ^= r_flip;
                memcpy(bytes, &r, sizeof(r));
                vq_load2(bytes, false, &r0, &r1);
                t1 = t1 + vi_to_vf(r1 - r_zero) * r_scale;
            } else {
                r0 = vq_load1(res, e->res_signed) + (e->res_signed ? 128 : 0);
            }
            t0 = t0 + vi_to_vf(r0 - r_zero) * r_scale;
            res += e->res_pixel;
        }
        if (vectors > 1) {
            vq_sat2(y, t0, t1, zero, flip);
        } else {
            vq_sat1(y, t0, zero, flip);
        }
        y += s->y_pixel;
    }
}
#endif

KRN_INLINE struct krn_quant_sums krn_quant_pixel(const struct krn_quant_epilogue *e,
                                                 const struct krn_quant_pixels *s, size_t i)
{
    return (struct krn_quant_sums){.scale = s->scale,
                                   .res = s->res ? s->res + i * e->res_pixel : NULL,
                                   .y = s->y + i * s->y_pixel};
}

/* Finishes the first @channels of @pixels, at most KRN_QUANT_PIXELS_MAX, by the way that fits.
 * @vectors is a constant wherever this is inlined, and mostly @pixels, so that the sums stay in
 * registers. */
KRN_INLINE void krn_quant_finish(const struct krn_quant_epilogue *e,
                                 const struct krn_quant_pixels *s, vi (*acc)[2],
                                 const size_t pixels, const size_t vectors, size_t channels)
{
#if KRN_QSAT
    if (e->plain && channels == vectors * KRN_VL) {
        krn_quant_plain(e, s, acc, pixels, vectors);
        return;
    }
#endif
    if (e->clamp && channels == vectors * KRN_VL) {
#pragma GCC unroll 16
        for (size_t i = 0; i < pixels; i++) {
            struct krn_quant_sums one = krn_quant_pixel(e, s, i);

            krn_quant_clamp(e, &one, acc[i], vectors);
        }
        return;
    }
    vi out[KRN_QUANT_PIXELS_MAX][2];

#pragma GCC unroll 16
    for (size_t i = 0; i < pixels; i++) {
        out[i][0] = acc[i][0];
        out[i][1] = acc[i][1];
    }
    for (size_t i = 0; i < pixels; i++) {
        struct krn_quant_sums one = krn_quant_pixel(e, s, i);

        krn_quant_any(e, &one, out[i], vectors, channels);
    }
}
