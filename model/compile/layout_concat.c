/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a Concat are written where they belong. */
#include "model/compile/passes.h"
#include "model/ir/strides.h"

/* [x0..xk] inside a later [x0..xk, ...]: the later one then holds the first as its first part (a
 * dense block writes every prefix of its growing list). */
void mdl_layout_nest_concats(struct mdl_ir *ir)
{
    enum { LOOK_AHEAD = 64 };

    for (size_t a = 0; a < ir->op_count; a++) {
        const struct mdl_ir_op *inner = &ir->ops[a];

        if (inner->dead || inner->kind != MDL_IR_CONCAT) {
            continue;
        }
        for (size_t b = a + 1, seen = 0; b < ir->op_count && seen < LOOK_AHEAD; b++) {
            struct mdl_ir_op *outer = &ir->ops[b];

            if (outer->dead || outer->kind != MDL_IR_CONCAT) {
                continue;
            }
            seen++;
            if (outer->concat_axis != inner->concat_axis ||
                outer->concat_count <= inner->concat_count ||
                memcmp(outer->concat_in, inner->concat_in,
                       inner->concat_count * sizeof(*inner->concat_in)) != 0) {
                continue;
            }
            outer->concat_in[0] = inner->op.out[0];
            for (size_t i = inner->concat_count; i < outer->concat_count; i++) {
                outer->concat_in[i - inner->concat_count + 1] = outer->concat_in[i];
            }
            outer->concat_count -= inner->concat_count - 1;
        }
    }
}

static bool same_order(size_t rank, const size_t *dim, const size_t *a, const size_t *b)
{
    size_t i = 0, k = 0;

    for (;;) {
        while (i < rank && dim[a[i]] == 1) {
            i++;
        }
        while (k < rank && dim[b[k]] == 1) {
            k++;
        }
        if (i == rank || k == rank) {
            return i == rank && k == rank;
        }
        if (a[i++] != b[k++]) {
            return false;
        }
    }
}

/* Return: whether the op that makes @v may write it with the strides of the concat @y. */
static bool may_be_part(const struct mdl_ir *ir, const struct mdl_ir_value *v,
                        const struct mdl_ir_value *y)
{
    const struct mdl_ir_op *op;

    if (v->op == MDL_NONE || v->data || v->output || v->concat != MDL_NONE) {
        return false;
    }
    op = &ir->ops[v->op];
    if (op->kind == MDL_IR_VIEW || op->op.out[0] == MDL_NONE || &ir->values[op->op.out[0]] != v) {
        return false;
    }
    if (op->kind != MDL_IR_CONCAT && mdl_ir_is_spatial(ir, op)) {
        return mdl_strides_nhwc(v->rank, v->dim, y->stride);
    }
    return same_order(v->rank, v->dim, v->order, y->order);
}

void mdl_layout_join_concats(struct mdl_ir *ir)
{
    for (size_t k = ir->op_count; k-- > 0;) {
        const struct mdl_ir_op *op = &ir->ops[k];
        struct mdl_ir_value *y;
        size_t at = 0;

        if (op->dead || op->kind != MDL_IR_CONCAT) {
            continue;
        }
        y = &ir->values[op->op.out[0]];
        if (y->concat != MDL_NONE) { /* part of an outer one, which has its strides by now */
            memcpy(y->stride, ir->values[y->concat].stride, sizeof(y->stride));
            memcpy(y->order, ir->values[y->concat].order, sizeof(y->order));
        }
        for (size_t i = 0; i < op->concat_count; i++) {
            struct mdl_ir_value *v = &ir->values[op->concat_in[i]];

            if (may_be_part(ir, v, y)) { /* a second mention finds v->concat set */
                v->concat = op->op.out[0];
                v->concat_axis = op->concat_axis;
                v->concat_at = at;
            }
            at += v->dim[op->concat_axis];
        }
    }
}
