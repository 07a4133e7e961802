/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a model, and all the reasons of a refusal at once. */
#include "tests/unit/model/function_parts.h"

/* ---- functions ---- */

TEST(a_call_becomes_the_nodes_of_the_body)
{
    struct pb nodes[2] = {call("LeakyAdd", "one", "x", "x", "m"),
                          call("LeakyAdd", "two", "m", "x", "y")};
    struct mdl_graph *g;
    struct pb m;

    pb_sub(&nodes[0], 5, attr_float("slope", 0.25f));
    m = pb_model(graph_of(nodes, 2), 10, 20);
    pb_sub(&m, 25, leaky_add());
    T_EQ(read_graph(m, &g), 0);
    T_EQ(g->node_count, 4);
    T_STR(g->nodes[0].op_type, "LeakyRelu");
    T_STR(g->nodes[0].name, "one#1/act");
    T_STR(g->nodes[0].inputs[0], "x");
    T_EQ(g->nodes[0].opset, 18); /* the function's own */
    T_EQ(g->nodes[0].attr_count, 1);
    T_STR(g->nodes[0].attrs[0].name, "alpha");
    T_NEAR(g->nodes[0].attrs[0].f, 0.25, 0);
    T_STR(g->nodes[1].outputs[0], "m");
    T_STR(g->nodes[1].inputs[0], g->nodes[0].outputs[0]);
    T_STR(g->nodes[3].outputs[0], "y");
    T_STR(g->nodes[2].inputs[0], "m");
    T_EQ(g->nodes[2].attr_count, 0); /* neither given nor a default */
    T_TRUE(strcmp(g->nodes[0].outputs[0], g->nodes[2].outputs[0]) != 0);
}

TEST(defaults_of_attributes)
{
    struct pb nodes[2] = {call("LeakyAdd", "one", "x", "x", "m"),
                          call("LeakyAdd", "two", "m", "x", "y")};
    struct pb f = leaky_add(), m;
    struct mdl_graph *g;

    pb_sub(&nodes[0], 5, attr_float("slope", 0.25f));
    pb_sub(&f, 11, attr_float("slope", 0.5f));
    pb_sub(&f, 11, attr_int("unused", 1));
    m = pb_model(graph_of(nodes, 2), 10, 20);
    pb_sub(&m, 25, f);
    T_EQ(read_graph(m, &g), 0);
    T_EQ(g->node_count, 4);
    T_NEAR(g->nodes[0].attrs[0].f, 0.25, 0);
    T_EQ(g->nodes[2].attr_count, 1);
    T_NEAR(g->nodes[2].attrs[0].f, 0.5, 0);
}

/* Which of the functions of one name is called: by its overload. */
TEST(overloads)
{
    struct pb nodes[1] = {call("F", "one", "x", NULL, "y")}, m;
    struct pb one = function("F", "a", NULL, "r"), two = function("F", "a", NULL, "r");
    struct mdl_graph *g;

    pb_sub(&one, 7, pb_node("Relu", "n", "a", NULL, "r"));
    pb_text(&one, 13, "first");
    pb_sub(&two, 7, pb_node("Tanh", "n", "a", NULL, "r"));
    pb_text(&two, 13, "second");
    pb_text(&nodes[0], 8, "second");
    m = pb_model(graph_of(nodes, 1), 10, 20);
    pb_sub(&m, 25, one);
    pb_sub(&m, 25, two);
    T_EQ(read_graph(m, &g), 0);
    T_STR(g->nodes[0].op_type, "Tanh");
}

