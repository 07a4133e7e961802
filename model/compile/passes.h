/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/compile/passes.h - the compiler's passes from fusion on, in the order they run; for
 * model/compile/ only
 *
 * Fusion (fuse_patterns.c, fuse.c), layout (layout.c: strides, copies, views), memory (memory.c),
 * the model and its units (emit.c). compile.c runs them, and those of ir/, lower/ and
 * quant/ before.
 */
#pragma once

#include "model/ir/ir.h"

void mdl_fuse(struct mdl_ir *ir);
/** mdl_fuse_patterns() - finds activations that exporters write as several operators: before the
 * rest. */
void mdl_fuse_patterns(struct mdl_ir *ir);
/* Each recognises a block whose last op is *@op. If it is one, they append what replaces it, which
 * writes @op's output. Uses are counted. Return: whether it is one. */
bool mdl_fuse_rows(struct mdl_ir *ir, struct mdl_ir_op *op);
bool mdl_fuse_norm(struct mdl_ir *ir, struct mdl_ir_op *op);
bool mdl_fuse_attention(struct mdl_ir *ir, struct mdl_ir_op *op);
/** mdl_fuse_branches() - merges the terms of op @k, a sum or a difference, into one convolution if
 * both are linear in the same value; @k is dead then. fuse_branches.c */
void mdl_fuse_branches(struct mdl_ir *ir, size_t k);
void mdl_layout(struct mdl_ir *ir);
size_t mdl_memory(struct mdl_ir *ir);                          /* Return: bytes of the arena */
size_t mdl_ir_entry_op(const struct mdl_ir *ir, size_t input); /* memory.c */
void mdl_emit(struct mdl_ir *ir, size_t arena_bytes);          /* to ir.model */
/** mdl_ir_root() - Return: the storage that contains @storage; adds its place there to *@offset. */
size_t mdl_ir_root(const struct mdl_ir *ir, size_t storage, size_t *offset);

/* ---- match.c: questions that find patterns of ops. Uses must be counted (mdl_ir_count_uses()). */

/** mdl_match_producer() - Return: the op of @kind that writes @v, without activation unless it is
 * UNARY; NULL if another op does. */
struct mdl_ir_op *mdl_match_producer(struct mdl_ir *ir, size_t v, int kind);
struct mdl_ir_op *mdl_match_binary(struct mdl_ir *ir, size_t v, enum mdl_binary which);
struct mdl_ir_op *mdl_match_unary(struct mdl_ir *ir, size_t v, enum mdl_act act);
struct mdl_ir_op *mdl_match_view(struct mdl_ir *ir, size_t v, enum mdl_view_kind kind);
/** mdl_match_private() - Return: whether at most one op reads @v, which is not an output. */
bool mdl_match_private(const struct mdl_ir *ir, size_t v);
/** mdl_match_const_weights() - Return: whether @op multiplies by constant weights and adds nothing:
 * a convolution or a matrix product. */
bool mdl_match_const_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_match_unspread() - Return: @v before it was broadcast. */
size_t mdl_match_unspread(struct mdl_ir *ir, size_t v);
/** mdl_match_number() - Return: whether @v is one constant number, perhaps broadcast. */
bool mdl_match_number(struct mdl_ir *ir, size_t v, double *ret);
/** mdl_match_is() - Return: whether @v is @number, but for rounding. */
bool mdl_match_is(struct mdl_ir *ir, size_t v, double number);
bool mdl_match_near(double a, double b);

/* factor * value[0] * value[1] * ... */
#define MDL_MATCH_FACTORS 4u
struct mdl_match_product {
    double factor;
    size_t count, value[MDL_MATCH_FACTORS];
};

/** mdl_match_product() - writes @v as a product: through Mul and Div by a number, and Pow with a
 * small whole exponent, of values that nothing else reads. Return: false for too many factors. */
bool mdl_match_product(struct mdl_ir *ir, size_t v, struct mdl_match_product *ret);
/** mdl_match_scaled() - Return: whether @v is @number times one value, which is *ret_x. */
bool mdl_match_scaled(struct mdl_ir *ir, size_t v, double number, size_t *ret_x);
/** mdl_match_plus() - Return: whether @v is @number plus a value, which is *ret_x. */
bool mdl_match_plus(struct mdl_ir *ir, size_t v, double number, size_t *ret_x);

/* ---- layout_place.c: makes storages, views and copies ---- */

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

/* ---- layout_concat.c: finds values that share memory with a concat ---- */

/** mdl_layout_nest_concats() - a concat [x0..xk] whose inputs begin a later concat [x0..xk, ...]
 * becomes the first part of that one. */
void mdl_layout_nest_concats(struct mdl_ir *ir);
/** mdl_layout_join_concats() - finds the inputs of concats that can be written straight into the
 * concat's memory; needs strides from a trial walk. */
void mdl_layout_join_concats(struct mdl_ir *ir);
