/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and Gelu-like activations: as one operator, as exporters wrote them before, and what must
 * be refused. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/fused_blocks.h"
#include "tests/unit/model/run_model.h"

static void unary_graph(struct gb *g, int64_t opset)
{
    gb_init(g, opset);
    gb_input(g, "x", 3, (int64_t[]){2, 3, 8});
    gb_output(g, "y");
}

static void layer_norm_steps(struct gb *g, bool twice, bool product)
{
    gb_node(g, "ReduceMean", "m", "x", "mean");
    gb_ints(g, "axes", 1, (int64_t[]){-1});
    gb_node(g, "Sub", "d", "x mean", "diff");
    if (twice) {
        gb_node(g, "Sub", "d2", "x mean", "diff2");
    }
    if (product) {
        gb_node(g, "Mul", "q", "diff diff", "square");
    } else {
        gb_scalar(g, "two", 2);
        gb_node(g, "Pow", "q", twice ? "diff2 two" : "diff two", "square");
    }
    gb_node(g, "ReduceMean", "v", "square", "var");
    gb_ints(g, "axes", 1, (int64_t[]){-1});
    gb_scalar(g, "eps", 1e-5f);
    gb_node(g, "Add", "e", "var eps", "sum");
    gb_node(g, "Sqrt", "s", "sum", "root");
    gb_node(g, "Div", "n", "diff root", "norm");
}

TEST(layer_norm_of_single_operators)
{
    for (int how = 0; how < 4; how++) {
        struct gb g;

        unary_graph(&g, 13);
        layer_norm_steps(&g, how == 1, how == 2);
        gb_weights(&g, "w", 1, (size_t[]){8});
        gb_weights(&g, "b", 1, (size_t[]){8});
        gb_node(&g, "Mul", "", how == 3 ? "w norm" : "norm w", "t");
        gb_node(&g, "Add", "", "t b", "y");
        T_TRUE(becomes(&g, MDL_OP_NORM, 1, 1));
    }
}

/* A mean over other dims, or a value that is an output, is no layer norm. */
TEST(not_what_only_looks_like_a_norm)
{
    struct gb g;

    unary_graph(&g, 13);
    gb_node(&g, "ReduceMean", "m", "x", "mean");
    gb_ints(&g, "axes", 1, (int64_t[]){1});
    gb_node(&g, "Sub", "d", "x mean", "diff");
    gb_node(&g, "Mul", "q", "diff diff", "square");
    gb_node(&g, "ReduceMean", "v", "square", "var");
    gb_ints(&g, "axes", 1, (int64_t[]){-1});
    gb_scalar(&g, "eps", 1e-5f);
    gb_node(&g, "Add", "e", "var eps", "sum");
    gb_node(&g, "Sqrt", "s", "sum", "root");
    gb_node(&g, "Div", "n", "diff root", "y");
    T_TRUE(becomes(&g, MDL_OP_NORM, 1, 3)); /* the root mean square of the differences */

    unary_graph(&g, 13);
    layer_norm_steps(&g, false, false);
    gb_weights(&g, "w", 1, (size_t[]){8});
    gb_node(&g, "Mul", "", "norm w", "y");
    gb_output(&g, "norm");
    T_TRUE(becomes(&g, MDL_OP_NORM, 1, 2));
}

TEST(rms_norm_of_single_operators)
{
    struct gb g;

    unary_graph(&g, 13);
    gb_scalar(&g, "two", 2);
    gb_node(&g, "Pow", "q", "x two", "square");
    gb_node(&g, "ReduceMean", "v", "square", "var");
    gb_ints(&g, "axes", 1, (int64_t[]){-1});
    gb_scalar(&g, "eps", 1e-5f);
    gb_node(&g, "Add", "e", "var eps", "sum");
    gb_node(&g, "Sqrt", "s", "sum", "root");
    gb_node(&g, "Reciprocal", "r", "root", "inverse");
    gb_node(&g, "Mul", "n", "x inverse", "norm");
    gb_weights(&g, "w", 1, (size_t[]){8});
    gb_node(&g, "Mul", "", "norm w", "y");
    T_TRUE(becomes(&g, MDL_OP_NORM, 1, 1));
}

static void image_graph(struct gb *g, int64_t opset)
{
    gb_init(g, opset);
    gb_input(g, "x", 4, (int64_t[]){1, 6, 5, 4});
    gb_weights(g, "cw", 4, (size_t[]){6, 6, 1, 1});
    gb_node(g, "Conv", "c", "x cw", "t");
    gb_output(g, "y");
}

/* torch writes a group norm as an instance norm of a reshaped image. In NHWC that would copy the
 * image three times. */
