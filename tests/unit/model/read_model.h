/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/model/read_model.h - models of a few bytes, read */
#pragma once

#include "model/onnx/onnx.h"
#include "tests/harness.h"
#include "tests/unit/model/onnx_bytes.h"

/** What read_model() says of a refusal. */
extern char read_error[MDL_ERROR_MAX];

/** read_model() - reads and frees @model. @ret: NULL, or the graph, which is good until the next
 * call. Return: of mdl_onnx_read() */
int read_model(struct pb model, struct mdl_graph **ret);
/** model_with() - one initializer @t, which it takes, read by a node; x is the input. */
struct pb model_with(struct pb t);
