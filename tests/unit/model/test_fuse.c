/* SPDX-License-Identifier: Apache-2.0 */
/* What is fused, what must not be, and that fused models compute what the single operators do. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

static void conv(struct gb *g, const char *name, const char *x, const char *y, size_t in,
                 size_t out, size_t kernel)
{
    char w[32], inputs[64];
    int64_t pad = (int64_t)(kernel / 2);

    snprintf(w, sizeof(w), "w_%s", name);
    snprintf(inputs, sizeof(inputs), "%s %s", x, w);
    gb_weights(g, w, 4, (size_t[]){out, in, kernel, kernel});
    gb_node(g, "Conv", name, inputs, y);
    gb_ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
}

static void batch_norm(struct gb *g, const char *x, const char *y, size_t channels)
{
    char inputs[64];

    gb_weights(g, "bs", 1, &channels);
    gb_weights(g, "bb", 1, &channels);
    gb_weights(g, "bm", 1, &channels);
    gb_weights(g, "bv", 1, &channels);
    snprintf(inputs, sizeof(inputs), "%s bs bb bm bv", x);
    gb_node(g, "BatchNormalization", "", inputs, y);
}

/* Compiles with and without fusion, compares the answers, returns the fused one in *ret. */
static void compare(struct gb *g, double bound, struct mdl_model **ret)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct mdl_model *fused = gb_compile(g, NULL), *single;
    struct run_model a, b;

    *ret = fused;
    if (!fused) {
        T_FAIL("%s", g->error);
    }
    single = gb_compile(g, &plain);
    T_TRUE(single);
    run_model_init(&a, fused);
    run_model_init(&b, single);
    T_TRUE(run_model_go(&a, 1));
    T_TRUE(run_model_go(&b, 1));
    for (size_t i = 0; i < fused->output_count; i++) {
        T_NEAR(run_model_distance(&a, &b, i), 0, bound);
    }
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(single);
}

TEST(batch_norm_and_relu_into_conv)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "c", "x", "t", 3, 4, 3);
    batch_norm(&g, "t", "u", 4);
    gb_node(&g, "Relu", "", "u", "y");
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_CONV), 1);
    T_EQ(gb_count_ops(m, MDL_OP_AFFINE), 0);
    T_EQ(gb_count_ops(m, MDL_OP_UNARY), 0);
    for (size_t i = 0; i < m->op_count; i++) {
        if (m->ops[i].kind == MDL_OP_CONV) {
            T_TRUE(m->ops[i].scale && m->ops[i].shift);
            T_EQ(m->ops[i].channels, 4);
            T_EQ(m->ops[i].act, MDL_ACT_RELU);
        }
    }
    mdl_free(m);
    gb_free(&g);
}

/* A value that somebody else reads must stay what it is. */
TEST(not_what_others_read)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "c", "x", "t", 3, 4, 3);
    gb_node(&g, "Relu", "", "t", "y");
    gb_node(&g, "Sigmoid", "", "t", "z");
    gb_output(&g, "y");
    gb_output(&g, "z");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_UNARY), 2);
    mdl_free(m);
    gb_free(&g);

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "c", "x", "t", 3, 4, 3);
    gb_node(&g, "Relu", "", "t", "y");
    gb_output(&g, "t"); /* the model's own output */
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_UNARY), 1);
    mdl_free(m);
    gb_free(&g);
}

/* y = relu(conv(a) + x): the sum is in the convolution that runs last, also where the file has it
 * the other way round, and nothing is read before it is written. */
