/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/constant.h - elements of constants of any type and alignment
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_const_int(), mdl_const_real() - Return: element @i as an integer (saturated; NaN gives 0),
 * or as a real number. mdl_const_store() - writes element @i of an array of @dtype: @real if @dtype
 * is f32, else @integer. */
int64_t mdl_const_int(const struct mdl_ir_value *v, size_t i);
double mdl_const_real(const struct mdl_ir_value *v, size_t i);
/** mdl_const_channel() - Return: the real of channel @c; one element is for all. */
double mdl_const_channel(const struct mdl_ir_value *v, size_t c);
void mdl_const_store(void *data, enum mdl_dtype dtype, size_t i, double real, int64_t integer);
/** mdl_const_make() - allocates the data of value @v, which becomes a constant; counts against the
 * folding budget. */
void *mdl_const_make(struct mdl_ir *ir, size_t v);
/** mdl_const_settled() - Return: a constant instead of @v, where by its bounds (bounds.h) its
 * elements can have but one value; else @v. */
size_t mdl_const_settled(const struct mdl_ir *ir, size_t v);
/** mdl_const_move() - copies elements of @size bytes, of dims @dim, from the strides of @src to
 * those of @dst. */
void mdl_const_move(size_t size, size_t rank, const size_t *dim, unsigned char *dst,
                    const ptrdiff_t *to, const unsigned char *src, const ptrdiff_t *from);
