/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/build.h - makes ops; an op whose inputs are all constant is evaluated at once
 *
 * So shape arithmetic in an ONNX file never becomes an op of the model.
 *
 * What makes a value returns it. At most one argument of a call may make a value: which comes first
 * is not defined.
 */
#pragma once

#include "model/ir/ir.h"

size_t mdl_ir_emit(struct mdl_ir *ir, struct mdl_ir_op *op, enum mdl_dtype dtype, size_t rank,
                   const size_t *dim);
size_t mdl_ir_permute(struct mdl_ir *ir, size_t x, const size_t *perm);
/** mdl_ir_slice() - @step: NULL: 1 along each dim */
size_t mdl_ir_slice(struct mdl_ir *ir, size_t x, const size_t *start, const ptrdiff_t *step,
                    const size_t *dim);
/** mdl_ir_part() - @count elements of dim @axis, from @start on */
size_t mdl_ir_part(struct mdl_ir *ir, size_t x, size_t axis, size_t start, size_t count);
size_t mdl_ir_expand(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim);
/** mdl_ir_repeat() - as mdl_ir_expand(), by stride 0 for a constant, too */
size_t mdl_ir_repeat(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim);
/** mdl_ir_spread() - broadcasts @count operands of one op to a common shape: by stride 0, or, if
 * all are constant and the op will be folded, by copying. */
void mdl_ir_spread(struct mdl_ir *ir, const size_t *x, size_t count, size_t rank, const size_t *dim,
                   size_t *ret);
/** mdl_ir_where() - x[1] where the boolean x[0] is true, else x[2]; each broadcast to @dim */
size_t mdl_ir_where(struct mdl_ir *ir, const size_t x[3], size_t rank, const size_t *dim);
size_t mdl_ir_reshape(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim);
/** mdl_ir_reshape_rows() - as mdl_ir_reshape(); dim @at - 1 of the result is the one of @x whose
 * length depends on the data (0: not known). It matters where others are 1, too. */
size_t mdl_ir_reshape_rows(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim, size_t at);
/** mdl_ir_drop_dims() - removes the dims of 1 that @drop marks. */
size_t mdl_ir_drop_dims(struct mdl_ir *ir, size_t x, const bool *drop);
/** mdl_ir_new_dims() - dims of 1 where @fresh marks them; @rank: of the result. */
size_t mdl_ir_new_dims(struct mdl_ir *ir, size_t x, size_t rank, const bool *fresh);
size_t mdl_ir_concat(struct mdl_ir *ir, const size_t *in, size_t count, size_t axis);
size_t mdl_ir_cast(struct mdl_ir *ir, size_t x, enum mdl_dtype dtype);
/** mdl_ir_binary() - makes a binary op; broadcasts both inputs to the common shape; types must
 * agree. */
size_t mdl_ir_binary(struct mdl_ir *ir, enum mdl_binary which, size_t a, size_t b);
size_t mdl_ir_unary(struct mdl_ir *ir, enum mdl_act act, float a, float b, size_t x);
size_t mdl_ir_reduce(struct mdl_ir *ir, enum mdl_reduce which, size_t x, const bool *axes,
                     bool keep_dims);
size_t mdl_ir_scalar(struct mdl_ir *ir, enum mdl_dtype dtype, double value);
/** mdl_ir_broadcast() - the common shape of @count shapes by numpy's rules. Return: its rank. */
size_t mdl_ir_broadcast(struct mdl_ir *ir, const size_t *values, size_t count,
                        size_t ret_dim[MDL_RANK_MAX]);

/* ---- fold.c: ops whose inputs are all constant ---- */

/** mdl_fold_op() - evaluates @op, whose inputs are all constant. Return: false if it cannot be
 * folded and must run. */
bool mdl_fold_op(struct mdl_ir *ir, const struct mdl_ir_op *op);
bool mdl_fold_eval(struct mdl_ir *ir, const struct mdl_ir_op *op); /* by a primitive */