TEST(residual_before_activation)
{
    for (int swap = 0; swap < 2; swap++) {
        for (int late = 0; late < 2; late++) {
            struct gb g;
            struct mdl_model *m;
            bool found = false;

            gb_init(&g, 13);
            gb_input(&g, "x", 4, (int64_t[]){1, 4, 6, 6});
            conv(&g, "c1", "x", "a", 4, 4, 3);
            if (late) { /* the shortcut is made after the convolution */
                conv(&g, "c2", "a", "b", 4, 4, 1);
                gb_node(&g, "MaxPool", "", "a", "s");
                gb_ints(&g, "kernel_shape", 2, (int64_t[]){1, 1});
            } else {
                gb_node(&g, "MaxPool", "", "a", "s");
                gb_ints(&g, "kernel_shape", 2, (int64_t[]){1, 1});
                conv(&g, "c2", "a", "b", 4, 4, 1);
            }
            gb_node(&g, "Add", "sum", swap ? "b s" : "s b", "t");
            gb_node(&g, "Relu", "", "t", "y");
            gb_output(&g, "y");
            compare(&g, 1e-5, &m);
            T_EQ(gb_count_ops(m, MDL_OP_BINARY), 0);
            T_EQ(gb_count_ops(m, MDL_OP_UNARY), 0);
            for (size_t i = 0; i < m->op_count; i++) {
                if (m->ops[i].residual == MDL_RESIDUAL_NONE) {
                    continue;
                }
                found = true;
                T_EQ(m->ops[i].residual, MDL_RESIDUAL_BEFORE_ACT);
                T_EQ(m->ops[i].act, MDL_ACT_RELU);
                T_EQ(m->ops[i - 1].kind, MDL_OP_MAX_POOL); /* moved behind it */
            }
            T_TRUE(found);
            mdl_free(m);
            gb_free(&g);
        }
    }
}

/* YOLOv3: x + leaky(conv(...)) */
TEST(residual_after_activation)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 4, 6, 6});
    conv(&g, "c1", "x", "a", 4, 4, 3);
    conv(&g, "c2", "a", "b", 4, 4, 3);
    gb_node(&g, "LeakyRelu", "", "b", "l");
    gb_float(&g, "alpha", 0.1f);
    gb_node(&g, "Add", "", "a l", "t");
    conv(&g, "c3", "t", "y", 4, 4, 1);
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_BINARY), 0);
    for (size_t i = 0; i < m->op_count; i++) {
        if (strcmp(m->ops[i].name, "c2") == 0) {
            T_EQ(m->ops[i].residual, MDL_RESIDUAL_AFTER_ACT);
            T_EQ(m->ops[i].act, MDL_ACT_LEAKY_RELU);
        }
    }
    mdl_free(m);
    gb_free(&g);
}

/* Added to itself, or broadcast: no residual. */
TEST(sums_that_are_no_residual)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 4, 6, 6});
    gb_input(&g, "s", 4, (int64_t[]){1, 4, 1, 1});
    conv(&g, "c1", "x", "a", 4, 4, 3);
    gb_node(&g, "Add", "", "a a", "b");
    conv(&g, "c2", "b", "c", 4, 4, 3);
    gb_node(&g, "Add", "", "c s", "y");
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_BINARY), 2);
    mdl_free(m);
    gb_free(&g);
}

/* Scale layers: products and sums by constants per channel. */
TEST(scale_layers)
{
    static const char *const ops[] = {"Mul", "Add", "Sub", "Div"};

    for (int into_conv = 0; into_conv < 2; into_conv++) {
        struct gb g;
        struct mdl_model *m;
        const char *x = "x";

        gb_init(&g, 13);
        gb_input(&g, "x", 4, (int64_t[]){1, 4, 6, 6});
        gb_weights(&g, "k", 3, (size_t[]){4, 1, 1});
        gb_scalar(&g, "three", 3);
        if (into_conv) {
            conv(&g, "c", "x", "t", 4, 4, 3);
            x = "t";
        }
        for (size_t i = 0; i < base_array_count(ops); i++) {
            char inputs[32];
            char *name = mdl_pool_printf(g.pool, "v%zu", i);

            snprintf(inputs, sizeof(inputs), "%s k", x);
            gb_node(&g, ops[i], "", inputs, name);
            x = name;
        }
        gb_node(&g, "Sub", "", mdl_pool_printf(g.pool, "three %s", x), "r"); /* 3 - v */
        gb_node(&g, "Tanh", "", "r", "y");
        gb_output(&g, "y");
        compare(&g, 1e-5, &m);
        T_EQ(gb_count_ops(m, MDL_OP_BINARY), 0);
        T_EQ(gb_count_ops(m, MDL_OP_UNARY), 0);
        T_EQ(gb_count_ops(m, MDL_OP_AFFINE), into_conv ? 0 : 1);
        mdl_free(m);
        gb_free(&g);
    }
}

