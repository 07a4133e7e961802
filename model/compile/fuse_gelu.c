/* SPDX-License-Identifier: Apache-2.0 */
#include "model/compile/match.h"
#include "model/compile/passes.h"

/* Gelu, Mish and Swish as exporters wrote them before ONNX had operators for them. The order of the
 * factors differs between exporters, so products are compared as sets. */

/* Return: whether @v is 1 + erf(x / sqrt(2)) */
static bool is_erf_gate(struct mdl_ir *ir, size_t v, size_t x)
{
    const struct mdl_ir_op *erf;
    size_t t;

    if (!mdl_match_plus(ir, v, 1, &t)) {
        return false;
    }
    erf = mdl_match_unary(ir, t, MDL_ACT_ERF);
    return erf && mdl_match_scaled(ir, erf->op.in[0], 0.70710678118654752, &t) && t == x;
}

static bool is_power(struct mdl_ir *ir, size_t v, double factor, size_t x, size_t power)
{
    struct mdl_match_product p;
    bool is = mdl_match_product(ir, v, &p) && p.count == power && mdl_match_near(p.factor, factor);

    for (size_t i = 0; is && i < power; i++) {
        is = p.value[i] == x;
    }
    return is;
}

/* Return: whether @v is x + 0.044715 x^3 */
static bool is_cubic(struct mdl_ir *ir, size_t v, size_t x)
{
    const struct mdl_ir_op *sum = mdl_match_binary(ir, v, MDL_BIN_ADD);

    for (size_t i = 0; sum && i < 2; i++) {
        if (sum->op.in[i] == x && is_power(ir, sum->op.in[1 - i], 0.044715, x, 3)) {
            return true;
        }
    }
    return false;
}

/* Return: whether @v is 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)), perhaps with x taken out */
static bool is_tanh_gate(struct mdl_ir *ir, size_t v, size_t x)
{
    const struct mdl_ir_op *tanh;
    struct mdl_match_product p;
    size_t t;

    if (!mdl_match_plus(ir, v, 1, &t)) {
        return false;
    }
    tanh = mdl_match_unary(ir, t, MDL_ACT_TANH);
    if (!tanh || !mdl_match_product(ir, tanh->op.in[0], &p) ||
        !mdl_match_near(p.factor, 0.79788456080286536)) {
        return false;
    }
    for (size_t i = 0; p.count == 2 && i < 2; i++) {
        if (p.value[i] == x && mdl_match_plus(ir, p.value[1 - i], 1, &t) &&
            is_power(ir, t, 0.044715, x, 2)) {
            return true;
        }
    }
    return p.count == 1 && is_cubic(ir, p.value[0], x);
}

/* Return: whether @v is tanh(softplus(x)) */
static bool is_mish_gate(struct mdl_ir *ir, size_t v, size_t x)
{
    const struct mdl_ir_op *op = mdl_match_unary(ir, v, MDL_ACT_TANH);

    op = op ? mdl_match_unary(ir, op->op.in[0], MDL_ACT_SOFTPLUS) : NULL;
    return op && op->op.in[0] == x;
}

/* Return: whether @v is sigmoid(a x) */
static bool is_swish_gate(struct mdl_ir *ir, size_t v, size_t x, float *ret_a)
{
    const struct mdl_ir_op *op = mdl_match_unary(ir, v, MDL_ACT_SIGMOID);
    struct mdl_match_product p;

    if (!op || !mdl_match_product(ir, op->op.in[0], &p) || p.count != 1 || p.value[0] != x) {
        return false;
    }
    *ret_a = (float)p.factor;
    return true;
}

bool mdl_fuse_gelu(struct mdl_ir *ir, size_t y, size_t *ret_x, enum mdl_act *ret_act, float *ret_a)
{
    struct mdl_match_product p;

    if (!mdl_match_product(ir, y, &p) || p.count != 2) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        size_t x = p.value[i], gate = p.value[1 - i];

        *ret_x = x;
        *ret_a = 0;
        if (mdl_match_near(p.factor, 0.5) && is_erf_gate(ir, gate, x)) {
            *ret_act = MDL_ACT_GELU;
        } else if (mdl_match_near(p.factor, 0.5) && is_tanh_gate(ir, gate, x)) {
            *ret_act = MDL_ACT_GELU_TANH;
        } else if (p.factor == 1 && is_mish_gate(ir, gate, x)) {
            *ret_act = MDL_ACT_MISH;
        } else if (p.factor == 1 && is_swish_gate(ir, gate, x, ret_a)) {
            *ret_act = *ret_a == 1 ? MDL_ACT_SILU : MDL_ACT_SWISH;
        } else {
            continue;
        }
        return true;
    }
    return false;
}
