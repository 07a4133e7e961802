/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/scope.h - what a name means inside a function or a branch; for model/onnx/ only
 *
 * The graph that is made has one space of names. Names made in the body of a function or in a
 * branch of an If get the prefix of their call, so that bodies may be used several times. A branch
 * sees the names around it; a function's body sees its inputs alone.
 */
#pragma once

#include "model/onnx/reader.h"

struct Onnx__GraphProto;
struct Onnx__FunctionProto;
struct Onnx__NodeProto;

struct mdl_onnx_name {
    const char *inner, *outer;
};

struct mdl_onnx_scope {
    const struct mdl_onnx_scope *around;  /* where other names are looked up; NULL: nowhere */
    const struct mdl_onnx_scope *caller;  /* of the function that this is in; NULL: none */
    const struct Onnx__FunctionProto *of; /* the body of this function; NULL: no body */
    struct mdl_onnx_name *names;          /* sorted by inner; in the graph's pool */
    size_t count;
    const char *prefix;            /* of names made here: "call/" */
    const struct mdl_gattr *attrs; /* of the call of the function; what is not given is not there */
    size_t attr_count;
    int64_t opset;
};

/** mdl_onnx_scope_body_of() - Return: the function whose body is read; NULL: the graph itself. */
const struct Onnx__FunctionProto *mdl_onnx_scope_body_of(const struct mdl_onnx_reader *rd);
/** mdl_onnx_scope_name() - Return: the graph's name for @name, in the pool. */
const char *mdl_onnx_scope_name(struct mdl_onnx_reader *rd, const char *name);
/** mdl_onnx_scope_names() - the same for a list. */
const char *const *mdl_onnx_scope_names(struct mdl_onnx_reader *rd, char *const *names,
                                        size_t count);
/** mdl_onnx_scope_attr() - Return: the attribute @name of the function's call, or NULL. */
const struct mdl_gattr *mdl_onnx_scope_attr(const struct mdl_onnx_reader *rd, const char *name);

/** mdl_onnx_scope_branch() - makes the scope of a branch in the present one. @label: the node that
 * has the branch. */
struct mdl_onnx_scope mdl_onnx_scope_branch(struct mdl_onnx_reader *rd,
                                            const struct Onnx__GraphProto *p, const char *label);
/** mdl_onnx_is_input() - Return: whether @name is an input of @f. An output of that name is that
 * input: no node makes it. */
bool mdl_onnx_is_input(const struct Onnx__FunctionProto *f, const char *name);
/**
 * mdl_onnx_scope_body() - makes the scope of the body of @f
 * @call: the call, with names of the graph. Its attributes and inputs count, and what it leaves out
 * is absent.
 */
struct mdl_onnx_scope mdl_onnx_scope_body(struct mdl_onnx_reader *rd,
                                          const struct Onnx__FunctionProto *f,
                                          const struct mdl_gnode *call);
