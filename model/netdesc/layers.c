/* SPDX-License-Identifier: Apache-2.0 */
#include "model/netdesc/layers.h"

/* ---- nodes that read the layer's last value, and make their output the last value ---- */

/* Adds the window's attributes to node @n. */
static void emit_window(struct mdl_nd_layer *l, struct mdl_gnode *n, const struct mdl_nd_window *w,
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

/* The name of a value or weight of this layer, "<layer>.<name>"; @name NULL: the layer's name, for
 * its last value. */
static const char *part(struct mdl_nd_layer *l, const char *name)
{
    return name ? mdl_pool_printf(l->nd->graph->pool, "%s.%s", l->name, name) : l->name;
}

static struct mdl_gnode *emit(struct mdl_nd_layer *l, const char *op_type, const char *weight1,
                              const char *weight2, const char *output)
{
    const char *inputs[] = {l->value, weight1, weight2, NULL};

    l->value = output;
    return mdl_nd_node(l->nd, op_type, inputs, output);
}

/* Adds a weight of @n elements. Return: its name. */
static const char *vector(struct mdl_nd_layer *l, const char *name, size_t n, enum mdl_nd_fill fill)
{
    struct mdl_nd_weight w = {
        .name = part(l, name), .rank = 1, .dim = {n}, .fan_in = 1, .fill = fill};

    mdl_nd_weight(l->nd, &w);
    return w.name;
}

struct activation {
    const char *name, *op_type;
    const char *a_name, *b_name; /* float attributes */
    float a, b;
};

static const struct activation acts[] = {
    {"relu", "Relu", NULL, NULL, 0, 0},
    {"leaky_relu", "LeakyRelu", "alpha", NULL, 0.1f, 0},
    {"sigmoid", "Sigmoid", NULL, NULL, 0, 0},
    {"tanh", "Tanh", NULL, NULL, 0, 0},
    {"elu", "Elu", "alpha", NULL, 1, 0},
    {"softplus", "Softplus", NULL, NULL, 0, 0},
    {"hard_sigmoid", "HardSigmoid", "alpha", "beta", 0.2f, 0.5f},
    {"relu6", "Clip", NULL, NULL, 0, 6},
};

/* Emits the activation, which makes the layer's last value. */
static void emit_act(struct mdl_nd_layer *l, const struct activation *a)
{
    const char *low = NULL, *high = NULL;
    struct mdl_gnode *n;

    if (a->op_type[0] == 'C') { /* relu6 is Clip with two constant inputs, scalars */
        low = part(l, "low");
        high = part(l, "high");
        mdl_nd_floats(l->nd, low, 0, &a->a, 1);
        mdl_nd_floats(l->nd, high, 0, &a->b, 1);
    }
    n = emit(l, a->op_type, low, high, l->name);
    if (a->a_name) {
        mdl_nd_attr_float(l->nd, n, a->a_name, a->a);
    }
    if (a->b_name) {
        mdl_nd_attr_float(l->nd, n, a->b_name, a->b);
    }
}

/* The key "act"; NULL if it is absent or "none". */
static const struct activation *act_of(struct mdl_nd_layer *l)
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
        inputs[i + 1] = vector(l, parts[i].name, l->out.channels, parts[i].fill);
    }
    l->value = part(l, last ? NULL : "bn");
    mdl_nd_node(l->nd, "BatchNormalization", inputs, l->value);
}

/* Emits what follows a layer with weights: batch norm if @bn, then @act if not NULL. */
static void emit_tail(struct mdl_nd_layer *l, bool bn, const struct activation *act)
{
    if (bn) {
        emit_batch_norm(l, !act);
    }
    if (act) {
        emit_act(l, act);
    }
}

/* ---- layers ---- */

