/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised graphs: what becomes one operator on integers, what stays, what is refused. */
#include <math.h>

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
    conv = gb_op(m, MDL_OP_CONV);
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
    T_TRUE(gb_op(m, MDL_OP_GEMM) && gb_op(m, MDL_OP_GEMM)->quant);
    T_EQ(m->tensors[gb_op(m, MDL_OP_GEMM)->out[0]].dtype, MDL_F32);
    T_EQ(m->tensors[gb_op(m, MDL_OP_MAX_POOL)->in[0]].dtype, MDL_U8);
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
    T_TRUE(gb_op(m, MDL_OP_BINARY) && gb_op(m, MDL_OP_BINARY)->quant);
    T_TRUE(gb_op(m, MDL_OP_AVG_POOL) && gb_op(m, MDL_OP_AVG_POOL)->quant);
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
    T_TRUE(!gb_op(m, MDL_OP_CONV)->quant);
    T_EQ(m->tensors[gb_op(m, MDL_OP_CONV)->in[1]].dtype, MDL_F32);
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
    T_TRUE(refused(&g, "the scales 1e-38 of the input, 1e-38 of the weights and 1 of the output"));
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

TEST_MAIN()
