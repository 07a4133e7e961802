/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "kernels/kernels.h"

int krn_const_eval(const struct mdl_model *m, void *arena)
{
    const struct mdl_op *op = &m->ops[0];
    struct krn_mem mem = {.arena = arena};
    struct krn_call call = {.model = m, .op = op, .width = 1};
    const struct krn_primitive *v = NULL, *table;
    base_autofree void *scratch = NULL;
    size_t count;

    table = krn_primitives(&count);
    for (size_t i = 0; i < count && !v; i++) {
        v = table[i].reference && table[i].kind == op->kind ? &table[i] : NULL;
    }
    if (!v || !v->supports(m, op)) {
        return -EOPNOTSUPP;
    }
    if (krn_writes_nothing(m, 0)) {
        return 0;
    }
    if (v->scratch_bytes) {
        scratch = aligned_alloc(64, base_align_up(v->scratch_bytes(m, op, 1) + 1, 64));
        if (!scratch) {
            return -ENOMEM;
        }
        call.scratch = scratch;
    }
    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        call.in[k] = op->in[k] == MDL_NONE ? NULL : krn_tensor_ptr(m, op->in[k], &mem);
    }
    for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
        call.out[k] = op->out[k] == MDL_NONE ? NULL : krn_tensor_ptr(m, op->out[k], &mem);
    }
    if (op->residual != MDL_RESIDUAL_NONE) {
        call.residual = krn_tensor_ptr(m, op->residual_in, &mem);
    }
    v->run(&call);
    return 0;
}
