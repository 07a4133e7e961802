/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/narrow.h - integers of 16 bits, which are kept in 32, and of 4, in bytes
 *
 * A value says which of them its elements are (value.narrow), and its elements are always in the
 * range of that type. So what moves or compares elements needs no care; what may leave the range
 * wraps, as the narrow type would; everything else is refused. For model/lower/ only.
 */
#pragma once

#include "model/lower/lowering.h"

/** mdl_narrow_outputs() - gives the outputs of a node, which exist, the narrow type that they have
 * by its inputs, as @row says. */
void mdl_narrow_outputs(struct mdl_lower *l, const struct mdl_lower_row *row);
/** mdl_narrow_cast() - @x as @dtype, and in it as @to. */
size_t mdl_narrow_cast(struct mdl_lower *l, size_t x, enum mdl_dtype dtype, enum mdl_narrow to);
/** mdl_narrow_name() - Return: ONNX's name for the type. */
const char *mdl_narrow_name(enum mdl_narrow n);
