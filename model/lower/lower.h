/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/lower.h - lowers a node of the graph to ops: the supported ONNX operators and their
 * ops (docs/operators.md)
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_lower_knows() - Return: whether the operator of @node is in one of the tables. Its
 * attributes and inputs may still be refused. Threads: any. */
bool mdl_lower_knows(const struct mdl_gnode *node);

/** mdl_lower_label() - Return: what messages call @node: its name, its first output's, or its
 * operator; borrowed. Threads: any. */
const char *mdl_lower_label(const struct mdl_gnode *node);

/** mdl_lower_node() - looks up the operator of node @node and lowers it; its inputs must be lowered
 * already. Return: 0, -EOPNOTSUPP, -EBADMSG, -E2BIG, -ENOMEM; the text is in ir.error. */
int mdl_lower_node(struct mdl_ir *ir, size_t node);
