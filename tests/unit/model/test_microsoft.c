/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft on quantised values, and ONNX's types of 4 and 16 bits: the answers in
 * real numbers within a step, what runs on integers, what is refused. */
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

#define COUNT 24

static void ms(struct gb *g, const char *op, const char *inputs)
{
    gb_node(g, op, "n", inputs, "y");
    g->nodes[g->graph.node_count - 1].domain = "com.microsoft";
}

/* u8 inputs a and b of [1][2][3][4]; scales and zero points as, az, bs, bz, ys, yz */
static void start(struct gb *g)
{
    static const float scales[] = {0.05f, 0.03f, 0.04f};
    static const uint8_t zeros[] = {120, 90, 100};

    gb_init(g, 13);
    for (int i = 0; i < 3; i++) {
        char scale[3] = {"aby"[i], 's'}, zero[3] = {"aby"[i], 'z'};

        gb_scalar(g, mdl_pool_strdup(g->pool, scale), scales[i]);
        gb_const(g, mdl_pool_strdup(g->pool, zero), MDL_U8, 0, NULL, &zeros[i]);
    }
    gb_typed_input(g, "a", MDL_U8, 4, (int64_t[]){1, 2, 3, 4});
    gb_typed_input(g, "b", MDL_U8, 4, (int64_t[]){1, 2, 3, 4});
    gb_output(g, "y");
}

/* Compiles and runs the graph on @in. Return: the model, or NULL after a message. */
static struct mdl_model *answer(struct gb *g, const uint8_t in[2][COUNT], void *ret, size_t bytes)
{
    struct mdl_load_options options = {.const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, &options);
    struct run_model run = {0};
    bool ok = m != NULL;

    if (!m) {
        fprintf(stderr, "%s\n", g->error);
        return NULL;
    }
    run_model_init(&run, m);
    for (size_t i = 0; i < m->input_count; i++) {
        memcpy(run.inputs[i], in[i], base_min(m->inputs[i].bytes, (size_t)COUNT));
    }
    ok = run_model_go(&run, 5) && m->outputs[0].bytes == bytes;
    if (ok) {
        memcpy(ret, run.outputs[0], bytes);
    }
    run_model_deinit(&run);
    return ok ? m : mdl_free(m);
}

static void random_bytes(uint8_t in[2][COUNT])
{
    for (size_t i = 0; i < 2 * COUNT; i++) {
        in[i / COUNT][i % COUNT] = (uint8_t)t_range(0, 255);
    }
}

static double real_a(uint8_t q)
{
    return 0.05 * (q - 120);
}

static double real_b(uint8_t q)
{
    return 0.03 * (q - 90);
}

/* Return: whether @q stands for @y within a step. */
static bool is_near(uint8_t q, double y)
{
    double want = fmin(fmax(y / 0.04 + 100, 0), 255);

    return fabs(want - q) <= 1;
}

TEST(sums_and_products)
{
    for (int i = 0; i < 2; i++) {
        uint8_t in[2][COUNT], y[COUNT];
        struct mdl_model *m;
        struct gb g;

        random_bytes(in);
        start(&g);
        ms(&g, i ? "QLinearMul" : "QLinearAdd", "a as az b bs bz ys yz");
        m = answer(&g, in, y, sizeof(y));
        T_TRUE(m);
        T_TRUE(i || gb_op(m, MDL_OP_BINARY)->quant); /* a sum of bytes */
        for (size_t k = 0; k < COUNT; k++) {
            double a = real_a(in[0][k]), b = real_b(in[1][k]);

            T_TRUE(is_near(y[k], i ? a * b : a + b));
        }
        mdl_free(m);
        gb_free(&g);
    }
}

TEST(functions)
{
    static const char *const names[] = {"QLinearSigmoid", "QLinearLeakyRelu"};

    for (int i = 0; i < 2; i++) {
        uint8_t in[2][COUNT], y[COUNT];
        struct mdl_model *m;
        struct gb g;

        random_bytes(in);
        start(&g);
        ms(&g, names[i], "a as az ys yz");
        gb_float(&g, "alpha", 0.25f);
        m = answer(&g, in, y, sizeof(y));
        T_TRUE(m);
        for (size_t k = 0; k < COUNT; k++) {
            double a = real_a(in[0][k]);

            T_TRUE(is_near(y[k], i ? (a < 0 ? a * 0.25 : a) : 1 / (1 + exp(-a))));
        }
        mdl_free(m);
        gb_free(&g);
    }
}

