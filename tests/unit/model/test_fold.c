/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: exporters' shape plumbing must vanish, and what is computed at load must be right. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"

/* The i-th element of the constant that output @o copies. */
static const struct mdl_tensor *const_behind(const struct mdl_model *m, size_t o)
{
    for (size_t k = 0; k < m->op_count; k++) {
        if (m->ops[k].out[0] == m->outputs[o].tensor) {
            const struct mdl_tensor *t = &m->tensors[m->ops[k].in[0]];

            return m->storages[t->storage].home == MDL_HOME_CONST ? t : NULL;
        }
    }
    return NULL;
}

static int64_t i64_at(const struct mdl_model *m, const struct mdl_tensor *t, size_t i)
{
    int64_t v;

    memcpy(&v, (const char *)m->storages[t->storage].data + t->offset + 8 * i, sizeof(v));
    return v;
}

static float f32_at(const struct mdl_model *m, const struct mdl_tensor *t, size_t i)
{
    float v;

    memcpy(&v, (const char *)m->storages[t->storage].data + t->offset + 4 * i, sizeof(v));
    return v;
}

/* view(x, [x.size(0), -1]) as old PyTorch writes it */
TEST(shape_plumbing)
{
    struct gb g;
    struct mdl_model *m;
    int64_t zero = 0;

    gb_init(&g, 9);
    gb_input(&g, "x", 4, (int64_t[]){-1, 8, 1, 1});
    gb_const(&g, "zero", MDL_I64, 0, NULL, &zero);
    gb_i64(&g, "minus", 1, (int64_t[]){-1});
    gb_node(&g, "Relu", "", "x", "r");
    gb_node(&g, "Shape", "", "r", "s");
    gb_node(&g, "Gather", "", "s zero", "n");
    gb_int(&g, "axis", 0);
    gb_node(&g, "Unsqueeze", "", "n", "n1");
    gb_ints(&g, "axes", 1, (int64_t[]){0});
    gb_node(&g, "Concat", "", "n1 minus", "shape");
    gb_int(&g, "axis", 0);
    gb_node(&g, "Reshape", "", "r shape", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->op_count, 1);
    T_EQ(m->ops[0].kind, MDL_OP_UNARY);
    T_EQ(gb_out(m, 0)->rank, 2);
    T_EQ(gb_out(m, 0)->dim[1], 8);
    mdl_free(m);
    gb_free(&g);
}

/* The arithmetic of shapes: everything about a [2][3][5][7] tensor. */
TEST(integer_arithmetic)
{
    static const struct {
        const char *text; /* op|inputs|output|attr int name|value; ... */
        int64_t want[4];
        size_t count;
    } programs[] = {
        {"Shape|x|s;Slice|s two four|y", {5, 7}, 2},
        {"Shape|x|s;Slice|s two four|t;Mul|t two|y", {10, 14}, 2},
        {"Shape|x|s;ReduceProd|s|y", {210}, 1},
        {"Size|x|t;Div|t four|y", {52}, 1},
        {"Shape|x|s;Gather|s m1|t;Neg|t|y", {-7}, 1},
        {"Shape|x|s;Equal|s three|b;Where|b two s|y", {2, 2, 5, 7}, 4},
        {"Range|zero0 four0 two0|y", {0, 2}, 2},
        {"ConstantOfShape|two|t;NonZero|t|n;Size|n|y", {0}, 1},
        {"Shape|x|s;Cast|s|f|to|1;Floor|f|f2;Cast|f2|t|to|7;Max|t three|y", {3, 3, 5, 7}, 4},
        {"Shape|x|s;Sub|s three|t;Abs|t|u;Min|u two|y", {1, 0, 2, 2}, 4},
        {"Shape|x|s;Squeeze|two|q;Add|s q|y", {4, 5, 7, 9}, 4},
        {"Shape|x|s;Concat|two s|t|axis|0;Slice|t two four|y", {3, 5}, 2},
        {"Shape|x|s;Less|s four|l;Not|l|n;Cast|n|y|to|7", {0, 0, 1, 1}, 4},
        {"Shape|x|s;Sub|s four|e;Pow|m1 e|y", {1, -1, -1, -1}, 4},
    };

    for (size_t p = 0; p < base_array_count(programs); p++) {
        struct gb g;
        struct mdl_model *m;
        const struct mdl_tensor *t;
        char *copy, *save = NULL;
        int64_t number[3] = {0, 4, 2};

        gb_init(&g, 13);
        copy = mdl_pool_strdup(g.pool, programs[p].text);
        gb_input(&g, "x", 4, (int64_t[]){2, 3, 5, 7});
        gb_i64(&g, "two", 1, (int64_t[]){2});
        gb_i64(&g, "three", 1, (int64_t[]){3});
        gb_i64(&g, "four", 1, (int64_t[]){4});
        gb_i64(&g, "m1", 1, (int64_t[]){-1});
        gb_const(&g, "zero0", MDL_I64, 0, NULL, &number[0]);
        gb_const(&g, "four0", MDL_I64, 0, NULL, &number[1]);
        gb_const(&g, "two0", MDL_I64, 0, NULL, &number[2]);
        for (char *s = strtok_r(copy, ";", &save); s; s = strtok_r(NULL, ";", &save)) {
            char *part[5] = {0}, *inner = NULL;
            size_t n = 0;

            for (char *q = strtok_r(s, "|", &inner); q; q = strtok_r(NULL, "|", &inner)) {
                part[n++] = q;
            }
            gb_node(&g, part[0], "", part[1], part[2]);
            if (n == 5) {
                gb_int(&g, part[3], strtoll(part[4], NULL, 10));
            }
        }
        gb_output(&g, "y");
        m = gb_compile(&g, NULL);
        if (!m) {
            T_FAIL("program %zu (%s): %s", p, programs[p].text, g.error);
        }
        t = const_behind(m, 0);
        if (!t) {
            T_FAIL("program %zu (%s) was not folded", p, programs[p].text);
        }
        T_EQ(mdl_elements(t), programs[p].count);
        for (size_t i = 0; i < programs[p].count; i++) {
            if (i64_at(m, t, i) != programs[p].want[i]) {
                T_FAIL("program %zu (%s): element %zu is %lld, expected %lld", p, programs[p].text,
                       i, (long long)i64_at(m, t, i), (long long)programs[p].want[i]);
            }
        }
        mdl_free(m);
        gb_free(&g);
    }
}

