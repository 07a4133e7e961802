/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/versions.h - which versions of ONNX are read; for model/onnx/ only
 *
 * Whether each operator means the same in a version that is read is in the tables of model/lower/.
 */
#pragma once

#include "model/onnx/reader.h"

struct Onnx__ModelProto;

/** mdl_onnx_versions() - sets the graph's versions. */
void mdl_onnx_versions(struct mdl_onnx_reader *rd, const struct Onnx__ModelProto *model);
/** mdl_onnx_check_opset() - refuses a version of the standard operators that is not read. */
void mdl_onnx_check_opset(struct mdl_onnx_reader *rd, int64_t version);
