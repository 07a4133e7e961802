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

/* not inlined: these functions are rare and would bloat every loop that calls this */
static __attribute__((noinline, unused)) vf krn_act_slow(enum mdl_act act, vf x, float a, float b)
{
    switch (act) {
    case MDL_ACT_SIGMOID:
        return vf_sigmoid(x);
    case MDL_ACT_HARD_SIGMOID:
        return krn_act_clip01(x * a + b);
    case MDL_ACT_TANH:
        return vf_tanh(x);
    case MDL_ACT_ELU:
        return vf_select(x < 0.0f, a * vf_expm1_neg(vf_min(vf_set(0.0f), x)), x);
    case MDL_ACT_SWISH:
        return vf_gate(x, x * a);
    case MDL_ACT_MISH:
        return vf_mish(x);
    case MDL_ACT_GELU:
        return vf_gelu(x);
    case MDL_ACT_GELU_TANH:
        return vf_gelu_tanh(x);
    case MDL_ACT_SOFTPLUS:
        return vf_max(vf_set(0.0f), x) + vf_log1p_unit(vf_exp(-vf_abs(x)));
    default:
        return x;
    }
}

KRN_INLINE vf krn_act_vec(enum mdl_act act, vf x, float a, float b)
{
    switch (act) {
    case MDL_ACT_NONE:
        return x;
    case MDL_ACT_RELU:
        return vf_max(vf_set(0.0f), x);
    case MDL_ACT_CLIP:
        return vf_min(vf_set(b), vf_max(vf_set(a), x));
    case MDL_ACT_LEAKY_RELU:
        return vf_select(x < 0.0f, x * a, x);
    case MDL_ACT_HARD_SWISH:
        return x * krn_act_clip01(x * (1.0f / 6.0f) + 0.5f);
    case MDL_ACT_SILU:
        return vf_silu(x);
    default:
        return krn_act_slow(act, x, a, b);
    }
}

/* krn_act_vec() of @n vectors, in place. They have one switch and no calls between them, so that
 * the CPU works on several at a time: half the time of vector after vector. */
static __attribute__((noinline, unused)) void krn_act_vecs(enum mdl_act act, float a, float b,
                                                           vf *x, size_t n)
{
#define KRN_ACT_EACH(expression)                                                                   \
    for (size_t i = 0; i < n; i++) {                                                               \
        x[i] = (expression);                                                                       \
    }                                                                                              \
    break

    switch (act) {
    case MDL_ACT_NONE:
        break;
    case MDL_ACT_HARD_SWISH:
        KRN_ACT_EACH(krn_act_vec(MDL_ACT_HARD_SWISH, x[i], 0.0f, 0.0f));
    case MDL_ACT_SIGMOID:
        KRN_ACT_EACH(vf_sigmoid(x[i]));
    case MDL_ACT_TANH:
        KRN_ACT_EACH(vf_tanh(x[i]));
    case MDL_ACT_SILU:
        KRN_ACT_EACH(vf_silu(x[i]));
    case MDL_ACT_GELU:
        KRN_ACT_EACH(vf_gelu(x[i]));
    case MDL_ACT_GELU_TANH:
        KRN_ACT_EACH(vf_gelu_tanh(x[i]));
    default:
        KRN_ACT_EACH(krn_act_vec(act, x[i], a, b));
    }
#undef KRN_ACT_EACH
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
