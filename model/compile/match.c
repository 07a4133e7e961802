/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that find patterns of ops. */
#include <math.h>

#include "model/compile/passes.h"

struct mdl_ir_op *mdl_match_producer(struct mdl_ir *ir, size_t v, int kind)
{
    struct mdl_ir_op *op = mdl_ir_writer(ir, v);

    return op && op->kind == kind && (kind == MDL_OP_UNARY || op->op.act == MDL_ACT_NONE) &&
                   op->op.residual == MDL_RESIDUAL_NONE
               ? op
               : NULL;
}

struct mdl_ir_op *mdl_match_binary(struct mdl_ir *ir, size_t v, enum mdl_binary which)
{
    struct mdl_ir_op *op = mdl_match_producer(ir, v, MDL_OP_BINARY);

    return op && op->op.attr.binary == which && !op->op.quant ? op : NULL;
}

struct mdl_ir_op *mdl_match_unary(struct mdl_ir *ir, size_t v, enum mdl_act act)
{
    struct mdl_ir_op *op = mdl_match_producer(ir, v, MDL_OP_UNARY);

    return op && op->op.act == act ? op : NULL;
}

struct mdl_ir_op *mdl_match_view(struct mdl_ir *ir, size_t v, enum mdl_view_kind kind)
{
    struct mdl_ir_op *op = mdl_match_producer(ir, v, MDL_IR_VIEW);

    return op && op->view.kind == kind ? op : NULL;
}

bool mdl_match_private(const struct mdl_ir *ir, size_t v)
{
    return ir->values[v].uses <= 1 && !ir->values[v].output;
}

bool mdl_match_const_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    switch (op->kind) {
    case MDL_OP_CONV:
    case MDL_OP_CONV_TRANSPOSE:
    case MDL_OP_GEMM:
    case MDL_OP_MATMUL:
        return mdl_ir_is_const(ir, op->op.in[1]) && op->op.in[2] == MDL_NONE;
    default:
        return false;
    }
}

size_t mdl_match_unspread(struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_op *view = mdl_match_view(ir, v, MDL_VIEW_EXPAND);

    return view ? view->op.in[0] : v;
}

bool mdl_match_number(struct mdl_ir *ir, size_t v, double *ret)
{
    const struct mdl_ir_value *c = &ir->values[mdl_match_unspread(ir, v)];

    if (!c->data || c->dtype != MDL_F32 || mdl_ir_elements(c) != 1) {
        return false;
    }
    *ret = mdl_const_real(c, 0);
    return true;
}

bool mdl_match_near(double a, double b)
{
    return fabs(a - b) <= 2e-6 * fabs(b);
}

bool mdl_match_is(struct mdl_ir *ir, size_t v, double number)
{
    double c;

    return mdl_match_number(ir, v, &c) && mdl_match_near(c, number);
}

static bool multiply(struct mdl_ir *ir, size_t v, bool may_open, struct mdl_match_product *p);

/* x^2, x^3, ... */
static bool multiply_power(struct mdl_ir *ir, const struct mdl_ir_op *op,
                           struct mdl_match_product *p)
{
    double n;

    if (!mdl_match_number(ir, op->op.in[1], &n) || n < 1 || n > MDL_MATCH_FACTORS ||
        n != floor(n)) {
        return false;
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        if (!multiply(ir, op->op.in[0], false, p)) {
            return false;
        }
    }
    return true;
}

static bool multiply(struct mdl_ir *ir, size_t v, bool may_open, struct mdl_match_product *p)
{
    const struct mdl_ir_op *op;
    double c;

    if (mdl_match_number(ir, v, &c)) {
        p->factor *= c;
        return true;
    }
    if (may_open) {
        op = mdl_match_binary(ir, v, MDL_BIN_MUL);
        if (op) {
            size_t a = op->op.in[0], b = op->op.in[1];

            return multiply(ir, a, mdl_match_private(ir, a), p) &&
                   multiply(ir, b, mdl_match_private(ir, b), p);
        }
        op = mdl_match_binary(ir, v, MDL_BIN_DIV);
        if (op && mdl_match_number(ir, op->op.in[1], &c) && c != 0) {
            p->factor /= c;
            return multiply(ir, op->op.in[0], mdl_match_private(ir, op->op.in[0]), p);
        }
        op = mdl_match_binary(ir, v, MDL_BIN_POW);
        if (op) {
            struct mdl_match_product opened = *p;

            if (multiply_power(ir, op, &opened)) {
                *p = opened;
                return true;
            }
        }
    }
    if (p->count == MDL_MATCH_FACTORS) {
        return false;
    }
    p->value[p->count++] = v;
    return true;
}

bool mdl_match_product(struct mdl_ir *ir, size_t v, struct mdl_match_product *ret)
{
    *ret = (struct mdl_match_product){.factor = 1};
    return multiply(ir, v, true, ret);
}

bool mdl_match_scaled(struct mdl_ir *ir, size_t v, double number, size_t *ret_x)
{
    struct mdl_match_product p;

    if (!mdl_match_product(ir, v, &p) || p.count != 1 || !mdl_match_near(p.factor, number)) {
        return false;
    }
    *ret_x = p.value[0];
    return true;
}

bool mdl_match_plus(struct mdl_ir *ir, size_t v, double number, size_t *ret_x)
{
    const struct mdl_ir_op *op = mdl_match_binary(ir, v, MDL_BIN_ADD);

    for (size_t i = 0; op && i < 2; i++) {
        if (mdl_match_is(ir, op->op.in[i], number)) {
            *ret_x = op->op.in[1 - i];
            return true;
        }
    }
    return false;
}
