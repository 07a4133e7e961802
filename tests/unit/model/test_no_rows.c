/* SPDX-License-Identifier: Apache-2.0 */
/* An If that asks whether there are rows: its branch for rows, where there are some and none. And
 * where at most one row is counted, or negative multiples of it. */
#include "tests/unit/model/counted_rows.h"

/* The condition c, made from p. @how: of which several are alike */
static void ask(struct gb *g, const char *how)
{
    gb_const(g, "none", MDL_I64, 0, NULL, &(const int64_t){0});
    gb_const(g, "one", MDL_I64, 0, NULL, &(const int64_t){1});
    gb_node(g, "Unsqueeze", "", "p i1", "column");
    gb_node(g, "Shape", "", "column", "shape");
    gb_node(g, "ReduceProd", "", "shape", "n");
    gb_int(g, "keepdims", 0);
    gb_node(g, "Size", "", "p", "size");
    if (strcmp(how, "torch") == 0) {
        gb_node(g, "Equal", "", "n none", "is");
        gb_node(g, "Cast", "", "is", "c");
        gb_int(g, "to", 9);
    } else if (strcmp(how, "not") == 0) {
        gb_node(g, "Equal", "", "none size", "is");
        gb_node(g, "Not", "", "is", "c");
    } else {
        gb_node(g, how, "", "size one", "c");
    }
}

/* y = the branch for rows (the last @count nodes, giving z) or an empty constant @e; y and p are
 * the outputs. */
static void choose(struct gb *g, const char *how, bool none, size_t count)
{
    const struct mdl_gbranch *rows = gb_cut(g, count, "", "z"), *empty;

    gb_node(g, "Identity", "", "e", "nothing");
    empty = gb_cut(g, 1, "", "nothing");
    ask(g, how);
    gb_node(g, "If", "if", "c", "y");
    gb_attr(g, "then_branch", MDL_ATTR_BRANCH)->branch = none ? empty : rows;
    gb_attr(g, "else_branch", MDL_ATTR_BRANCH)->branch = none ? rows : empty;
    gb_output(g, "y");
    gb_output(g, "p");
}

static void begin_asked(struct ran *a)
{
    begin(a);
    gb_const(&a->g, "e", MDL_F32, 1, (size_t[]){0}, "");
}

TEST(a_condition_that_asks_for_rows)
{
    static const struct {
        const char *how;
        bool none; /* what is true where there are none */
    } ways[] = {{"torch", true}, {"not", false}, {"Less", true}};

    for (size_t i = 0; i < 2 * (sizeof(ways) / sizeof(*ways)); i++) {
        RAN(a);
        begin_asked(&a);
        gb_node(&a.g, "ReduceMax", "", "p", "most");
        gb_node(&a.g, "Add", "", "p most", "z");
        choose(&a.g, ways[i / 2].how, ways[i / 2].none, 2);
        T_TRUE(run(&a, i % 2 ? X : (const float[]){-1, -1, NAN, -1, -1}));
        T_EQ(rows_of(&a, 0), i % 2 ? 3 : 0);
        T_TRUE(i % 2 ? FLOATS(&a, 0, 8, 10, 9, 0, 0) : FLOATS(&a, 0, 0, 0, 0, 0, 0));
    }
}

/* as torchvision's batched suppression */
TEST(suppression_where_there_are_boxes)
{
    for (size_t found = 0; found < 4; found += 3) {
        struct gb *g;
        RAN(a);
        begin(&a);
        g = &a.g;
        gb_const(g, "e", MDL_I64, 1, (size_t[]){0}, "");
        gb_const(g, "corner", MDL_F32, 2, (size_t[]){1, 4}, ((const float[]){0, 0, 1, 1}));
        gb_scalar(g, "iou", 0.5f);
        gb_i64(g, "shape_of_boxes", 3, (int64_t[]){1, -1, 4});
        gb_i64(g, "shape_of_scores", 3, (int64_t[]){1, 1, -1});
        gb_node(g, "Unsqueeze", "", "p i1", "places");
        gb_node(g, "Mul", "", "places corner", "sized");
        gb_node(g, "Unsqueeze", "", "sized i0", "boxes");
        gb_node(g, "Transpose", "", "places", "flat");
        gb_node(g, "Unsqueeze", "", "flat i0", "scores");
        gb_node(g, "NonMaxSuppression", "", "boxes scores big iou", "kept");
        gb_node(g, "Gather", "", "kept i2", "third");
        gb_int(g, "axis", 1);
        gb_node(g, "Squeeze", "", "third i1", "z");
        choose(g, "torch", true, 3);
        T_TRUE(run(&a, found ? X : (const float[]){-1, -1, NAN, -1, -1}));
        T_EQ(rows_of(&a, 0), found ? 2 : 0);
        T_TRUE(found ? INTS(&a, 0, 1, 0, 0, 0, 0) : INTS(&a, 0, 0, 0, 0, 0, 0));
    }
}