TEST(functions_in_functions_and_outputs_that_are_inputs)
{
    struct pb nodes[1] = {call("Outer", "o", "x", NULL, "y")}, m;
    struct pb outer = function("Outer", "a", NULL, "r"), same = function("Same", "a", NULL, "a");
    struct mdl_graph *g;

    pb_sub(&outer, 7, call("Same", "s", "a", NULL, "t"));
    pb_sub(&outer, 7, call("LeakyAdd", "l", "t", NULL, "r")); /* b is absent */
    m = pb_model(graph_of(nodes, 1), 10, 20);
    pb_sub(&m, 25, outer);
    pb_sub(&m, 25, same);
    pb_sub(&m, 25, leaky_add());
    T_EQ(read_graph(m, &g), 0);
    T_EQ(g->node_count, 3);
    T_STR(g->nodes[0].op_type, "Identity");
    T_STR(g->nodes[0].inputs[0], "x");
    T_STR(g->nodes[1].inputs[0], g->nodes[0].outputs[0]);
    T_STR(g->nodes[2].inputs[1], "");
    T_STR(g->nodes[2].outputs[0], "y");
}

/* A body sees its inputs alone, though the graph has a value of that name. */
TEST(a_body_does_not_see_the_graph)
{
    struct pb nodes[2] = {pb_node("Relu", "r", "x", NULL, "m"), call("F", "f", "m", NULL, "y")}, m;
    struct pb f = function("F", "a", NULL, "r");

    pb_sub(&f, 7, pb_node("Add", "n", "a", "m", "r"));
    m = pb_model(graph_of(nodes, 2), 10, 20);
    pb_sub(&m, 25, f);
    T_EQ(load_model(m), -EBADMSG);
    T_CONTAINS(load_error, "produced by nothing");
}

TEST(functions_that_are_refused)
{
    struct pb nodes[1] = {call("F", "f", "x", NULL, "y")},
              again[1] = {call("F", "f", "x", "x", "y")}, m;
    struct pb f = function("F", "a", NULL, "r"), k = function("K", "a", NULL, "r"), old;
    struct mdl_graph *g;

    pb_sub(&f, 7, call("K", "k", "a", NULL, "r"));
    pb_sub(&k, 7, call("F", "f", "a", NULL, "r"));
    m = pb_model(graph_of(nodes, 1), 10, 20);
    pb_sub(&m, 25, f);
    pb_sub(&m, 25, k);
    T_EQ(read_graph(m, &g), -EBADMSG);
    T_CONTAINS(read_error, "function 'F' calls itself");
    f = function("F", "a", NULL, "r");
    pb_sub(&f, 7, pb_node("Relu", "n", "a", NULL, "r"));
    m = pb_model(graph_of(again, 1), 10, 20);
    pb_sub(&m, 25, f);
    T_EQ(read_graph(m, &g), -EBADMSG);
    T_CONTAINS(read_error, "2 inputs and 1 outputs; function 'F' has 1 and 1");
    nodes[0] = call("F", "f", "x", NULL, "y");
    m = pb_model(graph_of(nodes, 1), 10, 20);
    pb_sub(&m, 25, leaky_add());
    pb_sub(&m, 25, leaky_add());
    T_EQ(read_graph(m, &g), -EBADMSG);
    T_CONTAINS(read_error, "defined twice");
    nodes[0] = call("F", "f", "x", NULL, "y");
    f = function("F", "a", NULL, "r");
    pb_sub(&f, 7, pb_node("Relu", "n", "a", NULL, "r"));
    old = (struct pb){0};
    pb_text(&old, 1, "");
    pb_int(&old, 2, 99);
    m = (struct pb){0};
    pb_text(&m, 1, "F");
    pb_text(&m, 4, "a");
    pb_text(&m, 5, "r");
    pb_text(&m, 10, "own");
    pb_sub(&m, 9, old);
    pb_free(&f);
    f = m;
    m = pb_model(graph_of(nodes, 1), 10, 20);
    pb_sub(&m, 25, f);
    T_EQ(read_graph(m, &g), -EOPNOTSUPP);
    T_CONTAINS(read_error, "operator set version 99");
}

