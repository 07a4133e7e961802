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
/** mdl_onnx_dtype() - maps ONNX's number to the element type in which graph inputs and outputs of
 * it are served; float16, bfloat16 and float64 are f32, integers of 16 bits i32. Return: false if
 * it is not supported.
 * mdl_onnx_dtype_name() - Return: ONNX's name for it, never NULL.
 * mdl_onnx_widened() - Return: that name if it is served as another type, else NULL.
 * mdl_onnx_narrow() - Return: the integers of 16 or 4 bits that it has. */
bool mdl_onnx_dtype(int onnx_type, enum mdl_dtype *ret);
const char *mdl_onnx_dtype_name(int onnx_type);
const char *mdl_onnx_widened(int onnx_type);
enum mdl_narrow mdl_onnx_narrow(int onnx_type);

/**
 * mdl_onnx_tensor() - checks and converts @t; data stays in the file if possible
 * @attr: the attribute's name for messages, or NULL. Return: as mdl_onnx_read(); -ENOMEM without
 * text.
 */
int mdl_onnx_tensor(struct mdl_onnx_reader *rd, const struct Onnx__TensorProto *t, const char *attr,
                    struct mdl_gtensor *ret);
