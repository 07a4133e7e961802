/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel linear branches become one convolution, which computes what the branches do. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

#define CHANNELS 4

struct window {
    size_t kernel[2], groups;
    int64_t pads[4], stride, dilation;
};

static void begin(struct gb *g, size_t spatial)
{
    gb_init(g, 13);
    gb_input(g, "x", 2 + spatial, (int64_t[]){1, CHANNELS, 9, 8, 5});
}

static void conv(struct gb *g, const char *x, const char *y, const struct window *w)
{
    size_t dim[4] = {CHANNELS, CHANNELS / w->groups, w->kernel[0], w->kernel[1]};
    char weights[32], bias[32], inputs[80];

    snprintf(weights, sizeof(weights), "w_%s", y);
    snprintf(bias, sizeof(bias), "b_%s", y);
    snprintf(inputs, sizeof(inputs), "%s %s %s", x, weights, bias);
    gb_weights(g, weights, 4, dim);
    gb_weights(g, bias, 1, dim);
    gb_node(g, "Conv", y, inputs, y);
    gb_int(g, "group", (int64_t)w->groups);
    gb_ints(g, "pads", 4, w->pads);
    gb_ints(g, "strides", 2, (int64_t[]){w->stride, w->stride});
    gb_ints(g, "dilations", 2, (int64_t[]){w->dilation, w->dilation});
}

static void batch_norm(struct gb *g, const char *x, const char *y)
{
    static const char *const what[4] = {"scale", "bias", "mean", "variance"};
    char names[4][32], inputs[160];

    for (size_t i = 0; i < 4; i++) {
        snprintf(names[i], sizeof(names[i]), "%s_%s", what[i], y);
        gb_weights(g, names[i], 1, (size_t[]){CHANNELS});
    }
    snprintf(inputs, sizeof(inputs), "%s %s %s %s %s", x, names[0], names[1], names[2], names[3]);
    gb_node(g, "BatchNormalization", y, inputs, y);
}

/* Compiles with and without fusion, and compares the answers; frees @g. Expects @convs
 * convolutions, and @ops operators in all, copies left out. */
static void expect(struct gb *g, size_t convs, size_t ops)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct mdl_model *merged, *single;
    struct run_model a, b;

    gb_output(g, "y");
    merged = gb_compile(g, NULL);
    if (!merged) {
        T_FAIL("%s", g->error);
    }
    single = gb_compile(g, &plain);
    T_TRUE(single);
    T_EQ(gb_count_ops(merged, MDL_OP_CONV), convs);
    T_EQ(merged->op_count - gb_count_ops(merged, MDL_OP_COPY), ops);
    run_model_init(&a, merged);
    run_model_init(&b, single);
    T_TRUE(run_model_go(&a, 1));
    T_TRUE(run_model_go(&b, 1));
    T_NEAR(run_model_distance(&a, &b, 0), 0, 1e-5);
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(merged);
    mdl_free(single);
    gb_free(g);
}

static const struct window k3 = {{3, 3}, 1, {1, 1, 1, 1}, 1, 1}, k1 = {{1, 1}, 1, {0}, 1, 1};
static const struct window deep3 = {{3, 3}, CHANNELS, {1, 1, 1, 1}, 1, 1};

/* RepVGG: 3x3 and 1x1 with their norms, and the norm of the input */
TEST(a_block_of_three_is_one_convolution)
{
    for (int order = 0; order < 2; order++) {
        struct gb g;

        begin(&g, 2);
        conv(&g, "x", "c3", order ? &k1 : &k3);
        batch_norm(&g, "c3", "a");
        conv(&g, "x", "c1", order ? &k3 : &k1);
        batch_norm(&g, "c1", "b");
        batch_norm(&g, "x", "c");
        gb_node(&g, "Add", "", order ? "c b" : "a b", "s");
        gb_node(&g, "Add", "", order ? "s a" : "s c", "t");
        gb_node(&g, "Relu", "", "t", "y");
        expect(&g, 1, 1);
    }
}

/* FastViT: x + scale * (mixer(x) - norm(x)) */
TEST(a_mixer_with_differences_is_one_convolution)
{
    struct gb g;

    begin(&g, 2);
    conv(&g, "x", "m", &deep3);
    batch_norm(&g, "x", "n");
    gb_node(&g, "Sub", "", "m n", "d");
    gb_weights(&g, "layer_scale", 4, (size_t[]){1, CHANNELS, 1, 1});
    gb_node(&g, "Mul", "", "d layer_scale", "s");
    gb_node(&g, "Sub", "", "x s", "y");
    expect(&g, 1, 1);
}

