/* SPDX-License-Identifier: Apache-2.0 */
/** tests/kernels/compare.h - the outputs of a primitive against those of the reference */
#pragma once

#include "tests/kernels/against_ref.h"

/* one run of a primitive; all borrowed */
struct compare {
    const struct check *c;
    const struct krn_primitive *primitive;
    const struct one_op *o;
    size_t width;
    double terms; /* n of a sum, as the primitive's algorithm computes it */
};

/**
 * compare_out() - compares output @i element by element, and looks for writes between elements
 * @magnitude: S of every element, without memory where the bound needs none
 * Return: true, or false after printing the first difference.
 */
bool compare_out(const struct compare *k, size_t i, const struct one_op_buffer *got,
                 const struct one_op_buffer *want, const struct one_op_buffer *magnitude);
