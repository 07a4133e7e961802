/* SPDX-License-Identifier: Apache-2.0 */
/* f32 models quantised by a calibration: how one is made, kept in a file, and what it changes. */
#include <jansson.h>
#include <math.h>

#include "kernels/int8cal/calibrate.h"
#include "kernels/int8cal/examples.h"
#include "kernels/int8cal/runner.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

/* two convolutions with a residual, an activation without an integer form, a mean, a product */
static void f32_net(struct gb *g)
{
    gb_init(g, 13);
    gb_input(g, "x", 4, (int64_t[]){1, 3, 12, 12});
    gb_weights(g, "w0", 4, (size_t[]){8, 3, 3, 3});
    gb_weights(g, "b0", 1, (size_t[]){8});
    gb_weights(g, "w1", 4, (size_t[]){8, 8, 3, 3});
    gb_weights(g, "w2", 4, (size_t[]){8, 8, 1, 1});
    gb_weights(g, "w3", 2, (size_t[]){5, 8});
    gb_node(g, "Conv", "c0", "x w0 b0", "v0");
    gb_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    gb_node(g, "Relu", "", "v0", "r0");
    gb_node(g, "Conv", "c1", "r0 w1", "v1");
    gb_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    gb_node(g, "Add", "", "v1 r0", "s1");
    gb_node(g, "Relu", "", "s1", "r1");
    gb_node(g, "MaxPool", "", "r1", "p1");
    gb_ints(g, "kernel_shape", 2, (int64_t[]){2, 2});
    gb_ints(g, "strides", 2, (int64_t[]){2, 2});
    gb_node(g, "Conv", "c2", "p1 w2", "v2");
    gb_node(g, "Sigmoid", "", "v2", "r2");
    gb_node(g, "GlobalAveragePool", "", "r2", "m2");
    gb_node(g, "Flatten", "", "m2", "f2");
    gb_node(g, "Gemm", "fc", "f2 w3", "out");
    gb_int(g, "transB", 1);
    gb_output(g, "out");
}

static struct mdl_calibration *calibrated(struct gb *g, enum krn_calibrate_method method,
                                          bool symmetric, size_t *ret_zeros)
{
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, &fused);
    struct mdl_calibration *c = NULL;
    struct krn_calibrate *k = NULL;
    char error[MDL_ERROR_MAX];
    float x[3 * 12 * 12];

    if (m && krn_calibrate_new(m, method, error, &k) == 0) {
        for (int n = 0; n < 6; n++) {
            for (size_t i = 0; i < base_array_count(x); i++) {
                x[i] = t_float();
            }
            if (krn_calibrate_tensor(k, x, sizeof(x), error) != 0) {
                fprintf(stderr, "%s\n", error);
            }
        }
        krn_calibrate_finish(k, method, symmetric, ret_zeros, &c);
    }
    krn_calibrate_free(k);
    mdl_free(m);
    return c;
}

/* @g: f32_net(). Return: its calibration, or NULL */
static struct mdl_calibration *calibrated_net(struct gb *g)
{
    size_t zeros;

    f32_net(g);
    return calibrated(g, KRN_CALIBRATE_MINMAX, false, &zeros);
}

/* these operators stay f32 */
static void keep(struct mdl_calibration *c, const char *const *names, size_t count)
{
    c->keep = calloc(count, sizeof(char *));
    c->keep_count = count;
    for (size_t i = 0; i < count; i++) {
        c->keep[i] = strdup(names[i]);
    }
}

static bool near_f32(struct gb *g, const struct mdl_calibration *c, struct mdl_model **ret)
{
    struct mdl_load_options real = {.const_eval = krn_const_eval};
    struct mdl_load_options whole = {.const_eval = krn_const_eval, .calibration = c};
    struct mdl_model *a = gb_compile(g, &real), *b = gb_compile(g, &whole);
    struct run_model x = {0}, y = {0};
    double distance = 1;

    if (a && b) {
        run_model_init(&x, a);
        run_model_init(&y, b);
        if (run_model_go(&x, 5) && run_model_go(&y, 5)) {
            distance = run_model_distance(&x, &y, 0);
        }
    } else {
        fprintf(stderr, "%s\n", g->error);
    }
    run_model_deinit(&x);
    run_model_deinit(&y);
    mdl_free(a);
    *ret = b;
    if (distance > 0.05) {
        fprintf(stderr, "%g of the largest output away from f32\n", distance);
    }
    return distance <= 0.05;
}

