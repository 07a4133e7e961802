/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that layers become. */
#include "model/netdesc/layers.h"

void mdl_nd_emit_window(struct mdl_nd_layer *l, struct mdl_gnode *n, const struct mdl_nd_window *w,
                        bool pool)
{
    mdl_nd_attr_ints(l->nd, n, "kernel_shape", w->kernel, 2);
    mdl_nd_attr_ints(l->nd, n, "strides", w->stride, 2);
    mdl_nd_attr_ints(l->nd, n, "pads", w->pad, 4);
    if (!pool) {
        mdl_nd_attr_ints(l->nd, n, "dilations", w->dilation, 2);
    }
    if (w->ceil) {
        mdl_nd_attr_int(l->nd, n, "ceil_mode", 1);
    }
}

const char *mdl_nd_part(struct mdl_nd_layer *l, const char *name)
{
    return name ? mdl_pool_printf(l->nd->graph->pool, "%s.%s", l->name, name) : l->name;
}

struct mdl_gnode *mdl_nd_emit(struct mdl_nd_layer *l, const char *op_type, const char *weight1,
                              const char *weight2, const char *output)
{
    const char *inputs[] = {l->value, weight1, weight2, NULL};

    l->value = output;
    return mdl_nd_node(l->nd, op_type, inputs, output);
}

const char *mdl_nd_vector(struct mdl_nd_layer *l, const char *name, size_t n, enum mdl_nd_fill fill)
{
    struct mdl_nd_weight w = {
        .name = mdl_nd_part(l, name), .rank = 1, .dim = {n}, .fan_in = 1, .fill = fill};

    mdl_nd_weight(l->nd, &w);
    return w.name;
}

struct mdl_nd_act {
    const char *name, *op_type;
    const char *a_name, *b_name; /* float attributes */
    float a, b;
};

static const struct mdl_nd_act acts[] = {
    {"relu", "Relu", NULL, NULL, 0, 0},
    {"leaky_relu", "LeakyRelu", "alpha", NULL, 0.1f, 0},
    {"sigmoid", "Sigmoid", NULL, NULL, 0, 0},
    {"tanh", "Tanh", NULL, NULL, 0, 0},
    {"elu", "Elu", "alpha", NULL, 1, 0},
    {"softplus", "Softplus", NULL, NULL, 0, 0},
    {"hard_sigmoid", "HardSigmoid", "alpha", "beta", 0.2f, 0.5f},
    {"relu6", "Clip", NULL, NULL, 0, 6},
};

void mdl_nd_emit_act(struct mdl_nd_layer *l, const struct mdl_nd_act *a)
{
    const char *low = NULL, *high = NULL;
    struct mdl_gnode *n;

    if (a->op_type[0] == 'C') { /* relu6 is Clip with two constant inputs, scalars */
        low = mdl_nd_part(l, "low");
        high = mdl_nd_part(l, "high");
        mdl_nd_floats(l->nd, low, 0, &a->a, 1);
        mdl_nd_floats(l->nd, high, 0, &a->b, 1);
    }
    n = mdl_nd_emit(l, a->op_type, low, high, l->name);
    if (a->a_name) {
        mdl_nd_attr_float(l->nd, n, a->a_name, a->a);
    }
    if (a->b_name) {
        mdl_nd_attr_float(l->nd, n, a->b_name, a->b);
    }
}

const struct mdl_nd_act *mdl_nd_act(struct mdl_nd_layer *l)
{
    const json_t *v = json_object_get(l->json, "act");
    const char *name = json_string_value(v);

    if (!v || (name && strcmp(name, "none") == 0)) {
        return NULL;
    }
    for (size_t i = 0; name && i < base_array_count(acts); i++) {
        if (strcmp(name, acts[i].name) == 0) {
            return &acts[i];
        }
    }
    mdl_nd_refuse(l, "act",
                  "must be none, relu, relu6, leaky_relu, sigmoid, tanh, elu, softplus or "
                  "hard_sigmoid");
    return NULL;
}

static void emit_batch_norm(struct mdl_nd_layer *l, bool last)
{
    static const struct {
        const char *name;
        enum mdl_nd_fill fill;
    } parts[4] = {{"bn_scale", MDL_ND_NEAR_ONE},
                  {"bn_bias", MDL_ND_NEAR_ZERO},
                  {"bn_mean", MDL_ND_NEAR_ZERO},
                  {"bn_var", MDL_ND_NEAR_ONE}};
    const char *inputs[6] = {l->value};

    for (size_t i = 0; i < 4; i++) {
        inputs[i + 1] = mdl_nd_vector(l, parts[i].name, l->out.channels, parts[i].fill);
    }
    l->value = mdl_nd_part(l, last ? NULL : "bn");
    mdl_nd_node(l->nd, "BatchNormalization", inputs, l->value);
}

void mdl_nd_emit_tail(struct mdl_nd_layer *l, bool bn, const struct mdl_nd_act *act)
{
    if (bn) {
        emit_batch_norm(l, !act);
    }
    if (act) {
        mdl_nd_emit_act(l, act);
    }
}