TEST(group_norm_as_torch_writes_it)
{
    struct gb g, same;
    struct mdl_model *m;
    struct run_model a, b;

    for (int i = 0; i < 2; i++) {
        struct gb *to = i ? &same : &g;

        image_graph(to, i ? 21 : 13);
        gb_weights(to, "w", i ? 1 : 3, i ? (size_t[]){6} : (size_t[]){6, 1, 1});
        gb_weights(to, "b", i ? 1 : 3, i ? (size_t[]){6} : (size_t[]){6, 1, 1});
    }
    gb_const(&g, "one", MDL_F32, 1, (size_t[]){3}, (float[]){1, 1, 1});
    gb_const(&g, "zero", MDL_F32, 1, (size_t[]){3}, (float[]){0, 0, 0});
    gb_i64(&g, "flat", 3, (int64_t[]){0, 3, -1});
    gb_i64(&g, "image", 4, (int64_t[]){1, 6, 5, 4});
    gb_node(&g, "Reshape", "", "t flat", "u");
    gb_node(&g, "InstanceNormalization", "", "u one zero", "v");
    gb_node(&g, "Reshape", "", "v image", "n");
    gb_node(&g, "Mul", "", "n w", "s");
    gb_node(&g, "Add", "", "s b", "y");
    gb_node(&same, "GroupNormalization", "", "t w b", "y");
    gb_int(&same, "num_groups", 3);
    m = fused(&g, 1e-5);
    T_TRUE(m);
    T_EQ(gb_count_ops(m, MDL_OP_NORM), 1);
    T_EQ(gb_count_ops(m, MDL_OP_AFFINE), 0);
    T_EQ(m->op_count, 4); /* the image to NHWC, the convolution, the norm, the result to NCHW */
    run_model_init(&a, m);
    struct mdl_model *direct = fused(&same, 1e-5);
    T_TRUE(direct);
    T_EQ(direct->op_count, 4);
    run_model_init(&b, direct);
    T_TRUE(run_model_go(&a, 7) && run_model_go(&b, 7));
    T_NEAR(run_model_distance(&a, &b, 0), 0, 1e-6);
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(m);
    mdl_free(direct);
    gb_free(&g);
    gb_free(&same);
}

TEST(gelu_and_others_of_single_operators)
{
    static const enum mdl_act acts[] = {MDL_ACT_GELU,      MDL_ACT_GELU, MDL_ACT_GELU_TANH,
                                        MDL_ACT_GELU_TANH, MDL_ACT_MISH, MDL_ACT_SWISH};

    for (size_t i = 0; i < base_array_count(acts); i++) {
        struct mdl_model *m;
        struct gb g;

        unary_graph(&g, 13);
        gb_scalar(&g, "one", 1);
        gb_scalar(&g, "half", 0.5f);
        gb_scalar(&g, "three", 3);
        gb_scalar(&g, "c", 0.044715f);
        gb_scalar(&g, "p", 0.79788456f);
        gb_scalar(&g, "r", i ? 0.70710678f : 1.41421356f);
        gb_scalar(&g, "a", 1.702f);
        if (i < 2) {
            gb_node(&g, i ? "Mul" : "Div", "", "x r", "t");
            gb_node(&g, "Erf", "", "t", "u");
        } else if (i == 2) { /* x + c x^3 */
            gb_node(&g, "Pow", "", "x three", "t1");
            gb_node(&g, "Mul", "", "c t1", "t2");
            gb_node(&g, "Add", "", "x t2", "t3");
            gb_node(&g, "Mul", "", "t3 p", "t4");
            gb_node(&g, "Tanh", "", "t4", "u");
        } else if (i == 3) { /* p x (1 + c x x) */
            gb_node(&g, "Mul", "", "x x", "t1");
            gb_node(&g, "Mul", "", "t1 c", "t2");
            gb_node(&g, "Add", "", "one t2", "t3");
            gb_node(&g, "Mul", "", "x p", "t4");
            gb_node(&g, "Mul", "", "t4 t3", "t5");
            gb_node(&g, "Tanh", "", "t5", "u");
        } else if (i == 4) {
            gb_node(&g, "Softplus", "", "x", "t");
            gb_node(&g, "Tanh", "", "t", "u");
            gb_node(&g, "Mul", "", "x u", "y");
        } else {
            gb_node(&g, "Mul", "", "x a", "t");
            gb_node(&g, "Sigmoid", "", "t", "u");
            gb_node(&g, "Mul", "", "x u", "y");
        }
        if (i < 4) {
            gb_node(&g, "Add", "", "u one", "v");
            gb_node(&g, "Mul", "", i & 1 ? "x half" : "x v", "w");
            gb_node(&g, "Mul", "", i & 1 ? "w v" : "w half", "y");
        }
        m = fused(&g, 1e-6);
        T_TRUE(m);
        T_EQ(m->op_count, 1);
        T_EQ(m->ops[0].act, acts[i]);
        mdl_free(m);
        gb_free(&g);
    }
}

