/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies are needed and where not, counted; and the answers stay the same. */
#include "kernels/kernels.h"
#include "model/ir/strides.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

static void conv(struct gb *g, const char *x, const char *y, size_t in, size_t out, size_t kernel)
{
    int64_t pad = (int64_t)(kernel / 2);

    gb_weights(g, mdl_pool_printf(g->pool, "w_%s", y), 4, (size_t[]){out, in, kernel, kernel});
    gb_node(g, "Conv", y, mdl_pool_printf(g->pool, "%s w_%s", x, y), y);
    gb_ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
}

/* Compiles, compares with the unfused model, and expects @copies COPY ops besides the entry's. */
static void expect_copies(struct gb *g, size_t copies, struct mdl_model **ret)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, NULL), *single = gb_compile(g, &plain);
    size_t entries = 0;
    struct run_model a, b;

    *ret = m;
    if (!m || !single) {
        T_FAIL("%s", g->error);
    }
    run_model_init(&a, m);
    run_model_init(&b, single);
    T_TRUE(run_model_go(&a, 3));
    T_TRUE(run_model_go(&b, 3));
    for (size_t i = 0; i < m->output_count; i++) {
        T_NEAR(run_model_distance(&a, &b, i), 0, 1e-5);
    }
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(single);
    for (size_t i = 0; i < m->input_count; i++) {
        entries += m->inputs[i].entry_op != MDL_NONE;
    }
    T_EQ(gb_count_ops(m, MDL_OP_COPY) - entries, copies);
}

TEST(entry_is_the_only_copy)
{
    struct gb g;
    struct mdl_model *m;
    size_t pixel;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "x", "a", 3, 4, 3);
    conv(&g, "a", "b", 4, 4, 3);
    gb_node(&g, "GlobalAveragePool", "", "b", "p");
    gb_node(&g, "Flatten", "", "p", "f");
    gb_weights(&g, "w", 2, (size_t[]){4, 5});
    gb_node(&g, "MatMul", "", "f w", "t");
    gb_node(&g, "Softmax", "", "t", "y");
    gb_output(&g, "y");
    expect_copies(&g, 0, &m);
    T_EQ(m->inputs[0].entry_op, 0);
    T_EQ(m->storages[m->tensors[m->ops[0].out[0]].storage].first_op, 0);
    T_TRUE(mdl_is_nhwc(&m->tensors[m->ops[0].out[0]], &pixel));
    T_EQ(pixel, 3);
    T_EQ(m->storages[gb_out(m, 0)->storage].home, MDL_HOME_OUTPUT);
    T_TRUE(mdl_is_dense(gb_out(m, 0)));
    mdl_free(m);
    gb_free(&g);
}

/* One channel reads the same both ways: nothing to bring in. */
TEST(one_channel_needs_no_entry)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 1, 6, 6});
    conv(&g, "x", "a", 1, 1, 3);
    gb_output(&g, "a");
    expect_copies(&g, 0, &m);
    T_EQ(m->op_count, 1);
    T_EQ(m->inputs[0].entry_op, MDL_NONE);
    mdl_free(m);
    gb_free(&g);
}

/* Models from TensorFlow: channels-last input, transposed first. */
TEST(channels_last_input)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 6, 6, 3});
    gb_node(&g, "Transpose", "", "x", "t");
    gb_ints(&g, "perm", 4, (int64_t[]){0, 3, 1, 2});
    conv(&g, "t", "a", 3, 4, 3);
    gb_node(&g, "Transpose", "", "a", "y");
    gb_ints(&g, "perm", 4, (int64_t[]){0, 2, 3, 1});
    gb_output(&g, "y");
    expect_copies(&g, 0, &m);
    T_EQ(m->op_count, 1); /* the convolution reads the client's buffer and writes it */
    mdl_free(m);
    gb_free(&g);
}

