/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/primitive_run.h - runs one primitive on a model of one operator
 *
 * Outputs are arrays of MDL_OP_OUT_MAX buffers, one for each output of the operator.
 */
#pragma once

#include "kernels/common/uneven.h"
#include "tests/kernels/one_op.h"

struct primitive_how {
    size_t width;
    pthreadpool_t pool;        /* of that width; NULL: the parts are done one after the other */
    struct krn_uneven *uneven; /* or of so many members, which divide as many parts; NULL: no */
    bool in_place;             /* output 0 shares memory with input 0 */
    bool residual_in_place;    /* output 0 shares memory with the residual */
};

/** primitive_reference() - Return: the reference of a kind of operators, NULL if there is none */
const struct krn_primitive *primitive_reference(enum mdl_op_kind kind);

/** primitive_poison() - makes each float of @t in @b NaN: one that is never written shows */
void primitive_poison(const struct mdl_tensor *t, struct one_op_buffer *b);

/** primitive_out_new() - makes guarded and poisoned buffers for all outputs of the operator */
void primitive_out_new(const struct one_op *o, struct one_op_buffer *out);
void primitive_out_free(struct one_op_buffer *out);

/**
 * primitive_run() - packs, prepares and runs a primitive
 * Return: whether the memory around its buffers is intact. Aborts if it cannot be prepared.
 */
bool primitive_run(const struct krn_primitive *v, struct one_op *o, struct one_op_buffer *out,
                   const struct primitive_how *how);

/**
 * primitive_magnitude() - S of every element of the outputs: the reference @ref on absolute
 * values, without the element function
 */
void primitive_magnitude(const struct krn_primitive *ref, struct one_op *o,
                         struct one_op_buffer *out);
