/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/bounds.h - the least and the most that computed lengths can be
 *
 * A length that depends on the data has a bound. Arithmetic on it (a shape, the smaller of it and a
 * constant) is carried out on the bounds too, so that what uses it as a dim knows how large that
 * can get. For model/ only.
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_bounds_of() - sets least and most of the result of @op where those of its inputs are known;
 * a larger value than a shape has none. */
void mdl_bounds_of(struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_bounds_decide() - compares @a and @b: a constant where every element can have but one
 * result, else MDL_NONE. @which: MDL_BIN_EQUAL, LESS or GREATER */
size_t mdl_bounds_decide(struct mdl_ir *ir, enum mdl_binary which, size_t a, size_t b);