/* VGG: the activation is copied, never the weights. */
TEST(flatten_before_product)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "x", "a", 3, 4, 3);
    gb_node(&g, "Flatten", "", "a", "f");
    gb_weights(&g, "w", 2, (size_t[]){5, 144});
    g.weights[g.graph.initializer_count - 1].in_file = true;
    gb_node(&g, "Gemm", "", "f w", "y");
    gb_int(&g, "transB", 1);
    gb_output(&g, "y");
    expect_copies(&g, 1, &m);
    T_TRUE(m->storages[m->tensors[m->ops[m->op_count - 1].in[1]].storage].data ==
           g.weights[g.graph.initializer_count - 1].data);
    mdl_free(m);
    gb_free(&g);
}

/* An output that is channels-last inside costs one copy. */
TEST(image_output)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "x", "a", 3, 4, 3);
    gb_output(&g, "a");
    expect_copies(&g, 1, &m);
    T_TRUE(mdl_is_dense(gb_out(m, 0)));
    mdl_free(m);
    gb_free(&g);
}

/* SqueezeNet's fire, GoogLeNet's inception: parts are written in place, also through a second
 * level. */
TEST(concats_in_place)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "x", "s", 3, 2, 1);
    conv(&g, "s", "a", 2, 4, 1);
    gb_node(&g, "Relu", "", "a", "ra");
    conv(&g, "s", "b", 2, 3, 3);
    gb_node(&g, "Concat", "", "ra b", "c");
    gb_int(&g, "axis", 1);
    gb_node(&g, "MaxPool", "", "c", "p");
    gb_ints(&g, "kernel_shape", 2, (int64_t[]){3, 3});
    gb_ints(&g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    gb_node(&g, "Concat", "", "p c", "d"); /* c lies in d, its parts in it */
    gb_int(&g, "axis", 1);
    conv(&g, "d", "e", 14, 2, 1);
    gb_node(&g, "GlobalMaxPool", "", "e", "y");
    gb_output(&g, "y");
    expect_copies(&g, 0, &m);
    mdl_free(m);
    gb_free(&g);
}

/* Dense blocks: every layer reads a longer prefix of one buffer. */
TEST(growing_concat)
{
    struct gb g;
    struct mdl_model *m;
    char *list;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(&g, "x", "f0", 3, 4, 3);
    list = mdl_pool_strdup(g.pool, "f0");
    for (size_t i = 1; i < 5; i++) {
        const char *in = "f0";
        char *out = mdl_pool_printf(g.pool, "f%zu", i);

        if (i > 1) {
            in = mdl_pool_printf(g.pool, "c%zu", i);
            gb_node(&g, "Concat", "", list, in);
            gb_int(&g, "axis", 1);
        }
        conv(&g, in, out, 4 + 2 * (i - 1), 2, 3);
        list = mdl_pool_printf(g.pool, "%s %s", list, out);
    }
    gb_node(&g, "Concat", "", list, "all");
    gb_int(&g, "axis", 1);
    gb_node(&g, "GlobalAveragePool", "", "all", "y");
    gb_output(&g, "y");
    expect_copies(&g, 0, &m);
    mdl_free(m);
    gb_free(&g);
}

/* What cannot be a part is copied: the model's input, a constant, one value twice. */
TEST(concats_that_copy)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
    gb_weights(&g, "k", 4, (size_t[]){1, 2, 6, 6});
    conv(&g, "x", "a", 3, 4, 3);
    gb_node(&g, "Concat", "", "a k a", "c");
    gb_int(&g, "axis", 1);
    conv(&g, "c", "b", 10, 2, 1);
    gb_node(&g, "GlobalMaxPool", "", "b", "y");
    gb_output(&g, "y");
    expect_copies(&g, 2, &m); /* k, and a again */
    mdl_free(m);
    gb_free(&g);
}

/* Detection heads: transposed, flattened, joined: the convolutions write the client's buffer. */
TEST(detection_heads)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 8, 8});
    gb_i64(&g, "shape", 3, (int64_t[]){1, -1, 2});
    conv(&g, "x", "a", 3, 4, 3);
    gb_node(&g, "MaxPool", "", "a", "p");
    gb_ints(&g, "kernel_shape", 2, (int64_t[]){2, 2});
    gb_ints(&g, "strides", 2, (int64_t[]){2, 2});
    conv(&g, "a", "h0", 4, 6, 3);
    conv(&g, "p", "h1", 4, 6, 3);
    for (int i = 0; i < 2; i++) {
        gb_node(&g, "Transpose", "", i ? "h1" : "h0", i ? "t1" : "t0");
        gb_ints(&g, "perm", 4, (int64_t[]){0, 2, 3, 1});
        gb_node(&g, "Reshape", "", i ? "t1 shape" : "t0 shape", i ? "r1" : "r0");
    }
    gb_node(&g, "Concat", "", "r0 r1", "y");
    gb_int(&g, "axis", 1);
    gb_output(&g, "y");
    expect_copies(&g, 0, &m);
    T_EQ(gb_out(m, 0)->dim[1], 3 * 64 + 3 * 16);
    mdl_free(m);
    gb_free(&g);
}

