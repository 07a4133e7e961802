/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "model/compile/passes.h"
#include "model/ir/constant.h"

/* Activations that exporters write as several operators. */

static struct mdl_ir_op *producer(struct mdl_ir *ir, size_t v, int kind)
{
    size_t op = v == MDL_NONE ? MDL_NONE : ir->values[v].op;

    return op == MDL_NONE || ir->ops[op].dead || ir->ops[op].kind != kind ? NULL : &ir->ops[op];
}

static bool is_private(const struct mdl_ir *ir, size_t v)
{
    return ir->values[v].uses == 1 && !ir->values[v].output;
}

static bool is_number(struct mdl_ir *ir, size_t v, double number)
{
    const struct mdl_ir_op *view = producer(ir, v, MDL_IR_VIEW);
    const struct mdl_ir_value *c;

    if (view && view->view.kind == MDL_VIEW_EXPAND) {
        v = view->op.in[0];
    }
    c = &ir->values[v];
    return c->data && mdl_ir_elements(c) == 1 &&
           fabs(mdl_const_real(c, 0) - number) <= 1e-6 * fabs(number);
}

/* @v = x @which number (or number @which x where that is the same): *ret_x. */
static bool with_number(struct mdl_ir *ir, size_t v, enum mdl_binary which, double number,
                        size_t *ret_x)
{
    const struct mdl_ir_op *op = producer(ir, v, MDL_OP_BINARY);

    if (!op || op->op.attr.binary != which) {
        return false;
    }
    if (is_number(ir, op->op.in[1], number)) {
        *ret_x = op->op.in[0];
        return true;
    }
    if (which != MDL_BIN_DIV && which != MDL_BIN_SUB && is_number(ir, op->op.in[0], number)) {
        *ret_x = op->op.in[1];
        return true;
    }
    return false;
}

static bool is_sixth(struct mdl_ir *ir, size_t v, size_t *ret_x)
{
    return with_number(ir, v, MDL_BIN_DIV, 6, ret_x) ||
           with_number(ir, v, MDL_BIN_MUL, 1.0 / 6, ret_x);
}

/* @v = clip(x + 3, 0, 6) */
static bool is_clipped(struct mdl_ir *ir, size_t v, size_t *ret_x)
{
    const struct mdl_ir_op *clip = producer(ir, v, MDL_OP_UNARY);

    return clip && clip->op.act == MDL_ACT_CLIP && clip->op.act_a == 0 && clip->op.act_b == 6 &&
           is_private(ir, v) && is_private(ir, clip->op.in[0]) &&
           with_number(ir, clip->op.in[0], MDL_BIN_ADD, 3, ret_x);
}

static void become(struct mdl_ir *ir, size_t k, enum mdl_act act, float a, float b, size_t x)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_UNARY);

    op.op.name = ir->ops[k].op.name;
    op.op.act = act;
    op.op.act_a = a;
    op.op.act_b = b;
    op.op.in[0] = x;
    op.op.out[0] = ir->ops[k].op.out[0];
    ir->ops[k] = op; /* what fed it is dead now, see mdl_ir_drop_dead() */
}

static bool same_shape(const struct mdl_ir *ir, size_t x, size_t k)
{
    return mdl_ir_same_dims(&ir->values[x], &ir->values[ir->ops[k].op.out[0]]) &&
           ir->values[x].dtype == MDL_F32;
}

/* x * sigmoid(x), x * hard_sigmoid(x) */
static bool gate(struct mdl_ir *ir, size_t k)
{
    for (size_t i = 0; i < 2; i++) {
        size_t g = ir->ops[k].op.in[i], x = ir->ops[k].op.in[1 - i];
        const struct mdl_ir_op *op = producer(ir, g, MDL_OP_UNARY);

        if (!op || op->op.in[0] != x || !is_private(ir, g) || !same_shape(ir, x, k)) {
            continue;
        }
        if (op->op.act == MDL_ACT_SIGMOID) {
            become(ir, k, MDL_ACT_SILU, 0, 0, x);
            return true;
        }
        if (op->op.act == MDL_ACT_HARD_SIGMOID && fabsf(op->op.act_a - 1.0f / 6) < 1e-6f &&
            op->op.act_b == 0.5f) {
            become(ir, k, MDL_ACT_HARD_SWISH, 0, 0, x);
            return true;
        }
    }
    return false;
}

/* x * clip(x + 3, 0, 6) / 6, divided last */
static bool divided_last(struct mdl_ir *ir, size_t k)
{
    const struct mdl_ir_op *product;
    size_t t, x;

    if (!is_sixth(ir, ir->ops[k].op.out[0], &t) || !is_private(ir, t)) {
        return false;
    }
    product = producer(ir, t, MDL_OP_BINARY);
    if (!product || product->op.attr.binary != MDL_BIN_MUL) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        if (is_clipped(ir, product->op.in[i], &x) && x == product->op.in[1 - i] &&
            same_shape(ir, x, k)) {
            become(ir, k, MDL_ACT_HARD_SWISH, 0, 0, x);
            return true;
        }
    }
    return false;
}

/* clip(x + 3, 0, 6) / 6 */
static bool hard_sigmoid(struct mdl_ir *ir, size_t k)
{
    size_t t, x;

    if (!is_sixth(ir, ir->ops[k].op.out[0], &t) || !is_clipped(ir, t, &x) ||
        !same_shape(ir, x, k)) {
        return false;
    }
    become(ir, k, MDL_ACT_HARD_SIGMOID, 1.0f / 6, 0.5f, x);
    return true;
}

/* Gelu and others */
static bool product_of_gate(struct mdl_ir *ir, size_t k)
{
    enum mdl_act act;
    size_t x;
    float a;

    if (!mdl_fuse_gelu(ir, ir->ops[k].op.out[0], &x, &act, &a) || !same_shape(ir, x, k)) {
        return false;
    }
    become(ir, k, act, a, 0, x);
    return true;
}

int mdl_fuse_patterns(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];

        if (op->dead || op->kind != MDL_OP_BINARY || op->op.act != MDL_ACT_NONE) {
            continue;
        }
        if (op->op.attr.binary == MDL_BIN_MUL && gate(ir, k)) {
            continue;
        }
        if (!hard_sigmoid(ir, k) && !divided_last(ir, k) &&
            (op->op.attr.binary == MDL_BIN_MUL || op->op.attr.binary == MDL_BIN_DIV)) {
            product_of_gate(ir, k);
        }
    }
    mdl_ir_drop_dead(ir);
    return 0;
}
