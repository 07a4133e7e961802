/* SPDX-License-Identifier: Apache-2.0 */
/* Which order of dimensions a value has in memory. */
#include "base/base.h"
#include "model/compile/layout.h"
#include "model/ir/strides.h"

static bool has_zero_stride(const struct mdl_ir_value *v)
{
    for (size_t i = 0; i < v->rank; i++) {
        if (v->dim[i] > 1 && v->stride[i] == 0) {
            return true;
        }
    }
    return false;
}

/* What attention writes is mostly read as its queries were made: heads beside each other. Its last
 * dim stays the innermost, as primitives write whole vectors. */
static void order_of_attention(const struct mdl_ir_value *q, size_t rank, size_t *order)
{
    size_t kept = 0;

    mdl_order_rows(rank, order);
    if (has_zero_stride(q)) {
        return;
    }
    mdl_order_of(rank, q->dim, q->stride, order);
    for (size_t i = 0; i < rank; i++) {
        if (order[i] != rank - 1) {
            order[kept++] = order[i];
        }
    }
    order[kept] = rank - 1;
}

/* Order of an op's outputs. */
void mdl_layout_order(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t out,
                      size_t *order)
{
    const struct mdl_ir_value *y = &ir->values[out], *best = NULL;

    if (mdl_ir_is_spatial(ir, op)) {
        mdl_order_channels_last(y->rank, order);
        return;
    }
    if (op->kind == MDL_OP_ATTENTION && !y->output) {
        order_of_attention(&ir->values[op->op.in[0]], y->rank, order);
        return;
    }
    if (mdl_op_is(op->kind, MDL_OP_FOLLOWS)) {
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            size_t in = op->op.in[i];
            const struct mdl_ir_value *x = in == MDL_NONE ? NULL : &ir->values[in];

            if (!x || x->rank != y->rank || has_zero_stride(x) ||
                (op->kind != MDL_OP_PAD && !mdl_ir_same_dims(x, y))) {
                continue;
            }
            /* constants do not decide: their order is the file's */
            if (!best || (best->data && !x->data)) {
                best = x;
            }
        }
    }
    /* An output is written row-major directly, except for images: copying them afterwards is faster
     * than element functions across layouts. */
    if (best && (!y->output || mdl_strides_nhwc(best->rank, best->dim, best->stride))) {
        mdl_order_of(best->rank, best->dim, best->stride, order);
    } else {
        mdl_order_rows(y->rank, order);
    }
}
