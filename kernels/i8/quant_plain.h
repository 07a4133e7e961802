/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_plain.h - the epilogue of quantised values, for several pixels
 *
 * The most common one, where nothing but y's type bounds the results (krn_quant_epilogue.plain),
 * has a way of its own: signed bytes are computed as unsigned ones, 128 higher. Any thread; never
 * allocates.
 */
#pragma once

#include "kernels/i8/quant_epilogue.h"

#define KRN_QUANT_PIXELS_MAX 16u

/* Pixels at one distance, each as struct krn_quant_sums. */
struct krn_quant_pixels {
    const float *scale;
    const uint8_t *res; /* residual of the first pixel and channel, or NULL */
    uint8_t *y;         /* the first pixel and channel */
    size_t y_pixel;     /* bytes */
};

#if KRN_QSAT
/* whole vectors of bytes */
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
