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
