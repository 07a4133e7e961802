/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised graphs: what becomes one operator on integers, what stays, what is refused; and f32
 * models quantised by a calibration. */
#include <math.h>

#include "kernels/int8cal/calibrate.h"
#include "kernels/calibrate_kl.h"
#include "kernels/int8cal/examples.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

static void scalar(struct gb *g, const char *name, float scale, const char *zero_name,
                   enum mdl_dtype t, int zero)
{
    uint8_t z = (uint8_t)zero;

    gb_scalar(g, name, scale);
    gb_const(g, zero_name, t, 0, NULL, &z);
}

static void bytes(struct gb *g, const char *name, enum mdl_dtype t, size_t rank, const size_t *dim)
{
    uint8_t data[4096];
    size_t n = 1;

    for (size_t i = 0; i < rank; i++) {
        n *= dim[i];
    }
    for (size_t i = 0; i < n; i++) {
        data[i] = (uint8_t)((i * 2654435761u >> 8) % 256);
    }
    gb_const(g, name, t, rank, dim, data);
}

/* x -> Q -> DQ, by the names xs, xz: "dx" */
static void input(struct gb *g, int64_t c, int64_t h, int64_t w)
{
    gb_input(g, "x", 4, (int64_t[]){1, c, h, w});
    scalar(g, "xs", 0.02f, "xz", MDL_U8, 100);
    gb_node(g, "QuantizeLinear", "", "x xs xz", "qx");
    gb_node(g, "DequantizeLinear", "", "qx xs xz", "dx");
}

/* per-channel weights of @o by @c by 3 by 3: "dw" */
static void weights(struct gb *g, size_t o, size_t c)
{
    float scale[32];
    uint8_t zero[32] = {0};

    for (size_t i = 0; i < o; i++) {
        scale[i] = 0.001f * (float)(i + 1);
    }
    bytes(g, "qw", MDL_I8, 4, (size_t[]){o, c, 3, 3});
    gb_const(g, "ws", MDL_F32, 1, &o, scale);
    gb_const(g, "wz", MDL_I8, 1, &o, zero);
    gb_node(g, "DequantizeLinear", "", "qw ws wz", "dw");
    gb_int(g, "axis", 0);
}

/* Runs @g fused and unfused; *ret: the largest difference of output 0. */
static bool both_ways(struct gb *g, struct mdl_model **ret_m, double *ret)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    struct mdl_model *a = gb_compile(g, &plain), *b = gb_compile(g, &fused);
    struct run_model x = {0}, y = {0};
    bool ok = a && b;

    if (ok) {
        run_model_init(&x, a);
        run_model_init(&y, b);
        ok = run_model_go(&x, 7) && run_model_go(&y, 7);
        *ret = ok ? run_model_distance(&x, &y, 0) : 1;
    } else {
        fprintf(stderr, "%s\n", g->error);
    }
    run_model_deinit(&x);
    run_model_deinit(&y);
    mdl_free(a);
    *ret_m = b;
    return ok;
}

static const struct mdl_op *op_of(const struct mdl_model *m, enum mdl_op_kind kind)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (m->ops[i].kind == kind) {
            return &m->ops[i];
        }
    }
    return NULL;
}

