/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of an If: which one is taken, and which graphs are refused for theirs. */
#include "tests/unit/model/function_parts.h"

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
    T_CONTAINS(read_error, "in function F");
    T_CONTAINS(read_error, "the graph takes more than 256 MiB");
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

/* A chain of Ifs: only the branch of the next one reads the output of each. */
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
