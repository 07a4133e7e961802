/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/nest.h - walks tensors of equal dims together, in as few and as long rows as
 * possible
 *
 * Dims of size 1 are dropped, and the rest are sorted by the output's strides. Neighbouring dims
 * that are contiguous in every tensor are merged: two dense NHWC tensors become one row; with a
 * per-channel operand, rows have C elements. So one loop serves every layout and broadcast.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernels/common/parallel.h"
#include "model/values.h"

#define KRN_NEST_TENSORS 4u

struct krn_nest {
    size_t tensors, dims; /* dims >= 1; the last is the row */
    size_t dim[MDL_RANK_MAX];
    ptrdiff_t stride[KRN_NEST_TENSORS][MDL_RANK_MAX]; /* in elements; [0]: the output's */
    size_t rows;                                      /* product of all dims but the last */
};

/**
 * krn_nest_of() - plans the walk; @t[0] is the output, whose strides decide the order
 * Return: false for unequal dims, an empty tensor, or an output that overlaps itself (stride 0).
 */
bool krn_nest_of(const struct mdl_tensor *const *t, size_t tensors, struct krn_nest *ret);

/** krn_nest_swap() - swaps two dims */
void krn_nest_swap(struct krn_nest *nest, size_t a, size_t b);

/* Called for each row: @n elements from element offset @at[i] of tensor i. */
typedef void krn_nest_fn(void *arg, const ptrdiff_t *at, size_t n);

/**
 * krn_nest_run() - walks part @part of @parts; parts share the rows, or pieces of a single row
 */
void krn_nest_run(const struct krn_nest *nest, size_t part, size_t parts, krn_nest_fn *fn,
                  void *arg);

/**
 * krn_nest_share() - walks the whole nest, one part by each member of a team
 * @fn: called by several threads at a time, which share @arg
 * Threads: the team's leader. Returns when all parts are done; never allocates.
 */
void krn_nest_share(const struct krn_nest *nest, pthreadpool_t pool, size_t width, krn_nest_fn *fn,
                    void *arg);

static inline ptrdiff_t krn_nest_inner(const struct krn_nest *nest, size_t tensor)
{
    return nest->stride[tensor][nest->dims - 1];
}