TEST(qdq_convolution_is_one_op)
{
    struct mdl_model *m = NULL;
    const struct mdl_op *conv;
    double distance = 1;
    struct gb g;

    gb_init(&g, 13);
    input(&g, 5, 6, 7);
    weights(&g, 9, 5);
    gb_node(&g, "Conv", "c", "dx dw", "y");
    gb_ints(&g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    gb_node(&g, "Relu", "", "y", "r");
    scalar(&g, "ys", 0.05f, "yz", MDL_U8, 3);
    gb_node(&g, "QuantizeLinear", "", "r ys yz", "qy");
    gb_node(&g, "DequantizeLinear", "", "qy ys yz", "out");
    gb_output(&g, "out");
    T_TRUE(both_ways(&g, &m, &distance));
    conv = op_of(m, MDL_OP_CONV);
    T_TRUE(conv && conv->quant);
    T_EQ(conv->act, MDL_ACT_RELU);
    T_EQ(conv->quant->x_zero, 100);
    T_EQ(conv->quant->y_zero, 3);
    T_EQ(m->tensors[conv->in[0]].dtype, MDL_U8);
    T_EQ(m->tensors[conv->in[1]].dtype, MDL_I8);
    T_EQ(m->tensors[conv->out[0]].dtype, MDL_U8);
    T_EQ(gb_count_ops(m, MDL_OP_QUANTIZE), 1);
    T_EQ(gb_count_ops(m, MDL_OP_DEQUANTIZE), 1);
    T_EQ(gb_count_ops(m, MDL_OP_UNARY), 0);
    T_TRUE(distance < 0.05f / 5);
    mdl_free(m);
    gb_free(&g);
}

/* conv -> max pool, flatten and concat on integers -> product with an f32 result */
TEST(what_moves_integers_leaves_them)
{
    struct mdl_model *m = NULL;
    double distance = 1;
    struct gb g;

    gb_init(&g, 13);
    input(&g, 4, 8, 8);
    gb_node(&g, "MaxPool", "", "dx", "p");
    gb_ints(&g, "kernel_shape", 2, (int64_t[]){2, 2});
    gb_ints(&g, "strides", 2, (int64_t[]){2, 2});
    gb_node(&g, "QuantizeLinear", "", "p xs xz", "qp");
    gb_node(&g, "DequantizeLinear", "", "qp xs xz", "dp");
    gb_node(&g, "Concat", "", "dp dp", "cc");
    gb_int(&g, "axis", 1);
    gb_node(&g, "Flatten", "", "cc", "f");
    scalar(&g, "ws", 0.01f, "wz", MDL_I8, 0);
    bytes(&g, "qw", MDL_I8, 2, (size_t[]){10, 128});
    gb_node(&g, "DequantizeLinear", "", "qw ws wz", "dw");
    gb_const(&g, "b", MDL_F32, 1, (size_t[]){10}, (float[]){1, -2, 3, 4, 5, 6, 7, 8, 9, 0.125f});
    gb_node(&g, "Gemm", "", "f dw b", "out");
    gb_int(&g, "transB", 1);
    gb_output(&g, "out");
    T_TRUE(both_ways(&g, &m, &distance));
    T_TRUE(op_of(m, MDL_OP_GEMM) && op_of(m, MDL_OP_GEMM)->quant);
    T_EQ(m->tensors[op_of(m, MDL_OP_GEMM)->out[0]].dtype, MDL_F32);
    T_EQ(m->tensors[op_of(m, MDL_OP_MAX_POOL)->in[0]].dtype, MDL_U8);
    T_EQ(gb_count_ops(m, MDL_OP_DEQUANTIZE), 0);
    T_EQ(gb_count_ops(m, MDL_OP_QUANTIZE), 1);
    T_TRUE(distance < 1e-4);
    mdl_free(m);
    gb_free(&g);
}

TEST(sums_and_mean_values_on_integers)
{
    struct mdl_model *m = NULL;
    double distance = 1;
    struct gb g;

    gb_init(&g, 13);
    input(&g, 6, 5, 5);
    gb_node(&g, "Add", "", "dx dx", "s");
    scalar(&g, "ss", 0.04f, "sz", MDL_I8, -7);
    gb_node(&g, "QuantizeLinear", "", "s ss sz", "qs");
    gb_node(&g, "DequantizeLinear", "", "qs ss sz", "ds");
    gb_node(&g, "GlobalAveragePool", "", "ds", "a");
    gb_node(&g, "QuantizeLinear", "", "a ss sz", "qa");
    gb_node(&g, "DequantizeLinear", "", "qa ss sz", "out");
    gb_output(&g, "out");
    T_TRUE(both_ways(&g, &m, &distance));
    T_TRUE(op_of(m, MDL_OP_BINARY) && op_of(m, MDL_OP_BINARY)->quant);
    T_TRUE(op_of(m, MDL_OP_AVG_POOL) && op_of(m, MDL_OP_AVG_POOL)->quant);
    T_TRUE(distance < 0.1);
    mdl_free(m);
    gb_free(&g);
}

/* a product whose input is not quantised computes in f32 with weights dequantised at load */
TEST(weights_alone_are_dequantised_at_load)
{
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    struct mdl_model *m;
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 5, 5});
    weights(&g, 4, 3);
    gb_node(&g, "Conv", "c", "x dw", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, &fused);
    T_TRUE(m);
    T_EQ(gb_count_ops(m, MDL_OP_DEQUANTIZE), 0);
    T_TRUE(!op_of(m, MDL_OP_CONV)->quant);
    T_EQ(m->tensors[op_of(m, MDL_OP_CONV)->in[1]].dtype, MDL_F32);
    mdl_free(m);
    gb_free(&g);
}

static bool refused(struct gb *g, const char *why)
{
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, &fused);
    bool ok = !m && strstr(g->error, why) != NULL;

    if (!ok) {
        fprintf(stderr, "expected \"%s\", got \"%s\"\n", why, g->error);
    }
    mdl_free(m);
    gb_free(g);
    return ok;
}

/* a QLinearConv with one thing wrong */
static void linear_conv(struct gb *g, float x_scale, float w_scale, enum mdl_dtype x_zero_type,
                        size_t w_scales)
{
    float scales[8] = {w_scale, 1, 1, 1, 1, 1, 1, 1};

    gb_init(g, 13);
    gb_typed_input(g, "x", MDL_U8, 4, (int64_t[]){1, 3, 4, 4});
    scalar(g, "xs", x_scale, "xz", x_zero_type, 1);
    bytes(g, "w", MDL_I8, 4, (size_t[]){4, 3, 1, 1});
    gb_const(g, "ws", MDL_F32, 1, &w_scales, scales);
    gb_const(g, "wz", MDL_I8, 0, NULL, "");
    scalar(g, "ys", 1, "yz", MDL_U8, 0);
    gb_node(g, "QLinearConv", "c", "x xs xz w ws wz ys yz", "y");
    gb_output(g, "y");
}

