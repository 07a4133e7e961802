/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc_layer.h - the layers of a network description; inside of model/netdesc.c
 *
 * A layer is one entry of the list; it may make several nodes (a convolution, its batch norm, its
 * activation), whose last value bears the layer's name. Only what the weights' shapes need is
 * inferred: channels, height and width.
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
    struct mdl_nd_value out; /* what it makes; name is the layer's */
    const char *value;       /* the last value emitted */
};

struct mdl_nd_kind {
    const char *op;
    int (*make)(struct mdl_nd_layer *l); /* emits the layer's nodes, sets out */
    size_t inputs_max;
    const char *keys; /* besides op, name, in; each between spaces */
};

/** mdl_nd_kind_find() - the kind of layer called @op, or NULL. */
const struct mdl_nd_kind *mdl_nd_kind_find(const char *op);

/** mdl_nd_layer_fail() - error text with layer and @key (may be NULL). Return: -EBADMSG. */
int mdl_nd_layer_fail(struct mdl_nd_layer *l, const char *key, const char *why);

/** mdl_nd_emitted() - gives the emitter's -ENOMEM and -E2BIG their text. Return: @r. */
int mdl_nd_emitted(struct mdl_nd_layer *l, int r);
