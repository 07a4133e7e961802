/* SPDX-License-Identifier: Apache-2.0 */
/* Norms, Gelu-like activations and attention: as one operator, as exporters wrote them before, and
 * what must be refused. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

/* Compiles with and without fusion and compares the answers. Return: the fused model */
static struct mdl_model *fused(struct gb *g, double bound)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, NULL), *single;
    struct run_model a, b;
    double worst = 0;

    if (!m) {
        fprintf(stderr, "%s\n", g->error);
        return NULL;
    }
    single = gb_compile(g, &plain);
    run_model_init(&a, m);
    run_model_init(&b, single);
    if (!run_model_go(&a, 1) || !run_model_go(&b, 1)) {
        worst = INFINITY;
    }
    for (size_t i = 0; i < m->output_count; i++) {
        worst = fmax(worst, run_model_distance(&a, &b, i));
    }
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(single);
    if (!(worst <= bound)) {
        fprintf(stderr, "fused and single operators differ by %g\n", worst);
        m = mdl_free(m);
    }
    return m;
}

/* As fused(), and frees both; @kind must be there @count times, with @ops operators in all. */
static bool becomes(struct gb *g, enum mdl_op_kind kind, size_t count, size_t ops)
{
    struct mdl_model *m = fused(g, 1e-5);
    bool ok = m && gb_count_ops(m, kind) == count && m->op_count == ops;

    if (m && !ok) {
        fprintf(stderr, "%zu of %zu ops are %s\n", gb_count_ops(m, kind), m->op_count,
                mdl_op_kind_name(kind));
        for (size_t i = 0; i < m->op_count; i++) {
            fprintf(stderr, "  %s %s\n", mdl_op_kind_name(m->ops[i].kind), m->ops[i].name);
        }
    }
    mdl_free(m);
    gb_free(g);
    return ok;
}

/* Return: whether the graph is refused with a message that contains @why; frees it */
static bool refused(struct gb *g, const char *why)
{
    struct mdl_model *m = gb_compile(g, NULL);
    bool ok = !m && strstr(g->error, why);

    if (!ok) {
        fprintf(stderr, "%s where \"%s\" was expected\n", m ? "accepted" : g->error, why);
    }
    mdl_free(m);
    gb_free(g);
    return ok;
}

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

/* ---- attention ---- */

enum { HEADS = 3, ROWS = 5, SIZE = 4 };

static void project(struct gb *g, const char *to, int64_t last)
{
    char w[16], t[16], u[16], in[32];

    snprintf(w, sizeof(w), "w_%s", to);
    snprintf(t, sizeof(t), "t_%s", to);
    snprintf(u, sizeof(u), "u_%s", to);
    snprintf(in, sizeof(in), "x %s", w);
    gb_weights(g, w, 2, (size_t[]){8, HEADS * SIZE});
    gb_node(g, "MatMul", "", in, t);
    snprintf(in, sizeof(in), "%s heads", t);
    gb_node(g, "Reshape", "", in, u);
    gb_node(g, "Transpose", "", u, to);
    gb_ints(g, "perm", 4, last ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3});
}

static void attention_graph(struct gb *g)
{
    gb_init(g, 13);
    gb_input(g, "x", 3, (int64_t[]){1, ROWS, 8});
    gb_i64(g, "heads", 4, (int64_t[]){0, 0, HEADS, SIZE});
    project(g, "q", 0);
    project(g, "k", 1); /* [.., SIZE, ROWS] */
    project(g, "v", 0);
    gb_scalar(g, "scale", 0.35f);
    gb_output(g, "y");
}

static void softmax(struct gb *g, const char *x)
{
    gb_node(g, "Softmax", "", x, "p");
    gb_int(g, "axis", -1);
}