TEST(calibrated_models_compute_on_integers)
{
    for (int way = 0; way < 4; way++) {
        struct mdl_model *m = NULL;
        struct mdl_calibration *c;
        size_t zeros = 9, integers = 0;
        struct gb g;

        f32_net(&g);
        c = calibrated(&g, way & 1 ? KRN_CALIBRATE_KL : KRN_CALIBRATE_MINMAX, way & 2, &zeros);
        T_TRUE(c);
        T_EQ(zeros, 0);
        T_TRUE(near_f32(&g, c, &m));
        for (size_t i = 0; i < m->op_count; i++) {
            integers += m->ops[i].quant != NULL;
        }
        T_EQ(integers, 5);                         /* three convolutions, the mean, the product */
        T_EQ(gb_count_ops(m, MDL_OP_QUANTIZE), 2); /* the input, and behind the sigmoid */
        T_EQ(gb_count_ops(m, MDL_OP_DEQUANTIZE), 0);
        mdl_free(m);
        mdl_calibration_free(c);
        gb_free(&g);
    }
}

TEST(what_is_kept_stays_f32)
{
    static const char *const names[] = {"c1", "fc"};
    struct mdl_model *m = NULL;
    struct gb g;
    struct mdl_calibration *c = calibrated_net(&g);

    T_TRUE(c);
    keep(c, names, 2);
    T_TRUE(near_f32(&g, c, &m));
    for (size_t i = 0; i < m->op_count; i++) {
        const char *name = m->ops[i].name;

        if (strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0) {
            T_TRUE(!m->ops[i].quant);
        }
    }
    T_TRUE(gb_op(m, MDL_OP_CONV)->quant);
    mdl_free(m);
    mdl_calibration_free(c);
    gb_free(&g);
}

/* What only f32 operators read is not rounded on its way to them. */
TEST(values_between_integers_and_f32_stay_f32)
{
    struct gb g;
    struct mdl_calibration *c = calibrated_net(&g);

    T_TRUE(c);
    keep(c, (const char *const[]){"c1"}, 1);
    for (size_t kept = 0; kept < 2; kept++) {
        struct mdl_model *m = NULL;
        const struct mdl_op *first;

        c->keep_count = kept;
        T_TRUE(near_f32(&g, c, &m));
        first = gb_op(m, MDL_OP_CONV);
        T_TRUE(first->quant && strcmp(first->name, "c0") == 0);
        T_EQ(m->tensors[first->out[0]].dtype == MDL_F32, kept);
        T_EQ(gb_count_ops(m, MDL_OP_DEQUANTIZE), 0);
        mdl_free(m);
    }
    c->keep_count = 1;
    mdl_calibration_free(c);
    gb_free(&g);
}

/* Before the one product that would read its integers, a mean rounded its operand for nothing. */
TEST(a_mean_that_only_f32_reads_rounds_nothing)
{
    struct mdl_model *m = NULL;
    struct gb g;
    struct mdl_calibration *c = calibrated_net(&g);

    T_TRUE(c);
    keep(c, (const char *const[]){"fc", "c0", "c1", "c2"}, 4);
    T_TRUE(near_f32(&g, c, &m));
    T_EQ(gb_count_ops(m, MDL_OP_QUANTIZE) + gb_count_ops(m, MDL_OP_DEQUANTIZE), 0);
    T_EQ(mdl_integer_ops(m), 0);
    mdl_free(m);
    c->keep_count = 1;
    T_TRUE(near_f32(&g, c, &m));
    T_TRUE(!gb_op(m, MDL_OP_AVG_POOL)->quant);
    T_EQ(gb_count_ops(m, MDL_OP_QUANTIZE), 1); /* the input */
    c->keep_count = 4;
    mdl_free(m);
    mdl_calibration_free(c);
    gb_free(&g);
}

TEST(leads_say_how_near_another_class_is)
{
    static const float a[5] = {1, 7, 2, 4, -9}, b[5] = {8, 6, 0, 0, 0}, nan[5] = {0, 1, NAN},
                       p[5] = {0.125f, 0.5f, 0.25f, 0.125f, 0}, q[5] = {0, 0.25f, 0.5f, 0.25f, 0};
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    struct mdl_model *m;
    double x = 0, y = 0;
    struct gb g;

    f32_net(&g);
    m = gb_compile(&g, &fused);
    T_TRUE(krn_answer_lead(m, a, b, &x, &y));
    T_TRUE(x == 3 && y == -2);
    T_TRUE(krn_answer_lead(m, p, q, &x, &y)); /* of probabilities, what softmax was given */
    T_TRUE(fabs(x - log(2)) < 1e-6 && fabs(y + log(2)) < 1e-6);
    T_TRUE(krn_answer_lead(m, a, nan, &x, &y));
    T_TRUE(x == 3 && isnan(y));
    mdl_free(m);
    gb_free(&g);
}

