/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/quant_epilogue.h - sums of a pixel's channels to its results, from registers
 */
#pragma once

#include "kernels/common/epilogue_vec.h"
#include "kernels/i8/quant_common.h"
#include "kernels/i8/quant_vec.h"

#define KRN_QUANT_LANES (2u * KRN_VL)

/* Of one pixel. Its sums, biases included, are vectors in the order of vq_channel() if there are
 * two, else of channels; the scales lie likewise. */
struct krn_quant_sums {
    const float *scale;
    const uint8_t *res; /* residual of the first channel, or NULL */
    uint8_t *y;         /* the first channel */
};

KRN_INLINE vf krn_quant_real(const struct krn_quant_sums *s, vi acc, size_t v)
{
    return vi_to_vf(acc) * vf_load(s->scale + v * KRN_VL);
}

/* Whole vectors of bytes, activations that only bound them (e->clamp). */
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

/* Pixels of whole vectors of bytes that nothing but their type bounds (e->plain). Signed bytes are
 * computed as unsigned ones, 128 higher. */
struct krn_quant_pixels {
    const float *scale;
    const uint8_t *res; /* residual of the first pixel and channel, or NULL */
    uint8_t *y;         /* the first pixel and channel */
    size_t y_pixel;
};
#if KRN_QSAT
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
#else
KRN_INLINE void krn_quant_plain(const struct krn_quant_epilogue *e,
                                const struct krn_quant_pixels *s, vi (*acc)[2], const size_t pixels,
                                const size_t vectors)
{
    for (size_t i = 0; i < pixels; i++) {
        struct krn_quant_sums one = {.scale = s->scale,
                                     .res = s->res ? s->res + i * e->res_pixel : NULL,
                                     .y = s->y + i * s->y_pixel};

        krn_quant_clamp(e, &one, acc[i], vectors);
    }
}
#endif

/* Any type of y, any activation and residual, the first @channels of the vectors. */
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