/* Folded into weights, an infinite factor would make NaN of those that are 0. */
TEST(infinite_factors_stay_apart)
{
    static const float factors[][2] = {{INFINITY, 0}, {0, 0}, {1e-42f, 1e-42f}, {1e30f, 1e30f}};

    for (size_t i = 0; i < 2 * base_array_count(factors); i++) {
        struct gb g;
        struct mdl_model *m;
        struct run_model r;

        gb_init(&g, 13);
        gb_input(&g, "x", 2, (int64_t[]){1, 3});
        gb_const(&g, "w", MDL_F32, 2, (size_t[]){3, 2}, ((const float[]){0, 1e10f, 0, 0, 1, 0}));
        gb_const(&g, "c", MDL_F32, 1, (size_t[]){2}, factors[i / 2]);
        gb_node(&g, "MatMul", "", "x w", "t");
        gb_node(&g, i % 2 ? "Div" : "Mul", "", "t c", "y");
        gb_output(&g, "y");
        m = gb_compile(&g, NULL);
        T_TRUE(m);
        T_EQ(gb_count_ops(m, MDL_OP_BINARY), i != 2); /* 0 is a factor as any */
        run_model_init(&r, m);
        T_TRUE(run_model_go(&r, 1));
        for (size_t k = 0; k < 2; k++) {
            const float *x = r.inputs[0];
            volatile float t = k ? 1e10f * x[0] : x[2], c = factors[i / 2][k];
            float got = ((const float *)r.outputs[0])[k], want = i % 2 ? t / c : t * c;

            T_TRUE(got == want || (isnan(got) && isnan(want)));
        }
        run_model_deinit(&r);
        mdl_free(m);
        gb_free(&g);
    }
}

/* A constant divided by the result is no scale. */
TEST(constant_over_result)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 4, 6, 6});
    gb_weights(&g, "k", 3, (size_t[]){4, 1, 1});
    conv(&g, "c", "x", "t", 4, 4, 3);
    gb_node(&g, "Div", "", "k t", "y");
    gb_output(&g, "y");
    compare(&g, 1e-3, &m);
    T_EQ(gb_count_ops(m, MDL_OP_BINARY), 1);
    mdl_free(m);
    gb_free(&g);
}

TEST(products)
{
    struct gb g;
    struct mdl_model *m;

    /* alpha, beta * C, a batch norm behind and an activation: one operator */
    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){3, 5});
    gb_weights(&g, "w", 2, (size_t[]){4, 5});
    gb_weights(&g, "c", 1, (size_t[]){4});
    gb_node(&g, "Gemm", "fc", "x w c", "t");
    gb_int(&g, "transB", 1);
    gb_float(&g, "alpha", 0.5f);
    gb_float(&g, "beta", 2);
    batch_norm(&g, "t", "u", 4);
    gb_node(&g, "Sigmoid", "", "u", "y");
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(m->op_count, 1);
    T_NEAR(m->ops[0].attr.gemm.alpha, 1, 0);
    T_TRUE(m->ops[0].in[2] == MDL_NONE);
    mdl_free(m);
    gb_free(&g);

    /* MatMul + Add, over a sequence */
    gb_init(&g, 13);
    gb_input(&g, "x", 3, (int64_t[]){1, 7, 5});
    gb_weights(&g, "w", 2, (size_t[]){5, 4});
    gb_weights(&g, "c", 1, (size_t[]){4});
    gb_node(&g, "MatMul", "mm", "x w", "t");
    gb_node(&g, "Add", "", "t c", "y");
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_GEMM), 1);
    mdl_free(m);
    gb_free(&g);

    /* C that is a whole matrix stays an input */
    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){3, 5});
    gb_weights(&g, "w", 2, (size_t[]){5, 4});
    gb_weights(&g, "c", 2, (size_t[]){3, 4});
    gb_node(&g, "Gemm", "fc", "x w c", "t");
    gb_node(&g, "Relu", "", "t", "y");
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(m->op_count, 1);
    T_NE(m->ops[0].in[2], MDL_NONE);
    mdl_free(m);
    gb_free(&g);
}

