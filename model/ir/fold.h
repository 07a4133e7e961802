/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/fold.h - evaluates ops whose inputs are all constant
 *
 * This room evaluates integer arithmetic on shapes, moves, and simple arithmetic on floats;
 * options->const_eval evaluates ops that need a primitive. Both share a budget of bytes and of work
 * (struct mdl_ir).
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_fold_op() - evaluates @op, whose inputs are all constant. Return: false if it cannot be
 * folded and must run. */
bool mdl_fold_op(struct mdl_ir *ir, const struct mdl_ir_op *op);
bool mdl_fold_view(struct mdl_ir *ir, const struct mdl_ir_op *op);
bool mdl_fold_eval(struct mdl_ir *ir, const struct mdl_ir_op *op); /* by a primitive */
bool mdl_fold_concat(struct mdl_ir *ir, const struct mdl_ir_op *op);

/* ---- one kind of op each, in fold_arith.c; for fold.c ---- */
bool mdl_fold_binary(struct mdl_ir *ir, const struct mdl_ir_op *op);
bool mdl_fold_unary(struct mdl_ir *ir, const struct mdl_ir_op *op);
bool mdl_fold_reduce(struct mdl_ir *ir, const struct mdl_ir_op *op);
