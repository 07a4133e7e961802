/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/resize.h - where an output coordinate of RESIZE lies in the input; the reference
 * and the fast primitives share it, so that they round alike
 */
#pragma once

#include "kernels/primitive.h"

/* The two neighbours along one dim, as element offsets, and the weight of the second; weight 0
 * means one neighbour. */
struct krn_resize_pair {
    ptrdiff_t at[2];
    double weight;
};

/** krn_resize_neighbours() - Return: the neighbours of output index @i along dim @d */
struct krn_resize_pair krn_resize_neighbours(const struct krn_call *c, size_t d, size_t i);

/** krn_resize_outside() - Return: whether output index @i lies outside the input along dim @d, so
 * that the result is the extrapolation value (TF_CROP_AND_RESIZE only) */
bool krn_resize_outside(const struct krn_call *c, size_t d, size_t i);

/** krn_resize_is_wide() - Return: whether the op takes more than two elements along a dim: cubic or
 * antialiased */
static inline bool krn_resize_is_wide(const struct mdl_op *op)
{
    return op->attr.resize.mode == MDL_RESIZE_CUBIC || op->attr.resize.antialias;
}

/* The elements along one dim that a wide op weighs for one output index. */
struct krn_resize_taps {
    const struct mdl_op *op;
    size_t in, count;
    ptrdiff_t first; /* may lie before the input */
    double position; /* of the output index in the input */
    double stretch;  /* distances are multiplied by it: below 1 with antialias */
    double total;    /* weights are divided by it */
};

struct krn_resize_tap {
    size_t at; /* index in the input: the edge for a tap outside */
    double weight;
};

/** krn_resize_taps() - Return: the taps of output index @i along dim @d; at least one.
 * krn_resize_tap() - Return: tap @k. krn_resize_taps_max() - Return: a bound of count. */
struct krn_resize_taps krn_resize_taps(const struct krn_call *c, size_t d, size_t i);
struct krn_resize_tap krn_resize_tap(const struct krn_resize_taps *t, size_t k);
size_t krn_resize_taps_max(const struct mdl_op *op, size_t d);