/* Weights made at load by reshape, transpose and product are constants like others. */
TEST(weights_out_of_constants)
{
    static const float w[6] = {1, 2, 3, 4, 5, 6};
    struct gb g;
    struct mdl_model *m;
    const struct mdl_tensor *b;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){1, 3});
    gb_const(&g, "w", MDL_F32, 2, (size_t[]){2, 3}, w);
    gb_scalar(&g, "half", 0.5f);
    gb_node(&g, "Transpose", "", "w", "wt");
    gb_node(&g, "Mul", "", "wt half", "wh");
    gb_node(&g, "MatMul", "mm", "x wh", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->op_count, 1);
    T_EQ(m->ops[0].kind, MDL_OP_GEMM);
    b = &m->tensors[m->ops[0].in[1]];
    T_EQ(m->storages[b->storage].home, MDL_HOME_CONST);
    T_EQ(b->dim[0], 3);
    T_NEAR(f32_at(m, b, 1), 2.0, 0); /* w[1][0] / 2 */
    T_NEAR(f32_at(m, b, 4), 1.5, 0); /* w[0][2] / 2 */
    mdl_free(m);
    gb_free(&g);
}

/* What has no rule here goes to the primitives. */
TEST(evaluated_by_kernels)
{
    struct mdl_load_options with = {.const_eval = krn_const_eval}, without = {0};
    static const float image[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct gb g;
    struct mdl_model *m;
    const struct mdl_tensor *t;

    gb_init(&g, 13);
    gb_const(&g, "image", MDL_F32, 4, (size_t[]){1, 1, 4, 4}, image);
    gb_node(&g, "MaxPool", "", "image", "p");
    gb_ints(&g, "kernel_shape", 2, (int64_t[]){2, 2});
    gb_ints(&g, "strides", 2, (int64_t[]){2, 2});
    gb_node(&g, "Concat", "", "p p", "c");
    gb_int(&g, "axis", 1);
    gb_node(&g, "ReduceSum", "", "c", "y");
    gb_int(&g, "keepdims", 0);
    gb_output(&g, "y");
    m = gb_compile(&g, &with);
    T_TRUE(m);
    t = const_behind(m, 0);
    T_TRUE(t);
    T_NEAR(f32_at(m, t, 0), 2 * (5 + 7 + 13 + 15), 0);
    mdl_free(m);
    m = gb_compile(&g, &without); /* then it is run with every frame */
    T_TRUE(m);
    T_EQ(gb_count_ops(m, MDL_OP_MAX_POOL), 1);
    mdl_free(m);
    gb_free(&g);
}

/* A broadcast constant stays a view: it costs no memory however large it reads. */
TEST(broadcast_stays_small)
{
    struct gb g;
    struct mdl_model *m;
    const struct mdl_tensor *t;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 64, 64});
    gb_weights(&g, "c", 3, (size_t[]){3, 1, 1});
    gb_node(&g, "Max", "", "x c", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->op_count, 1);
    t = &m->tensors[m->ops[0].in[1]];
    T_EQ(m->storages[t->storage].bytes, 12);
    T_EQ(t->stride[2], 0);
    T_EQ(t->dim[3], 64);
    mdl_free(m);
    gb_free(&g);
}

