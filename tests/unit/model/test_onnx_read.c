/* SPDX-License-Identifier: Apache-2.0 */
#include "model/compile/compile.h"
#include "tests/unit/model/read_model.h"

static struct pb model_with_attr(struct pb a)
{
    static const int64_t x[] = {1, 4};
    struct pb g = {0}, n = pb_node("Thing", "thing", "x", NULL, "y");

    pb_sub(&n, 5, a);
    pb_sub(&g, 1, n);
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    return pb_model(g, 7, 13);
}

TEST(small_model)
{
    struct mdl_graph *g = NULL;
    float f;

    T_EQ(read_model(pb_small_model(), &g), 0);
    T_STR(g->name, "small");
    T_EQ(g->ir_version, 7);
    T_EQ(g->opset, 13);
    T_EQ(g->node_count, 2);
    T_STR(g->nodes[0].op_type, "Conv");
    T_STR(g->nodes[0].name, "conv1");
    T_STR(g->nodes[0].domain, "");
    T_EQ(g->nodes[0].input_count, 3);
    T_STR(g->nodes[0].inputs[2], "b");
    T_STR(g->nodes[0].outputs[0], "c");
    T_EQ(g->nodes[0].attr_count, 1);
    T_EQ(g->nodes[0].attrs[0].type, MDL_ATTR_INTS);
    T_EQ(g->nodes[0].attrs[0].count, 4);
    T_EQ(g->nodes[0].attrs[0].ints[3], 1);
    T_EQ(g->initializer_count, 2);
    T_STR(g->initializers[0].name, "w");
    T_EQ(g->initializers[0].dtype, MDL_F32);
    T_EQ(g->initializers[0].rank, 4);
    T_EQ(g->initializers[0].bytes, 54 * 4);
    /* both in the file: raw_data, and float_data in one packed piece */
    T_TRUE(g->initializers[0].in_file && g->initializers[1].in_file);
    T_TRUE((const char *)g->initializers[0].data > (const char *)g->file_map);
    memcpy(&f, (const char *)g->initializers[0].data + 4 * 53, 4);
    T_NEAR(f, (53 % 7) * 0.25 - 0.5, 0);
    memcpy(&f, (const char *)g->initializers[1].data + 4, 4);
    T_NEAR(f, -0.5, 0);
    T_EQ(g->input_count, 1);
    T_EQ(g->inputs[0].dim[0], -1);
    T_EQ(g->inputs[0].dim[1], 3);
    T_TRUE(g->inputs[0].typed);
    T_EQ(g->output_count, 1);
}

TEST(weights_that_are_also_inputs_are_not_inputs)
{
    static const int64_t d[] = {1};
    struct mdl_graph *g = NULL;
    struct pb graph = {0}, t = pb_tensor("w", 1, d, 1);

    pb_float(&t, 4, 1.5f); /* unpacked: one value in a field of its own */
    pb_sub(&graph, 1, pb_node("Add", "a", "x", "w", "y"));
    pb_sub(&graph, 5, t);
    pb_sub(&graph, 11, pb_value("w", 1, d, 1));
    pb_sub(&graph, 11, pb_value("x", 1, d, 1));
    pb_sub(&graph, 12, pb_value("y", 1, d, 1));
    T_EQ(read_model(pb_model(graph, 3, 8), &g), 0);
    T_EQ(g->input_count, 1);
    T_STR(g->inputs[0].name, "x");
    T_NEAR(*(const float *)g->initializers[0].data, 1.5, 0);
}

