/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/epilogue_vec.h - the epilogue of one vector, for kernels that hold results in
 * registers
 */
#pragma once

#include "kernels/common/epilogue.h"
#include "kernels/common/vec_math.h"

KRN_INLINE vf krn_act_clip01(vf x)
{
    return vf_min(vf_set(1.0f), vf_max(vf_set(0.0f), x));
}

#define KRN_ACT(act, expression)                                                                   \
    case MDL_ACT_##act:                                                                            \
        return expression;

/* not inlined: these functions are rare and would bloat every loop that calls this */
static __attribute__((noinline, unused)) vf krn_act_slow(enum mdl_act act, vf x, float a, float b)
{
    switch (act) {
        KRN_ACT(SIGMOID, vf_sigmoid(x))
        KRN_ACT(HARD_SIGMOID, krn_act_clip01(x * a + b))
        KRN_ACT(TANH, vf_tanh(x))
        KRN_ACT(ELU, vf_select(x < 0.0f, a * vf_expm1_neg(vf_min(vf_set(0.0f), x)), x))
        KRN_ACT(SWISH, vf_gate(x, x * a))
        KRN_ACT(MISH, vf_mish(x))
        KRN_ACT(GELU, vf_gelu(x))
        KRN_ACT(GELU_TANH, vf_gelu_tanh(x))
        KRN_ACT(SOFTPLUS, vf_max(vf_set(0.0f), x) + vf_log1p_unit(vf_exp(-vf_abs(x))))
    default:
        return x;
    }
}

KRN_INLINE vf krn_act_vec(enum mdl_act act, vf x, float a, float b)
{
    switch (act) {
        KRN_ACT(NONE, x)
        KRN_ACT(RELU, vf_max(vf_set(0.0f), x))
        KRN_ACT(CLIP, vf_min(vf_set(b), vf_max(vf_set(a), x)))
        KRN_ACT(LEAKY_RELU, vf_select(x < 0.0f, x * a, x))
        KRN_ACT(HARD_SWISH, x * krn_act_clip01(x * (1.0f / 6.0f) + 0.5f))
        KRN_ACT(SILU, vf_silu(x))
    default:
        return krn_act_slow(act, x, a, b);
    }
}

#undef KRN_ACT

/* krn_act_vec() of @n vectors, in place. They have one switch and no calls between them, so that
 * the CPU works on several at a time: half the time of vector after vector. */
static __attribute__((noinline, unused)) void krn_act_vecs(enum mdl_act act, float a, float b,
                                                           vf *x, size_t n)
{
#define KRN_ACT(act, expression)                                                                   \
    case MDL_ACT_##act:                                                                            \
        for (size_t i = 0; i < n; i++) {                                                           \
            x[i] = (expression);                                                                   \
        }                                                                                          \
        break;

    switch (act) {
    case MDL_ACT_NONE:
        break;
        KRN_ACT(HARD_SWISH, krn_act_vec(MDL_ACT_HARD_SWISH, x[i], 0.0f, 0.0f))
        KRN_ACT(SIGMOID, vf_sigmoid(x[i]))
        KRN_ACT(TANH, vf_tanh(x[i]))
        KRN_ACT(SILU, vf_silu(x[i]))
        KRN_ACT(GELU, vf_gelu(x[i]))
        KRN_ACT(GELU_TANH, vf_gelu_tanh(x[i]))
    default:
        for (size_t i = 0; i < n; i++) {
            x[i] = krn_act_vec(act, x[i], a, b);
        }
        break;
    }
#undef KRN_ACT
}

/* @shift, @res: vectors, zero where the epilogue has none */
KRN_INLINE vf krn_epilogue_vec(const struct krn_epilogue *e, vf y, vf shift, vf res)
{
    y = y + shift;
    if (e->residual == MDL_RESIDUAL_BEFORE_ACT) {
        y = y + res;
    }
    y = krn_act_vec(e->act, y, e->a, e->b);
    if (e->residual == MDL_RESIDUAL_AFTER_ACT) {
        y = y + res;
    }
    return y;
}