/* Moves that need one copy each, and come out channels-last. */
TEST(shuffles)
{
    for (int form = 0; form < 4; form++) {
        struct gb g;
        struct mdl_model *m;

        gb_init(&g, 13);
        gb_input(&g, "x", 4, (int64_t[]){1, 3, 6, 6});
        conv(&g, "x", "a", 3, 16, 3);
        if (form == 0) { /* ShuffleNet */
            gb_i64(&g, "s5", 5, (int64_t[]){1, 4, 4, 6, 6});
            gb_i64(&g, "s4", 4, (int64_t[]){1, 16, 6, 6});
            gb_node(&g, "Reshape", "", "a s5", "b");
            gb_node(&g, "Transpose", "", "b", "c");
            gb_ints(&g, "perm", 5, (int64_t[]){0, 2, 1, 3, 4});
            gb_node(&g, "Reshape", "", "c s4", "d");
        } else if (form == 3) {
            gb_node(&g, "SpaceToDepth", "", "a", "d");
            gb_int(&g, "blocksize", 2);
        } else {
            gb_node(&g, "DepthToSpace", "", "a", "d");
            gb_int(&g, "blocksize", 2);
            gb_string(&g, "mode", form == 1 ? "DCR" : "CRD");
        }
        conv(&g, "d", "e", form == 0 ? 16 : form == 3 ? 64 : 4, 2, 3);
        gb_node(&g, "GlobalMaxPool", "", "e", "y");
        gb_output(&g, "y");
        expect_copies(&g, 1, &m);
        mdl_free(m);
        gb_free(&g);
    }
}

/* Views of views: slices with steps back, splits, broadcast. */
TEST(views_cost_nothing)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 3, (int64_t[]){4, 6, 5});
    gb_i64(&g, "from", 2, (int64_t[]){-1, 4});
    gb_i64(&g, "to", 2, (int64_t[]){-100, 0});
    gb_i64(&g, "axes", 2, (int64_t[]){0, 2});
    gb_i64(&g, "steps", 2, (int64_t[]){-1, -2});
    gb_node(&g, "Neg", "", "x", "n");
    gb_node(&g, "Slice", "", "n from to axes steps", "s");
    gb_node(&g, "Transpose", "", "s", "t");
    gb_node(&g, "Split", "", "t", "a b");
    gb_int(&g, "axis", 2);
    gb_node(&g, "Sub", "", "a b", "y");
    gb_output(&g, "y");
    expect_copies(&g, 0, &m);
    T_EQ(m->op_count, 2);
    T_TRUE(m->tensors[m->ops[1].in[0]].stride[0] < 0);
    mdl_free(m);
    gb_free(&g);
}

/* An output that nothing computes, one value at two outputs, an output that others read. */
TEST(odd_outputs)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){4, 6});
    gb_weights(&g, "k", 1, (size_t[]){3});
    gb_node(&g, "Exp", "", "x", "e");
    gb_node(&g, "Identity", "", "e", "f");
    gb_node(&g, "Exp", "", "f", "g");
    gb_node(&g, "Identity", "", "x", "same");
    gb_output(&g, "e");
    gb_output(&g, "f");
    gb_output(&g, "g");
    gb_output(&g, "same");
    gb_output(&g, "k");
    expect_copies(&g, 3, &m); /* f, same, k */
    for (size_t i = 0; i < 5; i++) {
        T_EQ(m->storages[gb_out(m, i)->storage].home, MDL_HOME_OUTPUT);
        T_EQ(m->storages[gb_out(m, i)->storage].index, i);
    }
    mdl_free(m);
    gb_free(&g);

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){4, 6});
    gb_output(&g, "x");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->op_count, 1);
    T_EQ(m->unit_count, 1);
    T_EQ(m->ops[0].kind, MDL_OP_COPY);
    mdl_free(m);
    gb_free(&g);
}