/* Pairs of windows: the first contains the second, or neither does. */
TEST(windows_that_fit)
{
    static const struct {
        struct window a, b;
        size_t convs;
    } cases[] = {
        {{{3, 3}, 1, {1, 1, 1, 1}, 2, 1}, {{1, 1}, 1, {0}, 2, 1}, 1},
        {{{3, 3}, 1, {0, 0, 2, 2}, 1, 1}, {{1, 1}, 1, {0}, 1, 1}, 1}, /* the corner tap */
        {{{5, 3}, 1, {2, 1, 2, 1}, 1, 1}, {{3, 1}, 1, {1, 0, 1, 0}, 1, 1}, 1},
        {{{7, 7}, 2, {3, 3, 3, 3}, 1, 1}, {{3, 3}, 4, {2, 2, 2, 2}, 1, 2}, 1},
        {{{3, 3}, 1, {2, 2, 2, 2}, 1, 2}, {{1, 1}, 4, {0}, 1, 1}, 1},
        {{{1, 1}, 2, {0}, 1, 1}, {{1, 1}, 4, {0}, 1, 1}, 1},
        /* not contained */
        {{{3, 1}, 1, {1, 0, 1, 0}, 1, 1}, {{1, 3}, 1, {0, 1, 0, 1}, 1, 1}, 2},
        {{{3, 3}, 1, {2, 2, 2, 2}, 1, 2}, {{3, 3}, 1, {1, 1, 1, 1}, 1, 1}, 2},
        {{{2, 2}, 1, {0, 0, 1, 1}, 1, 1}, {{3, 3}, 4, {1, 1, 1, 1}, 1, 1}, 2},
        {{{3, 3}, 4, {1, 1, 1, 1}, 1, 1}, {{1, 1}, 1, {0}, 1, 1}, 2}, /* would be dense */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int swap = 0; swap < 2; swap++) {
            struct gb g;

            begin(&g, 2);
            conv(&g, "x", "a", &cases[i].a);
            conv(&g, "x", "b", &cases[i].b);
            gb_node(&g, swap ? "Sub" : "Add", "", swap ? "b a" : "a b", "y");
            expect(&g, cases[i].convs, cases[i].convs + (cases[i].convs == 2 && swap));
        }
    }
}

TEST(along_one_and_three_dims)
{
    for (size_t spatial = 1; spatial < 4; spatial += 2) {
        struct gb g;

        begin(&g, spatial);
        gb_weights(&g, "w3", 2 + spatial, (size_t[]){CHANNELS, CHANNELS, 3, 3, 3});
        gb_node(&g, "Conv", "", "x w3", "a");
        gb_ints(&g, "pads", 2 * spatial, (int64_t[]){1, 1, 1, 1, 1, 1});
        gb_weights(&g, "w1", 2 + spatial, (size_t[]){CHANNELS, 1, 1, 1, 1});
        gb_node(&g, "Conv", "", "x w1", "b");
        gb_int(&g, "group", CHANNELS);
        gb_node(&g, "Add", "", "a b", "y");
        expect(&g, 1, 1);
    }
}

TEST(branches_that_are_not_alone)
{
    for (int kind = 0; kind < 4; kind++) {
        struct gb g;

        begin(&g, 2);
        conv(&g, "x", "a", &k3);
        conv(&g, kind == 0 ? "z" : "x", "b", &k1);
        switch (kind) {
        case 0: /* of another input */
            gb_input(&g, "z", 4, (int64_t[]){1, CHANNELS, 9, 8});
            gb_node(&g, "Add", "", "a b", "y");
            break;
        case 1: /* the caller reads it */
            gb_node(&g, "Add", "", "a b", "y");
            gb_output(&g, "b");
            break;
        case 2: /* another operator reads it */
            gb_node(&g, "Add", "", "a b", "s");
            gb_node(&g, "Mul", "", "s b", "y");
            break;
        default: /* not linear */
            gb_node(&g, "Relu", "", "b", "r");
            gb_node(&g, "Add", "", "a r", "y");
            break;
        }
        expect(&g, 2, kind == 2 ? 3 : 2);
    }
}

TEST(weights_that_the_caller_sends)
{
    struct gb g;

    begin(&g, 2);
    gb_input(&g, "w", 4, (int64_t[]){CHANNELS, CHANNELS, 1, 1});
    conv(&g, "x", "a", &k3);
    gb_node(&g, "Conv", "", "x w", "b");
    gb_node(&g, "Add", "", "a b", "y");
    expect(&g, 2, 2);
}

TEST_MAIN()
