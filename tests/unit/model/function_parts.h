/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/model/function_parts.h - parts of models with functions and branches, as bytes */
#pragma once

#include "model/common/graph.h"
#include "model/onnx/onnx.h"
#include "tests/unit/model/load_files.h"

/** Of x, the input of graph_of(). */
extern const int64_t shape[2];
/** What read_graph() says of a refusal. */
extern char read_error[MDL_ERROR_MAX];

struct pb attr_int(const char *name, int64_t v);
struct pb attr_float(const char *name, float v);
/** attr_ref() - in a function: @name is what the call gives as @ref. */
struct pb attr_ref(const char *name, const char *ref);
struct pb attr_graph(const char *name, struct pb g);
/** call() - a node that calls a function. */
struct pb call(const char *function, const char *name, const char *in1, const char *in2,
               const char *out);
/** function() - without nodes. @in1, @in2: NULL: it has none */
struct pb function(const char *name, const char *in1, const char *in2, const char *out);
/** leaky_add() - LeakyRelu(a) with attribute slope, then Add(that, b). */
struct pb leaky_add(void);
/** graph_of() - from x to y; takes the nodes. */
struct pb graph_of(const struct pb *nodes, size_t count);
/** read_graph() - takes the model. @ret: good until the next call. Return: of mdl_onnx_read() */
int read_graph(struct pb model, struct mdl_graph **ret);
