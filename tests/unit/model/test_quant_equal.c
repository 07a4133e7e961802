/* SPDX-License-Identifier: Apache-2.0 */
/* Calibrations that know single channels: quiet ones are scaled up between products, f32 stays what
 * it was, and what rounding weights adds to a mean is taken off. */
#include <math.h>

#include "kernels/int8cal/calibrate.h"
#include "model/quant/calibration.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

#define C 8u
#define SIDE 8u
#define EXAMPLES 8

/* How loud channel @c is. */
static float gain(size_t c)
{
    return ldexpf(1.0f, -(int)c);
}

/* Weights [out][in][k][k] of random numbers; @rows, @columns: by gains, and by their inverses. */
static float *made_up(struct gb *g, const char *name, size_t out, size_t in, size_t k, bool rows,
                      bool columns)
{
    float *w = mdl_pool_alloc(g->pool, out * in * k * k, sizeof(*w));

    for (size_t o = 0; o < out; o++) {
        for (size_t i = 0; i < in * k * k; i++) {
            float f = (rows ? gain(o) : 1) / (columns ? gain(i / (k * k)) : 1);

            w[o * in * k * k + i] = f * (t_float() + 0.1f);
        }
    }
    gb_const(g, name, MDL_F32, 4, (size_t[]){out, in, k, k}, w);
    return w;
}

/* c0 (3 to C) -> activation -> [depthwise d1 -> ReLU] -> c2 -> out */
static void chain(struct gb *g, const char *activation, bool depthwise)
{
    gb_init(g, 13);
    gb_input(g, "x", 4, (int64_t[]){1, 3, SIDE, SIDE});
    made_up(g, "w0", C, 3, 3, true, false);
    made_up(g, "w1", C, 1, 3, false, false);
    made_up(g, "w2", C, C, 1, false, true);
    gb_scalar(g, "low", 0);
    gb_scalar(g, "six", 0.75f);
    gb_node(g, "Conv", "c0", "x w0", "v0");
    gb_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    if (strcmp(activation, "Clip") == 0) {
        gb_node(g, "Clip", "", "v0 low six", "r0");
    } else {
        gb_node(g, activation, "", "v0", "r0");
    }
    if (depthwise) {
        gb_node(g, "Conv", "d1", "r0 w1", "v1");
        gb_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
        gb_int(g, "group", C);
        gb_node(g, "Relu", "", "v1", "r1");
    }
    gb_node(g, "MaxPool", "", depthwise ? "r1" : "r0", "p1");
    gb_ints(g, "kernel_shape", 2, (int64_t[]){2, 2});
    gb_ints(g, "strides", 2, (int64_t[]){2, 2});
    gb_node(g, "Conv", "c2", "p1 w2", "out");
    gb_output(g, "out");
}

/* By @EXAMPLES of numbers around @middle. */
static struct mdl_calibration *calibrated(struct gb *g, float middle)
{
    struct mdl_model *m = gb_compile(g, &(struct mdl_load_options){.const_eval = krn_const_eval});
    struct mdl_calibration *c = NULL;
    struct krn_calibrate *k = NULL;
    char error[MDL_ERROR_MAX];
    size_t zeros;

    if (!m) {
        fprintf(stderr, "%s\n", g->error);
        return NULL;
    }
    if (krn_calibrate_new(m, KRN_CALIBRATE_MINMAX, error, &k) == 0) {
        size_t n = m->inputs[0].bytes / sizeof(float);
        float *x = calloc(n, sizeof(*x));

        for (int e = 0; e < EXAMPLES; e++) {
            for (size_t i = 0; i < n; i++) {
                x[i] = middle + t_float();
            }
            if (krn_calibrate_tensor(k, x, n * sizeof(*x), error) != 0) {
                fprintf(stderr, "%s\n", error);
            }
        }
        krn_calibrate_finish(k, KRN_CALIBRATE_MINMAX, false, &zeros, &c);
        free(x);
    }
    krn_calibrate_free(k);
    mdl_free(m);
    if (c) {
        c->equalised = true;
    }
    return c;
}

