/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/functions.h - nodes, and calls of the model's own functions; for model/onnx/ only
 *
 * A call is replaced by the nodes of the function's body. Functions may call functions. A model
 * that would grow past the limit of nodes is refused, and one whose functions call themselves.
 */
#pragma once

#include "model/onnx/reader.h"

struct Onnx__ModelProto;
struct Onnx__FunctionProto;
struct Onnx__GraphProto;
struct Onnx__NodeProto;
struct Onnx__TensorProto;

struct mdl_onnx_functions {
    const struct Onnx__FunctionProto **list; /* sorted by domain, name, overload; in the pool */
    size_t count;
};

#define MDL_CALL_DEPTH_MAX 64u

/** mdl_onnx_functions() - sorts the functions of @model; none may be there twice. */
struct mdl_onnx_functions mdl_onnx_functions(struct mdl_onnx_reader *rd,
                                             const struct Onnx__ModelProto *model);
/** mdl_onnx_nodes() - reads a list of nodes in the present scope. */
void mdl_onnx_nodes(struct mdl_onnx_reader *rd, struct Onnx__NodeProto *const *nodes, size_t count,
                    struct mdl_gnode **ret, size_t *ret_count);
/** mdl_onnx_branch() - reads a branch of the node @label in the present scope; its initializers are
 * added to the graph's. */
const struct mdl_gbranch *mdl_onnx_branch(struct mdl_onnx_reader *rd,
                                          const struct Onnx__GraphProto *p, const char *label);
/** mdl_onnx_initializer() - reads @t as number @index and adds it to the graph's. */
void mdl_onnx_initializer(struct mdl_onnx_reader *rd, const struct Onnx__TensorProto *t,
                          size_t index);
