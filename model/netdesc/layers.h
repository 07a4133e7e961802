/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/layers.h - the kinds of layers of a network description; for netdesc.c
 */
#pragma once

#include "model/netdesc/layer.h"

struct mdl_nd_kind {
    const char *op;
    int (*make)(struct mdl_nd_layer *l); /* emits the layer's nodes, sets out */
    size_t inputs_max;
    const char *keys; /* besides op, name, in; separated by spaces */
};

/** mdl_nd_kind_find() - Return: the kind of layer called @op, or NULL. */
const struct mdl_nd_kind *mdl_nd_kind_find(const char *op);