TEST(what_norms_refuse)
{
    static const struct {
        const char *op, *inputs, *attr;
        int64_t value;
        const char *why;
    } cases[] = {
        {"LayerNormalization", "x w", "axis", 3, "axis 3 is outside"},
        {"LayerNormalization", "x w", "axis", -4, "axis -4 is outside"},
        {"LayerNormalization", "x", "axis", -1, "input 1 is missing"},
        {"LayerNormalization", "x w3", "axis", -1, "does not broadcast"},
        {"LayerNormalization", "i w", "axis", -1, "type i64"},
        {"LayerNormalization", "e w1", "axis", 1, "is 0"},
        {"RMSNormalization", "x w3", "axis", -1, "does not broadcast"},
        {"GroupNormalization", "x w3 w3", "num_groups", 2, "must divide"},
        {"GroupNormalization", "x w3 w3", "num_groups", 0, "must divide"},
        {"GroupNormalization", "x w3 w3", "num_groups", -1, "must divide"},
        {"GroupNormalization", "x w w", "num_groups", 3, "it must have 3"},
        {"InstanceNormalization", "x w w", "unused", 0, "it must have 3"},
        {"InstanceNormalization", "w w w", "unused", 0, "rank 1"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct gb g;

        unary_graph(&g, 23);
        gb_typed_input(&g, "i", MDL_I64, 3, (int64_t[]){2, 3, 8});
        gb_input(&g, "e", 3, (int64_t[]){2, 0, 1});
        gb_weights(&g, "w", 1, (size_t[]){8});
        gb_weights(&g, "w3", 1, (size_t[]){3});
        gb_weights(&g, "w1", 1, (size_t[]){1});
        gb_node(&g, cases[i].op, "n", cases[i].inputs, "y");
        gb_int(&g, cases[i].attr, cases[i].value);
        T_TRUE(refused(&g, cases[i].why));
    }
    struct gb g;

    unary_graph(&g, 20);
    gb_node(&g, "Gelu", "n", "x", "y");
    gb_string(&g, "approximate", "fast");
    T_TRUE(refused(&g, "none or tanh"));
}

/* ---- ONNX Runtime's ---- */

TEST(microsoft_operators)
{
    struct run_model a, b;
    struct mdl_model *m, *n;
    struct gb g, h;

    unary_graph(&g, 17);
    gb_weights(&g, "s", 3, (size_t[]){2, 3, 8});
    gb_weights(&g, "w", 1, (size_t[]){8});
    gb_weights(&g, "b", 1, (size_t[]){8});
    gb_node(&g, "SkipLayerNormalization", "n", "x s w b b", "t - - sum");
    g.nodes[0].domain = "com.microsoft";
    gb_float(&g, "epsilon", 1e-5f);
    gb_node(&g, "BiasGelu", "g", "t b", "u");
    g.nodes[1].domain = "com.microsoft";
    gb_node(&g, "FusedMatMul", "f", "u s", "p");
    g.nodes[2].domain = "com.microsoft";
    gb_int(&g, "transB", 1);
    gb_float(&g, "alpha", 0.25f);
    gb_node(&g, "QuickGelu", "k", "p", "y");
    g.nodes[3].domain = "com.microsoft";
    gb_output(&g, "sum");

    unary_graph(&h, 23);
    gb_weights(&h, "s", 3, (size_t[]){2, 3, 8});
    gb_weights(&h, "w", 1, (size_t[]){8});
    gb_weights(&h, "b", 1, (size_t[]){8});
    gb_scalar(&h, "quarter", 0.25f);
    gb_node(&h, "Add", "", "x s", "x1");
    gb_node(&h, "Add", "", "x1 b", "sum");
    gb_node(&h, "LayerNormalization", "", "sum w b", "t");
    gb_node(&h, "Add", "", "t b", "t1");
    gb_node(&h, "Gelu", "", "t1", "u");
    gb_node(&h, "Transpose", "", "s", "st");
    gb_ints(&h, "perm", 3, (int64_t[]){0, 2, 1});
    gb_node(&h, "MatMul", "", "u st", "p1");
    gb_node(&h, "Mul", "", "p1 quarter", "p");
    gb_node(&h, "Swish", "", "p", "y");
    gb_float(&h, "alpha", 1.702f);
    gb_output(&h, "sum");
    T_TRUE(answer(&g, &a, &m) && answer(&h, &b, &n));
    T_NEAR(run_model_distance(&a, &b, 0), 0, 1e-5);
    T_NEAR(run_model_distance(&a, &b, 1), 0, 1e-6);
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(m);
    mdl_free(n);
    gb_free(&g);
    gb_free(&h);
}

TEST_MAIN()
