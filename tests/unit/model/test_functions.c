/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a model, branches of an If, and all the reasons of a refusal at once. */
#include "base.h"
#include "model/common/graph.h"
#include "model/onnx/onnx.h"
#include "tests/unit/model/load_files.h"

static const int64_t shape[] = {1, 4};

/* ---- parts ---- */

static struct pb attr_int(const char *name, int64_t v)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_int(&a, 3, v);
    pb_int(&a, 20, 2);
    return a;
}

static struct pb attr_float(const char *name, float v)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_float(&a, 2, v);
    pb_int(&a, 20, 1);
    return a;
}

/* @name is what the call gives as @ref. */
static struct pb attr_ref(const char *name, const char *ref)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_int(&a, 20, 1);
    pb_text(&a, 21, ref);
    return a;
}

static struct pb attr_graph(const char *name, struct pb g)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_sub(&a, 6, g);
    pb_int(&a, 20, 5);
    return a;
}

static struct pb call(const char *function, const char *name, const char *in1, const char *in2,
                      const char *out)
{
    struct pb n = pb_node(function, name, in1, in2, out);

    pb_text(&n, 7, "own");
    return n;
}

static struct pb function(const char *name, const char *in1, const char *in2, const char *out)
{
    struct pb f = {0}, o = {0};

    pb_text(&f, 1, name);
    if (in1) {
        pb_text(&f, 4, in1);
    }
    if (in2) {
        pb_text(&f, 4, in2);
    }
    pb_text(&f, 5, out);
    pb_text(&o, 1, "");
    pb_int(&o, 2, 18);
    pb_sub(&f, 9, o);
    pb_text(&f, 10, "own");
    return f;
}

/* LeakyRelu(a) with attribute slope, then Add(that, b). */
static struct pb leaky_add(void)
{
    struct pb f = function("LeakyAdd", "a", "b", "r"),
              n = pb_node("LeakyRelu", "act", "a", NULL, "t");

    pb_sub(&n, 5, attr_ref("alpha", "slope"));
    pb_text(&f, 6, "slope");
    pb_sub(&f, 7, n);
    pb_sub(&f, 7, pb_node("Add", "sum", "t", "b", "r"));
    return f;
}

static struct pb graph_of(const struct pb *nodes, size_t count)
{
    struct pb g = {0};

    for (size_t i = 0; i < count; i++) {
        pb_sub(&g, 1, nodes[i]);
    }
    pb_sub(&g, 11, pb_value("x", 1, shape, 2));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    return g;
}

static struct mdl_graph *last_graph;
static struct pb last;
static char error[MDL_ERROR_MAX];

/* The graph is good until the next call. */
static int read_graph(struct pb model, struct mdl_graph **ret)
{
    int r;

    last_graph = mdl_graph_free(last_graph);
    pb_free(&last);
    last = model;
    r = mdl_onnx_read(last.data, last.bytes, NULL, error, &last_graph);
    if (r < 0) {
        printf("  %d: %s\n", r, error);
        last_graph = NULL;
    }
    *ret = last_graph;
    return r;
}

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
    T_CONTAINS(error, "function 'F' calls itself");
    f = function("F", "a", NULL, "r");
    pb_sub(&f, 7, pb_node("Relu", "n", "a", NULL, "r"));
    m = pb_model(graph_of(again, 1), 10, 20);
    pb_sub(&m, 25, f);
    T_EQ(read_graph(m, &g), -EBADMSG);
    T_CONTAINS(error, "2 inputs and 1 outputs; function 'F' has 1 and 1");
    nodes[0] = call("F", "f", "x", NULL, "y");
    m = pb_model(graph_of(nodes, 1), 10, 20);
    pb_sub(&m, 25, leaky_add());
    pb_sub(&m, 25, leaky_add());
    T_EQ(read_graph(m, &g), -EBADMSG);
    T_CONTAINS(error, "defined twice");
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
    T_CONTAINS(error, "operator set version 99");
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
    T_CONTAINS(error, "more than 400000 nodes once functions are put in where they are called, at "
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
    T_CONTAINS(error, "nested deeper than 64");
}

/* ---- branches ---- */

static struct pb branch(struct pb node, const char *out)
{
    struct pb g = {0};

    pb_sub(&g, 1, node);
    pb_sub(&g, 12, pb_value(out, 1, NULL, 0));
    return g;
}

static struct pb choice(const char *condition, const char *out, struct pb then, struct pb other)
{
    struct pb n = pb_node("If", "if", condition, NULL, out);

