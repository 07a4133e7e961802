/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/strides.h - strides, and the order of a value's dims in memory
 *
 * An order lists dims from outer to inner; together with the dims it gives dense strides.
 */
#pragma once

#include "model/ir/ir.h"

void mdl_strides_dense(size_t rank, const size_t *dim, const size_t *order, ptrdiff_t *ret_stride);
void mdl_order_rows(size_t rank, size_t *ret_order);
void mdl_order_channels_last(size_t rank, size_t *ret_order);
/** mdl_order_of() - the dims from outer to inner by @stride; channels-last if @stride allows that
 * reading. */
void mdl_order_of(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t *ret_order);
/** mdl_strides_view() - of the view @y of @x that @op makes, but for a RESHAPE, by the strides
 * @stride of x. Return: the element of x that is y's first. */
ptrdiff_t mdl_strides_view(const struct mdl_ir_op *op, const struct mdl_ir_value *x,
                           const ptrdiff_t *stride, const struct mdl_ir_value *y,
                           ptrdiff_t *ret_stride);
/** mdl_strides_reshape() - computes the strides of a reshaped view. Return: false if the elements'
 * order in memory does not allow a view. */
bool mdl_strides_reshape(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t new_rank,
                         const size_t *new_dim, ptrdiff_t *ret_stride);
/** mdl_order_reshape() - the order for a dense copy of x, such that the reshape becomes a view and
 * stays channels-last if possible. */
void mdl_order_reshape(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t new_rank,
                       const size_t *new_dim, size_t *ret_order);
bool mdl_strides_equal(size_t rank, const size_t *dim, const ptrdiff_t *a, const ptrdiff_t *b);
bool mdl_strides_nhwc(size_t rank, const size_t *dim, const ptrdiff_t *stride);
bool mdl_strides_rows(size_t rank, const size_t *dim, const ptrdiff_t *stride);