static void conv(struct mdl_nd_layer *l, size_t out, size_t groups)
{
    size_t in = l->in[0]->channels, per_group = in / groups;
    struct mdl_nd_window w = mdl_nd_window(l, false);
    bool bn = mdl_nd_bool(l, "bn", false), bias = mdl_nd_bool(l, "bias", !bn);
    const struct activation *act = act_of(l);
    struct mdl_nd_weight weight = {.name = part(l, "weight"),
                                   .rank = 4,
                                   .dim = {out, per_group, w.kernel[0], w.kernel[1]},
                                   .fan_in = per_group * w.kernel[0] * w.kernel[1],
                                   .fill = MDL_ND_HE};
    const char *bias_name = NULL;
    struct mdl_gnode *n;

    if (in % groups || out % groups) {
        mdl_nd_refuse(l, "groups", "must divide the channels of input and output");
    }
    l->out.channels = out;
    mdl_nd_weight(l->nd, &weight);
    if (bias) {
        bias_name = vector(l, "bias", out, MDL_ND_NEAR_ZERO);
    }
    n = emit(l, "Conv", weight.name, bias_name, part(l, bn || act ? "conv" : NULL));
    mdl_nd_attr_int(l->nd, n, "group", (int64_t)groups);
    emit_window(l, n, &w, false);
    emit_tail(l, bn, act);
}

static void layer_conv(struct mdl_nd_layer *l, const char *op_type)
{
    size_t out = mdl_nd_int(l, "out", 1, MDL_ND_CHANNELS_MAX, 0);

    conv(l, out, mdl_nd_int(l, "groups", 1, MDL_ND_CHANNELS_MAX, 1));
}

static void layer_depthwise(struct mdl_nd_layer *l, const char *op_type)
{
    size_t channels = l->in[0]->channels, multiplier = mdl_nd_int(l, "multiplier", 1, 64, 1);

    if (channels * multiplier > MDL_ND_CHANNELS_MAX) {
        mdl_nd_refuse(l, "multiplier", "makes too many channels");
        return;
    }
    conv(l, channels * multiplier, channels);
}

static size_t flat_size(const struct mdl_nd_value *v)
{
    return v->channels * (v->height ? v->height * v->width : 1);
}

static void flatten(struct mdl_nd_layer *l, const char *output)
{
    struct mdl_gnode *n = emit(l, "Flatten", NULL, NULL, output);

    l->out = (struct mdl_nd_value){.channels = flat_size(l->in[0])};
    mdl_nd_attr_int(l->nd, n, "axis", 1);
}

static void layer_flatten(struct mdl_nd_layer *l, const char *op_type)
{
    flatten(l, l->name);
}

static void layer_fc(struct mdl_nd_layer *l, const char *op_type)
{
    size_t in = flat_size(l->in[0]), out = mdl_nd_int(l, "out", 1, MDL_ND_CHANNELS_MAX, 0);
    bool bias = mdl_nd_bool(l, "bias", true);
    const struct activation *act = act_of(l);
    struct mdl_nd_weight weight = {
        .name = part(l, "weight"), .rank = 2, .dim = {out, in}, .fan_in = in, .fill = MDL_ND_HE};
    const char *bias_name = NULL;
    struct mdl_gnode *n;

    if (l->in[0]->height) {
        flatten(l, part(l, "flat"));
    }
    l->out = (struct mdl_nd_value){.channels = out};
    mdl_nd_weight(l->nd, &weight);
    if (bias) {
        bias_name = vector(l, "bias", out, MDL_ND_NEAR_ZERO);
    }
    n = emit(l, "Gemm", weight.name, bias_name, part(l, act ? "fc" : NULL));
    mdl_nd_attr_int(l->nd, n, "transB", 1);
    emit_tail(l, false, act);
}

static void layer_pool(struct mdl_nd_layer *l, const char *op_type)
{
    struct mdl_nd_window w = mdl_nd_window(l, true);

    emit_window(l, emit(l, op_type, NULL, NULL, l->name), &w, true);
}

static void layer_global_pool(struct mdl_nd_layer *l, const char *op_type)
{
    mdl_nd_image(l);
    l->out = (struct mdl_nd_value){.channels = l->in[0]->channels, .height = 1, .width = 1};
    emit(l, op_type, NULL, NULL, l->name);
}

static void layer_act(struct mdl_nd_layer *l, const char *op_type)
{
    const struct activation *act = act_of(l);

    l->out = *l->in[0];
    if (act) {
        emit_act(l, act);
    } else {
        mdl_nd_refuse(l, "act", "is missing");
    }
}

