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
int mdl_count_rows(struct mdl_ir *ir);
int mdl_fuse(struct mdl_ir *ir);
/** mdl_fuse_patterns() - finds activations that exporters write as several operators: before the
 * rest. */
void mdl_fuse_patterns(struct mdl_ir *ir);
/* Each recognises a block whose last op is *@op. If it is one, they append what replaces it, which
 * writes @op's output, and set *ret_done. Uses are counted. */
int mdl_fuse_rows(struct mdl_ir *ir, struct mdl_ir_op *op, bool *ret_done);
int mdl_fuse_norm(struct mdl_ir *ir, struct mdl_ir_op *op, bool *ret_done);
int mdl_fuse_attention(struct mdl_ir *ir, struct mdl_ir_op *op, bool *ret_done);
/** mdl_fuse_branches() - merges the terms of op @k, a sum or a difference, into one convolution if
 * both are linear in the same value; @k is dead then. fuse_branches.c */
int mdl_fuse_branches(struct mdl_ir *ir, size_t k);
int mdl_layout(struct mdl_ir *ir);
int mdl_memory(struct mdl_ir *ir, size_t *ret_arena_bytes);
size_t mdl_ir_entry_op(const struct mdl_ir *ir, size_t input); /* memory.c */
int mdl_emit(struct mdl_ir *ir, size_t arena_bytes, struct mdl_model **ret);
int mdl_units(struct mdl_model *m, char *error);
/** mdl_ir_root() - Return: the storage that contains @storage; adds its place there to *@offset. */
size_t mdl_ir_root(const struct mdl_ir *ir, size_t storage, size_t *offset);
