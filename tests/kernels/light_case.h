/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/light_case.h - random tensors and epilogues of memory-bound operators
 */
#pragma once

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/check_values.h"

/* Runs the case and frees it. Return: true, or false after printing the failure */
static inline bool light_finish(struct one_op *o, const struct check *c)
{
    bool ok = check_run(o, c);

    one_op_free(o);
    return ok;
}

/* Return: a pixel stride for @c channels, for one_op_image(): dense (0), or a little wider */
static inline size_t light_maybe_wider(size_t c)
{
    return t_range(0, 2) == 0 ? c + (size_t)t_range(1, 9) : 0;
}

/* the epilogues that fusion may give an operator without weights */
static inline void light_epilogue(struct one_op *o, enum mdl_act act, enum mdl_residual residual)
{
    check_epilogue(o, 1, act, residual);
    o->op.scale = o->op.shift = NULL;
    o->op.channels = 0;
}

/* Adds a tensor of @dim, with strides in the order of @nhwc, @gap elements between the innermost
 * rows, and 0 for a dimension whose bit is set in @broadcast. Return: its index */
static inline size_t light_tensor(struct one_op *o, const size_t *dim, bool nhwc, size_t gap,
                                  unsigned broadcast)
{
    static const size_t inner_first[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
    ptrdiff_t stride[4], next = 1;

    for (size_t i = 0; i < 4; i++) {
        size_t d = inner_first[nhwc][i];

        stride[d] = broadcast >> d & 1 ? 0 : next;
        if (!(broadcast >> d & 1)) {
            next = next * (ptrdiff_t)dim[d] + (i == 0 ? (ptrdiff_t)gap : 0);
        }
    }
    return one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 4, dim, stride);
}

/* 4 random sizes */
static inline void light_dims(size_t *dim)
{
    dim[0] = (size_t)t_range(1, 2);
    dim[1] = (size_t)t_range(1, 40);
    dim[2] = (size_t)t_range(1, 7);
    dim[3] = (size_t)t_range(1, 40);
}