static void layer_add(struct mdl_nd_layer *l, const char *op_type)
{
    const struct activation *act = act_of(l);

    if (l->in_count < 2) {
        mdl_nd_refuse(l, "in", "must have at least two names");
    }
    l->out = *l->in[0];
    for (size_t i = 1; i < l->in_count; i++) {
        bool last = i + 1 == l->in_count && !act;
        char sum[24];

        if (l->in[i]->channels != l->out.channels || l->in[i]->height != l->out.height ||
            l->in[i]->width != l->out.width) {
            mdl_nd_refuse(l, "in", "the inputs have different shapes");
        }
        snprintf(sum, sizeof(sum), "sum%zu", i);
        emit(l, "Add", l->in[i]->name, NULL, part(l, last ? NULL : sum));
    }
    emit_tail(l, false, act);
}

static void layer_concat(struct mdl_nd_layer *l, const char *op_type)
{
    const char *inputs[MDL_ND_INPUTS_MAX + 1] = {NULL};

    l->out = *l->in[0];
    l->out.channels = 0;
    for (size_t i = 0; i < l->in_count; i++) {
        if (l->in[i]->height != l->out.height || l->in[i]->width != l->out.width) {
            mdl_nd_refuse(l, "in", "the inputs have different heights or widths");
        }
        l->out.channels += l->in[i]->channels;
        inputs[i] = l->in[i]->name;
    }
    mdl_nd_attr_int(l->nd, mdl_nd_node(l->nd, "Concat", inputs, l->name), "axis", 1);
}

static void layer_upsample(struct mdl_nd_layer *l, const char *op_type)
{
    const char *scales = part(l, "scales");
    const char *inputs[] = {l->value, "", scales, NULL};
    size_t factor = mdl_nd_int(l, "factor", 2, 16, 2);
    struct mdl_gnode *n;

    mdl_nd_image(l);
    l->out = *l->in[0];
    l->out.height *= factor;
    l->out.width *= factor;
    mdl_nd_floats(l->nd, scales, 1, (float[]){1, 1, (float)factor, (float)factor}, 4);
    n = mdl_nd_node(l->nd, "Resize", inputs, l->name);
    mdl_nd_attr_string(l->nd, n, "mode", "nearest");
    mdl_nd_attr_string(l->nd, n, "nearest_mode", "floor");
    mdl_nd_attr_string(l->nd, n, "coordinate_transformation_mode", "asymmetric");
}

static void layer_softmax(struct mdl_nd_layer *l, const char *op_type)
{
    l->out = *l->in[0];
    mdl_nd_attr_int(l->nd, emit(l, "Softmax", NULL, NULL, l->name), "axis", 1);
}

static void layer_lrn(struct mdl_nd_layer *l, const char *op_type)
{
    struct mdl_gnode *n = emit(l, "LRN", NULL, NULL, l->name);

    l->out = *l->in[0];
    mdl_nd_attr_int(l->nd, n, "size", (int64_t)mdl_nd_int(l, "size", 1, 255, 5));
    mdl_nd_attr_float(l->nd, n, "alpha", mdl_nd_float(l, "alpha", 1e-4));
    mdl_nd_attr_float(l->nd, n, "beta", mdl_nd_float(l, "beta", 0.75));
    mdl_nd_attr_float(l->nd, n, "bias", mdl_nd_float(l, "bias", 1.0));
}

static const struct mdl_nd_kind kinds[] = {
    {"conv", layer_conv, 1, " out kernel stride pad dilation groups bias bn act "},
    {"dwconv", layer_depthwise, 1, " multiplier kernel stride pad dilation bias bn act "},
    {"fc", layer_fc, 1, " out bias act "},
    {"maxpool", layer_pool, 1, " kernel stride pad ceil ", "MaxPool"},
    {"avgpool", layer_pool, 1, " kernel stride pad ceil ", "AveragePool"},
    {"globalavgpool", layer_global_pool, 1, " ", "GlobalAveragePool"},
    {"globalmaxpool", layer_global_pool, 1, " ", "GlobalMaxPool"},
    {"act", layer_act, 1, " act "},
    {"add", layer_add, MDL_ND_INPUTS_MAX, " act "},
    {"concat", layer_concat, MDL_ND_INPUTS_MAX, " "},
    {"upsample", layer_upsample, 1, " factor "},
    {"softmax", layer_softmax, 1, " "},
    {"lrn", layer_lrn, 1, " size alpha beta bias "},
    {"flatten", layer_flatten, 1, " "},
};

const struct mdl_nd_kind *mdl_nd_kind_find(const char *op)
{
    for (size_t i = 0; i < base_array_count(kinds); i++) {
        if (strcmp(kinds[i].op, op) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}
