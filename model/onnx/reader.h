/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/reader.h - what the parts of the reader share; for model/onnx/ only
 */
#pragma once

#include <setjmp.h>

#include "model/common/graph.h"
#include "model/common/private.h"
#include "model/onnx/walk.h"

struct Onnx__GraphProto;
struct Onnx__ValueInfoProto;
struct mdl_data_files;     /* model/common/weight_files.h */
struct mdl_onnx_functions; /* model/onnx/functions.h */
struct mdl_onnx_scope;     /* model/onnx/scope.h */

struct mdl_onnx_reader {
    const struct mdl_walk *walk; /* borrowed: the stripped data */
    struct mdl_data_files *data; /* borrowed; NULL: data outside the file is refused */
    struct mdl_graph *graph;     /* the graph being built; its pool gets new data */
    const struct mdl_onnx_functions *functions; /* borrowed; of the model */
    const struct mdl_onnx_scope *scope;         /* where we are; NULL: in the graph itself */
    size_t calls;           /* of functions, and branches, so far: makes names unique */
    size_t expanded;        /* nodes read so far, those in functions once for each call */
    size_t initializer_cap; /* room in graph->initializers */
    /* mdl_onnx_branch(), which node.c cannot call: branches have nodes */
    const struct mdl_gbranch *(*branch)(struct mdl_onnx_reader *rd,
                                        const struct Onnx__GraphProto *p, const char *label);
    /* onnx.c: what the file declares of a value. @what: for messages. @out: zeros. */
    int (*value)(struct mdl_onnx_reader *rd, const struct Onnx__ValueInfoProto *v, const char *what,
                 struct mdl_gvalue *out);
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
