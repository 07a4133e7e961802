/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/reader.h - the parts of the reader; for model/onnx/ only
 *
 * onnx.c reads a model's graph, with its versions (versions.c). functions.c reads lists of nodes,
 * and puts in bodies of functions; scope.c knows what a name means there. node.c reads a node, and
 * tensor.c the tensors in it.
 */
#pragma once

#include <setjmp.h>

#include "model/common/graph.h"
#include "model/common/private.h"
#include "model/onnx/walk.h"

struct Onnx__FunctionProto;
struct Onnx__GraphProto;
struct Onnx__ModelProto;
struct Onnx__NodeProto;
struct Onnx__TensorProto;
struct Onnx__ValueInfoProto;
struct mdl_data_files; /* model/common/weight_files.h */

/* What a name means inside a function or a branch. The graph that is made has one space of names.
 * Names made in the body of a function or in a branch of an If get the prefix of their call, so
 * that bodies may be used several times. A branch sees the names around it; a function's body sees
 * its inputs alone. */
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

struct mdl_onnx_reader {
    const struct mdl_walk *walk; /* borrowed: the stripped data */
    struct mdl_data_files *data; /* borrowed; NULL: data outside the file is refused */
    struct mdl_graph *graph;     /* the graph being built; its pool gets new data */
    /* of the model, sorted by domain, name, overload; in the pool */
    const struct Onnx__FunctionProto **functions;
    size_t function_count;
    const struct mdl_onnx_scope *scope; /* where we are; NULL: in the graph itself */
    size_t calls;                       /* of functions, and branches, so far: makes names unique */
    size_t expanded;        /* nodes read so far, those in functions once for each call */
    size_t initializer_cap; /* room in graph->initializers */
    /* mdl_onnx_branch(), which node.c cannot call: branches have nodes */
    const struct mdl_gbranch *(*branch)(struct mdl_onnx_reader *rd,
                                        const struct Onnx__GraphProto *p, const char *label);
    jmp_buf *leave;  /* where a failure goes on ... */
    int failure;     /* ... with this code */
    char *error;     /* MDL_ERROR_MAX */
    char where[192]; /* "initializer 3 'conv1.weight'", for messages */
};

/* What is read is in the graph's pool, so a failure leaves by longjmp() what mdl_onnx_read() tries:
 * only what returns an int returns after one. */

/** mdl_onnx_leave() - ends the reading with @code; the text is in rd.error. Does not return. */
_Noreturn void mdl_onnx_leave(struct mdl_onnx_reader *rd, int code);
#define mdl_onnx_refuse(rd, ...) mdl_onnx_leave(rd, mdl_fail((rd)->error, __VA_ARGS__))
/** mdl_onnx_alloc() - as mdl_pool_alloc(), but never NULL. */
void *mdl_onnx_alloc(struct mdl_onnx_reader *rd, size_t count, size_t size);
/** mdl_onnx_made() - Return: @made, unless that is NULL, because memory is short. */
void *mdl_onnx_made(struct mdl_onnx_reader *rd, void *made);

/* A string that may be absent. */
static inline const char *mdl_onnx_text(const char *s)
{
    return s ? s : "";
}

/* A domain, "" for ONNX's own. */
static inline const char *mdl_onnx_domain(const char *s)
{
    return s && strcmp(s, "ai.onnx") != 0 ? s : "";
}

/* ---- versions.c: which versions of ONNX are read. Whether each operator means the same in a
 * version that is read is in the tables of model/lower/. ---- */

/** mdl_onnx_versions() - sets the graph's versions. */
void mdl_onnx_versions(struct mdl_onnx_reader *rd, const struct Onnx__ModelProto *model);
/** mdl_onnx_check_opset() - refuses a version of the standard operators that is not read. */
void mdl_onnx_check_opset(struct mdl_onnx_reader *rd, int64_t version);

/* ---- tensor.c: compares dims, element type and data size with checked arithmetic, so that later
 * readers may trust bytes == elements * size ---- */

/**
 * mdl_onnx_tensor() - checks and converts @t; data stays in the file if possible
 * @attr: the attribute's name for messages, or NULL.
 */
struct mdl_gtensor mdl_onnx_tensor(struct mdl_onnx_reader *rd, const struct Onnx__TensorProto *t,
                                   const char *attr);

/* ---- node.c ---- */

/** mdl_onnx_value() - reads what the file declares of a graph's @what. @out: zeros. Return: 0;
 * -errno, with the text in rd.error. */
int mdl_onnx_value(struct mdl_onnx_reader *rd, const struct Onnx__ValueInfoProto *v,
                   const char *what, struct mdl_gvalue *out);
/** mdl_onnx_attributes() - reads the attributes of @n to @out. */
void mdl_onnx_attributes(struct mdl_onnx_reader *rd, const struct Onnx__NodeProto *n,
                         struct mdl_gnode *out);
/** mdl_onnx_node() - reads node @n, number @index of the graph, with its attributes. */
void mdl_onnx_node(struct mdl_onnx_reader *rd, const struct Onnx__NodeProto *n, size_t index,
                   struct mdl_gnode *out);

/* ---- scope.c ---- */

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

/* ---- functions.c: a call of one of the model's own functions is replaced by the nodes of its
 * body. Functions may call functions. A model that would grow past the limit of nodes is refused,
 * and one whose functions call themselves. ---- */

/** mdl_onnx_functions() - sorts the functions of @model; none may be there twice. */
void mdl_onnx_functions(struct mdl_onnx_reader *rd, const struct Onnx__ModelProto *model);
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
