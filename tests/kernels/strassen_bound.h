/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/strassen_bound.h - the error bound of a 1x1 convolution by Strassen's algorithm: n
 * u S element by element, derived in kernels/f32/strassen.h
 */
#pragma once

#include "tests/kernels/one_op.h"

/** strassen_lanes() - Return: panel width of the primitive of this name; 0: it does not use
 * Strassen */
size_t strassen_lanes(const char *primitive);

/**
 * strassen_magnitude() - S of every element of the convolution's output, with |scale|, |shift| and
 * |residual| as in the epilogue, into @out (laid out as the output)
 * Return: n
 */
double strassen_magnitude(const struct one_op *o, size_t lanes, struct one_op_buffer *out);
