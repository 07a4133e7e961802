/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/graph.h - a network as its file describes it, not yet compiled: nodes, attributes,
 * initializers
 *
 * onnx/ and netdesc/ make graphs; ir/, lower/ and compile/ read them; nothing outside model/
 * includes this. Strings and arrays live in one arena (struct mdl_graph.pool)
 * and are freed with the graph; raw tensor data is borrowed from the file's mapping or from the
 * pool. All of it comes from an untrusted file: the reader checks the syntax (counts, lengths, data
 * sizes against dims), the compiler checks the meaning.
 */
#pragma once

#include "model/common/pool.h"
#include "model/model.h"

/* The type that a tensor has in the file, where ours is wider. */
enum mdl_narrow {
    MDL_NARROW_NONE,
    MDL_NARROW_U4, /* in U8 */
    MDL_NARROW_I4, /* in I8 */
    MDL_NARROW_U16,
    MDL_NARROW_I16, /* both in I32 */
};

struct mdl_gtensor {      /* an initializer, or a tensor attribute */
    const char *name;     /* "" if the file has none */
    enum mdl_dtype dtype; /* the reader converts f64, f16 and bf16 to F32, integers of 4 bits to
                           * bytes and those of 16 bits to I32 (in the pool); it refuses other
                           * types */
    enum mdl_narrow narrow;
    size_t rank;
    size_t dim[MDL_RANK_MAX];
    const void *data; /* row-major little-endian elements, may be unaligned */
    size_t bytes;     /* elements * dtype size, checked by the reader */
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
    MDL_ATTR_BRANCH,
    MDL_ATTR_OTHER
};

struct mdl_gnode;

/* A branch of an If, or the body of a Loop. Its names are unique in the graph (made in the branch)
 * or are those of values around it; its initializers are among those of the graph. */
struct mdl_gbranch {
    size_t node_count, input_count, output_count;
    const struct mdl_gnode *nodes; /* sorted: each after those whose outputs it reads */
    const char *const *inputs;     /* of a body */
    const char *const *outputs;
    const struct mdl_gvalue *declared; /* [output_count] of a body; NULL: nothing is */
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
    const struct mdl_gbranch *branch;
};

struct mdl_gnode {
    const char *op_type; /* "Conv", ... */
    const char *domain;  /* "" (and "ai.onnx") for the standard operators */
    const char *name;    /* "" where absent */
    size_t input_count, output_count, attr_count;
    const char *const *inputs; /* value names, "" if an optional input is absent */
    const char *const *outputs;
    const struct mdl_gattr *attrs;
    int64_t opset; /* of the standard domain, where the node comes from; 0: the graph's */
};

struct mdl_gvalue { /* a graph input or output */
    const char *name;
    bool typed;     /* the file gives dtype and rank */
    bool has_dtype; /* the file gives at least dtype */
    enum mdl_dtype dtype;
    const char *stored; /* "float16": what the file says, where dtype is another; or NULL */
    enum mdl_narrow narrow;
    size_t rank;
    int64_t dim[MDL_RANK_MAX];        /* -1: symbolic or absent */
    const char *symbol[MDL_RANK_MAX]; /* what the file calls the dimension; NULL: nothing */
};

struct mdl_graph {
    struct mdl_pool *pool; /* owned */
    const char *name;
    int64_t ir_version, opset;               /* opset of the standard domain */
    const char *producer, *producer_version; /* of the file, "" where it says nothing */
    /* Of its metadata; NULL: it says nothing. image_size and points are lists of numbers. */
    const char *author, *task, *names, *image_size, *points, *characters;
    size_t node_count, initializer_count, input_count, output_count;
    struct mdl_gnode *nodes; /* as in the file; not necessarily sorted, may be cyclic */
    struct mdl_gtensor *initializers;
    struct mdl_gvalue *inputs; /* excludes those that are also initializers */
    struct mdl_gvalue *outputs;
    const void *file_map; /* mapping that in_file data points into; borrowed */
    size_t file_bytes;
    size_t data_bytes; /* of the model's data files: in_file data may point into these, too */
    /* A network description has no file with weights. Its reader makes a mapping for them, and sets
     * file_map and in_file as if it were a file. owns_map is set until mdl_load() hands the mapping
     * to the model. map_is_file: it maps an unnamed file, else anonymous memory. */
    bool owns_map, map_is_file;
};

/** mdl_graph_maker() - Return: the first node that has @value among its outputs; NULL: none. */
const struct mdl_gnode *mdl_graph_maker(const struct mdl_graph *g, const char *value);
/** mdl_ends_in_probabilities() - follows an output back over what moves, rounds, cuts or joins it.
 * @output: its name, as in the file or as clients have it. Threads: any. Return: whether Softmax or
 * Sigmoid made all of it. */
bool mdl_ends_in_probabilities(const struct mdl_graph *g, const char *output);
/** mdl_graph_free() - frees the pool and the graph. Accepts NULL. Return: NULL. */
struct mdl_graph *mdl_graph_free(struct mdl_graph *g);

/* How elements of a file become ours. */
enum mdl_from {
    MDL_FROM_NONE, /* the type is not supported */
    MDL_FROM_SAME,
    MDL_FROM_F16,
    MDL_FROM_BF16,
    MDL_FROM_F64,
    MDL_FROM_I16,
    MDL_FROM_U16,
    MDL_FROM_4BIT
};

/* An element type of ONNX: float16, bfloat16 and float64 are f32 here, integers of 16 bits i32. */
struct mdl_onnx_type {
    const char *name;           /* ONNX's */
    unsigned char from;         /* enum mdl_from */
    unsigned char dtype, bytes; /* ours; of one element in the file */
    unsigned char narrow;       /* enum mdl_narrow: the integers of 16 or 4 bits that it has */
};

/** mdl_onnx_type() - Return: the type of that number; one called "unknown" for others. */
const struct mdl_onnx_type *mdl_onnx_type(int64_t number);
/** mdl_onnx_served() - Return: whether graph inputs, outputs and casts may be of it. */
bool mdl_onnx_served(const struct mdl_onnx_type *t);
