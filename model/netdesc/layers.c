/* SPDX-License-Identifier: Apache-2.0 */
#include "model/netdesc_layer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "model/private.h"

int mdl_nd_layer_fail(struct mdl_nd_layer *l, const char *key, const char *why)
{
    return key ? mdl_fail(l->nd->error, -EBADMSG, "layer %zu '%.60s' (%.20s): key '%.40s': %s",
                          l->index, l->name, l->op, key, why)
               : mdl_fail(l->nd->error, -EBADMSG, "layer %zu '%.60s' (%.20s): %s", l->index,
                          l->name, l->op, why);
}

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

/* ---- values of keys ---- */

static int get_int(struct mdl_nd_layer *l, const char *key, int64_t low, int64_t high,
                   int64_t fallback, size_t *ret)
{
    const json_t *v = json_object_get(l->json, key);
    char why[96];

    if (!v && fallback >= low) {
        *ret = (size_t)fallback;
        return 0;
    }
    if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high) {
        snprintf(why, sizeof(why), "wants a whole number from %lld to %lld", (long long)low,
                 (long long)high);
        return mdl_nd_layer_fail(l, key, why);
    }
    *ret = (size_t)json_integer_value(v);
    return 0;
}

static int get_bool(struct mdl_nd_layer *l, const char *key, bool fallback, bool *ret)
{
    const json_t *v = json_object_get(l->json, key);

    if (v && !json_is_boolean(v)) {
        return mdl_nd_layer_fail(l, key, "wants true or false");
    }
    *ret = v ? json_is_true(v) : fallback;
    return 0;
}

static int get_float(struct mdl_nd_layer *l, const char *key, double fallback, float *ret)
{
    const json_t *v = json_object_get(l->json, key);
    double d = v ? json_number_value(v) : fallback;

    if ((v && !json_is_number(v)) || !isfinite(d) || fabs(d) > 1e6) {
        return mdl_nd_layer_fail(l, key, "wants a finite number");
    }
    *ret = (float)d;
    return 0;
}

/* N, or [height, width], or (where @sides is 4) [top, left, bottom, right]. */
static int get_sides(struct mdl_nd_layer *l, const char *key, int64_t low, int64_t fallback,
                     size_t sides, size_t *out)
{
    const json_t *v = json_object_get(l->json, key);
    size_t count = json_is_array(v) ? json_array_size(v) : 1;

    if (!v && fallback < low) {
        return mdl_nd_layer_fail(l, key, "is missing");
    }
    if (json_is_array(v) && count != 2 && count != sides) {
        return mdl_nd_layer_fail(l, key,
                                 sides == 4 ? "wants N, [h, w] or [top, left, bottom, right]"
                                            : "wants N or [h, w]");
    }
    for (size_t i = 0; i < sides; i++) {
        const json_t *n = json_is_array(v) ? json_array_get(v, count == sides ? i : i % 2) : v;
        json_int_t d = v ? json_integer_value(n) : fallback;

        if ((v && !json_is_integer(n)) || d < low || d > MDL_ND_SIZE_MAX) {
            return mdl_nd_layer_fail(l, key, "wants whole numbers within 0 and 16384");
        }
        out[i] = (size_t)d;
    }
    return 0;
}

struct window {
    size_t kernel[2], stride[2], dilation[2], pad[4]; /* pad: top, left, bottom, right */
    bool ceil;
};