    pb_sub(&n, 5, attr_graph("then_branch", then));
    pb_sub(&n, 5, attr_graph("else_branch", other));
    return n;
}

/* Each function has an If whose branches call the next one: the names of what they make fill the
 * graph's memory before there are 400000 nodes. */
TEST(functions_with_branches_that_grow_without_end)
{
    struct pb nodes[1] = {call("F0", "f", "x", NULL, "y")}, m;
    struct mdl_graph *g;
    char name[16], next[16], long_name[3001];

    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    m = pb_model(graph_of(nodes, 1), 10, 20);
    for (int i = 0; i < 25; i++) {
        struct pb f;

        snprintf(name, sizeof(name), "F%d", i);
        snprintf(next, sizeof(next), "F%d", i + 1);
        f = function(name, "a", NULL, "r");
        pb_sub(&f, 7, pb_node("Relu", "n", "a", NULL, long_name));
        for (int k = 0; k < 3; k++) {
            pb_sub(&f, 7,
                   choice("a",
                          k == 2 ? "r"
                          : k    ? "r1"
                                 : "r0",
                          branch(call(next, "c", "a", NULL, "t"), "t"),
                          branch(call(next, "c", "a", NULL, "e"), "e")));
        }
        pb_sub(&m, 25, f);
    }
    pb_sub(&m, 25, function("F25", "a", NULL, "r"));
    T_EQ(read_graph(m, &g), -E2BIG);
    T_CONTAINS(error, "in function F");
    T_CONTAINS(error, "the graph takes more than 256 MiB");
}

static struct pb flag(const char *name, unsigned char v)
{
    static const int64_t none[1];
    struct pb t = pb_tensor(name, 9, none, 0);

    pb_bytes(&t, 9, &v, 1);
    return t;
}

/* Return: the activation of the model's only op of that kind. */
static enum mdl_act act_of(const struct mdl_model *m)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (m->ops[i].act != MDL_ACT_NONE) {
            return m->ops[i].act;
        }
    }
    return MDL_ACT_NONE;
}

static struct mdl_model *load_whole(struct pb model)
{
    struct mdl_model *m = NULL;

    if (mdl_load(load_put("m.onnx", model.data, model.bytes), NULL, load_error, &m) < 0) {
        printf("  %s\n", load_error);
    }
    pb_free(&model);
    return m;
}

TEST(a_constant_condition_takes_its_branch)
{
    for (unsigned char v = 0; v < 2; v++) {
        /* both branches make t; each reads what is around it, and m is read by nothing else */
        struct pb nodes[2] = {choice("c", "y", branch(pb_node("Relu", "n", "m", NULL, "t"), "t"),
                                     branch(pb_node("Sigmoid", "n", "m", NULL, "t"), "t")),
                              pb_node("Neg", "neg", "x", NULL, "m")};
        struct pb g = graph_of(nodes, 2);
        struct mdl_model *m;

        pb_sub(&g, 5, flag("c", v));
        m = load_whole(pb_model(g, 10, 20));
        T_TRUE(m != NULL);
        T_EQ(m->outputs[0].bytes, 16);
        T_EQ(m->op_count, 2);
        T_EQ(m->ops[1].act, v ? MDL_ACT_RELU : MDL_ACT_SIGMOID);
        T_STR(m->outputs[0].name, "y");
        mdl_free(m);
    }
}

/* As torch writes a squeeze of an open dimension: the condition comes from a shape. */
TEST(a_condition_that_is_computed_from_a_shape)
{
    static const int64_t one[] = {1};
    int64_t two = 2, four = 4;
    struct pb nodes[5], g, t, inner = {0};
    struct mdl_model *m;

    nodes[0] = pb_node("Shape", "shape", "x", NULL, "s");
    nodes[1] = pb_node("Gather", "gather", "s", "i", "d");
    nodes[2] = pb_node("Equal", "equal", "d", "four", "e");
    pb_sub(&inner, 1,
           choice("e", "u", branch(pb_node("Relu", "n", "x", NULL, "q"), "q"),
                  branch(pb_node("NoSuchThing", "n", "x", NULL, "q"), "q")));
    pb_sub(&inner, 1, pb_node("Tanh", "tanh", "u", NULL, "v"));
    pb_sub(&inner, 5, flag("unused", 1));
    pb_sub(&inner, 12, pb_value("v", 1, NULL, 0));
    nodes[3] = choice("e", "y", inner, branch(pb_node("NoSuchThing", "n", "x", NULL, "t"), "t"));
    nodes[4] = pb_node("Loop", "loop", "x", NULL, "dead");
    g = graph_of(nodes, 5);
    two = 1;
    t = pb_tensor("i", 7, one, 1);
    pb_bytes(&t, 9, &two, 8);
    pb_sub(&g, 5, t);
    t = pb_tensor("four", 7, one, 1);
    pb_bytes(&t, 9, &four, 8);
    pb_sub(&g, 5, t);
    m = load_whole(pb_model(g, 10, 20));
    T_TRUE(m != NULL);
    T_TRUE(act_of(m) != MDL_ACT_NONE);
    T_EQ(m->outputs[0].bytes, 16);
    mdl_free(m);
}

