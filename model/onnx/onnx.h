/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/onnx.h - reads ONNX files
 */
#pragma once

#include "model/common/graph.h"

struct mdl_data_files; /* model/common/weight_files.h */

/**
 * mdl_onnx_read() - reads the bytes of an ONNX file into a graph
 * @map, @bytes: the file, borrowed for as long as the graph and the model live
 * @data: maps the files beside it that hold weights, likewise; NULL: such weights are refused
 * A first walk over the wire format checks nesting depth (at most 64) and lengths and strips
 * raw_data, so that protobuf-c gets only the small remainder. Return: 0, -EBADMSG, -EOPNOTSUPP (IR
 * version, opset, element type, external data, training info), -E2BIG, -ENOMEM; error text as in
 * mdl_load().
 */
int mdl_onnx_read(const void *map, size_t bytes, struct mdl_data_files *data,
                  char ret_error[MDL_ERROR_MAX], struct mdl_graph **ret);