static int get_pad(struct mdl_nd_layer *l, struct window *w)
{
    const json_t *v = json_object_get(l->json, "pad");

    if (!json_is_string(v)) {
        return get_sides(l, "pad", 0, 0, 4, w->pad);
    }
    if (strcmp(json_string_value(v), "same") != 0) {
        return mdl_nd_layer_fail(l, "pad", "wants numbers or \"same\"");
    }
    for (size_t i = 0; i < 2; i++) { /* the output is ceil(input / stride) */
        size_t in = i ? l->in[0]->width : l->in[0]->height;
        size_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        size_t need = ((in + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach;
        size_t total = need > in ? need - in : 0;

        w->pad[i] = total / 2;
        w->pad[i + 2] = total - total / 2;
    }
    return 0;
}

/* Reads the window and says what comes out of it. */
static int get_window(struct mdl_nd_layer *l, bool pool, struct window *w)
{
    const struct mdl_nd_value *in = l->in[0];
    int r;

    if (in->height == 0) {
        return mdl_nd_layer_fail(l, "in", "is not an image any more");
    }
    *w = (struct window){.dilation = {1, 1}};
    r = get_sides(l, "kernel", 1, 0, 2, w->kernel);
    r = r < 0 ? r : get_sides(l, "stride", 1, 1, 2, w->stride);
    r = r < 0 || pool ? r : get_sides(l, "dilation", 1, 1, 2, w->dilation);
    r = r < 0 || !pool ? r : get_bool(l, "ceil", false, &w->ceil);
    r = r < 0 ? r : get_pad(l, w);
    if (r < 0) {
        return r;
    }
    l->out = *in;
    for (size_t i = 0; i < 2; i++) {
        size_t *side = i ? &l->out.width : &l->out.height;
        size_t padded = *side + w->pad[i] + w->pad[i + 2];
        size_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, rest, steps;

        if (padded < reach) {
            return mdl_nd_layer_fail(l, "kernel", "is larger than the padded input");
        }
        if (pool && (w->pad[i] >= w->kernel[i] || w->pad[i + 2] >= w->kernel[i])) {
            return mdl_nd_layer_fail(l, "pad", "must be smaller than the kernel");
        }
        rest = padded - reach;
        steps = rest / w->stride[i];
        /* as ONNX: a window that would start in the padding behind does not count */
        if (w->ceil && rest % w->stride[i] && (steps + 1) * w->stride[i] < *side + w->pad[i]) {
            steps++;
        }
        *side = steps + 1;
    }
    return 0;
}

static int emit_window(struct mdl_nd_layer *l, struct mdl_gnode *n, const struct window *w,
                       bool pool)
{
    int r = mdl_nd_attr_ints(l->nd, n, "kernel_shape", w->kernel, 2);

    r = r < 0 ? r : mdl_nd_attr_ints(l->nd, n, "strides", w->stride, 2);
    r = r < 0 ? r : mdl_nd_attr_ints(l->nd, n, "pads", w->pad, 4);
    r = r < 0 || pool ? r : mdl_nd_attr_ints(l->nd, n, "dilations", w->dilation, 2);
    return r < 0 || !w->ceil ? r : mdl_nd_attr_int(l->nd, n, "ceil_mode", 1);
}

/* ---- emitting nodes of a layer ---- */

/* A value or weight of this layer: "<layer>.<part>", or the layer's own name for its last value. */
static const char *part(struct mdl_nd_layer *l, const char *name)
{
    return name ? mdl_pool_printf(l->nd->graph->pool, "%s.%s", l->name, name) : l->name;
}

static int emit(struct mdl_nd_layer *l, const char *op_type, const char *weight1,
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

static int emit_vector(struct mdl_nd_layer *l, const char *name, size_t n, enum mdl_nd_fill fill,
                       const char **ret)
{
    struct mdl_nd_weight w = {
        .name = part(l, name), .rank = 1, .dim = {n}, .fan_in = 1, .fill = fill};

    *ret = w.name;
    return w.name ? mdl_nd_weight(l->nd, &w) : -ENOMEM;
}

static const struct act {
    const char *name, *op_type;
    const char *a_name, *b_name; /* float attributes */
    float a, b;
} acts[] = {
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
static int emit_clip(struct mdl_nd_layer *l, const struct act *a, const char *output)
{
    const char *low = part(l, "low"), *high = part(l, "high");
    const char *inputs[] = {l->value, low, high, NULL};
    struct mdl_graph *g = l->nd->graph;
    struct mdl_gnode *n;
    int r = low && high ? mdl_nd_floats(l->nd, low, &a->a, 1) : -ENOMEM;

    r = r < 0 ? r : mdl_nd_floats(l->nd, high, &a->b, 1);
    if (r < 0) {
        return r;
    }
    /* scalars, as the operator wants them */
    g->initializers[g->initializer_count - 2].rank = 0;
    g->initializers[g->initializer_count - 1].rank = 0;
    r = mdl_nd_node(l->nd, "Clip", inputs, output, &n);
    l->value = output;
    return r;
}

static int emit_act(struct mdl_nd_layer *l, const struct act *a)
{
    struct mdl_gnode *n;
    int r;

    if (a->op_type[0] == 'C') {
        return mdl_nd_emitted(l, emit_clip(l, a, l->name));
    }
    r = emit(l, a->op_type, NULL, NULL, l->name, &n);
    r = r < 0 || !a->a_name ? r : mdl_nd_attr_float(l->nd, n, a->a_name, a->a);
    r = r < 0 || !a->b_name ? r : mdl_nd_attr_float(l->nd, n, a->b_name, a->b);
    return mdl_nd_emitted(l, r);
}

/* The key "act": NULL where it is absent or "none". */
static int get_act(struct mdl_nd_layer *l, const struct act **ret)
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
    return mdl_nd_layer_fail(l, "act",
                             "wants none, relu, relu6, leaky_relu, sigmoid, tanh, elu, softplus or "
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
        r = emit_vector(l, parts[i].name, l->out.channels, parts[i].fill, &inputs[i + 1]);
    }
    l->value = part(l, last ? NULL : "bn");
    r = r < 0 ? r : !l->value ? -ENOMEM : 0;
    return r < 0 ? r : mdl_nd_node(l->nd, "BatchNormalization", inputs, l->value, &n);
}

/* The tail of layers with weights: batch norm and activation. */
static int emit_tail(struct mdl_nd_layer *l, bool bn, const struct act *act)
{
    int r = bn ? mdl_nd_emitted(l, emit_batch_norm(l, !act)) : 0;

    return r < 0 || !act ? r : emit_act(l, act);
}

/* ---- layers ---- */

static int conv(struct mdl_nd_layer *l, size_t out, size_t groups)
{
    size_t in = l->in[0]->channels, per_group;
    const char *weight = part(l, "weight"), *bias_name = NULL;
    const struct act *act;
    struct mdl_gnode *n;
    struct window w;
    bool bn = false, bias = true;
    int r = get_window(l, false, &w);

    r = r < 0 ? r : get_bool(l, "bn", false, &bn);
    r = r < 0 ? r : get_bool(l, "bias", !bn, &bias);
    r = r < 0 ? r : get_act(l, &act);
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
        r = emit_vector(l, "bias", out, MDL_ND_NEAR_ZERO, &bias_name);
    }
    r = r < 0 ? r : emit(l, "Conv", weight, bias_name, part(l, bn || act ? "conv" : NULL), &n);
    r = r < 0 ? r : mdl_nd_attr_int(l->nd, n, "group", (int64_t)groups);
    r = mdl_nd_emitted(l, r < 0 ? r : emit_window(l, n, &w, false));
    return r < 0 ? r : emit_tail(l, bn, act);
}

static int layer_conv(struct mdl_nd_layer *l)
{
    size_t out, groups;
    int r = get_int(l, "out", 1, MDL_ND_CHANNELS_MAX, 0, &out);

    r = r < 0 ? r : get_int(l, "groups", 1, MDL_ND_CHANNELS_MAX, 1, &groups);
    return r < 0 ? r : conv(l, out, groups);
}

static int layer_depthwise(struct mdl_nd_layer *l)
{
    size_t channels = l->in[0]->channels, multiplier;
    int r = get_int(l, "multiplier", 1, 64, 1, &multiplier);

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
    int r = emit(l, "Flatten", NULL, NULL, output, &n);

    l->out = (struct mdl_nd_value){.channels = flat_size(l->in[0])};
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "axis", 1));
}

