/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: as one operator, as exporters wrote it before, and what must be refused. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/fused_blocks.h"
#include "tests/unit/model/run_model.h"

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
