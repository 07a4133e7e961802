/* SPDX-License-Identifier: Apache-2.0 */
#include "model/op_bytes.h"

/* Bytes of a tensor that are there, if it is a constant as asked for, or none. */
static double tensor_bytes(const struct mdl_model *m, size_t index, bool constant)
{
    const struct mdl_tensor *t = index == MDL_NONE ? NULL : &m->tensors[index];
    double n;

    if (!t || (m->storages[t->storage].home == MDL_HOME_CONST) != constant) {
        return 0;
    }
    n = (double)mdl_dtype_bytes(t->dtype);
    for (size_t i = 0; i < t->rank; i++) {
        n *= t->stride[i] == 0 ? 1 : (double)t->dim[i];
    }
    return n;
}

double mdl_op_bytes(const struct mdl_model *m, const struct mdl_op *op, bool constant)
{
    double bytes = tensor_bytes(m, op->residual_in, constant);

    if (constant) {
        bytes += (double)op->channels * sizeof(float) * ((op->scale != NULL) + (op->shift != NULL));
    }
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        bytes += tensor_bytes(m, op->in[i], constant);
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        bytes += tensor_bytes(m, op->out[i], constant);
    }
    return bytes;
}