TEST(branches_that_are_refused)
{
    struct pb nodes[3], g;

    /* a condition of many elements, and one that depends on the input */
    nodes[0] = choice("x", "y", branch(pb_node("Relu", "n", "x", NULL, "t"), "t"),
                      branch(pb_node("Relu", "n", "x", NULL, "t"), "t"));
    T_EQ(load_model(pb_model(graph_of(nodes, 1), 10, 20)), -EBADMSG);
    T_CONTAINS(load_error, "node if (If): its condition has 4 elements");
    nodes[0] = pb_node("ReduceMax", "max", "x", NULL, "r");
    nodes[1] = pb_node("Equal", "equal", "r", "r", "e");
    nodes[2] = choice("e", "y", branch(pb_node("Relu", "n", "x", NULL, "t"), "t"),
                      branch(pb_node("Relu", "n", "x", NULL, "t"), "t"));
    T_EQ(load_model(pb_model(graph_of(nodes, 3), 10, 20)), -EOPNOTSUPP);
    T_CONTAINS(load_error, "node if (If): its condition must be a constant");
    /* a name of the other branch */
    nodes[0] = choice("c", "y", branch(pb_node("Relu", "n", "w", NULL, "t"), "t"),
                      branch(pb_node("Relu", "n", "x", NULL, "w"), "w"));
    g = graph_of(nodes, 1);
    pb_sub(&g, 5, flag("c", 1));
    T_EQ(load_model(pb_model(g, 10, 20)), -EBADMSG);
    T_CONTAINS(load_error, "produced by nothing");
    /* its own result */
    nodes[0] = choice("c", "m", branch(pb_node("Add", "n", "y", "x", "t"), "t"),
                      branch(pb_node("Relu", "n", "x", NULL, "t"), "t"));
    nodes[1] = pb_node("Relu", "relu", "m", NULL, "y");
    g = graph_of(nodes, 2);
    pb_sub(&g, 5, flag("c", 1));
    T_EQ(load_model(pb_model(g, 10, 20)), -EBADMSG);
    T_CONTAINS(load_error, "made from its own result");
    /* what the branch does not make */
    nodes[0] = choice("c", "y", branch(pb_node("Relu", "n", "x", NULL, "t"), "other"),
                      branch(pb_node("Relu", "n", "x", NULL, "t"), "t"));
    g = graph_of(nodes, 1);
    pb_sub(&g, 5, flag("c", 1));
    T_EQ(load_model(pb_model(g, 10, 20)), -EBADMSG);
    /* no branch for this condition */
    nodes[0] = pb_node("If", "if", "c", NULL, "y");
    pb_sub(&nodes[0], 5,
           attr_graph("then_branch", branch(pb_node("Relu", "n", "x", NULL, "t"), "t")));
    g = graph_of(nodes, 1);
    pb_sub(&g, 5, flag("c", 0));
    T_EQ(load_model(pb_model(g, 10, 20)), -EBADMSG);
    T_CONTAINS(load_error, "a branch is missing");
}

/* A chain of Ifs, each of which reads the one before in its branch, and nothing else does. */
TEST(branches_that_need_one_another)
{
    for (int n = 20; n < 5000; n *= 100) {
        struct pb g = {0};
        char in[16] = "x", out[16];

        for (int i = 0; i < n; i++) {
            snprintf(out, sizeof(out), i == n - 1 ? "y" : "v%d", i);
            pb_sub(&g, 1,
                   choice("c", out, branch(pb_node("Relu", "n", in, NULL, "t"), "t"),
                          branch(pb_node("Relu", "n", "x", NULL, "t"), "t")));
            memcpy(in, out, sizeof(in));
        }
        pb_sub(&g, 5, flag("c", 1));
        pb_sub(&g, 11, pb_value("x", 1, shape, 2));
        pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
        T_EQ(load_model(pb_model(g, 10, 20)), n < 64 ? 0 : -E2BIG);
    }
    T_CONTAINS(load_error, "branches need one another deeper than 64");
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