TEST(a_part_with_the_scale_of_the_whole_is_not_touched)
{
    uint8_t in[2][COUNT], y[2 * COUNT];
    struct mdl_model *m;
    struct gb g;

    random_bytes(in);
    start(&g);
    ms(&g, "QLinearConcat", "as az a as az b bs bz");
    gb_int(&g, "axis", 1);
    m = answer(&g, in, y, sizeof(y));
    T_TRUE(m);
    T_EQ(gb_count_ops(m, MDL_OP_QUANTIZE), 1);
    T_TRUE(memcmp(y, in[0], COUNT) == 0);
    for (size_t k = 0; k < COUNT; k++) {
        T_TRUE(fabs(fmin(fmax(real_b(in[1][k]) / 0.05 + 120, 0), 255) - y[COUNT + k]) <= 1);
    }
    mdl_free(m);
    gb_free(&g);
}

TEST(pools_with_channels_in_either_place)
{
    uint8_t in[2][COUNT], first[2], last[4];
    struct mdl_model *m;
    struct gb g;

    random_bytes(in);
    for (int i = 0; i < 2; i++) {
        start(&g);
        ms(&g, "QLinearGlobalAveragePool", "a as az ys yz");
        gb_int(&g, "channels_last", i);
        m = i ? answer(&g, in, last, sizeof(last)) : answer(&g, in, first, sizeof(first));
        T_TRUE(m);
        T_TRUE(gb_op(m, MDL_OP_AVG_POOL)->quant);
        for (size_t c = 0; c < (i ? 4 : 2); c++) {
            double sum = 0;

            for (size_t k = 0; k < COUNT; k++) {
                sum += (i ? k % 4 : k / 12) == c ? real_a(in[0][k]) : 0;
            }
            T_TRUE(is_near(i ? last[c] : first[c], sum / (i ? 6 : 12)));
        }
        mdl_free(m);
        gb_free(&g);
    }
}

/* per-channel weights, a bias, transposed or not */
TEST(products)
{
    for (int trans = 0; trans < 2; trans++) {
        static const float scales[] = {0.01f, 0.02f, 0.005f};
        static const int32_t bias[] = {100, -50, 7};
        const struct mdl_op *op;
        uint8_t in[2][COUNT] = {{0}}, y[6];
        int8_t w[12];
        struct mdl_model *m;
        struct gb g;

        random_bytes(in);
        for (size_t i = 0; i < 12; i++) {
            w[i] = (int8_t)t_range(-128, 127);
        }
        start(&g);
        g.graph.input_count = 0;
        gb_typed_input(&g, "a", MDL_U8, 2, (int64_t[]){2, 4});
        gb_const(&g, "w", MDL_I8, 2, trans ? (size_t[]){3, 4} : (size_t[]){4, 3}, w);
        gb_const(&g, "ws", MDL_F32, 1, (size_t[]){3}, scales);
        gb_const(&g, "wz", MDL_I8, 1, (size_t[]){3}, (int8_t[3]){0});
        gb_const(&g, "c", MDL_I32, 1, (size_t[]){3}, bias);
        ms(&g, "QGemm", "a as az w ws wz c ys yz");
        gb_int(&g, "transB", trans);
        m = answer(&g, in, y, sizeof(y));
        T_TRUE(m);
        op = gb_op(m, MDL_OP_GEMM);
        T_TRUE(op->quant && op->quant->bias && op->quant->bias[1] == -50);
        for (size_t i = 0; i < 6; i++) {
            double sum = bias[i % 3];

            for (size_t k = 0; k < 4; k++) {
                sum += (in[0][i / 3 * 4 + k] - 120) * w[trans ? i % 3 * 4 + k : k * 3 + i % 3];
            }
            T_TRUE(is_near(y[i], sum * 0.05 * (double)scales[i % 3]));
        }
        mdl_free(m);
        gb_free(&g);
    }
}

TEST(a_fused_convolution_keeps_its_sum_before_the_activation)
{
    const struct mdl_op *op;
    struct mdl_model *m;
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 2, 4, 4});
    gb_input(&g, "z", 4, (int64_t[]){1, 3, 4, 4});
    gb_weights(&g, "w", 4, (size_t[]){3, 2, 1, 1});
    ms(&g, "FusedConv", "x w - z");
    gb_string(&g, "activation", "Relu");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    op = gb_op(m, MDL_OP_CONV);
    T_EQ(op->act, MDL_ACT_RELU);
    T_EQ(op->residual, MDL_RESIDUAL_BEFORE_ACT);
    mdl_free(m);
    gb_free(&g);
}

