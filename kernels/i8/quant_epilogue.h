/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_epilogue.h - turns the sums of one pixel, in registers, into results in memory
 *
 * The formulas are those of struct mdl_quant (model/op.h); each step is rounded by itself. Any
 * thread; never allocates.
 */
#pragma once

#include "kernels/common/epilogue_vec.h"
#include "kernels/i8/quant_common.h"
#include "kernels/i8/quant_round.h"

#define KRN_QUANT_LANES (2u * KRN_VL)

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