TEST(attention_of_single_operators)
{
    for (int how = 0; how < 5; how++) {
        struct gb g;

        attention_graph(&g);
        gb_weights(&g, "bias", 4, (size_t[]){1, HEADS, ROWS, ROWS});
        switch (how) {
        case 0: /* scaled after the product */
            gb_node(&g, "MatMul", "", "q k", "s");
            gb_node(&g, "Mul", "", "s scale", "t");
            break;
        case 1: /* both operands scaled before it, then a bias */
            gb_node(&g, "Mul", "", "q scale", "q2");
            gb_node(&g, "Mul", "", "k scale", "k2");
            gb_node(&g, "MatMul", "", "q2 k2", "s");
            gb_node(&g, "Add", "", "s bias", "t");
            break;
        case 2: /* divided, and a bias before the scores */
            gb_node(&g, "MatMul", "", "q k", "s");
            gb_node(&g, "Div", "", "s scale", "d");
            gb_node(&g, "Add", "", "bias d", "t");
            break;
        case 3: /* two masks with a reshape between them, as Swin's windows */
            gb_weights(&g, "mask", 5, (size_t[]){1, 1, 1, ROWS, ROWS});
            gb_i64(&g, "wide", 5, (int64_t[]){1, 1, HEADS, ROWS, ROWS});
            gb_i64(&g, "narrow", 4, (int64_t[]){1, HEADS, ROWS, ROWS});
            gb_node(&g, "MatMul", "", "q k", "s");
            gb_node(&g, "Add", "", "s bias", "b");
            gb_node(&g, "Reshape", "", "b wide", "r");
            gb_node(&g, "Add", "", "r mask", "m");
            gb_node(&g, "Reshape", "", "m narrow", "t");
            break;
        default: /* neither scaled nor masked */
            gb_node(&g, "MatMul", "", "q k", "t");
            break;
        }
        softmax(&g, "t");
        gb_node(&g, "MatMul", "", "p v", "y");
        T_TRUE(becomes(&g, MDL_OP_ATTENTION, 1, 5));
    }
}

/* y = v' p', as YOLO11's block has it */
TEST(attention_with_transposed_values)
{
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 3, (int64_t[]){1, ROWS, 8});
    gb_i64(&g, "heads", 4, (int64_t[]){0, 0, HEADS, SIZE});
    project(&g, "q", 0);
    project(&g, "k", 1);
    project(&g, "v", 1);
    gb_output(&g, "y");
    gb_node(&g, "MatMul", "", "q k", "t");
    softmax(&g, "t");
    gb_node(&g, "Transpose", "", "p", "pt");
    gb_ints(&g, "perm", 4, (int64_t[]){0, 1, 3, 2});
    gb_node(&g, "MatMul", "", "v pt", "y");
    T_TRUE(becomes(&g, MDL_OP_ATTENTION, 1, 5)); /* and a copy: y is an output */
}

TEST(not_what_only_looks_like_attention)
{
    struct gb g;

    attention_graph(&g); /* the weights are an output */
    gb_node(&g, "MatMul", "", "q k", "t");
    softmax(&g, "t");
    gb_node(&g, "MatMul", "", "p v", "y");
    gb_output(&g, "p");
    T_TRUE(becomes(&g, MDL_OP_ATTENTION, 0, 6));

    attention_graph(&g); /* softmax over the queries */
    gb_node(&g, "MatMul", "", "q k", "t");
    gb_node(&g, "Softmax", "", "t", "p");
    gb_int(&g, "axis", 2);
    gb_node(&g, "MatMul", "", "p v", "y");
    T_TRUE(becomes(&g, MDL_OP_ATTENTION, 0, 6));

    attention_graph(&g); /* what comes after the mask scales it, too */
    gb_weights(&g, "bias", 4, (size_t[]){1, HEADS, ROWS, ROWS});
    gb_node(&g, "MatMul", "", "q k", "s");
    gb_node(&g, "Add", "", "s bias", "u");
    gb_node(&g, "Mul", "", "u scale", "t");
    softmax(&g, "t");
    gb_node(&g, "MatMul", "", "p v", "y");
    T_TRUE(becomes(&g, MDL_OP_ATTENTION, 0, 8));
}