/* @op of @inputs makes z, the result where there are rows. */
static void not_the_same(const char *op, const char *inputs, const char *how, bool none,
                         const char *why)
{
    RAN(a);
    begin_asked(&a);
    gb_const(&a.g, "wide", MDL_F32, 2, (size_t[]){0, 1}, "");
    gb_const(&a.g, "seven", MDL_F32, 1, (size_t[]){1}, &(const float){7});
    gb_node(&a.g, "Neg", "", "x", "other");
    gb_node(&a.g, "Greater", "", "other zero", "below");
    gb_node(&a.g, "Compress", "", "x below", "q");
    gb_node(&a.g, op, "n", inputs, "z");
    gb_int(&a.g, "axis", 0);
    choose(&a.g, how, none, 1);
    a.m = gb_compile(&a.g, &options);
    T_TRUE(!a.m);
    T_CONTAINS(a.g.error, why);
}

TEST(branches_that_may_differ_without_rows_are_refused)
{
    static const char why[] = "both branches give the same where there are none is not known";

    not_the_same("Neg", "q", "torch", true, why);          /* other rows */
    not_the_same("Concat", "p seven", "torch", true, why); /* one row more */
    not_the_same("Relu", "x", "torch", true, why);         /* all rows */
    not_the_same("Unsqueeze", "p i1", "torch", true, why); /* another shape */
    not_the_same("NonZero", "p", "torch", true, why);      /* another type */
    not_the_same("Neg", "p", "torch", false, why);         /* the branches are swapped */
    not_the_same("Neg", "p", "Greater", false, "its condition must be a constant"); /* 2 or more */
    not_the_same("Neg", "p", "Equal", true, "its condition must be a constant");
}

/* At most one row: which of the dims of 1 is counted? */
TEST(one_row_among_dims_of_1)
{
    static const struct {
        const char *op[2], *by[2];
        size_t at;
    } cases[] = {
        {{"Unsqueeze"}, {"i0"}, 1},
        {{"Unsqueeze"}, {"i1"}, 0},
        {{"Unsqueeze", "Squeeze"}, {"i0", "i0"}, 0},
        {{"Unsqueeze", "Squeeze"}, {"i1", "i1"}, 0},
        {{"Unsqueeze", "Unsqueeze"}, {"i0", "i0"}, 2},
        {{"Unsqueeze", "Unsqueeze"}, {"i0", "i2"}, 1},
        {{"Unsqueeze", "ReduceMax"}, {"i0", "i0"}, 1},
        {{"Unsqueeze", "Reshape"}, {"i0", "column"}, 0},
        {{"Unsqueeze", "Reshape"}, {"i1", "row"}, 1},
        {{"Reshape", "Reshape"}, {"row", "column"}, 0},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        RAN(a);
        begin(&a);
        gb_i64(&a.g, "column", 2, (int64_t[]){-1, 1});
        gb_i64(&a.g, "row", 2, (int64_t[]){1, -1});
        gb_node(&a.g, "Slice", "", "p i0 i1", "n0");
        for (size_t k = 0; k < 2 && cases[i].op[k]; k++) {
            char in[64];

            snprintf(in, sizeof(in), "n%zu %s", k, cases[i].by[k]);
            gb_node(&a.g, cases[i].op[k], "", in, k ? "n2" : "n1");
        }
        gb_output(&a.g, cases[i].op[1] ? "n2" : "n1");
        T_TRUE(run(&a, ((const float[]){-1, -1, -1, -1, -1})));
        T_EQ(a.m->outputs[0].rows_dim, cases[i].at);
        T_EQ(rows_of(&a, 0), 0);
    }
}

/* The best of what was found, beside a constant. */
TEST(at_most_one_row_in_a_batch_of_one)
{
    RAN(a);
    begin(&a);
    gb_const(&a.g, "more", MDL_F32, 2, (size_t[]){1, 2}, ((const float[]){7, 8}));
    gb_node(&a.g, "Slice", "", "p i0 i1", "best");
    gb_node(&a.g, "Unsqueeze", "", "best i0", "batch");
    gb_node(&a.g, "Concat", "", "batch more", "y");
    gb_int(&a.g, "axis", 1);
    gb_output(&a.g, "y");
    T_TRUE(run(&a, ((const float[]){-1, -1, -1, -1, -1})));
    T_EQ(rows_of(&a, 0), 2);
    T_TRUE(FLOATS(&a, 0, 7, 8, 0));
}

/* Bounds of a negative multiple decide nothing. */
TEST(negative_multiples_of_a_count)
{
    for (int none = 0; none < 2; none++) {
        RAN(a);
        begin(&a);
        gb_i64(&a.g, "minus", 1, (int64_t[]){-1});
        gb_node(&a.g, "Shape", "", "p", "n");
        gb_node(&a.g, "Mul", "", "n minus", "negative");
        gb_node(&a.g, "Less", "", "negative minus", "some");
        gb_node(&a.g, "Cast", "", "some", "y");
        gb_int(&a.g, "to", 1);
        gb_output(&a.g, "y");
        T_TRUE(run(&a, none ? (const float[]){-1, -1, -1, -1, -1} : X));
        T_TRUE(FLOATS(&a, 0, none ? 0 : 1));
    }
}

TEST_MAIN()