/* Strides of reshaped views against the definition: same elements in the same order. */
TEST(reshape_strides_random)
{
    for (int round = 0; round < 3000; round++) {
        size_t dim[MDL_RANK_MAX], order[MDL_RANK_MAX], rank = (size_t)t_range(1, 5), total = 1;
        size_t new_dim[MDL_RANK_MAX], new_rank = 0, rest;
        ptrdiff_t stride[MDL_RANK_MAX], got[MDL_RANK_MAX];

        for (size_t i = 0; i < rank; i++) {
            dim[i] = (size_t)t_range(1, 4);
            order[i] = i;
            total *= dim[i];
        }
        for (size_t i = rank; i-- > 1;) {
            size_t k = (size_t)t_range(0, (int64_t)i), swap = order[i];

            order[i] = order[k];
            order[k] = swap;
        }
        mdl_strides_dense(rank, dim, order, stride);
        for (rest = total; new_rank < 5;) {
            size_t d = (size_t)t_range(1, 4);

            if (rest % d == 0) {
                new_dim[new_rank++] = d;
                rest /= d;
            }
        }
        new_dim[new_rank++] = rest;
        if (!mdl_strides_reshape(rank, dim, stride, new_rank, new_dim, got)) {
            mdl_order_reshape(rank, dim, stride, new_rank, new_dim, order);
            mdl_strides_dense(rank, dim, order, stride);
            /* a copy in the order it asks for must do */
            T_TRUE(mdl_strides_reshape(rank, dim, stride, new_rank, new_dim, got));
        }
        for (size_t e = 0; e < total; e++) {
            ptrdiff_t at = 0, want = 0;
            size_t left = e;

            for (size_t i = rank; i-- > 0; left /= dim[i]) {
                want += (ptrdiff_t)(left % dim[i]) * stride[i];
            }
            left = e;
            for (size_t i = new_rank; i-- > 0; left /= new_dim[i]) {
                at += (ptrdiff_t)(left % new_dim[i]) * got[i];
            }
            T_EQ(at, want);
        }
    }
}

/* One input named very often in a few Concats would be that many copies. */
TEST(copies_are_bounded)
{
    enum { PARTS = 10001, CONCATS = 4 };
    static const char *names[PARTS];
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 1, (int64_t[]){4});
    for (size_t i = 0; i < PARTS; i++) {
        names[i] = "x";
    }
    for (size_t i = 0; i < CONCATS; i++) {
        static const char *const y[] = {"a", "b", "c", "d"};

        gb_node(&g, "Concat", "", "x", y[i]);
        gb_int(&g, "axis", 0);
        g.nodes[i].inputs = names;
        g.nodes[i].input_count = PARTS;
        gb_output(&g, y[i]);
    }
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "operators and copies");
    g.graph.output_count--;
    mdl_free(gb_compile(&g, NULL));
    T_STR(g.error, "");
    gb_free(&g);
}

/* Each input costs every pass a walk over the operators. */
TEST(inputs_are_bounded)
{
    static struct mdl_gvalue inputs[MDL_IR_INPUTS_MAX + 1];
    static char names[MDL_IR_INPUTS_MAX + 1][8];
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 1, (int64_t[]){4});
    gb_node(&g, "Relu", "", "x", "y");
    gb_output(&g, "y");
    for (size_t i = 0; i < base_array_count(inputs); i++) {
        snprintf(names[i], sizeof(names[i]), "x%zu", i);
        inputs[i] = g.inputs[0];
        inputs[i].name = i ? names[i] : "x";
    }
    g.graph.inputs = inputs;
    g.graph.input_count = base_array_count(inputs);
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "more than 1000 inputs");
    g.graph.input_count--;
    mdl_free(gb_compile(&g, NULL));
    T_STR(g.error, "");
    gb_free(&g);
}

TEST_MAIN()