/* The units of a transformer: what is heavy is a unit of its own, with its work. */
TEST(attention_is_a_unit)
{
    struct mdl_model *m;
    struct gb g;

    attention_graph(&g);
    gb_node(&g, "MatMul", "", "q k", "t");
    softmax(&g, "t");
    gb_node(&g, "MatMul", "", "p v", "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->unit_count, 4);
    T_EQ(m->ops[m->units[3].heavy_op].kind, MDL_OP_ATTENTION);
    T_NEAR(m->units[3].macs, 2 * HEADS * ROWS * ROWS * SIZE, 0);
    T_NEAR(m->units[3].weight, m->units[3].macs, 0);
    mdl_free(m);
    gb_free(&g);
}

/* ---- the operator of opset 23 against the same in single operators ---- */

static void attention_op(struct gb *g, int64_t q_heads, int64_t kv_heads, const char *inputs)
{
    gb_init(g, 23);
    gb_input(g, "q", 3, (int64_t[]){2, ROWS, q_heads * SIZE});
    gb_input(g, "k", 3, (int64_t[]){2, ROWS + 1, kv_heads * SIZE});
    gb_input(g, "v", 3, (int64_t[]){2, ROWS + 1, kv_heads * SIZE});
    gb_node(g, "Attention", "a", inputs, "y");
    gb_int(g, "q_num_heads", q_heads);
    gb_int(g, "kv_num_heads", kv_heads);
    gb_output(g, "y");
}

/* Return: the answer of the only output, by the reference; @seed: of the inputs */
static const float *answer(struct gb *g, struct run_model *r, struct mdl_model **m)
{
    *m = gb_compile(g, NULL);
    if (!*m) {
        fprintf(stderr, "%s\n", g->error);
        return NULL;
    }
    run_model_init(r, *m);
    return run_model_go(r, 3) ? r->outputs[0] : NULL;
}

TEST(grouped_queries_share_keys)
{
    struct run_model a, b;
    struct mdl_model *m, *n;
    const float *x, *y;
    struct gb g, h;

    attention_op(&g, 4, 2, "q k v");
    x = answer(&g, &a, &m);
    T_TRUE(x);
    /* the same with the keys' and values' heads repeated */
    gb_init(&h, 23);
    gb_input(&h, "q", 3, (int64_t[]){2, ROWS, 4 * SIZE});
    gb_input(&h, "k", 3, (int64_t[]){2, ROWS + 1, 2 * SIZE});
    gb_input(&h, "v", 3, (int64_t[]){2, ROWS + 1, 2 * SIZE});
    gb_i64(&h, "split", 5, (int64_t[]){2, ROWS + 1, 2, 1, SIZE});
    gb_i64(&h, "grow", 5, (int64_t[]){2, ROWS + 1, 2, 2, SIZE});
    gb_i64(&h, "flat", 3, (int64_t[]){2, ROWS + 1, 4 * SIZE});
    for (int i = 0; i < 2; i++) {
        gb_node(&h, "Reshape", "", i ? "v split" : "k split", i ? "v1" : "k1");
        gb_node(&h, "Expand", "", i ? "v1 grow" : "k1 grow", i ? "v2" : "k2");
        gb_node(&h, "Reshape", "", i ? "v2 flat" : "k2 flat", i ? "v3" : "k3");
    }
    gb_node(&h, "Attention", "a", "q k3 v3", "y");
    gb_int(&h, "q_num_heads", 4);
    gb_int(&h, "kv_num_heads", 4);
    gb_output(&h, "y");
    y = answer(&h, &b, &n);
    T_TRUE(y);
    T_NEAR(run_model_distance(&a, &b, 0), 0, 1e-6);
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(m);
    mdl_free(n);
    gb_free(&g);
    gb_free(&h);
}

/* A causal attention is one with a mask, be it of numbers or of truths, of every rank. */
TEST(causal_is_a_triangular_mask)
{
    uint8_t truth[ROWS * (ROWS + 1)];
    float sums[ROWS * (ROWS + 1)];

    for (int i = 0; i < ROWS * (ROWS + 1); i++) {
        truth[i] = i % (ROWS + 1) <= i / (ROWS + 1);
        sums[i] = truth[i] ? 0 : -INFINITY;
    }
    for (size_t rank = 2; rank <= 4; rank++) {
        for (int numbers = 0; numbers < 2; numbers++) {
            size_t dim[4] = {ROWS, ROWS + 1}, grouped = rank & 1 ? 1 : 3;
            struct run_model a, b;
            struct mdl_model *m, *n;
            struct gb g, h;

            for (size_t i = 0; i < rank; i++) {
                dim[i] = i + 2 < rank ? 1 : i + 2 == rank ? ROWS : ROWS + 1;
            }
            attention_op(&g, 3, (int64_t)(3 / grouped), "q k v");
            gb_int(&g, "is_causal", 1);
            attention_op(&h, 3, (int64_t)(3 / grouped), "q k v mask");
            gb_const(&h, "mask", numbers ? MDL_F32 : MDL_BOOL, rank, dim,
                     numbers ? (void *)sums : (void *)truth);
            T_TRUE(answer(&g, &a, &m) && answer(&h, &b, &n));
            T_NEAR(run_model_distance(&a, &b, 0), 0, 1e-6);
            run_model_deinit(&a);
            run_model_deinit(&b);
            mdl_free(m);
            mdl_free(n);
            gb_free(&g);
            gb_free(&h);
        }
    }
}

/* The same attention in single operators, with its scores capped. */
TEST(softcap_and_scale)
{
    struct run_model a, b;
    struct mdl_model *m, *n;
    struct gb g, h;

    attention_op(&g, 1, 1, "q k v");
    gb_float(&g, "softcap", 0.5f);
    gb_float(&g, "scale", 2);
    gb_init(&h, 13);
    gb_input(&h, "q", 3, (int64_t[]){2, ROWS, SIZE});
    gb_input(&h, "k", 3, (int64_t[]){2, ROWS + 1, SIZE});
    gb_input(&h, "v", 3, (int64_t[]){2, ROWS + 1, SIZE});
    gb_scalar(&h, "half", 0.5f);
    gb_scalar(&h, "four", 4);
    gb_node(&h, "Transpose", "", "k", "kt");
    gb_ints(&h, "perm", 3, (int64_t[]){0, 2, 1});
    gb_node(&h, "MatMul", "", "q kt", "s");
    gb_node(&h, "Mul", "", "s four", "t"); /* scaled by 2, divided by 0.5 */
    gb_node(&h, "Tanh", "", "t", "u");
    gb_node(&h, "Mul", "", "u half", "w");
    softmax(&h, "w");
    gb_node(&h, "MatMul", "", "p v", "y");
    gb_output(&h, "y");
    T_TRUE(answer(&g, &a, &m) && answer(&h, &b, &n));
    T_NEAR(run_model_distance(&a, &b, 0), 0, 1e-6);
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(m);
    mdl_free(n);
    gb_free(&g);
    gb_free(&h);
}

TEST(what_attention_refuses)
{
    struct gb g;

    attention_op(&g, 3, 2, "q k v");
    T_TRUE(refused(&g, "do not fit"));
    attention_op(&g, 2, 2, "q k");
    T_TRUE(refused(&g, "input 2 is missing"));
    attention_op(&g, 2, 2, "q k v - q q");
    T_TRUE(refused(&g, "past_key is not supported"));
    attention_op(&g, 2, 2, "q k v q");
    T_TRUE(refused(&g, "does not broadcast"));
    attention_op(&g, 2, 2, "q k v");
    gb_float(&g, "softcap", -1);
    T_TRUE(refused(&g, "softcap"));
    attention_op(&g, 2, 2, "q k v");
    g.nodes[0].outputs = gb_names(&g, "y present", &g.nodes[0].output_count);
    T_TRUE(refused(&g, "only the first is"));
    for (int64_t heads = -1; heads < 4; heads += 4) { /* neither negative nor 3 of 8 values */
        gb_init(&g, 23);
        gb_input(&g, "q", 3, (int64_t[]){1, 2, 8});
        gb_node(&g, "Attention", "a", "q q q", "y");
        gb_int(&g, "q_num_heads", heads);
        gb_int(&g, "kv_num_heads", heads);
        gb_output(&g, "y");
        T_TRUE(refused(&g, "must divide them"));
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
