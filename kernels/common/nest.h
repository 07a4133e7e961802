/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/nest.h - tensors of equal dims walked together, as few and as long rows as possible
 *
 * Dims of size 1 are dropped, the rest ordered by the output's strides, and neighbours that are one
 * run in every tensor are merged: two dense NHWC tensors become one row, a per-channel operand
 * beside one makes rows of C elements. So one row kernel serves every layout and broadcast.
 */
#pragma once

#include "kernels/kernels.h"

#define KRN_NEST_TENSORS 4u

struct krn_nest {
    size_t tensors, dims; /* dims >= 1; the last is the row */
    size_t dim[MDL_RANK_MAX];
    ptrdiff_t stride[KRN_NEST_TENSORS][MDL_RANK_MAX]; /* in elements; [0]: the output's */
    size_t rows;                                      /* product of all dims but the last */
};

/**
 * krn_nest_of() - @t[0] is the output, which decides the order
 * Return: false for unequal dims, an empty tensor, or an output that overlaps itself (stride 0).
 */
bool krn_nest_of(const struct mdl_tensor *const *t, size_t tensors, struct krn_nest *ret);

/* What krn_nest_run() calls: @n elements from element offsets @at of each tensor. */
typedef void krn_nest_fn(void *arg, const ptrdiff_t *at, size_t n);

/**
 * krn_nest_run() - walks part @part of @parts; rows are shared, or pieces of the row if it is one
 */
void krn_nest_run(const struct krn_nest *nest, size_t part, size_t parts, krn_nest_fn *fn,
                  void *arg);

static inline ptrdiff_t krn_nest_inner(const struct krn_nest *nest, size_t tensor)
{
    return nest->stride[tensor][nest->dims - 1];
}