/* values that are always 0, and weights that are no numbers */
TEST(zero_ranges_and_nan)
{
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    float w[8 * 8 * 9] = {0}, x[3 * 12 * 12] = {0};
    struct mdl_model *m = NULL;
    struct krn_calibrate *k = NULL;
    struct mdl_calibration *c;
    char error[MDL_ERROR_MAX];
    size_t zeros = 0;
    struct gb g;

    f32_net(&g);
    for (size_t i = 0; i < g.graph.initializer_count; i++) {
        if (strcmp(g.weights[i].name, "w1") == 0) {
            g.weights[i].data = mdl_pool_memdup(g.pool, w, sizeof(w));
        }
        if (strcmp(g.weights[i].name, "w0") == 0 || strcmp(g.weights[i].name, "b0") == 0) {
            g.weights[i].data = mdl_pool_memdup(g.pool, w, g.weights[i].bytes);
        }
    }
    c = calibrated(&g, KRN_CALIBRATE_KL, false, &zeros);
    T_TRUE(c);
    T_TRUE(zeros >= 2);
    T_TRUE(near_f32(&g, c, &m));
    mdl_free(m);
    mdl_calibration_free(c);
    m = gb_compile(&g, &fused);
    T_EQ(krn_calibrate_new(m, KRN_CALIBRATE_MINMAX, error, &k), 0);
    x[7] = NAN;
    T_EQ(krn_calibrate_tensor(k, x, sizeof(x), error), -EINVAL);
    T_TRUE(strstr(error, "NaN"));
    x[7] = INFINITY;
    T_EQ(krn_calibrate_tensor(k, x, sizeof(x), error), -EINVAL);
    T_EQ(krn_calibrate_tensor(k, x, sizeof(x) - 4, error), -EINVAL);
    T_TRUE(strstr(error, "bytes"));
    T_EQ(krn_calibrate_finish(k, KRN_CALIBRATE_MINMAX, false, &zeros, &c), -ENOENT);
    krn_calibrate_free(k);
    mdl_free(m);
    gb_free(&g);
}

TEST(a_long_tail_is_clipped)
{
    uint64_t bins[KRN_KL_BINS] = {0};
    float limit = 0, t;

    krn_kl_widen(bins, &limit, 1.0f);
    for (size_t i = 0; i < 300; i++) {
        bins[i] = 100000 - i * 300;
    }
    bins[2047] = 1;
    t = krn_kl_limit(bins, limit);
    T_TRUE(t < 0.3f && t > 0.1f);
    krn_kl_widen(bins, &limit, 3.0f);
    T_TRUE(limit == 4.0f);
    T_EQ(bins[0], 100000 + 100000 - 300 + 100000 - 600 + 100000 - 900);
    T_EQ(bins[511], 1);
    for (size_t i = 0; i < KRN_KL_BINS; i++) {
        bins[i] = 1000; /* nothing to gain by clipping */
    }
    T_TRUE(krn_kl_limit(bins, 2.0f) > 1.9f);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    fputs(text, f);
    fclose(f);
}

