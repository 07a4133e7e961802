/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/norm_f32.h - the tensors of a NORM, for both of its primitives
 */
#pragma once

#include "kernels/primitive.h"

#define NORM_TENSORS 4u /* y, x, scale, bias */

/* y, x, scale and bias. Return: how many; 0: not all are f32 */
static inline size_t norm_tensors(const struct mdl_model *m, const struct mdl_op *op,
                                  const struct mdl_tensor *t[NORM_TENSORS])
{
    size_t count = 1;

    t[0] = &m->tensors[op->out[0]];
    while (count < NORM_TENSORS && op->in[count - 1] != MDL_NONE) {
        t[count] = &m->tensors[op->in[count - 1]];
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        if (t[i]->dtype != MDL_F32) {
            return 0;
        }
    }
    return op->act <= MDL_ACT_SOFTPLUS && op->residual == MDL_RESIDUAL_NONE ? count : 0;
}
