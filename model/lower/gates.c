/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/lower/lowering.h"

/* x times a gate of x: Gelu, Mish, Swish. */

static int check(struct mdl_lower *l)
{
    int r = mdl_l_need(l, 1);

    return r < 0 ? r : mdl_l_f32(l, 0);
}

static int lower_gelu(struct mdl_lower *l, int arg)
{
    const char *how = mdl_l_string(l, "approximate", "none");
    bool tanh = strcmp(how, "tanh") == 0;
    int r = check(l);

    if (r == 0 && !tanh && strcmp(how, "none") != 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "approximate is \"%s\"; it must be none or tanh",
                             how);
    }
    return r < 0 ? r
                 : mdl_ir_unary(l->ir, tanh ? MDL_ACT_GELU_TANH : MDL_ACT_GELU, 0, 0, l->in[0],
                                &l->out[0]);
}

static int lower_plain(struct mdl_lower *l, int act)
{
    int r = check(l);

    return r < 0 ? r : mdl_ir_unary(l->ir, (enum mdl_act)act, 0, 0, l->in[0], &l->out[0]);
}

/* BiasGelu, FastGelu: of the sum with input 1, which FastGelu may lack */
static int lower_bias_gelu(struct mdl_lower *l, int act)
{
    size_t x;
    int r = mdl_l_need(l, act == MDL_ACT_GELU ? 2 : 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    r = r < 0 ? r : mdl_l_f32(l, 1);
    if (r < 0) {
        return r;
    }
    x = l->in[0];
    if (mdl_l_in(l, 1) != MDL_NONE) {
        r = mdl_ir_binary(l->ir, MDL_BIN_ADD, x, l->in[1], &x);
    }
    return r < 0 ? r : mdl_ir_unary(l->ir, (enum mdl_act)act, 0, 0, x, &l->out[0]);
}

/* x sigmoid(alpha x); @thousandths: of the default of alpha */
static int lower_swish(struct mdl_lower *l, int thousandths)
{
    float alpha = mdl_l_float(l, "alpha", (float)thousandths / 1000);
    int r = check(l);

    return r < 0 ? r
                 : mdl_ir_unary(l->ir, alpha == 1 ? MDL_ACT_SILU : MDL_ACT_SWISH,
                                alpha == 1 ? 0 : alpha, 0, l->in[0], &l->out[0]);
}

#define MICROSOFT "com.microsoft"

const struct mdl_lower_row mdl_lower_gates[] = {
    {"Gelu", lower_gelu, 0, MDL_LOWER_BOTH},
    {"Mish", lower_plain, MDL_ACT_MISH},
    {"Swish", lower_swish, 1000},
    {"BiasGelu", lower_bias_gelu, MDL_ACT_GELU, MICROSOFT},
    {"FastGelu", lower_bias_gelu, MDL_ACT_GELU_TANH, MICROSOFT},
    {"QuickGelu", lower_swish, 1702, MICROSOFT},
    {0},
};