static int layer_flatten(struct mdl_nd_layer *l)
{
    return flatten(l, l->name);
}

static int layer_fc(struct mdl_nd_layer *l)
{
    const char *weight = part(l, "weight"), *bias_name = NULL;
    size_t in = flat_size(l->in[0]), out;
    const struct act *act;
    struct mdl_gnode *n;
    bool bias = true;
    int r = get_int(l, "out", 1, MDL_ND_CHANNELS_MAX, 0, &out);

    r = r < 0 ? r : get_bool(l, "bias", true, &bias);
    r = r < 0 ? r : get_act(l, &act);
    if (r < 0) {
        return r;
    }
    if (l->in[0]->height) {
        r = flatten(l, part(l, "flat"));
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
        r = emit_vector(l, "bias", out, MDL_ND_NEAR_ZERO, &bias_name);
    }
    r = r < 0 ? r : emit(l, "Gemm", weight, bias_name, part(l, act ? "fc" : NULL), &n);
    r = mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "transB", 1));
    return r < 0 ? r : emit_tail(l, false, act);
}

static int pool(struct mdl_nd_layer *l, const char *op_type)
{
    struct mdl_gnode *n;
    struct window w;
    int r = get_window(l, true, &w);

    if (r < 0) {
        return r;
    }
    r = emit(l, op_type, NULL, NULL, l->name, &n);
    return mdl_nd_emitted(l, r < 0 ? r : emit_window(l, n, &w, true));
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
        return mdl_nd_layer_fail(l, "in", "is not an image any more");
    }
    l->out = (struct mdl_nd_value){.channels = l->in[0]->channels, .height = 1, .width = 1};
    return mdl_nd_emitted(l, emit(l, op_type, NULL, NULL, l->name, &n));
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
    const struct act *act;
    int r = get_act(l, &act);

    if (r == 0 && !act) {
        return mdl_nd_layer_fail(l, "act", "is missing");
    }
    l->out = *l->in[0];
    return r < 0 ? r : emit_act(l, act);
}

