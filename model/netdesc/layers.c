/* SPDX-License-Identifier: Apache-2.0 */
#include "model/netdesc/layers.h"

#include "model/netdesc/layer_nodes.h"

static int conv(struct mdl_nd_layer *l, size_t out, size_t groups)
{
    size_t in = l->in[0]->channels, per_group;
    const char *weight = mdl_nd_part(l, "weight"), *bias_name = NULL;
    const struct mdl_nd_act *act;
    struct mdl_gnode *n;
    struct mdl_nd_window w;
    bool bn = false, bias = true;
    int r = mdl_nd_get_window(l, false, &w);

    r = r < 0 ? r : mdl_nd_get_bool(l, "bn", false, &bn);
    r = r < 0 ? r : mdl_nd_get_bool(l, "bias", !bn, &bias);
    r = r < 0 ? r : mdl_nd_get_act(l, &act);
    if (r < 0) {
        return r;
    }
    if (in % groups || out % groups) {
        return mdl_nd_layer_fail(l, "groups", "must divide the channels of input and output");
    }
    per_group = in / groups;
    l->out.channels = out;
    r = !weight ? -ENOMEM
                : mdl_nd_weight(l->nd, &(struct mdl_nd_weight){
                                           .name = weight,
                                           .rank = 4,
                                           .dim = {out, per_group, w.kernel[0], w.kernel[1]},
                                           .fan_in = per_group * w.kernel[0] * w.kernel[1],
                                           .fill = MDL_ND_HE});
    if (r == 0 && bias) {
        r = mdl_nd_emit_vector(l, "bias", out, MDL_ND_NEAR_ZERO, &bias_name);
    }
    r = r < 0 ? r
              : mdl_nd_emit(l, "Conv", weight, bias_name, mdl_nd_part(l, bn || act ? "conv" : NULL),
                            &n);
    r = r < 0 ? r : mdl_nd_attr_int(l->nd, n, "group", (int64_t)groups);
    r = mdl_nd_emitted(l, r < 0 ? r : mdl_nd_emit_window(l, n, &w, false));
    return r < 0 ? r : mdl_nd_emit_tail(l, bn, act);
}

static int layer_conv(struct mdl_nd_layer *l)
{
    size_t out = 0, groups = 0;
    int r = mdl_nd_get_int(l, "out", 1, MDL_ND_CHANNELS_MAX, 0, &out);

    r = r < 0 ? r : mdl_nd_get_int(l, "groups", 1, MDL_ND_CHANNELS_MAX, 1, &groups);
    return r < 0 ? r : conv(l, out, groups);
}

static int layer_depthwise(struct mdl_nd_layer *l)
{
    size_t channels = l->in[0]->channels, multiplier = 0;
    int r = mdl_nd_get_int(l, "multiplier", 1, 64, 1, &multiplier);

    if (r == 0 && channels * multiplier > MDL_ND_CHANNELS_MAX) {
        return mdl_nd_layer_fail(l, "multiplier", "makes too many channels");
    }
    return r < 0 ? r : conv(l, channels * multiplier, channels);
}

static size_t flat_size(const struct mdl_nd_value *v)
{
    return v->channels * (v->height ? v->height * v->width : 1);
}

static int flatten(struct mdl_nd_layer *l, const char *output)
{
    struct mdl_gnode *n;
    int r = mdl_nd_emit(l, "Flatten", NULL, NULL, output, &n);

    l->out = (struct mdl_nd_value){.channels = flat_size(l->in[0])};
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "axis", 1));
}

static int layer_flatten(struct mdl_nd_layer *l)
{
    return flatten(l, l->name);
}

