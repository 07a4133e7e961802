/* SPDX-License-Identifier: Apache-2.0 */
#include "model/guess.h"

#include <math.h>

#define STEPS_MAX 12       /* nodes between the input and the network proper */
#define SIDE_GREY_MIN 16   /* an image of one channel that is smaller may be a vector */
#define NORMAL_MAX 8.0     /* networks see pixels within a few units of 0 */
#define PIXEL_MEAN_MIN 2.0 /* a mean above it is of pixels from 0 to 255 */

void mdl_guess_say(struct mdl_guess *to, const char *format, ...)
{
    va_list args;

    base_append(to->why, sizeof(to->why), "%s", to->why[0] ? " " : "");
    va_start(args, format);
    base_vappend(to->why, sizeof(to->why), format, args);
    va_end(args);
}

bool mdl_guess_nhwc(const struct mdl_graph *g)
{
    const struct mdl_gvalue *v = g->input_count ? &g->inputs[0] : NULL;

    if (!v || !v->typed || v->rank != 4 || v->dim[1] == 1 || v->dim[1] == 3) {
        return false;
    }
    return v->dim[3] == 3 ||
           (v->dim[3] == 1 && v->dim[1] >= SIDE_GREY_MIN && v->dim[2] >= SIDE_GREY_MIN);
}

/* ---- what the graph does to its input first ---- */

/* Up to three channels: y = a * x + b. */
struct chain {
    double a[3], b[3];
    bool arithmetic, from_bytes, quantised;
    double low, high;  /* quantised: values of the bytes 0 and 255 */
    const char *first; /* operator of the first step */
};

static const struct mdl_gtensor *constant(const struct mdl_graph *g, const char *name)
{
    const struct mdl_gnode *n = mdl_graph_maker(g, name);

    for (size_t i = 0; i < g->initializer_count; i++) {
        if (strcmp(g->initializers[i].name, name) == 0) {
            return &g->initializers[i];
        }
    }
    return n && strcmp(n->op_type, "Constant") == 0 && n->attr_count == 1 &&
                   n->attrs[0].type == MDL_ATTR_TENSOR
               ? n->attrs[0].t
               : NULL;
}

/* The numbers of a constant for three channels; one number is for all. */
static bool numbers(const struct mdl_graph *g, const char *name, double ret[3])
{
    const struct mdl_gtensor *t = constant(g, name);
    size_t count = t && t->dtype == MDL_F32 ? t->bytes / sizeof(float) : 0;

    for (size_t i = 0; i < 3 && (count == 1 || count == 3); i++) {
        float v;

        memcpy(&v, (const char *)t->data + (count == 3 ? i : 0) * sizeof(v), sizeof(v));
        ret[i] = v;
    }
    return count == 1 || count == 3;
}

static const struct mdl_gnode *only_reader(const struct mdl_graph *g, const char *value)
{
    const struct mdl_gnode *found = NULL;

    for (size_t i = 0; i < g->node_count; i++) {
        for (size_t k = 0; k < g->nodes[i].input_count; k++) {
            if (strcmp(g->nodes[i].inputs[k], value) == 0) {
                if (found && found != &g->nodes[i]) {
                    return NULL;
                }
                found = &g->nodes[i];
            }
        }
    }
    return found;
}

static bool is(const struct mdl_gnode *n, const char *op)
{
    return strcmp(n->op_type, op) == 0 && !n->domain[0];
}

/* Applies "Sub", "Add", "Mul" or "Div" by a constant. Return: it is one of them. */
static bool step_arithmetic(const struct mdl_graph *g, const struct mdl_gnode *n, const char *at,
                            struct chain *c)
{
    bool sub = is(n, "Sub"), div = is(n, "Div"), mul = is(n, "Mul");
    size_t of = n->input_count == 2 && strcmp(n->inputs[0], at) == 0 ? 1 : 0;
    double k[3];

    if ((!sub && !div && !mul && !is(n, "Add")) || n->input_count != 2 ||
        (of == 0 && (sub || div)) || !numbers(g, n->inputs[of], k)) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        double factor = mul ? k[i] : div && k[i] != 0 ? 1 / k[i] : 1;

        c->a[i] *= factor;
        c->b[i] = c->b[i] * factor + (mul || div ? 0 : sub ? -k[i] : k[i]);
    }
    return true;
}