TEST(attributes_of_every_kind)
{
    static const int64_t d[] = {2};
    struct mdl_graph *g = NULL;
    struct pb a, t, sub = {0};
    float two[2] = {1, 2};

    a = (struct pb){0};
    pb_text(&a, 1, "alpha");
    pb_float(&a, 2, 0.25f);
    pb_int(&a, 20, 1);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_EQ(g->nodes[0].attrs[0].type, MDL_ATTR_FLOAT);
    T_NEAR(g->nodes[0].attrs[0].f, 0.25, 0);

    a = (struct pb){0}; /* no type: what is there says it */
    pb_text(&a, 1, "axis");
    pb_int(&a, 3, -1);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_EQ(g->nodes[0].attrs[0].type, MDL_ATTR_INT);
    T_EQ(g->nodes[0].attrs[0].i, -1);

    a = (struct pb){0};
    pb_text(&a, 1, "mode");
    pb_text(&a, 4, "linear");
    pb_int(&a, 20, 3);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_STR(g->nodes[0].attrs[0].s, "linear");

    a = (struct pb){0};
    pb_text(&a, 1, "scales");
    pb_bytes(&a, 7, two, sizeof(two));
    pb_int(&a, 20, 6);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_EQ(g->nodes[0].attrs[0].count, 2);
    T_NEAR(g->nodes[0].attrs[0].floats[1], 2, 0);

    a = (struct pb){0};
    pb_text(&a, 1, "names");
    pb_text(&a, 9, "one");
    pb_text(&a, 9, "");
    pb_int(&a, 20, 8);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_EQ(g->nodes[0].attrs[0].count, 2);
    T_STR(g->nodes[0].attrs[0].strings[0], "one");

    t = pb_tensor(NULL, 1, d, 1);
    pb_bytes(&t, 9, two, sizeof(two));
    a = (struct pb){0};
    pb_text(&a, 1, "value");
    pb_sub(&a, 5, t);
    pb_int(&a, 20, 4);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_EQ(g->nodes[0].attrs[0].t->bytes, 8);
    T_TRUE(g->nodes[0].attrs[0].t->in_file);

    t = pb_tensor(NULL, 1, d, 1);
    pb_bytes(&t, 9, two, 4);
    a = (struct pb){0};
    pb_text(&a, 1, "value");
    pb_sub(&a, 5, t);
    T_EQ(read_model(model_with_attr(a), &g), -EBADMSG);
    T_CONTAINS(read_error, "node 0 'thing' (Thing): attribute 'value': 4 bytes of data");

    a = (struct pb){0};
    pb_text(&a, 1, "then_branch");
    pb_sub(&sub, 1, pb_node("Relu", "r", "x", NULL, "z"));
    pb_sub(&a, 6, sub);
    pb_int(&a, 20, 5);
    T_EQ(read_model(model_with_attr(a), &g), 0);
    T_EQ(g->nodes[0].attrs[0].type, MDL_ATTR_OTHER);
}

TEST(versions_outside_the_promise_are_refused)
{
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 2, 13), NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "IR version 2 is not supported (3 to 13 are)");
    g = (struct pb){0};
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 7, 27), NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "operator set version 27 is not supported (6 to 26 are)");
    g = (struct pb){0};
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 7, 5), NULL), -EOPNOTSUPP);
    g = (struct pb){0}; /* MaxPool did not change until 6 */
    pb_sub(&g, 1, pb_node("MaxPool", "p", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 3, 5), NULL), 0);
}