TEST(bad_parameters_are_refused)
{
    struct mdl_model *m;
    struct gb g;

    linear_conv(&g, 0.5f, 1, MDL_U8, 4);
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    mdl_free(m);
    gb_free(&g);
    linear_conv(&g, 0, 1, MDL_U8, 4);
    T_TRUE(refused(&g, "not a positive number"));
    linear_conv(&g, NAN, 1, MDL_U8, 4);
    T_TRUE(refused(&g, "not a positive number"));
    linear_conv(&g, 1, -1, MDL_U8, 4);
    T_TRUE(refused(&g, "not a positive number"));
    linear_conv(&g, 1e-38f, 1e-38f, MDL_U8, 4);
    T_TRUE(refused(&g, "not a positive number"));
    linear_conv(&g, 1, 1, MDL_I8, 4);
    T_TRUE(refused(&g, "zero point of type i8"));
    linear_conv(&g, 1, 1, MDL_U8, 3);
    T_TRUE(refused(&g, "3 values for 4 channels"));
    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){2, 3});
    gb_const(&g, "s", MDL_F32, 1, (size_t[]){5}, (float[]){1, 1, 1, 1, 1});
    gb_node(&g, "QuantizeLinear", "", "x s", "y");
    gb_output(&g, "y");
    T_TRUE(refused(&g, "do not fit"));
    gb_init(&g, 21);
    gb_input(&g, "x", 2, (int64_t[]){2, 3});
    gb_const(&g, "s", MDL_F32, 2, (size_t[]){2, 2}, (float[]){1, 1, 1, 1});
    gb_node(&g, "QuantizeLinear", "", "x s", "y");
    gb_int(&g, "block_size", 2);
    gb_output(&g, "y");
    T_TRUE(refused(&g, "blocks of 2"));
}

/* ---- by calibration ---- */

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
    struct mdl_model *m = NULL;
    struct mdl_calibration *c;
    size_t zeros;
    struct gb g;

    f32_net(&g);
    c = calibrated(&g, KRN_CALIBRATE_MINMAX, false, &zeros);
    T_TRUE(c);
    c->keep = calloc(2, sizeof(char *));
    c->keep[0] = strdup("c1");
    c->keep[1] = strdup("fc");
    c->keep_count = 2;
    T_TRUE(near_f32(&g, c, &m));
    for (size_t i = 0; i < m->op_count; i++) {
        const char *name = m->ops[i].name;

        if (strcmp(name, "c1") == 0 || strcmp(name, "fc") == 0) {
            T_TRUE(!m->ops[i].quant);
        }
    }
    T_TRUE(op_of(m, MDL_OP_CONV)->quant);
    mdl_free(m);
    mdl_calibration_free(c);
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
    size_t zeros;
    struct gb g;
    int fd = mkstemp(path);

    T_TRUE(fd >= 0);
    close(fd);
    f32_net(&g);
    c = calibrated(&g, KRN_CALIBRATE_MINMAX, true, &zeros);
    T_TRUE(c);
    T_EQ(mdl_calibration_write(c, path), 0);
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

TEST(folders_of_examples)
{
    struct mdl_load_options fused = {.const_eval = krn_const_eval};
    char folder[] = "/tmp/piped-examples-XXXXXX", path[256], error[MDL_ERROR_MAX];
    struct krn_examples e = KRN_EXAMPLES_NULL;
    float input[3 * 12 * 12], bad[3 * 12 * 12] = {[7] = NAN};
    struct mdl_model *m;
    struct gb g;
    FILE *f;

    T_TRUE(mkdtemp(folder));
    f32_net(&g);
    m = gb_compile(&g, &fused);
    T_EQ(krn_examples_folder(folder, error, &e), -ENOENT);
    T_EQ(krn_examples_folder("/nonexistent", error, &e), -ENOENT);
    snprintf(path, sizeof(path), "%s/a.ppm", folder);
    write_text(path, "P6 # a comment\n4 2\n255\nabcdefghijklmnopqrstuvwx");
    snprintf(path, sizeof(path), "%s/b.ppm", folder);
    write_text(path, "P6 4 2 255 short");
    snprintf(path, sizeof(path), "%s/c.f32", folder);
    f = fopen(path, "w");
    for (size_t i = 0; i < 3 * 12 * 12; i++) {
        float v = 0.5f;

        fwrite(&v, sizeof(v), 1, f);
    }
    fclose(f);
    T_EQ(krn_examples_folder(folder, error, &e), 0);
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
    for (const char *n = "abc"; *n; n++) {
        snprintf(path, sizeof(path), "%s/%c.%s", folder, *n, *n == 'c' ? "f32" : "ppm");
        unlink(path);
    }
    rmdir(folder);
    mdl_free(m);
    gb_free(&g);
}

TEST_MAIN()
