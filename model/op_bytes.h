/* SPDX-License-Identifier: Apache-2.0 */
/** model/op_bytes.h - what an operator moves */
#pragma once

#include "model/model.h"

/** mdl_op_bytes() - Return: bytes of the tensors that the operator reads and writes for one frame;
 * a dimension that is broadcast counts once. @constant: of constants alone, scale and shift
 * included; else of all others alone. Pure. */
double mdl_op_bytes(const struct mdl_model *m, const struct mdl_op *op, bool constant);
