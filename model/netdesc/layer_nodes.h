/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/layer_nodes.h - makes the nodes of layers; for model/netdesc/ only
 *
 * Each function appends nodes that read the layer's last value, and makes their output the last
 * value. Return: 0, or -ENOMEM, -E2BIG without a text (mdl_nd_emitted() adds it), unless said
 * otherwise.
 */
#pragma once

#include "model/netdesc/layer_keys.h"

struct mdl_nd_act; /* an activation */

/** mdl_nd_emitted() - sets the text for -ENOMEM and -E2BIG. Return: @r. */
int mdl_nd_emitted(struct mdl_nd_layer *l, int r);
/** mdl_nd_part() - makes the name of a value or weight of this layer, "<layer>.<name>"; @name NULL:
 * the layer's name, for its last value. Return: NULL if out of memory. */
const char *mdl_nd_part(struct mdl_nd_layer *l, const char *name);
int mdl_nd_emit(struct mdl_nd_layer *l, const char *op_type, const char *weight1,
                const char *weight2, const char *output, struct mdl_gnode **ret);
/** mdl_nd_emit_window() - adds the window's attributes to node @n. */
int mdl_nd_emit_window(struct mdl_nd_layer *l, struct mdl_gnode *n, const struct mdl_nd_window *w,
                       bool pool);
/** mdl_nd_emit_vector() - adds a weight of @n elements. */
int mdl_nd_emit_vector(struct mdl_nd_layer *l, const char *name, size_t n, enum mdl_nd_fill fill,
                       const char **ret);
/** mdl_nd_get_act() - reads the key "act"; NULL if it is absent or "none". Return: 0 or
 * -EBADMSG. */
int mdl_nd_get_act(struct mdl_nd_layer *l, const struct mdl_nd_act **ret);
/** mdl_nd_emit_act() - emits the activation, which makes the layer's last value; sets the error
 * text. */
int mdl_nd_emit_act(struct mdl_nd_layer *l, const struct mdl_nd_act *act);
/** mdl_nd_emit_tail() - emits what follows a layer with weights: batch norm if @bn, then @act if
 * not NULL; sets the error text. */
int mdl_nd_emit_tail(struct mdl_nd_layer *l, bool bn, const struct mdl_nd_act *act);
