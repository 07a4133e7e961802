/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/compile/layout.h - the parts of the layout pass; for layout*.c alone
 *
 * layout.c walks the ops, layout_order.c chooses the order of a value's dims in memory,
 * layout_concat.c finds values that share memory with a concat, layout_place.c makes storages,
 * views and copies.
 */
#pragma once

#include "model/compile/passes.h"

/* ---- layout_order.c ---- */

/** mdl_layout_order() - chooses the order of @op's output @out. */
void mdl_layout_order(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t out,
                      size_t *order);

/* ---- layout_place.c ---- */

void mdl_layout_dense(struct mdl_ir_value *v, const size_t *order);
/** mdl_layout_view() - sets the strides (and, in the real walk, storage and offset) of a view.
 * Return: false if it needs a copy. */
bool mdl_layout_view(const struct mdl_ir_op *op, const struct mdl_ir_value *x,
                     struct mdl_ir_value *y);
size_t mdl_layout_storage(struct mdl_ir *ir, enum mdl_home home, size_t bytes);
/** mdl_layout_value() - places a value that an op writes: in the memory of its concat, or in its
 * own, in @order. */
void mdl_layout_value(struct mdl_ir *ir, size_t v, const size_t *order);
/** mdl_layout_leaf() - places a constant or model input; does nothing for other values. */
void mdl_layout_leaf(struct mdl_ir *ir, size_t v);
/** mdl_layout_run() - appends @op to the ops that run. */
void mdl_layout_run(struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_layout_run_copy() - appends a copy of @x to @y, called @name. */
void mdl_layout_run_copy(struct mdl_ir *ir, const char *name, size_t x, size_t y);
/** mdl_layout_copy() - adds a dense copy of @x in @order, made for @because. */
size_t mdl_layout_copy(struct mdl_ir *ir, const struct mdl_ir_op *because, size_t x,
                       const size_t *order);
/** mdl_layout_channels_last() - replaces *@x by the channels-last value that spatial operators
 * read. */
void mdl_layout_channels_last(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *x);
/** mdl_layout_row_major() - replaces *@x by a value in ONNX's order, for weights computed per
 * frame. */
void mdl_layout_row_major(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *x);

/* ---- layout_concat.c ---- */

/** mdl_layout_nest_concats() - a concat [x0..xk] whose inputs begin a later concat [x0..xk, ...]
 * becomes the first part of that one. */
void mdl_layout_nest_concats(struct mdl_ir *ir);
/** mdl_layout_join_concats() - finds the inputs of concats that can be written straight into the
 * concat's memory; needs strides from a trial walk. */
void mdl_layout_join_concats(struct mdl_ir *ir);