/* Each function calls the next one twenty times: a file of some KB that means 20^20 nodes. */
TEST(functions_that_multiply)
{
    struct pb nodes[1] = {call("F0", "f", "x", NULL, "y")}, m;
    struct mdl_graph *g;
    char name[16], next[16], out[16];

    m = pb_model(graph_of(nodes, 1), 10, 20);
    for (int i = 0; i < 20; i++) {
        struct pb f;

        snprintf(name, sizeof(name), "F%d", i);
        snprintf(next, sizeof(next), "F%d", i + 1);
        f = function(name, "a", NULL, "r19");
        for (int k = 0; k < 20; k++) {
            snprintf(out, sizeof(out), "r%d", k);
            pb_sub(&f, 7, call(next, "c", "a", NULL, out));
        }
        pb_sub(&m, 25, f);
    }
    pb_sub(&m, 25, function("F20", "a", NULL, "r"));
    T_EQ(read_graph(m, &g), -E2BIG);
    T_CONTAINS(read_error,
               "more than 400000 nodes once functions are put in where they are called, at "
               "last in function F");
}

TEST(functions_that_call_one_another_too_deep)
{
    struct pb nodes[1] = {call("F0", "f", "x", NULL, "y")}, m;
    struct mdl_graph *g;
    char name[16], next[16];

    m = pb_model(graph_of(nodes, 1), 10, 20);
    for (int i = 0; i < 100; i++) {
        struct pb f;

        snprintf(name, sizeof(name), "F%d", i);
        snprintf(next, sizeof(next), "F%d", i + 1);
        f = function(name, "a", NULL, "r");
        pb_sub(&f, 7,
               i < 99 ? call(next, "c", "a", NULL, "r") : pb_node("Relu", "n", "a", NULL, "r"));
        pb_sub(&m, 25, f);
    }
    T_EQ(read_graph(m, &g), -E2BIG);
    T_CONTAINS(read_error, "nested deeper than 64");
}

/* ---- reasons ---- */

TEST(all_unsupported_operators_are_named)
{
    struct pb nodes[7] = {pb_node("Foo", "a", "x", NULL, "1"),  pb_node("Foo", "b", "1", NULL, "2"),
                          pb_node("Foo", "c", "2", NULL, "3"),  pb_node("Foo", "d", "3", NULL, "4"),
                          pb_node("Foo", NULL, "4", NULL, "5"), call("Bar", "e", "5", NULL, "6"),
                          pb_node("Relu", "f", "6", NULL, "y")};
    struct mdl_reasons all = {0};
    struct mdl_load_options options = {.reasons = &all};
    struct mdl_model *model = NULL;
    struct pb m = pb_model(graph_of(nodes, 7), 10, 20);

    T_EQ(mdl_load(load_put("m.onnx", m.data, m.bytes), &options, load_error, &model), -EOPNOTSUPP);
    pb_free(&m);
    T_CONTAINS(load_error, "m.onnx: not supported: operator Foo (a, b, c and 2 more); operator Bar "
                           "of domain own (e); docs/operators.md lists those that are");
    T_EQ(all.count, 6);
    T_EQ(all.total, 6);
    T_STR(all.list[4].node, "5");
    T_STR(all.list[5].op_type, "Bar");
    T_STR(all.list[5].domain, "own");
    T_EQ(all.list[0].kind, MDL_REASON_OPERATOR);
    T_CONTAINS(all.list[0].text, "node a (Foo): operator Foo is not supported");
    mdl_reasons_deinit(&all);
}

TEST(a_single_reason_is_said_as_ever)
{
    struct pb nodes[1] = {pb_node("Foo", "a", "x", NULL, "y")};

    T_EQ(load_model(pb_model(graph_of(nodes, 1), 10, 20)), -EOPNOTSUPP);
    T_CONTAINS(load_error, "m.onnx: node a (Foo): operator Foo is not supported; "
                           "docs/operators.md lists those that are");
}

