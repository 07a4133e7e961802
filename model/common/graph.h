/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/graph.h - a network as its file describes it, before it is compiled: nodes, attributes,
 * initializers
 *
 * What model/onnx.c and model/netdesc.c produce and model/compile.c consumes; nobody outside model/
 * includes it. Strings and arrays live in one arena (struct mdl_graph.pool) and are freed with the
 * graph; raw tensor data is borrowed from the file's mapping or from the pool. Everything in here
 * came from an untrusted file: the reader has checked the syntax (counts, lengths, data sizes
 * against dims), the compiler checks the meaning.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct mdl_pool; /* model/pool.h: bump allocator, everything freed at once */

struct mdl_gtensor {      /* an initializer, or a tensor attribute */
    const char *name;     /* "" where the file gives none */
    enum mdl_dtype dtype; /* f64, f16 and bf16 data are converted to F32 while reading (in the
                             pool); other types refused */
    size_t rank;
    size_t dim[MDL_RANK_MAX];
    const void *data; /* row-major little-endian elements, may be unaligned */
    size_t bytes;     /* == elements * dtype size, checked by the reader */
    bool in_file;     /* data points into the file mapping */
};

enum mdl_attr_type {
    MDL_ATTR_INT,
    MDL_ATTR_FLOAT,
    MDL_ATTR_STRING,
    MDL_ATTR_TENSOR,
    MDL_ATTR_INTS,
    MDL_ATTR_FLOATS,
    MDL_ATTR_STRINGS,
    MDL_ATTR_OTHER
};

struct mdl_gattr {
    const char *name;
    enum mdl_attr_type type;
    int64_t i;
    float f;
    const char *s; /* NUL-terminated copy */
    const struct mdl_gtensor *t;
    size_t count; /* ints, floats, strings */
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
};

struct mdl_gnode {
    const char *op_type; /* "Conv", ... */
    const char *domain;  /* "" (and "ai.onnx") for the standard operators */
    const char *name;    /* "" where absent */
    size_t input_count, output_count, attr_count;
    const char *const *inputs; /* value names, "" where an optional input is absent */
    const char *const *outputs;
    const struct mdl_gattr *attrs;
};

struct mdl_gvalue { /* a graph input or output */
    const char *name;
    bool typed; /* dtype and rank are given */
    enum mdl_dtype dtype;
    size_t rank;
    int64_t dim[MDL_RANK_MAX]; /* -1 where symbolic or absent */
};

struct mdl_graph {
    struct mdl_pool *pool; /* owned */
    const char *name;
    int64_t ir_version, opset; /* opset of the standard domain */
    size_t node_count, initializer_count, input_count, output_count;
    struct mdl_gnode *nodes; /* as in the file; not necessarily sorted, may be cyclic */
    struct mdl_gtensor *initializers;
    struct mdl_gvalue *inputs; /* without those that are also initializers */
    struct mdl_gvalue *outputs;
    const void *file_map; /* the mapping that in_file data points into; borrowed by the graph */
    size_t file_bytes;
    /* A network description has no file with weights: its reader makes a mapping for them, sets
     * file_map and in_file as if it were a file, and owns_map, until mdl_load() hands the mapping
     * to the model. map_is_file: it is of a file without a name, else of memory. */
    bool owns_map, map_is_file;
};

/** mdl_graph_free() - frees the pool and the graph. Takes NULL. Return: NULL. */
struct mdl_graph *mdl_graph_free(struct mdl_graph *g);

/**
 * mdl_onnx_read() - ONNX bytes to a graph (model/onnx.c)
 * @map, @bytes: the file, borrowed for as long as the graph and the model live
 * A first walk over the wire format checks nesting depth (at most 64) and lengths and strips
 * raw_data, so that protobuf-c sees only the small rest. Return: 0, -EBADMSG, -EOPNOTSUPP (IR
 * version, opset, element type, external data, training info), -E2BIG, -ENOMEM; error text as in
 * mdl_load().
 */
int mdl_onnx_read(const void *map, size_t bytes, char ret_error[MDL_ERROR_MAX],
                  struct mdl_graph **ret);

/**
 * mdl_netdesc_read() - a network description in JSON to a graph (model/netdesc.c; format in
 * docs/netdesc.md)
 * @weights_dir: as in mdl_load_options. Weights come from a seeded generator. Return: as
 * mdl_onnx_read().
 */
int mdl_netdesc_read(const void *text, size_t bytes, const char *weights_dir,
                     char ret_error[MDL_ERROR_MAX], struct mdl_graph **ret);

/**
 * mdl_compile() - graph to units: sort, shapes, constant folding, lowering, fusion, layout, memory
 * plan
 * @g: borrowed; the model keeps no pointer into the graph except to data inside the file mapping
 * and constants that it copied. @options as in mdl_load(). Fills everything of the model but hash,
 * preproc, labels and the mapping. Return: as mdl_load().
 */
int mdl_compile(const struct mdl_graph *g, const struct mdl_load_options *options,
                char ret_error[MDL_ERROR_MAX], struct mdl_model **ret);