static int layer_add(struct mdl_nd_layer *l)
{
    const struct act *act;
    int r = get_act(l, &act);

    if (r < 0) {
        return r;
    }
    if (l->in_count < 2) {
        return mdl_nd_layer_fail(l, "in", "wants at least two names");
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
        r = mdl_nd_emitted(l, emit(l, "Add", l->in[i]->name, NULL, part(l, last ? NULL : sum), &n));
    }
    return r < 0 ? r : emit_tail(l, false, act);
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
    const char *scales = part(l, "scales");
    const char *inputs[] = {l->value, "", scales, NULL};
    struct mdl_gnode *n;
    size_t factor;
    int r = get_int(l, "factor", 2, 16, 2, &factor);

    if (r < 0) {
        return r;
    }
    if (l->in[0]->height == 0) {
        return mdl_nd_layer_fail(l, "in", "is not an image any more");
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
    int r = emit(l, "Softmax", NULL, NULL, l->name, &n);

    l->out = *l->in[0];
    return mdl_nd_emitted(l, r < 0 ? r : mdl_nd_attr_int(l->nd, n, "axis", 1));
}

static int layer_lrn(struct mdl_nd_layer *l)
{
    float alpha, beta, bias;
    struct mdl_gnode *n;
    size_t size;
    int r = get_int(l, "size", 1, 255, 5, &size);

    r = r < 0 ? r : get_float(l, "alpha", 1e-4, &alpha);
    r = r < 0 ? r : get_float(l, "beta", 0.75, &beta);
    r = r < 0 ? r : get_float(l, "bias", 1.0, &bias);
    if (r < 0) {
        return r;
    }
    l->out = *l->in[0];
    r = emit(l, "LRN", NULL, NULL, l->name, &n);
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
