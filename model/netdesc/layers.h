/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/layers.h - a layer of a network description: its keys, and the nodes that it
 * becomes; for model/netdesc/ only
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

#include "model/netdesc/nodes.h"

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
    void (*make)(struct mdl_nd_layer *l); /* emits the layer's nodes, sets out */
    size_t inputs_max;
    const char *keys; /* besides op, name, in; separated by spaces */
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

/* ---- layer_nodes.c: appends nodes that read the layer's last value, and makes their output the
 * last value ---- */

struct mdl_nd_act; /* an activation */

/** mdl_nd_part() - makes the name of a value or weight of this layer, "<layer>.<name>"; @name NULL:
 * the layer's name, for its last value. */
const char *mdl_nd_part(struct mdl_nd_layer *l, const char *name);
struct mdl_gnode *mdl_nd_emit(struct mdl_nd_layer *l, const char *op_type, const char *weight1,
                              const char *weight2, const char *output);
/** mdl_nd_emit_window() - adds the window's attributes to node @n. */
void mdl_nd_emit_window(struct mdl_nd_layer *l, struct mdl_gnode *n, const struct mdl_nd_window *w,
                        bool pool);
/** mdl_nd_vector() - adds a weight of @n elements. Return: its name. */
const char *mdl_nd_vector(struct mdl_nd_layer *l, const char *name, size_t n,
                          enum mdl_nd_fill fill);
/** mdl_nd_act() - the key "act"; NULL if it is absent or "none". */
const struct mdl_nd_act *mdl_nd_act(struct mdl_nd_layer *l);
/** mdl_nd_emit_act() - emits the activation, which makes the layer's last value. */
void mdl_nd_emit_act(struct mdl_nd_layer *l, const struct mdl_nd_act *act);
/** mdl_nd_emit_tail() - emits what follows a layer with weights: batch norm if @bn, then @act if
 * not NULL. */
void mdl_nd_emit_tail(struct mdl_nd_layer *l, bool bn, const struct mdl_nd_act *act);
