/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/tensor.h - converts a TensorProto to a struct mdl_gtensor; for model/onnx/ only
 *
 * Compares dims, element type and data size with checked arithmetic, so that later readers may
 * trust bytes == elements * size.
 */
#pragma once

#include "model/onnx/reader.h"

struct Onnx__TensorProto;

/**
 * mdl_onnx_tensor() - checks and converts @t; data stays in the file if possible
 * @attr: the attribute's name for messages, or NULL.
 */
struct mdl_gtensor mdl_onnx_tensor(struct mdl_onnx_reader *rd, const struct Onnx__TensorProto *t,
                                   const char *attr);
