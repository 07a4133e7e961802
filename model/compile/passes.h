/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/compile/passes.h - the compiler's passes from fusion on, in the order they run; for
 * model/compile/ only
 *
 * Fusion (fuse_patterns.c, fuse.c), layout (layout.c: strides, copies, views), memory (memory.c),
 * the model (emit.c) and its units (units.c). compile.c runs them, and those of ir/, lower/ and
 * quant/ before.
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_count_rows() - pads outputs of a length that depends on the data, and adds outputs with the
 * counts; row_counts.c. */
void mdl_count_rows(struct mdl_ir *ir);
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
void mdl_units(struct mdl_ir *ir);
/** mdl_ir_root() - Return: the storage that contains @storage; adds its place there to *@offset. */
size_t mdl_ir_root(const struct mdl_ir *ir, size_t storage, size_t *offset);