/* A file that asks for huge constants is refused before they exist. */
TEST(fold_budget)
{
    struct mdl_load_options small = {.weight_bytes_max = 1 << 20, .arena_bytes_max = 1 << 22};
    struct gb g;

    gb_init(&g, 13);
    gb_i64(&g, "n", 1, (int64_t[]){1 << 18}); /* 1 MiB of floats a time */
    gb_node(&g, "ConstantOfShape", "", "n", "c0");
    for (int i = 0; i < 8; i++) {
        char in[16], out[16];

        snprintf(in, sizeof(in), "c%d", i);
        snprintf(out, sizeof(out), "c%d", i + 1);
        gb_node(&g, "Neg", "", in, out);
    }
    gb_output(&g, "c8");
    T_TRUE(!gb_compile(&g, &small));
    T_CONTAINS(g.error, "constants computed at load are too large");
    gb_free(&g);
}

/* Nor does a file of a few bytes get all that its limits would allow. */
TEST(fold_budget_long_range)
{
    int64_t range[3] = {0, 1 << 28, 1};
    struct gb g;

    gb_init(&g, 13);
    gb_const(&g, "from", MDL_I64, 0, NULL, &range[0]);
    gb_const(&g, "to", MDL_I64, 0, NULL, &range[1]);
    gb_const(&g, "by", MDL_I64, 0, NULL, &range[2]);
    gb_node(&g, "Range", "", "from to by", "y");
    gb_output(&g, "y");
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "constants computed at load are too large");
    gb_free(&g);
}

/* Copies for the primitives count, however small the results are. */
TEST(fold_budget_copies)
{
    struct mdl_load_options kernels = {.const_eval = krn_const_eval};
    char out[16], list[2][512] = {"", ""};
    struct gb g;

    gb_init(&g, 13);
    gb_i64(&g, "n", 4, (int64_t[]){1, 2, 256, 512});
    gb_node(&g, "ConstantOfShape", "", "n", "c");
    for (size_t i = 0; i < 78; i++) { /* 1 MiB each */
        snprintf(out, sizeof(out), "y%zu", i);
        gb_node(&g, "GlobalMaxPool", "", "c", out);
        strcat(strcat(list[i % 2], " "), out);
    }
    gb_node(&g, "Concat", "", list[0], "a");
    gb_node(&g, "Concat", "", list[1], "b");
    gb_output(&g, "a");
    gb_output(&g, "b");
    T_TRUE(!gb_compile(&g, &kernels));
    T_CONTAINS(g.error, "constants computed at load are too large");
    gb_free(&g);
}

/* The largest of @side x @side neighbours of each of 512 x 512 constants. */
static struct mdl_model *pooled_constants(struct gb *g, int64_t side)
{
    struct mdl_load_options kernels = {.const_eval = krn_const_eval};

    gb_init(g, 13);
    gb_i64(g, "n", 4, (int64_t[]){1, 1, 512, 512});
    gb_node(g, "ConstantOfShape", "", "n", "c");
    gb_node(g, "MaxPool", "pool", "c", "y");
    gb_ints(g, "kernel_shape", 2, (int64_t[]){side, side});
    gb_ints(g, "pads", 4, (int64_t[]){side / 2, side / 2, side / 2, side / 2});
    gb_output(g, "y");
    return gb_compile(g, &kernels);
}

/* What takes too long at load runs with every frame, up to a limit. */
TEST(fold_budget_work)
{
    struct mdl_model *m;
    struct gb g;

    m = pooled_constants(&g, 8); /* 1.7e7 comparisons */
    T_TRUE(m);
    T_EQ(gb_count_ops(m, MDL_OP_MAX_POOL), 0);
    mdl_free(m);
    gb_free(&g);
    m = pooled_constants(&g, 64); /* 1e9 */
    T_TRUE(m);
    T_EQ(gb_count_ops(m, MDL_OP_MAX_POOL), 1);
    mdl_free(m);
    gb_free(&g);
    m = pooled_constants(&g, 512); /* 7e10 */
    T_TRUE(!m);
    T_CONTAINS(g.error, "node pool (MaxPool): it and other nodes compute constants by more than "
                        "4000 million multiplications; fold them");
    gb_free(&g);
}

/* Rows of nothing are not walked through, however many a file says there are. */
TEST(fold_empty_gather)
{
    static const int64_t zeros[64];
    char out[16], list[512] = "";
    struct mdl_model *m;
    struct gb g;

    gb_init(&g, 13);
    gb_const(&g, "x", MDL_F32, 3, (size_t[]){(size_t)1 << 24, 1, 0}, "");
    gb_i64(&g, "at", 64, zeros);
    for (size_t i = 0; i < 39; i++) { /* 1e9 rows each */
        snprintf(out, sizeof(out), "y%zu", i);
        gb_node(&g, "Gather", "", "x at", out);
        gb_int(&g, "axis", 1);
        strcat(strcat(list, " "), out);
    }
    gb_node(&g, "Concat", "", list, "y");
    gb_int(&g, "axis", 2);
    gb_node(&g, "Shape", "", "y", "s");
    gb_output(&g, "s");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    mdl_free(m);
    gb_free(&g);
}

TEST_MAIN()
