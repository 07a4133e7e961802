/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/layer_keys.h - reads and checks the values of a layer's keys; for model/netdesc/
 * only
 *
 * Each function refuses a bad value with the layer's and the key's name. Return: 0 or -EBADMSG.
 */
#pragma once

#include "model/netdesc/layer.h"

/* Of a convolution or pool: height, width; pad: top, left, bottom, right. */
struct mdl_nd_window {
    size_t kernel[2], stride[2], dilation[2], pad[4];
    bool ceil;
};

/** mdl_nd_layer_fail() - sets the error text with layer and @key (may be NULL). Return:
 * -EBADMSG. */
int mdl_nd_layer_fail(struct mdl_nd_layer *l, const char *key, const char *why);
/** mdl_nd_get_int() - reads an integer from @low to @high; if @fallback < @low, the key is
 * required. */
int mdl_nd_get_int(struct mdl_nd_layer *l, const char *key, int64_t low, int64_t high,
                   int64_t fallback, size_t *ret);
int mdl_nd_get_bool(struct mdl_nd_layer *l, const char *key, bool fallback, bool *ret);
int mdl_nd_get_float(struct mdl_nd_layer *l, const char *key, double fallback, float *ret);
/** mdl_nd_get_window() - reads the window of a convolution or @pool; sets the layer's output
 * shape. */
int mdl_nd_get_window(struct mdl_nd_layer *l, bool pool, struct mdl_nd_window *w);
