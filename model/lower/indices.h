/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/indices.h - checks of the indices of Gather..., Scatter...; for model/lower/ only
 *
 * Constant indices are checked here and brought into 0..n-1; others are made safe by the kernels.
 */
#pragma once

#include "model/lower/lowering.h"

/** mdl_l_index_type() - refuses input @i unless it is i32 or i64. */
int mdl_l_index_type(struct mdl_lower *l, size_t i);
/** mdl_l_indices() - input @i, or a constant with its indices, which are of a dim of @n, in
 * 0..n-1. */
size_t mdl_l_indices(struct mdl_lower *l, size_t i, size_t n);
/** mdl_l_along() - input 1 as indices along *ret_axis, which attribute axis says; refused if they
 * are outside input 0 in another dim. */
size_t mdl_l_along(struct mdl_lower *l, size_t *ret_axis);
/** mdl_l_tuples() - the same for input 1 of rows of indices, of the dims of input 0 after
 * @batch_dims; *ret_width: indices in a row. */
int mdl_l_tuples(struct mdl_lower *l, int64_t batch_dims, size_t *ret, size_t *ret_width);
