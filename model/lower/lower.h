/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/lower.h - lowers a node of the graph to ops: the supported ONNX operators and their
 * ops (docs/operators.md)
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_lower_check() - gives a reason for each node in ir.order whose operator is not supported. */
void mdl_lower_check(struct mdl_ir *ir);
/** mdl_lower_node() - looks up the operator of node @node and lowers it, if that has not been done;
 * its inputs must be lowered already. A node that is refused is a reason (mdl_ir_reason());
 * what needs its results is left out. What is too large, or short of memory, ends it all. */
void mdl_lower_node(struct mdl_ir *ir, size_t node);
