/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/sort.h - sorts the graph's nodes and looks up its names
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_ir_sort() - fills ir.order with the nodes that an output needs, in topological order, and
 * ir.names. */
void mdl_ir_sort(struct mdl_ir *ir);
/** mdl_ir_find() - Return: the entry of @name; NULL: it is not in the graph. */
struct mdl_ir_name *mdl_ir_find(const struct mdl_ir *ir, const char *name);