/* QuantizeLinear to 4 and 16 bits, and back: within half a step, and limited */
TEST(narrow_and_wide_integers)
{
    static const struct {
        int onnx;
        double low, high;
        float scale;
    } types[] = {
        {21, 0, 15, 0.1f}, {22, -8, 7, 0.1f}, {4, 0, 65535, 1e-5f}, {5, -32768, 32767, 1e-5f}};

    for (size_t i = 0; i < base_array_count(types); i++) {
        struct mdl_load_options options = {.const_eval = krn_const_eval};
        double scale = (double)types[i].scale;
        struct run_model run = {0};
        struct mdl_model *m;
        struct gb g;

        gb_init(&g, 21);
        gb_input(&g, "x", 1, (int64_t[]){COUNT});
        gb_scalar(&g, "s", types[i].scale);
        gb_node(&g, "QuantizeLinear", "", "x s", "q");
        gb_int(&g, "output_dtype", types[i].onnx);
        gb_node(&g, "DequantizeLinear", "", "q s", "y");
        gb_output(&g, "y");
        m = gb_compile(&g, &options);
        T_TRUE(m);
        run_model_init(&run, m);
        T_TRUE(run_model_go(&run, 3));
        for (size_t k = 0; k < COUNT; k++) {
            double x = (double)((const float *)run.inputs[0])[k];
            double y = (double)((const float *)run.outputs[0])[k];
            double want = fmin(fmax(x, types[i].low * scale), types[i].high * scale);

            T_TRUE(fabs(y - want) <= scale * 0.501);
        }
        run_model_deinit(&run);
        mdl_free(m);
        gb_free(&g);
    }
}

static void refuse(const char *op, const char *inputs, const char *because)
{
    struct mdl_model *m;
    struct gb g;

    start(&g);
    gb_input(&g, "x", 4, (int64_t[]){1, 2, 3, 4});
    gb_const(&g, "two", MDL_F32, 1, (size_t[]){2}, (float[]){1, 2});
    ms(&g, op, inputs);
    m = gb_compile(&g, NULL);
    T_TRUE(!m);
    T_CONTAINS(g.error, because);
    gb_free(&g);
}

TEST(what_does_not_fit_is_refused)
{
    refuse("QLinearAdd", "a as az b bs bz", "input 6 is missing");
    refuse("QLinearAdd", "a as az x bs bz ys yz", "type f32");
    refuse("QLinearAdd", "a as az b bs az two yz", "2 scales of the result");
    refuse("QLinearMul", "a a az b bs bz ys yz", "scale of type u8");
    refuse("QLinearConcat", "ys yz a as", "not a scale");
    refuse("QLinearConcat", "ys yz a as az b bs", "not a scale");
    refuse("QLinearConcat", "ys yz a as az ys bs bz", "type f32");
    refuse("QLinearSoftmax", "a as az ys yz", "attribute opset is missing");
    refuse("QLinearSigmoid", "a as az", "input 3 is missing");
    refuse("QLinearSigmoid", "a as az ys ys", "zero point of type f32");
    refuse("QGemm", "a as az b bs bz - ys yz", "rank 4");
    refuse("QLinearConv", "a as az b bs bz ys", "missing");
    refuse("FusedConv", "x", "missing");
    refuse("DynamicQuantizeMatMul", "x b", "missing");
    refuse("MatMulIntegerToFloat", "a b as", "missing");
    refuse("MatMulIntegerToFloat", "a b two bs az bz", "");
}

TEST(types_of_the_future_are_refused_by_name)
{
    static const struct {
        int type;
        const char *name;
    } types[] = {{17, "float8e4m3fn"},
                 {20, "float8e5m2fnuz"},
                 {23, "float4e2m1"},
                 {25, "uint2"},
                 {26, "int2"}};

    for (size_t i = 0; i < base_array_count(types); i++) {
        struct gb g;

        gb_init(&g, 24);
        gb_input(&g, "x", 1, (int64_t[]){3});
        gb_scalar(&g, "s", 1);
        gb_node(&g, "QuantizeLinear", "", "x s", "y");
        gb_int(&g, "output_dtype", types[i].type);
        gb_output(&g, "y");
        T_TRUE(!gb_compile(&g, NULL));
        T_CONTAINS(g.error, types[i].name);
        gb_free(&g);
    }
}

TEST_MAIN()
