/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a layer: numbers, sides, padding, windows. */
#include <math.h>

#include "model/common/private.h"
#include "model/netdesc/layers.h"

int mdl_nd_refuse(struct mdl_nd_layer *l, const char *key, const char *why)
{
    if (l->nd->failure == 0) {
        l->nd->failure = -EBADMSG;
        mdl_fail(l->nd->error, -EBADMSG, "layer %zu '%.60s' (%.20s): %s%.40s%s%s", l->index,
                 l->name, l->op, key ? "key '" : "", key ? key : "", key ? "': " : "", why);
    }
    return -EBADMSG;
}

size_t mdl_nd_int(struct mdl_nd_layer *l, const char *key, int64_t low, int64_t high,
                  int64_t fallback)
{
    const json_t *v = json_object_get(l->json, key);
    json_int_t n = v ? json_integer_value(v) : fallback;
    char why[96];

    if ((v && !json_is_integer(v)) || n < low || n > high) {
        snprintf(why, sizeof(why), "must be a whole number from %lld to %lld", (long long)low,
                 (long long)high);
        mdl_nd_refuse(l, key, why);
        return (size_t)low;
    }
    return (size_t)n;
}

bool mdl_nd_bool(struct mdl_nd_layer *l, const char *key, bool fallback)
{
    const json_t *v = json_object_get(l->json, key);

    if (v && !json_is_boolean(v)) {
        mdl_nd_refuse(l, key, "must be true or false");
    }
    return v ? json_is_true(v) : fallback;
}

float mdl_nd_float(struct mdl_nd_layer *l, const char *key, double fallback)
{
    const json_t *v = json_object_get(l->json, key);
    double d = v ? json_number_value(v) : fallback;

    if ((v && !json_is_number(v)) || !isfinite(d) || fabs(d) > 1e6) {
        mdl_nd_refuse(l, key, "must be a finite number");
        return 0;
    }
    return (float)d;
}

void mdl_nd_image(struct mdl_nd_layer *l)
{
    if (l->in[0]->height == 0) {
        mdl_nd_refuse(l, "in", "is not an image (a layer before it made it flat)");
    }
}

/* N, or [height, width], or (where @sides is 4) [top, left, bottom, right]. */
static int get_sides(struct mdl_nd_layer *l, const char *key, int64_t low, int64_t fallback,
                     size_t sides, size_t *out)
{
    const json_t *v = json_object_get(l->json, key);
    size_t count = json_is_array(v) ? json_array_size(v) : 1;

    if (!v && fallback < low) {
        return mdl_nd_refuse(l, key, "is missing");
    }
    if (json_is_array(v) && count != 2 && count != sides) {
        return mdl_nd_refuse(l, key,
                             sides == 4 ? "must be N, [h, w] or [top, left, bottom, right]"
                                        : "must be N or [h, w]");
    }
    for (size_t i = 0; i < sides; i++) {
        const json_t *n = json_is_array(v) ? json_array_get(v, count == sides ? i : i % 2) : v;
        json_int_t d = v ? json_integer_value(n) : fallback;

        if ((v && !json_is_integer(n)) || d < low || d > MDL_ND_SIZE_MAX) {
            return mdl_nd_refuse(l, key,
                                 low > 0 ? "must be whole numbers from 1 to 16384"
                                         : "must be whole numbers from 0 to 16384");
        }
        out[i] = (size_t)d;
    }
    return 0;
}

static int get_pad(struct mdl_nd_layer *l, struct mdl_nd_window *w)
{
    const json_t *v = json_object_get(l->json, "pad");

    if (!json_is_string(v)) {
        return get_sides(l, "pad", 0, 0, 4, w->pad);
    }
    if (strcmp(json_string_value(v), "same") != 0) {
        return mdl_nd_refuse(l, "pad", "must be numbers or \"same\"");
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

struct mdl_nd_window mdl_nd_window(struct mdl_nd_layer *l, bool pool)
{
    struct mdl_nd_window w = {.dilation = {1, 1}};

    mdl_nd_image(l);
    if (l->nd->failure < 0 || get_sides(l, "kernel", 1, 0, 2, w.kernel) < 0 ||
        get_sides(l, "stride", 1, 1, 2, w.stride) < 0 ||
        (!pool && get_sides(l, "dilation", 1, 1, 2, w.dilation) < 0) || get_pad(l, &w) < 0) {
        return w;
    }
    w.ceil = pool && mdl_nd_bool(l, "ceil", false);
    l->out = *l->in[0];
    for (size_t i = 0; i < 2; i++) {
        size_t *side = i ? &l->out.width : &l->out.height;
        size_t padded = *side + w.pad[i] + w.pad[i + 2];
        size_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1, rest, steps;

        if (padded < reach) {
            mdl_nd_refuse(l, "kernel", "is larger than the padded input");
            return w;
        }
        if (pool && (w.pad[i] >= w.kernel[i] || w.pad[i + 2] >= w.kernel[i])) {
            mdl_nd_refuse(l, "pad", "must be smaller than the kernel");
        }
        rest = padded - reach;
        steps = rest / w.stride[i];
        /* as ONNX: a window that would start in the padding behind does not count */
        if (w.ceil && rest % w.stride[i] && (steps + 1) * w.stride[i] < *side + w.pad[i]) {
            steps++;
        }
        *side = steps + 1;
    }
    return w;
}
