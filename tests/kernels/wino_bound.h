/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/wino_bound.h - the error bound of a Winograd convolution
 *
 * The rounding errors of y = A^T [ sum_c (G g G^T) * (B^T d B) ] A, and of the same without the
 * right or the left factors where a filter has one row or column, are bounded, element by element,
 * by n u S with S = |A|^T [ sum_c (|G| |g| |G|^T) * (|B|^T |d| |B|) ] |A| and n the roundings on
 * the longest path from an input to a result (N. Higham, "Accuracy and Stability of Numerical
 * Algorithms", 2nd ed., section 3.1, applied to each step). S is independent of how the rows of the
 * matrices are scaled, so only the points matter.
 */
#pragma once

#include "tests/kernels/one_op.h"

/** wino_size() - Return: m of the F(m x m, r x r) or F(m, r) that the primitive of this name runs;
 * 0: none */
size_t wino_size(const char *primitive);

/**
 * wino_magnitude() - S of every element of the convolution's output, with |scale|, |shift| and
 * |residual| as in the epilogue, into @out (laid out as the output)
 * Return: n
 */
double wino_magnitude(const struct one_op *o, size_t size, struct one_op_buffer *out);
