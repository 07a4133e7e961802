/* SPDX-License-Identifier: Apache-2.0 */
/* Moves DequantizeLinear behind views, concats and maximum pools, which then work on the integers,
 * and removes a QuantizeLinear that only undoes a DequantizeLinear. */
#include <math.h>

#include "model/ir/build.h"
#include "model/quant/quant_private.h"

bool mdl_quant_param(const struct mdl_ir *ir, const struct mdl_ir_op *op, struct mdl_qparam *ret)
{
    const struct mdl_ir_value *scale, *zero;
    size_t q;

    if (!op || (op->kind != MDL_OP_QUANTIZE && op->kind != MDL_OP_DEQUANTIZE)) {
        return false;
    }
    q = op->kind == MDL_OP_QUANTIZE ? op->op.out[0] : op->op.in[0];
    ret->dtype = ir->values[q].dtype;
    scale = &ir->values[op->op.in[1]];
    zero = op->op.in[2] == MDL_NONE ? NULL : &ir->values[op->op.in[2]];
    if ((ret->dtype != MDL_U8 && ret->dtype != MDL_I8) || !scale->data ||
        mdl_ir_elements(scale) != 1 || (zero && (!zero->data || mdl_ir_elements(zero) != 1))) {
        return false;
    }
    ret->scale = (float)mdl_const_real(scale, 0);
    ret->zero = zero ? (int32_t)mdl_const_int(zero, 0) : 0;
    return isfinite(ret->scale) && ret->scale > 0;
}

bool mdl_quant_source(const struct mdl_ir *ir, size_t v, size_t *ret_q, struct mdl_qparam *ret)
{
    const struct mdl_ir_op *op = mdl_ir_writer(ir, v);

    if (!op || op->kind != MDL_OP_DEQUANTIZE || !mdl_quant_param(ir, op, ret)) {
        return false;
    }
    *ret_q = op->op.in[0];
    return true;
}

static size_t scalar_of_rank(struct mdl_ir *ir, enum mdl_dtype dtype, double value, size_t rank)
{
    size_t dim[MDL_RANK_MAX];

    for (size_t i = 0; i < rank; i++) {
        dim[i] = 1;
    }
    return mdl_ir_reshape(ir, mdl_ir_scalar(ir, dtype, value), rank, dim);
}

size_t mdl_quant_add(struct mdl_ir *ir, enum mdl_op_kind kind, size_t v, const struct mdl_qparam *p,
                     size_t y)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, (int)kind);
    const struct mdl_ir_value x = ir->values[v];
    enum mdl_dtype dtype = kind == MDL_OP_QUANTIZE ? p->dtype : MDL_F32;

    op.op.in[1] = scalar_of_rank(ir, MDL_F32, (double)p->scale, x.rank);
    op.op.in[2] = scalar_of_rank(ir, p->dtype, p->zero, x.rank);
    if (y == MDL_NONE) {
        y = mdl_ir_value_new(ir, dtype, x.rank, x.dim);
        ir->values[y].name = x.name;
    }
    op.op.in[0] = v;
    op.op.out[0] = y;
    op.op.name = (char *)(uintptr_t)x.name;
    mdl_ir_op_add(ir, &op);
    return y;
}

static bool same_param(const struct mdl_qparam *a, const struct mdl_qparam *b)
{
    return a->scale == b->scale && a->zero == b->zero && a->dtype == b->dtype;
}

/* If all inputs of a concat are dequantised alike, replaces them by their quantised values. */
static bool concat_sources(const struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_qparam *ret)
{
    struct mdl_qparam p;
    size_t q;

    for (size_t i = 0; i < op->concat_count; i++) {
        if (!mdl_quant_source(ir, op->concat_in[i], &q, i ? &p : ret) ||
            (i && !same_param(&p, ret))) {
            return false;
        }
    }
    for (size_t i = 0; i < op->concat_count; i++) {
        mdl_quant_source(ir, op->concat_in[i], &op->concat_in[i], &p);
    }
    return op->concat_count > 0;
}

/* Return: whether @op can work on integers; if so, its inputs are replaced. */
static bool take_sources(const struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_qparam *ret)
{
    size_t q;

    if (op->kind == MDL_IR_CONCAT) {
        return concat_sources(ir, op, ret);
    }
    if ((op->kind != MDL_IR_VIEW && op->kind != MDL_OP_MAX_POOL) || op->op.out[1] != MDL_NONE ||
        op->op.act != MDL_ACT_NONE || op->op.residual != MDL_RESIDUAL_NONE ||
        !mdl_quant_source(ir, op->op.in[0], &q, ret)) {
        return false;
    }
    op->op.in[0] = q;
    return true;
}

static void sink_one(struct mdl_ir *ir, struct mdl_ir_op *op, const struct mdl_qparam *p)
{
    size_t y = op->op.out[0];

    op->op.out[0] = mdl_ir_value_new(ir, p->dtype, ir->values[y].rank, ir->values[y].dim);
    ir->values[op->op.out[0]].name = ir->values[y].name;
    if (op->kind != MDL_IR_VIEW || !ir->values[op->op.in[0]].data || !mdl_fold_op(ir, op)) {
        mdl_ir_op_add(ir, op);
    }
    mdl_quant_add(ir, MDL_OP_DEQUANTIZE, op->op.out[0], p, y);
}

static void sink_ops(struct mdl_ir *ir, const struct mdl_ir_op *ops, size_t count, size_t *instead,
                     size_t values)
{
    for (size_t k = 0; k < count; k++) {
        struct mdl_ir_op op = ops[k];
        struct mdl_qparam p, from;
        size_t q;

        if (op.dead) {
            continue;
        }
        for (size_t at = 0, *v; (v = mdl_ir_input(&op, &at));) {
            *v = *v < values ? instead[*v] : *v;
        }
        if (op.kind == MDL_OP_QUANTIZE && !ir->values[op.op.out[0]].output &&
            mdl_quant_param(ir, &op, &p) && mdl_quant_source(ir, op.op.in[0], &q, &from) &&
            same_param(&p, &from)) {
            ir->values[op.op.out[0]].op = MDL_NONE;
            instead[op.op.out[0]] = q;
        } else if (take_sources(ir, &op, &p)) {
            sink_one(ir, &op, &p);
        } else {
            mdl_ir_op_add(ir, &op);
        }
    }
}

bool mdl_quant_any(const struct mdl_ir *ir)
{
    bool any = false;

    for (size_t k = 0; k < ir->op_count; k++) {
        any |= !ir->ops[k].dead && ir->ops[k].kind == MDL_OP_DEQUANTIZE;
    }
    return any;
}

void mdl_quant_sink(struct mdl_ir *ir)
{
    const struct mdl_ir_op *ops;
    size_t count, values = ir->value_count, *instead;

    if (!mdl_quant_any(ir)) {
        return;
    }
    instead = mdl_ir_alloc(ir, values, sizeof(*instead));
    for (size_t i = 0; i < values; i++) {
        instead[i] = i;
    }
    ops = mdl_ir_take_ops(ir, &count);
    sink_ops(ir, ops, count, instead, values);
}
