/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/strassen_bound.h - how far a 1x1 convolution by Strassen's algorithm may be from
 * the exact one: n u S element by element, as kernels/strassen.h derives
 */
#pragma once

#include "tests/kernels/one_op.h"

/** strassen_lanes() - width of the panels of a variant of this name, or 0 if it is none */
size_t strassen_lanes(const char *variant);

/**
 * strassen_magnitude() - S of every element of the convolution's output, with |scale|, |shift| and
 * |residual| as in the epilogue, into @out (laid out as the output)
 * Return: n
 */
double strassen_magnitude(const struct one_op *o, size_t lanes, struct one_op_buffer *out);
