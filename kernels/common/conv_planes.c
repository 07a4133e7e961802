/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/conv_planes.h"

#include "kernels/common/epilogue.h"

bool krn_planes_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_planes *ret)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (!krn_op_is_plain(op) || x->dtype != MDL_F32 || x->rank != 4 || y->rank != 4 ||
        x->stride[3] != 1 || op[1].kind != MDL_OP_CONV || op[1].in[0] != op->out[0]) {
        return false;
    }
    for (size_t d = 0; d < 4; d++) {
        if (x->dim[d] != y->dim[d]) {
            return false;
        }
    }
    *ret = (struct krn_planes){.batch = x->stride[0], .channel = x->stride[1], .row = x->stride[2]};
    return true;
}