static struct mdl_model *compiled(struct gb *g, const struct mdl_calibration *c)
{
    struct mdl_load_options o = {.const_eval = krn_const_eval, .calibration = c};
    struct mdl_model *m = gb_compile(g, &o);

    if (!m) {
        fprintf(stderr, "%s\n", g->error);
    }
    return m;
}

/* Runs it on numbers around @middle. */
static bool go(struct run_model *r, float middle)
{
    struct krn_mem mem = {r->arena, (const void *const *)r->inputs, r->outputs};
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};
    float *x = r->inputs[0];

    if (!run_model_go(r, 77)) {
        return false;
    }
    for (size_t i = 0; i < r->m->inputs[0].bytes / sizeof(*x); i++) {
        x[i] += middle;
    }
    krn_net_run_ops(r->net, 0, r->m->op_count - 1, &mem, &exec);
    return true;
}

/* The largest difference of the answers to one input, as a share of the largest answer. */
static double distance(const struct mdl_model *a, const struct mdl_model *b, float middle)
{
    struct run_model x, y;
    double d = INFINITY;

    run_model_init(&x, a);
    run_model_init(&y, b);
    if (go(&x, middle) && go(&y, middle)) {
        d = run_model_distance(&x, &y, 0);
    }
    run_model_deinit(&x);
    run_model_deinit(&y);
    return d;
}

static void keep(struct mdl_calibration *c, const char *name)
{
    c->keep = realloc(c->keep, (c->keep_count + 1) * sizeof(*c->keep));
    c->keep[c->keep_count++] = strdup(name);
}

static const struct mdl_op *op_named(const struct mdl_model *m, const char *name)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (strcmp(m->ops[i].name, name) == 0 && m->ops[i].kind == MDL_OP_CONV) {
            return &m->ops[i];
        }
    }
    return NULL;
}

static const void *weights_of(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *t = &m->tensors[op->in[1]];

    return (const char *)m->storages[t->storage].data + t->offset;
}

static const float *original(const struct gb *g, const char *name)
{
    for (size_t i = 0; i < g->graph.initializer_count; i++) {
        if (strcmp(g->weights[i].name, name) == 0) {
            return g->weights[i].data;
        }
    }
    return NULL;
}

/* Without and with what is known of the channels. */
static void errors(struct gb *g, struct mdl_calibration *c, float middle, double *ret_without,
                   double *ret_with)
{
    struct mdl_model *real = compiled(g, NULL), *with = compiled(g, c), *without;
    size_t count = c->channels_count;

    c->channels_count = 0;
    without = compiled(g, c);
    c->channels_count = count;
    *ret_without = distance(without, real, middle);
    *ret_with = distance(with, real, middle);
    mdl_free(real);
    mdl_free(with);
    mdl_free(without);
}

TEST(quiet_channels_are_heard)
{
    static const char *const activations[] = {"Relu", "Clip", "LeakyRelu"};

    for (size_t a = 0; a < base_array_count(activations); a++) {
        for (int depthwise = 0; depthwise < 2; depthwise++) {
            struct mdl_calibration *c;
            double without, with;
            struct gb g;

            chain(&g, activations[a], depthwise);
            c = calibrated(&g, 0);
            T_TRUE(c && c->channels_count >= 3);
            errors(&g, c, 0, &without, &with);
            if (!(with < without / 2)) {
                T_FAIL("%s, depthwise %d: %g away instead of %g", activations[a], depthwise, with,
                       without);
            }
            mdl_calibration_free(c);
            gb_free(&g);
        }
    }
}

