/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/layers.h - the layers of a network description: their keys, and the nodes of the
 * graph that they become; for model/netdesc/ only
 *
 * A layer is one entry of the list; it may make several nodes (a convolution, its batch norm, its
 * activation), whose last value has the layer's name. Only channels, height and width are inferred,
 * since the weights' shapes need them.
 *
 * All functions do nothing after a failure (nd.failure): what they then return is valid, but means
 * nothing.
 */
#pragma once

#include <jansson.h>

#include "model/common/graph.h"

/* ---- nodes.c: builds the graph. While nodes are emitted, weights are only counted. At the end, if
 * the total is allowed, one mapping for them is made and filled. ---- */

#define MDL_ND_LAYERS_MAX 4096u
#define MDL_ND_WEIGHT_BYTES_MAX ((size_t)4 << 30)
#define MDL_ND_SIZE_MAX 16384 /* limit of a side, a kernel, a stride */
#define MDL_ND_CHANNELS_MAX 65536

struct mdl_nd_value { /* a layer's output: an image, or a flat vector (height == 0) */
    const char *name;
    size_t channels, height, width;
};

enum mdl_nd_fill { MDL_ND_HE, MDL_ND_NEAR_ZERO, MDL_ND_NEAR_ONE };

struct mdl_nd_weight {
    const char *name;
    size_t rank, dim[4];
    size_t fan_in; /* MDL_ND_HE: uniform in +-sqrt(6 / fan_in) */
    enum mdl_nd_fill fill;
};

struct mdl_nd {
    struct mdl_graph *graph; /* in its own pool */
    char *error;
    int failure; /* 0, or the first that went wrong: -EBADMSG with the text, -ENOMEM, -E2BIG */
    uint64_t seed;
    const char *weights_dir; /* borrowed; as in mdl_load_options */
    bool no_weights;         /* as in mdl_load_options */
    struct mdl_nd_value *values;
    size_t value_count, value_cap, node_cap, initializer_cap;
    enum mdl_nd_fill *fills; /* by initializer */
    size_t *fan_ins;         /* by initializer; 0: data is already set */
    size_t weight_floats;
};

/* What appends does nothing after a failure, and fails with -ENOMEM, or -E2BIG past the cap on
 * weights. */

/** mdl_nd_node() - appends an operator. @inputs: up to 6 names, ended by NULL. @output: its one
 * value. Return: the node, valid until the next one is appended; NULL after a failure. */
struct mdl_gnode *mdl_nd_node(struct mdl_nd *nd, const char *op_type, const char *const *inputs,
                              const char *output);
/* @n: NULL: nothing is done */
void mdl_nd_attr_int(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, int64_t v);
void mdl_nd_attr_float(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, float v);
void mdl_nd_attr_string(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, const char *v);
void mdl_nd_attr_ints(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, const size_t *v,
                      size_t count);

/** mdl_nd_weight() - appends an initializer, which mdl_nd_finish() fills. */
void mdl_nd_weight(struct mdl_nd *nd, const struct mdl_nd_weight *w);
/** mdl_nd_floats() - appends an initializer with these values (rank 1; 0: one value, a scalar). */
void mdl_nd_floats(struct mdl_nd *nd, const char *name, size_t rank, const float *v, size_t count);

/** mdl_nd_value_add() - Return: false if the name is taken. mdl_nd_value_find() - Return: NULL if
 * unknown. */
bool mdl_nd_value_add(struct mdl_nd *nd, const struct mdl_nd_value *v);
const struct mdl_nd_value *mdl_nd_value_find(const struct mdl_nd *nd, const char *name);

/** mdl_nd_finish() - makes the weights, and fills them if wanted. Return: 0, -ENOMEM. */
int mdl_nd_finish(struct mdl_nd *nd);

/* ---- layers.c ---- */

#define MDL_ND_INPUTS_MAX 64u

struct mdl_nd_layer {
    struct mdl_nd *nd;
    const json_t *json;
    size_t index;
    const char *op, *name;
    const struct mdl_nd_value *in[MDL_ND_INPUTS_MAX];
    size_t in_count;
    struct mdl_nd_value out; /* its output; name is the layer's */
    const char *value;       /* the last value emitted */
};

struct mdl_nd_kind {
    const char *op;
    /* emits the layer's nodes, sets out. @op_type: of the row */
    void (*make)(struct mdl_nd_layer *l, const char *op_type);
    size_t inputs_max;
    const char *keys;    /* besides op, name, in; separated by spaces */
    const char *op_type; /* of the node, where layers differ in that alone */
};

/** mdl_nd_kind_find() - Return: the kind of layer called @op, or NULL. */
const struct mdl_nd_kind *mdl_nd_kind_find(const char *op);

/* ---- layer_keys.c: reads and checks the values of a layer's keys ---- */

/* Of a convolution or pool: height, width; pad: top, left, bottom, right. */
struct mdl_nd_window {
    size_t kernel[2], stride[2], dilation[2], pad[4];
    bool ceil;
};

/** mdl_nd_refuse() - fails with -EBADMSG, layer and @key (may be NULL). Return: -EBADMSG. */
int mdl_nd_refuse(struct mdl_nd_layer *l, const char *key, const char *why);
/** mdl_nd_int() - an integer from @low to @high; if @fallback < @low, the key is required. */
size_t mdl_nd_int(struct mdl_nd_layer *l, const char *key, int64_t low, int64_t high,
                  int64_t fallback);
bool mdl_nd_bool(struct mdl_nd_layer *l, const char *key, bool fallback);
float mdl_nd_float(struct mdl_nd_layer *l, const char *key, double fallback);
/** mdl_nd_window() - the window of a convolution or @pool; sets the layer's output shape. */
struct mdl_nd_window mdl_nd_window(struct mdl_nd_layer *l, bool pool);
/** mdl_nd_image() - refuses an input that is not an image. */
void mdl_nd_image(struct mdl_nd_layer *l);
