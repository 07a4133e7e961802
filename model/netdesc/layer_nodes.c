/* SPDX-License-Identifier: Apache-2.0 */
#include "model/netdesc/layer_nodes.h"

#include "model/common/private.h"

int mdl_nd_emitted(struct mdl_nd_layer *l, int r)
{
    if (r == -E2BIG) {
        mdl_fail(l->nd->error, r, "layer %zu '%.60s': the weights are larger than %zu GiB",
                 l->index, l->name, MDL_ND_WEIGHT_BYTES_MAX >> 30);
    } else if (r < 0) {
        mdl_fail(l->nd->error, r, "layer %zu '%.60s': out of memory", l->index, l->name);
    }
    return r;
}

int mdl_nd_emit_window(struct mdl_nd_layer *l, struct mdl_gnode *n, const struct mdl_nd_window *w,
                       bool pool)
{
    int r = mdl_nd_attr_ints(l->nd, n, "kernel_shape", w->kernel, 2);

    r = r < 0 ? r : mdl_nd_attr_ints(l->nd, n, "strides", w->stride, 2);
    r = r < 0 ? r : mdl_nd_attr_ints(l->nd, n, "pads", w->pad, 4);
    r = r < 0 || pool ? r : mdl_nd_attr_ints(l->nd, n, "dilations", w->dilation, 2);
    return r < 0 || !w->ceil ? r : mdl_nd_attr_int(l->nd, n, "ceil_mode", 1);
}

/* A value or weight of this layer: "<layer>.<part>", or the layer's own name for its last value. */
const char *mdl_nd_part(struct mdl_nd_layer *l, const char *name)
{
    return name ? mdl_pool_printf(l->nd->graph->pool, "%s.%s", l->name, name) : l->name;
}

int mdl_nd_emit(struct mdl_nd_layer *l, const char *op_type, const char *weight1,
                const char *weight2, const char *output, struct mdl_gnode **ret)
{
    const char *inputs[] = {l->value, weight1, weight2, NULL};
    int r;

    if (!output) {
        return -ENOMEM;
    }
    r = mdl_nd_node(l->nd, op_type, inputs, output, ret);
    if (r == 0) {
        l->value = output;
    }
    return r;
}

int mdl_nd_emit_vector(struct mdl_nd_layer *l, const char *name, size_t n, enum mdl_nd_fill fill,
                       const char **ret)
{
    struct mdl_nd_weight w = {
        .name = mdl_nd_part(l, name), .rank = 1, .dim = {n}, .fan_in = 1, .fill = fill};

    *ret = w.name;
    return w.name ? mdl_nd_weight(l->nd, &w) : -ENOMEM;
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

/* relu6 is Clip with two constant inputs. */
static int emit_clip(struct mdl_nd_layer *l, const struct mdl_nd_act *a, const char *output)
{
    const char *low = mdl_nd_part(l, "low"), *high = mdl_nd_part(l, "high");
    const char *inputs[] = {l->value, low, high, NULL};
    struct mdl_graph *g = l->nd->graph;
    struct mdl_gnode *n;
    int r = low && high ? mdl_nd_floats(l->nd, low, &a->a, 1) : -ENOMEM;

    r = r < 0 ? r : mdl_nd_floats(l->nd, high, &a->b, 1);
    if (r < 0) {
        return r;
    }
    /* scalars, as the operator expects them */
    g->initializers[g->initializer_count - 2].rank = 0;
    g->initializers[g->initializer_count - 1].rank = 0;
    r = mdl_nd_node(l->nd, "Clip", inputs, output, &n);
    l->value = output;
    return r;
}

int mdl_nd_emit_act(struct mdl_nd_layer *l, const struct mdl_nd_act *a)
{
    struct mdl_gnode *n;
    int r;

    if (a->op_type[0] == 'C') {
        return mdl_nd_emitted(l, emit_clip(l, a, l->name));
    }
    r = mdl_nd_emit(l, a->op_type, NULL, NULL, l->name, &n);
    r = r < 0 || !a->a_name ? r : mdl_nd_attr_float(l->nd, n, a->a_name, a->a);
    r = r < 0 || !a->b_name ? r : mdl_nd_attr_float(l->nd, n, a->b_name, a->b);
    return mdl_nd_emitted(l, r);
}

/* The key "act": NULL where it is absent or "none". */
int mdl_nd_get_act(struct mdl_nd_layer *l, const struct mdl_nd_act **ret)
{
    const json_t *v = json_object_get(l->json, "act");

    *ret = NULL;
    if (!v || (json_is_string(v) && strcmp(json_string_value(v), "none") == 0)) {
        return 0;
    }
    for (size_t i = 0; json_is_string(v) && i < base_array_count(acts); i++) {
        if (strcmp(json_string_value(v), acts[i].name) == 0) {
            *ret = &acts[i];
            return 0;
        }
    }
    return mdl_nd_layer_fail(
        l, "act",
        "must be none, relu, relu6, leaky_relu, sigmoid, tanh, elu, softplus or "
        "hard_sigmoid");
}

static int emit_batch_norm(struct mdl_nd_layer *l, bool last)
{
    static const struct {
        const char *name;
        enum mdl_nd_fill fill;
    } parts[4] = {{"bn_scale", MDL_ND_NEAR_ONE},
                  {"bn_bias", MDL_ND_NEAR_ZERO},
                  {"bn_mean", MDL_ND_NEAR_ZERO},
                  {"bn_var", MDL_ND_NEAR_ONE}};
    const char *inputs[6] = {l->value};
    struct mdl_gnode *n;
    int r = 0;

    for (size_t i = 0; r == 0 && i < 4; i++) {
        r = mdl_nd_emit_vector(l, parts[i].name, l->out.channels, parts[i].fill, &inputs[i + 1]);
    }
    l->value = mdl_nd_part(l, last ? NULL : "bn");
    r = r < 0 ? r : !l->value ? -ENOMEM : 0;
    return r < 0 ? r : mdl_nd_node(l->nd, "BatchNormalization", inputs, l->value, &n);
}

/* The tail of layers with weights: batch norm and activation. */
int mdl_nd_emit_tail(struct mdl_nd_layer *l, bool bn, const struct mdl_nd_act *act)
{
    int r = bn ? mdl_nd_emitted(l, emit_batch_norm(l, !act)) : 0;

    return r < 0 || !act ? r : mdl_nd_emit_act(l, act);
}
