/* SPDX-License-Identifier: Apache-2.0 */
/* Activations as exporters wrote them before ONNX had operators for them. The order of the factors
 * differs between exporters, so products are compared as sets. */
#include <math.h>

#include "model/compile/passes.h"

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

/* Return: whether @v is clip(x + 3, 0, 6), which nothing else reads */
static bool is_clip_gate(struct mdl_ir *ir, size_t v, size_t *ret_x)
{
    const struct mdl_ir_op *clip = mdl_match_unary(ir, v, MDL_ACT_CLIP);

    return clip && clip->op.act_a == 0 && clip->op.act_b == 6 && mdl_match_private(ir, v) &&
           mdl_match_private(ir, clip->op.in[0]) && mdl_match_plus(ir, clip->op.in[0], 3, ret_x);
}

/* Return: whether @v is hard_sigmoid(x), which nothing else reads */
static bool is_hard_gate(struct mdl_ir *ir, size_t v, size_t x)
{
    const struct mdl_ir_op *op = mdl_match_unary(ir, v, MDL_ACT_HARD_SIGMOID);

    return op && op->op.in[0] == x && mdl_match_private(ir, v) &&
           fabsf(op->op.act_a - 1.0f / 6) < 1e-6f && op->op.act_b == 0.5f;
}

struct found {
    enum mdl_act act;
    float a, b;
    size_t x;
};

/* @factor times x times its gate */
static bool find_gated(struct mdl_ir *ir, double factor, size_t x, size_t gate, struct found *ret)
{
    size_t t;

    *ret = (struct found){.x = x};
    if (mdl_match_near(factor, 0.5) && is_erf_gate(ir, gate, x)) {
        ret->act = MDL_ACT_GELU;
    } else if (mdl_match_near(factor, 0.5) && is_tanh_gate(ir, gate, x)) {
        ret->act = MDL_ACT_GELU_TANH;
    } else if (mdl_match_near(factor, 1.0 / 6) && is_clip_gate(ir, gate, &t) && t == x) {
        ret->act = MDL_ACT_HARD_SWISH;
    } else if (factor == 1 && is_hard_gate(ir, gate, x)) {
        ret->act = MDL_ACT_HARD_SWISH;
    } else if (factor == 1 && is_mish_gate(ir, gate, x)) {
        ret->act = MDL_ACT_MISH;
    } else if (factor == 1 && is_swish_gate(ir, gate, x, &ret->a)) {
        ret->act = ret->a == 1 ? MDL_ACT_SILU : MDL_ACT_SWISH;
    }
    return ret->act != MDL_ACT_NONE;
}

/* Return: whether @y is an activation written as a product. */
static bool find(struct mdl_ir *ir, size_t y, struct found *ret)
{
    struct mdl_match_product p;

    if (!mdl_match_product(ir, y, &p)) {
        return false;
    }
    if (p.count == 1 && mdl_match_near(p.factor, 1.0 / 6)) {
        *ret = (struct found){.act = MDL_ACT_HARD_SIGMOID, .a = 1.0f / 6, .b = 0.5f};
        return is_clip_gate(ir, p.value[0], &ret->x);
    }
    return p.count == 2 && (find_gated(ir, p.factor, p.value[0], p.value[1], ret) ||
                            find_gated(ir, p.factor, p.value[1], p.value[0], ret));
}

static void become(struct mdl_ir *ir, size_t k, const struct found *f)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_UNARY);

    op.op.name = ir->ops[k].op.name;
    op.op.act = f->act;
    op.op.act_a = f->a;
    op.op.act_b = f->b;
    op.op.in[0] = f->x;
    op.op.out[0] = ir->ops[k].op.out[0];
    ir->ops[k] = op; /* what fed it is dead now, see mdl_ir_drop_dead() */
}

void mdl_fuse_patterns(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];
        struct found f;

        if (op->dead || op->kind != MDL_OP_BINARY || op->op.act != MDL_ACT_NONE ||
            !find(ir, op->op.out[0], &f)) {
            continue;
        }
        if (mdl_ir_same_dims(&ir->values[f.x], &ir->values[op->op.out[0]]) &&
            ir->values[f.x].dtype == MDL_F32) {
            become(ir, k, &f);
        }
    }
    mdl_ir_drop_dead(ir);
}