static int layer_fc(struct mdl_nd_layer *l)
{
    const char *weight = mdl_nd_part(l, "weight"), *bias_name = NULL;
    size_t in = flat_size(l->in[0]), out;
    const struct mdl_nd_act *act;
    struct mdl_gnode *n;
    bool bias = true;
    int r = mdl_nd_get_int(l, "out", 1, MDL_ND_CHANNELS_MAX, 0, &out);

    r = r < 0 ? r : mdl_nd_get_bool(l, "bias", true, &bias);
    r = r < 0 ? r : mdl_nd_get_act(l, &act);
    if (r < 0) {
        return r;
    }
    if (l->in[0]->height) {
        r = flatten(l, mdl_nd_part(l, "flat"));
    }
    l->out = (struct mdl_nd_value){.channels = out};
    r = r < 0     ? r
        : !weight ? -ENOMEM
                  : mdl_nd_weight(l->nd, &(struct mdl_nd_weight){.name = weight,
                                                                 .rank = 2,
                                                                 .dim = {out, in},
                                                                 .fan_in = in,
                                                                 .fill = MDL_ND_HE});
    if (r == 0 && bias) {
        r = mdl_nd_emit_vector(l, "bias", out, MDL_ND_NEAR_ZERO, &bias_name);
    }
    r = r < 0 ? r
              : mdl_nd_emit(l, "Gemm", weight, bias_name, mdl_nd_part(l, act ? "fc" : NULL), &n);
    r = mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "transB", 1));
    return r < 0 ? r : mdl_nd_emit_tail(l, false, act);
}

static int pool(struct mdl_nd_layer *l, const char *op_type)
{
    struct mdl_gnode *n;
    struct mdl_nd_window w;
    int r = mdl_nd_get_window(l, true, &w);

    if (r < 0) {
        return r;
    }
    r = mdl_nd_emit(l, op_type, NULL, NULL, l->name, &n);
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_emit_window(l, n, &w, true));
}

static int layer_max_pool(struct mdl_nd_layer *l)
{
    return pool(l, "MaxPool");
}

static int layer_avg_pool(struct mdl_nd_layer *l)
{
    return pool(l, "AveragePool");
}

static int global_pool(struct mdl_nd_layer *l, const char *op_type)
{
    struct mdl_gnode *n;

    if (l->in[0]->height == 0) {
        return mdl_nd_layer_fail(l, "in", "is not an image (a layer before it made it flat)");
    }
    l->out = (struct mdl_nd_value){.channels = l->in[0]->channels, .height = 1, .width = 1};
    return mdl_nd_emitted(l, mdl_nd_emit(l, op_type, NULL, NULL, l->name, &n));
}

static int layer_global_avg_pool(struct mdl_nd_layer *l)
{
    return global_pool(l, "GlobalAveragePool");
}

static int layer_global_max_pool(struct mdl_nd_layer *l)
{
    return global_pool(l, "GlobalMaxPool");
}

static int layer_act(struct mdl_nd_layer *l)
{
    const struct mdl_nd_act *act;
    int r = mdl_nd_get_act(l, &act);

    if (r == 0 && !act) {
        return mdl_nd_layer_fail(l, "act", "is missing");
    }
    l->out = *l->in[0];
    return r < 0 ? r : mdl_nd_emit_act(l, act);
}

static int layer_add(struct mdl_nd_layer *l)
{
    const struct mdl_nd_act *act;
    int r = mdl_nd_get_act(l, &act);

    if (r < 0) {
        return r;
    }
    if (l->in_count < 2) {
        return mdl_nd_layer_fail(l, "in", "must have at least two names");
    }
    l->out = *l->in[0];
    for (size_t i = 1; r == 0 && i < l->in_count; i++) {
        bool last = i + 1 == l->in_count && !act;
        char sum[24];
        struct mdl_gnode *n;

        if (l->in[i]->channels != l->out.channels || l->in[i]->height != l->out.height ||
            l->in[i]->width != l->out.width) {
            return mdl_nd_layer_fail(l, "in", "the inputs have different shapes");
        }
        snprintf(sum, sizeof(sum), "sum%zu", i);
        r = mdl_nd_emitted(
            l, mdl_nd_emit(l, "Add", l->in[i]->name, NULL, mdl_nd_part(l, last ? NULL : sum), &n));
    }
    return r < 0 ? r : mdl_nd_emit_tail(l, false, act);
}