/* The result of "c0" after it has run on its own. */
static const float *result(struct run_model *r, ptrdiff_t ret_stride[4])
{
    struct krn_mem mem = {r->arena, (const void *const *)r->inputs, r->outputs};
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};
    const struct mdl_op *op = op_named(r->m, "c0");
    const struct mdl_tensor *t = &r->m->tensors[op->out[0]];

    krn_net_run_ops(r->net, 0, (size_t)(op - r->m->ops), &mem, &exec);
    memcpy(ret_stride, t->stride, 4 * sizeof(*ret_stride));
    return krn_tensor_ptr(r->m, op->out[0], &mem);
}

/* Is "c0" of @b that of @a times @s? Its terms are 27, |x| <= 1 and so sum |w x| <= 27 |w|. */
static bool same_but_for(const struct mdl_model *a, const struct mdl_model *b, const float s[C])
{
    struct run_model x, y;
    ptrdiff_t sx[4], sy[4];
    const float *p, *q;
    bool same;

    run_model_init(&x, a);
    run_model_init(&y, b);
    same = run_model_go(&x, 3) && run_model_go(&y, 3);
    p = result(&x, sx);
    q = result(&y, sy);
    for (size_t c = 0; c < C; c++) {
        double bound = 2 * 28 * 0x1p-24 * 27 * 1.1 * (double)(gain(c) * s[c]);

        for (size_t i = 0; i < SIDE * SIDE; i++) {
            ptrdiff_t h = (ptrdiff_t)(i / SIDE), w = (ptrdiff_t)(i % SIDE), at = (ptrdiff_t)c;
            double u = (double)p[at * sx[1] + h * sx[2] + w * sx[3]];
            double v = (double)q[at * sy[1] + h * sy[2] + w * sy[3]];

            same &= fabs(v - u * (double)s[c]) <= bound;
        }
    }
    run_model_deinit(&x);
    run_model_deinit(&y);
    return same;
}

/* The factors, read off a writer that stays f32, are in the reader's integers too; and f32 with
 * them is f32 without: a product of n terms rounds by 2 n u sum |w x| at most, and its weights by
 * u each. */
TEST(factors_are_on_both_sides)
{
    struct mdl_calibration *c;
    struct mdl_model *m, *real;
    const struct mdl_op *c0, *c2;
    const float *w0, *w2, *now;
    const int8_t *q;
    float s[C];
    struct gb g;

    chain(&g, "Relu", false);
    c = calibrated(&g, 0);
    T_TRUE(c);
    keep(c, "c0");
    m = compiled(&g, c);
    real = compiled(&g, NULL);
    T_TRUE(m && real);
    c0 = op_named(m, "c0");
    c2 = op_named(m, "c2");
    T_TRUE(c0 && c2 && !c0->quant && c2->quant);
    w0 = original(&g, "w0");
    w2 = original(&g, "w2");
    now = weights_of(m, c0);
    q = weights_of(m, c2);
    for (size_t i = 0; i < C; i++) {
        s[i] = now[i * 27] / w0[i * 27];
        T_TRUE(s[i] >= 1 - 1e-6f);
        for (size_t k = 0; k < 27; k++) {
            T_TRUE(fabsf(now[i * 27 + k] - s[i] * w0[i * 27 + k]) <=
                   4 * 0x1p-24f * fabsf(now[i * 27 + k]));
        }
    }
    T_TRUE(s[C - 1] > 2 * s[0]);
    for (size_t o = 0; o < C; o++) {
        double most = 0;

        for (size_t i = 0; i < C; i++) {
            most = base_max(most, fabs((double)w2[o * C + i] / (double)s[i]));
        }
        for (size_t i = 0; i < C; i++) {
            double w = (double)w2[o * C + i] / (double)s[i] / most * 127;

            T_TRUE(fabs((double)q[o * C + i] - w) <= 0.5 + 1e-4);
        }
    }
    T_TRUE(same_but_for(real, m, s));
    mdl_free(m);
    mdl_free(real);
    mdl_calibration_free(c);
    gb_free(&g);
}