/* Upsample has no meaning from operator set 10 on; the function imports 9. */
TEST(an_operator_of_another_version)
{
    static const int64_t two[] = {2};
    static const float scales[] = {1, 2};
    struct pb nodes[1], g, t, f, m, o = {0};

    for (int round = 0; round < 2; round++) {
        nodes[0] =
            round ? call("Up", "up", "x", "s", "y") : pb_node("Upsample", "up", "x", "s", "y");
        g = graph_of(nodes, 1);
        t = pb_tensor("s", 1, two, 1);
        pb_bytes(&t, 9, scales, sizeof(scales));
        pb_sub(&g, 5, t);
        m = pb_model(g, 10, 20);
        if (round) {
            f = (struct pb){0};
            pb_text(&f, 1, "Up");
            pb_text(&f, 4, "a");
            pb_text(&f, 4, "b");
            pb_text(&f, 5, "r");
            pb_sub(&f, 7, pb_node("Upsample", "n", "a", "b", "r"));
            pb_int(&o, 2, 9);
            pb_sub(&f, 9, o);
            pb_text(&f, 10, "own");
            pb_sub(&m, 25, f);
        }
        T_EQ(load_model(m), round ? 0 : -EOPNOTSUPP);
        if (!round) {
            T_CONTAINS(load_error, "node up (Upsample): operator Upsample is supported up to "
                                   "operator set 9, and the model uses 20");
        }
    }
}

/* Nodes that need what is refused are not looked at; others are. */
TEST(other_reasons_come_with_them)
{
    struct pb nodes[5] = {pb_node("Foo", "a", "x", NULL, "1"), pb_node("Add", "b", "1", "x", "2"),
                          pb_node("Flatten", "c", "x", NULL, "3"),
                          pb_node("Softmax", "d", "x", NULL, "4"),
                          pb_node("Add", "e", "2", "3", "5")},
              g;

    pb_sub(&nodes[2], 5, attr_int("axis", 9));
    pb_sub(&nodes[3], 5, attr_int("axis", -7));
    g = graph_of(nodes, 5);
    pb_sub(&g, 1, pb_node("Add", "f", "4", "5", "y"));
    T_EQ(load_model(pb_model(g, 10, 20)), -EOPNOTSUPP);
    T_CONTAINS(load_error, "operator Foo (a); docs");
    T_CONTAINS(load_error, "node c (Flatten): axis 9 is outside rank 2");
    T_CONTAINS(load_error, "node d (Softmax): axis -7 is outside rank 2");
}

TEST(open_inputs_come_with_them)
{
    static const int64_t open[] = {1, -1};
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("Foo", "a", "p", "q", "y"));
    pb_sub(&g, 11, pb_value("p", 1, open, 2));
    pb_sub(&g, 11, pb_value("q", 1, open, 2));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(load_model(pb_model(g, 10, 20)), -EOPNOTSUPP);
    T_CONTAINS(load_error, "operator Foo (a)");
    T_CONTAINS(load_error, "input 'p' is [1, N]: open dimensions: N");
}

TEST(more_reasons_than_fit)
{
    struct pb g = {0};
    char name[64], in[16] = "x", out[16];
    struct mdl_reasons all = {0};
    struct mdl_load_options options = {.reasons = &all};
    struct mdl_model *model = NULL;
    struct pb m;

    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "AnOperatorWithALongNameThatNobodyKnows%d", i);
        snprintf(out, sizeof(out), i == 2999 ? "y" : "v%d", i);
        pb_sub(&g, 1, pb_node(name, name, in, NULL, out));
        memcpy(in, out, sizeof(in));
    }
    pb_sub(&g, 11, pb_value("x", 1, shape, 2));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    m = pb_model(g, 10, 20);
    T_EQ(mdl_load(load_put("m.onnx", m.data, m.bytes), &options, load_error, &model), -EOPNOTSUPP);
    pb_free(&m);
    printf("  %s\n", load_error);
    T_CONTAINS(load_error, "; and more");
    T_EQ(all.count, MDL_REASONS_MAX);
    T_EQ(all.total, 3000);
    mdl_reasons_deinit(&all);
}

LOAD_MAIN()