static int layer_concat(struct mdl_nd_layer *l)
{
    const char *inputs[MDL_ND_INPUTS_MAX + 1] = {NULL};
    struct mdl_gnode *n;
    int r;

    l->out = *l->in[0];
    l->out.channels = 0;
    for (size_t i = 0; i < l->in_count; i++) {
        if (l->in[i]->height != l->out.height || l->in[i]->width != l->out.width) {
            return mdl_nd_layer_fail(l, "in", "the inputs have different heights or widths");
        }
        l->out.channels += l->in[i]->channels;
        inputs[i] = l->in[i]->name;
    }
    r = mdl_nd_node(l->nd, "Concat", inputs, l->name, &n);
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "axis", 1));
}

static int layer_upsample(struct mdl_nd_layer *l)
{
    const char *scales = mdl_nd_part(l, "scales");
    const char *inputs[] = {l->value, "", scales, NULL};
    struct mdl_gnode *n;
    size_t factor = 0;
    int r = mdl_nd_get_int(l, "factor", 2, 16, 2, &factor);

    if (r < 0) {
        return r;
    }
    if (l->in[0]->height == 0) {
        return mdl_nd_layer_fail(l, "in", "is not an image (a layer before it made it flat)");
    }
    l->out = *l->in[0];
    l->out.height *= factor;
    l->out.width *= factor;
    r = !scales ? -ENOMEM
                : mdl_nd_floats(l->nd, scales, (float[]){1, 1, (float)factor, (float)factor}, 4);
    r = r < 0 ? r : mdl_nd_node(l->nd, "Resize", inputs, l->name, &n);
    r = r < 0 ? r : mdl_nd_attr_string(l->nd, n, "mode", "nearest");
    r = r < 0 ? r : mdl_nd_attr_string(l->nd, n, "nearest_mode", "floor");
    r = r < 0 ? r : mdl_nd_attr_string(l->nd, n, "coordinate_transformation_mode", "asymmetric");
    return mdl_nd_emitted(l, r);
}

static int layer_softmax(struct mdl_nd_layer *l)
{
    struct mdl_gnode *n;
    int r = mdl_nd_emit(l, "Softmax", NULL, NULL, l->name, &n);

    l->out = *l->in[0];
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "axis", 1));
}

static int layer_lrn(struct mdl_nd_layer *l)
{
    float alpha = 0, beta = 0, bias = 0;
    struct mdl_gnode *n;
    size_t size = 0;
    int r = mdl_nd_get_int(l, "size", 1, 255, 5, &size);

    r = r < 0 ? r : mdl_nd_get_float(l, "alpha", 1e-4, &alpha);
    r = r < 0 ? r : mdl_nd_get_float(l, "beta", 0.75, &beta);
    r = r < 0 ? r : mdl_nd_get_float(l, "bias", 1.0, &bias);
    if (r < 0) {
        return r;
    }
    l->out = *l->in[0];
    r = mdl_nd_emit(l, "LRN", NULL, NULL, l->name, &n);
    r = r < 0 ? r : mdl_nd_attr_int(l->nd, n, "size", (int64_t)size);
    r = r < 0 ? r : mdl_nd_attr_float(l->nd, n, "alpha", alpha);
    r = r < 0 ? r : mdl_nd_attr_float(l->nd, n, "beta", beta);
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_float(l->nd, n, "bias", bias));
}

static const struct mdl_nd_kind kinds[] = {
    {"conv", layer_conv, 1, " out kernel stride pad dilation groups bias bn act "},
    {"dwconv", layer_depthwise, 1, " multiplier kernel stride pad dilation bias bn act "},
    {"fc", layer_fc, 1, " out bias act "},
    {"maxpool", layer_max_pool, 1, " kernel stride pad ceil "},
    {"avgpool", layer_avg_pool, 1, " kernel stride pad ceil "},
    {"globalavgpool", layer_global_avg_pool, 1, " "},
    {"globalmaxpool", layer_global_max_pool, 1, " "},
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