TEST(calibrations_are_files)
{
    static const char *const bad[][2] = {
        {"[]", "must be an object"},
        {"{}", "\"ranges\""},
        {"{\"ranges\": {\"a\": [2, 1]}}", "smaller one first"},
        {"{\"ranges\": {\"a\": [0, 1e300]}}", "smaller one first"},
        {"{\"ranges\": {\"a\": [0]}}", "two numbers"},
        {"{\"ranges\": {}, \"keep\": [1]}", "list of names"},
        {"{\"ranges\": {}, \"symmetric\": 1}", "true or false"},
        {"{\"ranges\": {}, \"equalised\": 0}", "true or false"},
        {"{\"ranges\": {}, \"channels\": []}", "\"channels\""},
        {"{\"ranges\": {}, \"channels\": {\"a\": 1}}", "as many lows"},
        {"{\"ranges\": {}, \"channels\": {\"a\": {\"low\": [0], \"high\": [1], \"mean\": [0]}}}",
         "as many lows"},
        {"{\"ranges\": {}, \"channels\": {\"a\": {\"low\": [2], \"high\": [1], \"mean\": [0], "
         "\"power\": [0]}}}",
         "as many lows"},
        {"{", ":1:"},
    };
    struct mdl_calibration *c, *again = NULL;
    char path[] = "/tmp/piped-calibration-XXXXXX", error[MDL_ERROR_MAX];
    json_t *ranges;
    size_t zeros;
    struct gb g;
    int fd = mkstemp(path);

    T_TRUE(fd >= 0);
    close(fd);
    f32_net(&g);
    c = calibrated(&g, KRN_CALIBRATE_MINMAX, true, &zeros);
    T_TRUE(c);
    ranges = mdl_calibration_json(c);
    T_EQ(json_dump_file(ranges, path, JSON_REAL_PRECISION(9)), 0);
    json_decref(ranges);
    T_EQ(mdl_calibration_read(path, error, &again), 0);
    T_EQ(again->range_count, c->range_count);
    T_TRUE(again->symmetric);
    for (size_t i = 0; i < c->range_count; i++) {
        T_TRUE(strcmp(c->ranges[i].name, again->ranges[i].name) == 0);
        T_TRUE(c->ranges[i].low == again->ranges[i].low);
        T_TRUE(c->ranges[i].high == again->ranges[i].high);
        T_TRUE(mdl_calibration_find(again, c->ranges[i].name) == &again->ranges[i]);
    }
    T_TRUE(!mdl_calibration_find(again, "nobody"));
    T_TRUE(c->channels_count > 0);
    T_EQ(again->channels_count, c->channels_count);
    for (size_t i = 0; i < c->channels_count; i++) {
        const struct mdl_channels *a = &c->channels[i];
        const struct mdl_channels *b = mdl_calibration_channels(again, a->name);

        T_TRUE(b && b->count == a->count);
        T_TRUE(memcmp(a->low, b->low, a->count * sizeof(float)) == 0);
        T_TRUE(memcmp(a->high, b->high, a->count * sizeof(float)) == 0);
        T_TRUE(memcmp(a->mean, b->mean, a->count * sizeof(float)) == 0);
        T_TRUE(memcmp(a->power, b->power, a->count * sizeof(float)) == 0);
    }
    T_TRUE(!mdl_calibration_channels(again, "nobody"));
    mdl_calibration_free(again);
    mdl_calibration_free(c);
    for (size_t i = 0; i < base_array_count(bad); i++) {
        write_text(path, bad[i][0]);
        T_EQ(mdl_calibration_read(path, error, &again), -EBADMSG);
        T_TRUE(strstr(error, bad[i][1]));
    }
    unlink(path);
    T_EQ(mdl_calibration_read(path, error, &again), -ENOENT);
    gb_free(&g);
}

TEST(examples_are_read_and_fitted)
{
    static const char good[] = "P6 # a comment\n4 2\n255\nabcdefghijklmnopqrstuvwx",
                      cut[] = "P6 4 2 255 short";
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];
    struct krn_examples e = KRN_EXAMPLES_NULL;
    float input[3 * 12 * 12], halves[3 * 12 * 12], bad[3 * 12 * 12] = {[7] = NAN};
    struct mdl_model *m;
    struct gb g;

    f32_net(&g);
    m = gb_compile(&g, &fused);
    for (size_t i = 0; i < base_array_count(halves); i++) {
        halves[i] = 0.5f;
    }
    T_EQ(krn_examples_add(&e, "a.ppm", good, sizeof(good) - 1, false), 0);
    T_EQ(krn_examples_add(&e, "b.ppm", cut, sizeof(cut) - 1, false), 0);
    T_EQ(krn_examples_add(&e, "c.f32", halves, sizeof(halves), false), 0);
    T_EQ(e.count, 3);
    T_EQ(krn_examples_add(&e, "bad.f32", bad, sizeof(bad), false), 0);
    T_EQ(krn_examples_fit(&e, m, error), 0);
    T_EQ(e.count, 2);
    T_EQ(e.left_out, 2);
    T_TRUE(strstr(e.note, "b.ppm"));
    T_EQ(krn_example_input(&e, 0, m, input, error), 0);
    T_TRUE(input[0] >= 'a' && input[0] <= 'x');
    T_EQ(krn_example_input(&e, 1, m, input, error), 0);
    T_TRUE(input[0] == 0.5f && input[3 * 12 * 12 - 1] == 0.5f);
    krn_examples_deinit(&e);
    T_EQ(krn_examples_add(&e, "bad.f32", bad, sizeof(bad), false), 0);
    T_EQ(krn_examples_fit(&e, m, error), -ENOENT);
    T_TRUE(strstr(error, "NaN or infinity"));
    krn_examples_deinit(&e);
    mdl_free(m);
    gb_free(&g);
}

TEST_MAIN()
