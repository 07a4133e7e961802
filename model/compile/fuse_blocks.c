/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/compile/passes.h"

/* Norms and attention as exporters wrote them before ONNX had operators for them. What replaces a
 * block may need views that did not exist, so all ops are written anew, in order: what an op reads
 * has been written before it. */

/* Return: whether a block has such an op. */
static bool is_of_block(const struct mdl_ir_op *op)
{
    return op->kind == MDL_OP_SOFTMAX || op->kind == MDL_OP_NORM || op->kind == MDL_OP_REDUCE ||
           op->kind == MDL_OP_GEMM;
}

int mdl_fuse_blocks(struct mdl_ir *ir)
{
    struct mdl_ir_op *ops = ir->ops;
    size_t count = ir->op_count;
    bool any = false;
    int r = 0;

    for (size_t k = 0; k < count; k++) {
        any |= !ops[k].dead && is_of_block(&ops[k]);
    }
    if (!any) {
        return 0;
    }
    ir->ops = NULL; /* the pool owns both */
    ir->op_count = ir->op_cap = 0;
    for (size_t k = 0; r == 0 && k < count; k++) {
        bool done = ops[k].dead;

        ir->node_name = ops[k].op.name;
        if (!done) {
            r = mdl_fuse_norm(ir, &ops[k], &done);
        }
        if (r == 0 && !done) {
            r = mdl_fuse_attention(ir, &ops[k], &done);
        }
        if (r == 0 && !done) {
            r = mdl_fuse_rows(ir, &ops[k], &done);
        }
        if (r == 0 && !done) {
            r = mdl_ir_op_add(ir, &ops[k]);
        }
    }
    mdl_ir_drop_dead(ir);
    return r;
}