TEST(swish_patterns)
{
    static const char *const forms[] = {"silu", "gate", "last", "first", "sixth"};

    for (size_t f = 0; f < base_array_count(forms); f++) {
        struct gb g;
        struct mdl_model *m;
        enum mdl_act want = f == 0 ? MDL_ACT_SILU : MDL_ACT_HARD_SWISH;

        gb_init(&g, 13);
        gb_input(&g, "x", 4, (int64_t[]){1, 4, 6, 6});
        gb_scalar(&g, "zero", 0);
        gb_scalar(&g, "three", 3);
        gb_scalar(&g, "six", 6);
        gb_scalar(&g, "one6", 1.0f / 6);
        conv(&g, "c", "x", "t", 4, 4, 3);
        if (f == 0) {
            gb_node(&g, "Sigmoid", "", "t", "s");
            gb_node(&g, "Mul", "", "t s", "y");
        } else if (f == 1) {
            gb_node(&g, "HardSigmoid", "", "t", "s");
            gb_float(&g, "alpha", 1.0f / 6);
            gb_node(&g, "Mul", "", "s t", "y");
        } else {
            gb_node(&g, "Add", "", "three t", "a");
            gb_node(&g, "Clip", "", "a zero six", "b");
            if (f == 2) {
                gb_node(&g, "Mul", "", "t b", "d");
                gb_node(&g, "Div", "", "d six", "y");
            } else {
                gb_node(&g, f == 3 ? "Div" : "Mul", "", f == 3 ? "b six" : "one6 b", "d");
                gb_node(&g, "Mul", "", "d t", "y");
            }
        }
        gb_output(&g, "y");
        compare(&g, 1e-4, &m);
        if (gb_count_ops(m, MDL_OP_BINARY) + gb_count_ops(m, MDL_OP_UNARY) != 0) {
            T_FAIL("form %s was not found", forms[f]);
        }
        for (size_t i = 0; i < m->op_count; i++) {
            if (m->ops[i].kind == MDL_OP_CONV) {
                T_EQ(m->ops[i].act, want);
            }
        }
        mdl_free(m);
        gb_free(&g);
    }
}

/* Zero padding in front of a convolution joins its pads; other padding does not. */
TEST(padding)
{
    for (int edge = 0; edge < 2; edge++) {
        struct gb g;
        struct mdl_model *m;

        gb_init(&g, 13);
        gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
        gb_i64(&g, "p", 8, (int64_t[]){0, 0, 1, 2, 0, 0, 0, 1});
        gb_node(&g, "Pad", "", "x p", "t");
        if (edge) {
            gb_string(&g, "mode", "edge");
        }
        conv(&g, "c", "t", "y", 3, 4, 3);
        gb_output(&g, "y");
        compare(&g, 1e-5, &m);
        T_EQ(gb_count_ops(m, MDL_OP_PAD), edge);
        mdl_free(m);
        gb_free(&g);
    }
}

TEST(mean_over_image_is_a_pool)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "c", "x", "t", 3, 4, 3);
    gb_node(&g, "ReduceMean", "", "t", "u");
    gb_ints(&g, "axes", 2, (int64_t[]){2, 3});
    gb_int(&g, "keepdims", 0);
    gb_node(&g, "Identity", "", "u", "v");
    gb_node(&g, "Dropout", "", "v", "y");
    gb_output(&g, "y");
    compare(&g, 1e-5, &m);
    T_EQ(gb_count_ops(m, MDL_OP_AVG_POOL), 1);
    T_EQ(gb_count_ops(m, MDL_OP_REDUCE), 0);
    T_EQ(gb_out(m, 0)->rank, 2);
    mdl_free(m);
    gb_free(&g);
}

/* A dropout in training mode that drops nothing, as exporters write it, is nothing. */
TEST(dropout_of_nothing)
{
    static const float ratios[] = {0, 0.5f};
    static const uint8_t yes = 1;

    for (size_t i = 0; i < base_array_count(ratios); i++) {
        struct mdl_model *m;
        struct gb g;

        gb_init(&g, 13);
        gb_input(&g, "x", 2, (int64_t[]){1, 6});
        gb_scalar(&g, "ratio", ratios[i]);
        gb_const(&g, "training", MDL_BOOL, 0, NULL, &yes);
        gb_node(&g, "Relu", "", "x", "r");
        gb_node(&g, "Dropout", "drop", "r ratio training", "y");
        gb_output(&g, "y");
        m = gb_compile(&g, NULL);
        T_EQ(m != NULL, ratios[i] == 0);
        if (m) {
            T_EQ(m->op_count, 1);
        } else {
            T_CONTAINS(g.error, "training_mode");
        }
        mdl_free(m);
        gb_free(&g);
    }
}

TEST_MAIN()
