/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/layer.h - a layer of a network description, while its nodes are made
 *
 * A layer is one entry of the list; it may make several nodes (a convolution, its batch norm, its
 * activation), whose last value has the layer's name. Only channels, height and width are inferred,
 * since the weights' shapes need them.
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
