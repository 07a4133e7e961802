/* SPDX-License-Identifier: Apache-2.0 */
/* [..., K] x [K, N] is computed as one product of all rows, and its result is then reshaped. What
 * follows element by element (a bias, an activation, a residual sum) goes before that reshape, so
 * that it can join the product. */
#include "model/compile/passes.h"
#include "model/ir/build.h"

#define STEPS_MAX 4u

/* Return: whether @v, of rank 2, is a product, or made from one by what went before a reshape. */
static bool is_rows(struct mdl_ir *ir, size_t v, size_t steps)
{
    const struct mdl_ir_op *op = mdl_ir_writer(ir, v);

    if (!op || op->op.quant || ir->values[v].rank != 2 || ir->values[v].dtype != MDL_F32) {
        return false;
    }
    if (op->kind == MDL_OP_GEMM) {
        return true;
    }
    for (size_t i = 0; steps > 0 && i < 2; i++) {
        if ((op->kind == MDL_OP_BINARY || (op->kind == MDL_OP_UNARY && i == 0)) &&
            is_rows(ir, op->op.in[i], steps - 1)) {
            return true;
        }
    }
    return false;
}

/* The reshape after the rows that @v is; NULL: it is none, or something else reads it, too. */
static const struct mdl_ir_op *rows_before(struct mdl_ir *ir, size_t v, size_t y)
{
    const struct mdl_ir_op *view = mdl_match_view(ir, v, MDL_VIEW_RESHAPE);
    const struct mdl_ir_value *x = &ir->values[v];

    return view && x->rank > 2 && mdl_match_private(ir, v) &&
                   mdl_match_private(ir, view->op.in[0]) && mdl_ir_same_dims(x, &ir->values[y]) &&
                   is_rows(ir, view->op.in[0], STEPS_MAX) &&
                   ir->values[view->op.in[0]].dim[1] == x->dim[x->rank - 1]
               ? view
               : NULL;
}

/* The other operand for rows of @dim: a constant per column, or a value of y's shape; MDL_NONE if
 * it is neither. */
static size_t other_rows(struct mdl_ir *ir, size_t other, size_t y, const size_t *dim)
{
    size_t from = mdl_match_unspread(ir, other);
    const struct mdl_ir_value v = ir->values[from];
    size_t columns[2] = {1, v.rank ? v.dim[v.rank - 1] : 1};
    bool fits = v.data ? mdl_ir_elements(&v) == columns[1]
                       : from == other && mdl_ir_same_dims(&ir->values[other], &ir->values[y]) &&
                             !mdl_match_view(ir, other, MDL_VIEW_PERMUTE);

    return !fits    ? MDL_NONE
           : v.data ? mdl_ir_repeat(ir, mdl_ir_reshape(ir, from, 2, columns), 2, dim)
                    : mdl_ir_reshape(ir, other, 2, dim);
}

bool mdl_fuse_rows(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    struct mdl_ir_op fresh = *op, back = mdl_ir_op_make(ir, MDL_IR_VIEW);
    size_t y = op->op.out[0], inputs = op->kind == MDL_OP_BINARY ? 2 : 1;
    const struct mdl_ir_op *view = NULL;

    if ((op->kind != MDL_OP_BINARY && op->kind != MDL_OP_UNARY) || op->op.quant ||
        (op->kind == MDL_OP_UNARY && op->op.act >= MDL_ACT_SELU) ||
        (op->kind == MDL_OP_BINARY && op->op.attr.binary > MDL_BIN_DIV) ||
        ir->values[y].dtype != MDL_F32) {
        return false;
    }
    for (size_t i = 0; i < inputs && !view; i++) {
        view = rows_before(ir, op->op.in[i], y);
        if (view) {
            const struct mdl_ir_value x = ir->values[view->op.in[0]];

            fresh.op.in[i] = view->op.in[0];
            if (inputs == 2) {
                fresh.op.in[1 - i] = other_rows(ir, op->op.in[1 - i], y, x.dim);
            }
            if (inputs == 2 && fresh.op.in[1 - i] == MDL_NONE) {
                return false;
            }
            fresh.op.out[0] = mdl_ir_value_new(ir, x.dtype, 2, x.dim);
        }
    }
    if (!view) {
        return false;
    }
    back.view.kind = MDL_VIEW_RESHAPE;
    back.op.in[0] = fresh.op.out[0];
    back.op.out[0] = y;
    mdl_ir_op_add(ir, &fresh);
    mdl_ir_op_add(ir, &back);
    return true;
}