/* x -> c0 (C weights that all round to 0 beside a large one) -> out */
TEST(rounding_weights_does_not_move_the_mean)
{
    float w[4 * C] = {0};
    struct mdl_calibration *c;
    double without, with;
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, C, 1, 1});
    for (size_t o = 0; o < 4; o++) {
        for (size_t i = 0; i < C; i++) {
            w[o * C + i] = i == o ? 1.27f : 0.0045f; /* less than half a step */
        }
    }
    gb_const(&g, "w", MDL_F32, 4, (size_t[]){4, C, 1, 1}, w);
    gb_node(&g, "Conv", "c", "x w", "out");
    gb_output(&g, "out");
    c = calibrated(&g, 50);
    T_TRUE(c && c->channels_count == 1);
    T_TRUE(fabsf(c->channels[0].mean[0] - 50) < 1 && fabsf(c->channels[0].power[0] - 2500) < 100);
    errors(&g, c, 50, &without, &with);
    T_TRUE(without > 0.02);
    T_TRUE(with < without / 10);
    mdl_calibration_free(c);
    gb_free(&g);
}

/* Weights that were 8 bits once are those integers again, also where the largest was not 127 and
 * where one of them was 128. */
TEST(weights_that_were_integers_stay_exact)
{
    static const int most[4] = {127, 101, 3, 128};
    struct mdl_calibration *c;
    struct mdl_model *m;
    const struct mdl_op *conv;
    const int8_t *q;
    float w[4 * C];
    int was[4 * C];
    struct gb g;

    for (size_t i = 0; i < 4 * C; i++) {
        was[i] = i % C == 0 ? most[i / C] : (int)t_range(-most[i / C] + 1, most[i / C] - 1);
        w[i] = (float)was[i] * 0.0123f;
    }
    w[2 * C + 1] = 0.0123f; /* so that their step shows */
    was[2 * C + 1] = 1;
    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, C, 1, 1});
    gb_const(&g, "w", MDL_F32, 4, (size_t[]){4, C, 1, 1}, w);
    gb_node(&g, "Conv", "c", "x w", "out");
    gb_output(&g, "out");
    c = calibrated(&g, 0);
    T_TRUE(c);
    m = compiled(&g, c);
    T_TRUE(m);
    conv = op_named(m, "c");
    T_TRUE(conv && conv->quant);
    q = weights_of(m, conv);
    for (size_t i = 0; i < 4 * C; i++) {
        T_EQ(q[i], was[i] > 127 ? 127 : was[i]);
    }
    mdl_free(m);
    mdl_calibration_free(c);
    gb_free(&g);
}

/* Channels that are never there, weights that are no numbers, a value that is an answer too. */
TEST(what_cannot_be_scaled)
{
    for (int way = 0; way < 3; way++) {
        struct mdl_calibration *c;
        struct mdl_model *m, *real;
        struct gb g;
        float *w;

        chain(&g, "Relu", true);
        w = (float *)(uintptr_t)original(&g, "w0");
        if (way == 0) {
            memset(w, 0, 3 * 27 * sizeof(*w));
        } else if (way == 2) {
            gb_output(&g, "r0");
        }
        c = calibrated(&g, 0);
        T_TRUE(c);
        if (way == 1) {
            ((float *)(uintptr_t)original(&g, "w2"))[3] = NAN;
        }
        m = compiled(&g, c);
        real = compiled(&g, NULL);
        T_TRUE(m && real);
        T_TRUE(op_named(m, "d1")->quant);
        if (way == 1) {
            T_TRUE(!op_named(m, "c2")->quant);
        } else {
            T_TRUE(distance(m, real, 0) < (way == 0 ? 0.02 : 0.2));
        }
        mdl_free(m);
        mdl_free(real);
        mdl_calibration_free(c);
        gb_free(&g);
    }
}

TEST_MAIN()
