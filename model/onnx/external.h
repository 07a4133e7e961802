/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/external.h - a tensor's data in another file; for model/onnx/ only
 */
#pragma once

#include "model/onnx/reader.h"

struct Onnx__TensorProto;

/** mdl_onnx_external() - finds the data of @t, whose data_location is EXTERNAL
 * @want: bytes that its shape needs. @why: of @why_bytes, gets the reason
 * Return: 0 with *ret pointing to @want bytes; -errno, with @why. */
int mdl_onnx_external(struct mdl_onnx_reader *rd, const struct Onnx__TensorProto *t, size_t want,
                      char *why, size_t why_bytes, const void **ret);