static bool step_norm(const struct mdl_graph *g, const struct mdl_gnode *n, struct chain *c)
{
    double k[4][3];

    if (!is(n, "BatchNormalization") || n->input_count != 5) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        if (!numbers(g, n->inputs[i + 1], k[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        double factor = k[0][i] / sqrt(base_max(k[3][i], 1e-12));

        c->a[i] *= factor;
        c->b[i] = (c->b[i] - k[2][i]) * factor + k[1][i];
    }
    return true;
}

static bool step_quantize(const struct mdl_graph *g, const struct mdl_gnode *n, struct chain *c)
{
    const struct mdl_gtensor *zero =
        n->input_count == 3 && n->inputs[2][0] ? constant(g, n->inputs[2]) : NULL;
    double scale[3];
    int least, z;

    if (!is(n, "QuantizeLinear") || n->input_count < 2 || !numbers(g, n->inputs[1], scale) ||
        (zero && (zero->bytes != 1 || (zero->dtype != MDL_U8 && zero->dtype != MDL_I8)))) {
        return false;
    }
    least = zero && zero->dtype == MDL_I8 ? -128 : 0;
    z = !zero                   ? 0
        : zero->dtype == MDL_I8 ? *(const int8_t *)zero->data
                                : *(const uint8_t *)zero->data;
    c->low = (least - z) * scale[0];
    c->high = (least + 255 - z) * scale[0];
    return true;
}

static void follow(const struct mdl_graph *g, struct chain *c)
{
    const char *at = g->inputs[0].name;

    *c = (struct chain){.a = {1, 1, 1}, .from_bytes = g->inputs[0].dtype == MDL_U8};
    for (size_t step = 0; step < STEPS_MAX; step++) {
        const struct mdl_gnode *n = only_reader(g, at);
        bool moves;

        if (!n || n->output_count == 0) {
            return;
        }
        moves = is(n, "Cast") || is(n, "Identity") || is(n, "Transpose");
        if (!moves && !c->quantised && step_quantize(g, n, c)) {
            c->quantised = true;
        } else if (!moves && (step_arithmetic(g, n, at, c) || step_norm(g, n, c))) {
            c->arithmetic = true;
        } else if (!moves) {
            return;
        }
        if (!moves && !c->first) {
            c->first = n->op_type;
        }
        at = n->outputs[0];
    }
}

/* ---- what that says ---- */

/* Mean and deviation stay 0 and 1 where they are not said. */
static void like_imagenet(struct mdl_guess *to)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};

    to->scale = (float)(1 / 255.0);
    memcpy(to->mean, mean, sizeof(mean));
    memcpy(to->std, std, sizeof(std));
}

/* The graph normalises by itself: which range must come in? */
static void of_arithmetic(struct mdl_guess *to, const struct chain *c)
{
    double slope = 0, mean = 0;

    for (size_t i = 0; i < 3; i++) {
        slope = base_max(slope, fabs(c->a[i]));
        mean = base_max(mean, c->a[i] != 0 ? fabs(c->b[i] / c->a[i]) : 0);
    }
    to->shown = true;
    if (mean > PIXEL_MEAN_MIN || slope * 255 <= NORMAL_MAX) {
        mdl_guess_say(
            to, "The graph begins with %s, which normalises pixels from 0 to 255: they stay so.",
            c->first);
    } else {
        to->scale = (float)(1 / 255.0);
        mdl_guess_say(
            to,
            "The graph begins with %s, which normalises pixels from 0 to 1: they are divided "
            "by 255.",
            c->first);
    }
}

static bool near(double a, double b, double by)
{
    return fabs(a - b) <= by;
}

/* QuantizeLinear tells the range of the values that were seen when the network was calibrated. */
static void of_range(struct mdl_guess *to, const struct chain *c)
{
    if (near(c->low, 0, 0.1) && near(c->high, 1, 0.1)) {
        to->scale = (float)(1 / 255.0);
    } else if (near(c->low, -1, 0.1) && near(c->high, 1, 0.1)) {
        to->scale = (float)(1 / 127.5);
        to->mean[0] = to->mean[1] = to->mean[2] = 1;
    } else if (near(c->low, -2.1, 0.3) && near(c->high, 2.6, 0.4)) {
        like_imagenet(to);
    } else if (c->high < 128) {
        return;
    }
    to->shown = true;
    mdl_guess_say(to, "The first QuantizeLinear was calibrated for values from %.3g to %.3g.",
                  c->low, c->high);
}

static bool find_picture(const struct mdl_graph *g, struct mdl_guess *to)
{
    const struct mdl_gvalue *v = g->input_count ? &g->inputs[0] : NULL;
    int64_t c, h, w;

    if (!v || !v->typed || v->rank != 4 || (v->dtype != MDL_F32 && v->dtype != MDL_U8) ||
        v->dim[0] > 1) {
        return false;
    }
    to->nhwc = mdl_guess_nhwc(g);
    c = v->dim[to->nhwc ? 3 : 1];
    h = v->dim[to->nhwc ? 1 : 2];
    w = v->dim[to->nhwc ? 2 : 3];
    if ((c != 1 && c != 3) || h == 0 || w == 0) {
        return false;
    }
    to->channels = (size_t)c;
    to->open_size = h < 0 || w < 0;
    to->height = h < 0 ? 0 : (size_t)h;
    to->width = w < 0 ? 0 : (size_t)w;
    return true;
}

void mdl_guess(const struct mdl_graph *g, struct mdl_guess *ret)
{
    struct chain c;

    *ret = (struct mdl_guess){.scale = 1, .std = {1, 1, 1}, .pad = MDL_PAD_DEFAULT};
    ret->picture = find_picture(g, ret);
    if (!ret->picture) {
        return;
    }
    follow(g, &c);
    if (c.arithmetic) {
        of_arithmetic(ret, &c);
    } else if (c.from_bytes) {
        ret->shown = true;
        mdl_guess_say(ret, "The input is bytes: pixels go in as they are.");
    } else if (c.quantised) {
        of_range(ret, &c);
    }
    ret->doubtful = !ret->shown && ret->channels == 3;
}
