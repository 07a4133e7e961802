/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/node.h - reads a node and its attributes from protobuf-c's structs; for model/onnx/
 * only
 */
#pragma once

#include "model/onnx/reader.h"

struct Onnx__NodeProto;

/** mdl_onnx_attributes() - reads the attributes of @n to @out. */
void mdl_onnx_attributes(struct mdl_onnx_reader *rd, const struct Onnx__NodeProto *n,
                         struct mdl_gnode *out);
/** mdl_onnx_node() - reads node @n, number @index of the graph, with its attributes. */
void mdl_onnx_node(struct mdl_onnx_reader *rd, const struct Onnx__NodeProto *n, size_t index,
                   struct mdl_gnode *out);
