/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/rows.h - lengths that depend on the data
 *
 * How many rows NonMaxSuppression or NonZero find is known only when they run. Such a value has its
 * largest length as its dim, and names the value that holds how many of its rows are valid
 * (value.rows, along value.rows_dim). Each op that reads it passes the count on, or is given a copy
 * whose other rows do not change its result, or is refused. What the other rows hold is defined,
 * but means nothing; at a model's output they are zeros.
 *
 * For model/ only.
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_rows_set() - says that @rows (i64, one element) holds the valid rows of @v along @dim. */
void mdl_rows_set(struct mdl_ir *ir, size_t v, size_t dim, size_t rows);
/** mdl_rows_limit() - leaves at most @rows valid rows along @dim. Return: @v. */
size_t mdl_rows_limit(struct mdl_ir *ir, size_t v, size_t dim, size_t rows);
/** mdl_rows_alias() - another value with the elements of @v, to be given rows of its own. */
size_t mdl_rows_alias(struct mdl_ir *ir, size_t v);
/** mdl_rows_along() - Return: whether the length of @v along @axis depends on the data. */
bool mdl_rows_along(const struct mdl_ir *ir, size_t v, size_t axis);
/** mdl_rows_fixed() - refuses a length of @v along @axis that depends on the data. */
void mdl_rows_fixed(struct mdl_ir *ir, size_t v, size_t axis);
/** mdl_rows_fill() - a copy of @v whose rows after the valid ones hold @fill; all are valid. */
size_t mdl_rows_fill(struct mdl_ir *ir, size_t v, double fill);
/** mdl_rows_dim() - element @i of the computed integers @v as a length: *ret_most is the bound, or
 * what it is if *ret_rows is MDL_NONE. Refused if no bound is known. */
void mdl_rows_dim(struct mdl_ir *ir, size_t v, size_t i, int64_t *ret_most, size_t *ret_rows);
/** mdl_rows_trace() - follows element *i of the computed integers *v to the value that it was taken
 * from. */
void mdl_rows_trace(const struct mdl_ir *ir, size_t *v, size_t *i);
/** mdl_rows_concat() - concatenates along @axis values of which some have counted rows there. */
size_t mdl_rows_concat(struct mdl_ir *ir, const size_t *in, size_t count, size_t axis);
/** mdl_rows_same() - Return: whether two counts are equal, because they are computed the same way
 * from the same. */
bool mdl_rows_same(const struct mdl_ir *ir, size_t a, size_t b);
/** mdl_rows_int() - an i64 constant of one dim and one element, as counts are. */
size_t mdl_rows_int(struct mdl_ir *ir, int64_t value);
/** mdl_rows_refuse() - refuses a use of @v, whose rows are counted. */
_Noreturn void mdl_rows_refuse(struct mdl_ir *ir, size_t v);

/* bounds.c: a length that depends on the data has a bound. Arithmetic on it (a shape, the smaller
 * of it and a constant) is carried out on the bounds too, so that what uses it as a dim knows how
 * large that can get. */

/** mdl_bounds_of() - sets least and most of the result of @op where those of its inputs are known;
 * a larger value than a shape has none. */
void mdl_bounds_of(struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_bounds_decide() - compares @a and @b: a constant where every element can have but one
 * result, else MDL_NONE. @which: MDL_BIN_EQUAL, LESS or GREATER */
size_t mdl_bounds_decide(struct mdl_ir *ir, enum mdl_binary which, size_t a, size_t b);

/* no_rows.c: is there any row? */

/** mdl_rows_asks() - Return: whether the boolean @v tells only if a count is 0. *ret_count: it;
 * *ret_none: what @v is where it is 0. */
bool mdl_rows_asks(const struct mdl_ir *ir, size_t v, size_t *ret_count, bool *ret_none);
/** mdl_rows_none_if() - Return: whether @v has no valid rows where @count is 0. */
bool mdl_rows_none_if(const struct mdl_ir *ir, size_t v, size_t count);

/* row_rules.c: what each op does with counted rows; for ir.hooks */
extern const struct mdl_ir_hooks mdl_rows_hooks;