TEST(unsupported_parts_are_named)
{
    static const int64_t d[] = {4};
    struct pb t = pb_tensor("big.weight", 1, d, 1), where = {0}, g = {0}, m;

    pb_text(&where, 1, "location");
    pb_text(&where, 2, "x.data");
    pb_sub(&t, 13, where);
    pb_int(&t, 14, 1);
    T_EQ(read_model(model_with(t), NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "initializer 0 'big.weight': its data is in another file");
    T_EQ(read_model(model_with(pb_tensor("w", 8, d, 1)), NULL), -EOPNOTSUPP);
    T_STR(read_error, "initializer 0 'w': element type string (8) is not supported");
    T_EQ(read_model(model_with(pb_tensor("w", -7, d, 1)), NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "element type unknown (-7)");
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_text(&g, 15, "");
    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "sparse_initializer is not supported");
    m = pb_small_model();
    pb_text(&m, 20, "");
    T_EQ(read_model(m, NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "training_info is not supported");
}

static struct pb two_nodes(const char *out1, const char *out2, const char *output)
{
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("Relu", "first", "x", NULL, out1));
    pb_sub(&g, 1, pb_node("Relu", "second", "x", NULL, out2));
    pb_sub(&g, 11, pb_value("x", 1, NULL, 0));
    pb_sub(&g, 12, pb_value(output, 1, NULL, 0));
    return pb_model(g, 7, 13);
}

/* What is made twice is refused when the graph is sorted. */
static void compile_fails(struct pb model)
{
    struct mdl_graph *g = NULL;
    struct mdl_model *m;

    T_EQ(read_model(model, &g), 0);
    T_EQ(mdl_compile(g, NULL, read_error, &m), -EBADMSG);
}

TEST(names_are_checked)
{
    static const int64_t d[] = {0};
    struct pb g = {0}, m;

    compile_fails(two_nodes("y", "y", "y"));
    T_STR(read_error, "node second (Relu): value \"y\" is produced twice");
    compile_fails(two_nodes("x", "y", "y"));
    T_STR(read_error, "node first (Relu): value \"x\" is produced twice");
    T_EQ(read_model(two_nodes("y", "", "y"), NULL), 0); /* an absent optional output */
    T_EQ(read_model(two_nodes("y", "z", ""), NULL), -EBADMSG);
    T_CONTAINS(read_error, "graph output '' has no name");
    T_EQ(read_model(two_nodes("y", "bad\x1b[2J", "y"), NULL), -EBADMSG);
    T_CONTAINS(read_error, "graph[0].node[1] 'second': output");
    T_CONTAINS(read_error, "is not UTF-8 text, or holds a character that cannot be seen");
    T_EQ(read_model(two_nodes("y", "bad\xff", "y"), NULL), -EBADMSG);
    T_EQ(read_model(two_nodes("y", "gut \xc3\xa4", "y"), NULL), 0);
    m = model_with(pb_tensor("", 1, d, 1));
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_CONTAINS(read_error, "initializer 0 '' has no name");
    pb_sub(&g, 1, pb_node(NULL, "n", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EBADMSG);
    T_CONTAINS(read_error, "node 0 'n' () has no operator type");
}

TEST(empty_graphs_are_refused)
{
    struct pb g = {0}, m = {0};

    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EBADMSG);
    T_STR(read_error, "the model's graph has no nodes");
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EBADMSG);
    T_STR(read_error, "the model's graph has no outputs");
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_STR(read_error, "the file is empty");
    pb_int(&m, 5, 1);
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_STR(read_error, "not an ONNX model: there is no IR version");
    m = pb_small_model(); /* merging two graphs is a way to confuse readers */
    pb_bytes(&m, 7, "", 0);
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_CONTAINS(read_error, "graph is given twice");
}

TEST(inputs_and_their_types)
{
    static const int64_t open[] = {-1, -2, 0, 7}, many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                         big[] = {1ll << 40};
    struct mdl_graph *g = NULL;
    struct pb m;

    struct pb graph = {0};
    pb_sub(&graph, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_sub(&graph, 11, pb_value("x", 2, open, 4));
    pb_sub(&graph, 12, pb_value("y", 0, NULL, 0));
    T_EQ(read_model(pb_model(graph, 7, 13), &g), 0);
    T_EQ(g->inputs[0].dtype, MDL_U8);
    T_EQ(g->inputs[0].dim[0], -1);
    T_EQ(g->inputs[0].dim[1], -1);
    T_EQ(g->inputs[0].dim[2], 0);
    T_EQ(g->inputs[0].dim[3], 7);
    T_TRUE(!g->outputs[0].typed);

    for (int i = 0; i < 3; i++) {
        graph = (struct pb){0};
        pb_sub(&graph, 1, pb_node("Relu", "r", "x", NULL, "y"));
        pb_sub(&graph, 11,
               i == 0   ? pb_value("x", 1, many, 9)
               : i == 1 ? pb_value("x", 1, big, 1)
                        : pb_value("x", 12, NULL, 0));
        pb_sub(&graph, 12, pb_value("y", 1, NULL, 0));
        m = pb_model(graph, 7, 13);
        T_EQ(read_model(m, NULL), i == 1 ? -EBADMSG : -EOPNOTSUPP);
        T_CONTAINS(read_error, "graph input 'x'");
        T_CONTAINS(read_error, i == 0   ? "9 dimensions"
                               : i == 1 ? "dimension 0 is 1099511627776"
                                        : "element type uint32 is not supported");
    }
    static const int floats[] = {10, 11, 16}; /* float16, float64, bfloat16: served as float32 */
    for (size_t i = 0; i < base_array_count(floats); i++) {
        int type = floats[i];

        graph = (struct pb){0};
        pb_sub(&graph, 1, pb_node("Relu", "r", "x", NULL, "y"));
        pb_sub(&graph, 11, pb_value("x", type, big, 0));
        pb_sub(&graph, 12, pb_value("y", type, NULL, 0));
        T_EQ(read_model(pb_model(graph, 7, 13), &g), 0);
        T_EQ(g->inputs[0].dtype, MDL_F32);
        T_EQ(g->outputs[0].dtype, MDL_F32);
    }
}

TEST_MAIN()
