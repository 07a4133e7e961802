/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and loops: what they leave of the model, values by hand, and what is refused. */
#include "tests/unit/model/counted_rows.h"

/* x [2][3] of f32, and constants */
static void start(struct ran *a)
{
    *a = (struct ran){0};
    gb_init(&a->g, 18);
    gb_input(&a->g, "x", 2, (int64_t[]){2, 3});
    for (int64_t i = -4; i < 5; i++) {
        char name[8];

        snprintf(name, sizeof(name), "%s%d", i < 0 ? "m" : "n", (int)(i < 0 ? -i : i));
        gb_const(&a->g, name, MDL_I64, 0, NULL, &i);
    }
    gb_i64(&a->g, "list", 3, (int64_t[]){0, 2, 1});
    gb_const(&a->g, "true", MDL_BOOL, 0, NULL, "\1");
    gb_const(&a->g, "false", MDL_BOOL, 0, NULL, "\0");
}

#define DATA ((const float[]){1, 2, 3, 4, 5, 6})

/* Return: whether output 0 is @want, of these dims, made without any operator but copies. */
static bool gives(struct ran *a, size_t rank, const size_t *dim, const float *want)
{
    size_t n = 1;

    for (size_t i = 0; i < rank; i++) {
        n *= dim[i];
    }
    return run(a, DATA) && gb_out(a->m, 0)->rank == rank &&
           memcmp(gb_out(a->m, 0)->dim, dim, rank * sizeof(*dim)) == 0 &&
           floats_are(a, 0, n, want) && gb_count_ops(a->m, MDL_OP_COPY) == a->m->op_count;
}
#define GIVES(a, rank, dims, ...) gives(a, rank, (const size_t[])dims, (const float[]){__VA_ARGS__})
#define DIMS(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static bool refused(struct ran *a, const char *why)
{
    a->m = gb_compile(&a->g, &options);
    if (a->m || !strstr(a->g.error, why)) {
        fprintf(stderr, "\"%s\", expected \"%s\"\n", a->m ? "compiled" : a->g.error, why);
        return false;
    }
    return true;
}

/* s = x split as @inputs say along the second dimension; y = its part at @at */
static void split(struct ran *a, const char *inputs, int64_t keep, const char *at)
{
    char inputs_of_at[16];

    snprintf(inputs_of_at, sizeof(inputs_of_at), "s %s", at);
    gb_node(&a->g, "SplitToSequence", "split", inputs, "s");
    gb_int(&a->g, "axis", -1);
    gb_int(&a->g, "keepdims", keep);
    gb_node(&a->g, "SequenceAt", "at", inputs_of_at, "y");
    gb_output(&a->g, "y");
}

TEST(a_split_and_a_choice_are_a_view)
{
    RAN(chunk);
    start(&chunk);
    split(&chunk, "x n2", 1, "n0");
    T_TRUE(GIVES(&chunk, 2, DIMS(2, 2), 1, 2, 4, 5));
    RAN(last);
    start(&last);
    split(&last, "x n2", 0, "m1"); /* keepdims does not count here */
    T_TRUE(GIVES(&last, 2, DIMS(2, 1), 3, 6));
    RAN(sizes);
    start(&sizes);
    split(&sizes, "x list", 1, "n1");
    T_TRUE(GIVES(&sizes, 2, DIMS(2, 2), 1, 2, 4, 5));
    RAN(each);
    start(&each);
    split(&each, "x", 1, "n1");
    T_TRUE(GIVES(&each, 2, DIMS(2, 1), 2, 5));
    RAN(unbind);
    start(&unbind);
    split(&unbind, "x -", 0, "m3");
    T_TRUE(GIVES(&unbind, 1, DIMS(2), 1, 4));
    RAN(by_torch);
    start(&by_torch);
    split(&by_torch, "x n1", 0, "m3");
    T_TRUE(GIVES(&by_torch, 1, DIMS(2), 1, 4));
    RAN(short_one);
    start(&short_one);
    split(&short_one, "x list", 0, "n2");
    T_TRUE(GIVES(&short_one, 2, DIMS(2, 1), 3, 6));
}

TEST(splits_that_are_refused)
{
    RAN(outside);
    start(&outside);
    split(&outside, "x n2", 1, "n2");
    T_TRUE(refused(&outside, "node at (SequenceAt): position 2 is outside a sequence of 2"));
    RAN(before);
    start(&before);
    split(&before, "x n2", 1, "m3");
    T_TRUE(refused(&before, "position -3 is outside a sequence of 2"));
    RAN(none);
    start(&none);
    split(&none, "x n0", 1, "n0");
    T_TRUE(refused(&none, "node split (SplitToSequence): parts of 0"));
    RAN(short_list);
    start(&short_list);
    gb_i64(&short_list.g, "short", 2, (int64_t[]){1, 1});
    split(&short_list, "x short", 1, "n0");
    T_TRUE(refused(&short_list, "the parts have 2 elements, the dimension 3"));
    RAN(not_constant);
    start(&not_constant);
    gb_typed_input(&not_constant.g, "n", MDL_I64, 0, NULL);
    split(&not_constant, "x n2", 1, "n");
    T_TRUE(refused(&not_constant, "input 1 (\"n\") must be a constant"));
    RAN(many);
    start(&many);
    gb_i64(&many.g, "wide", 1, (int64_t[]){5000});
    gb_node(&many.g, "ConstantOfShape", "", "wide", "zeros");
    gb_node(&many.g, "SplitToSequence", "split", "zeros n1", "s");
    gb_node(&many.g, "SequenceAt", "at", "s n0", "y");
    gb_output(&many.g, "y");
    T_TRUE(refused(&many, "parts of 1 of a dimension of 5000; 1 to 4096 parts are supported"));
}

TEST(sequences_are_made_changed_and_joined)
{
    RAN(a);
    start(&a);
    gb_scalar(&a.g, "zero", 0);
    gb_node(&a.g, "Split", "", "x", "u v");
    gb_node(&a.g, "SequenceConstruct", "", "u v", "s");
    gb_node(&a.g, "SequenceInsert", "", "s u", "uvu");
    gb_node(&a.g, "SequenceInsert", "", "uvu v m3", "vuvu");
    gb_node(&a.g, "SequenceErase", "", "vuvu n1", "vvu");
    gb_node(&a.g, "SequenceErase", "", "vvu", "vv");
    gb_node(&a.g, "SequenceInsert", "", "vv u n2", "vvu2");
    gb_node(&a.g, "Identity", "", "vvu2", "same");
    gb_node(&a.g, "ConcatFromSequence", "", "same", "y");
    gb_int(&a.g, "axis", 0);
    gb_node(&a.g, "ConcatFromSequence", "", "s", "z");
    gb_int(&a.g, "axis", -1);
    gb_int(&a.g, "new_axis", 1);
    gb_node(&a.g, "SequenceLength", "", "same", "length");
    gb_output(&a.g, "y");
    gb_output(&a.g, "z");
    gb_output(&a.g, "length");
    T_TRUE(run(&a, DATA));
    T_TRUE(FLOATS(&a, 0, 4, 5, 6, 4, 5, 6, 1, 2, 3));
    T_EQ(gb_out(a.m, 1)->rank, 3);
    T_EQ(gb_out(a.m, 1)->dim[2], 2);
    T_TRUE(FLOATS(&a, 1, 1, 4, 2, 5, 3, 6));
    T_TRUE(INTS(&a, 2, 3));
}

TEST(sequences_that_are_refused)
{
    static const struct {
        const char *op, *inputs, *why;
    } rows[] = {
        {"Neg", "s", "node n (Neg): input 0 is a sequence"},
        {"Identity", "s", "model output \"y\" is a sequence; only tensors are supported"},
        {"SequenceInsert", "s n0", "a tensor of type i64 for a sequence of f32"},
        {"SequenceInsert", "x x", "input 0 is not a sequence"},
        {"SequenceInsert", "s s", "input 1 is a sequence, not a tensor"},
        {"SequenceConstruct", "x s", "input 1 is a sequence"},
        {"SequenceConstruct", "x n0", "input 1 has another type than the first"},
        {"SequenceErase", "empty", "the sequence has no tensor"},
        {"ConcatFromSequence", "empty", "the sequence has no tensor"},
        {"SequenceInsert", "s x n3", "position 3 is outside a sequence of 2 tensors"},
    };

    for (size_t i = 0; i < base_array_count(rows); i++) {
        RAN(a);
        start(&a);
        gb_node(&a.g, "SequenceEmpty", "", "", "empty");
        gb_node(&a.g, "SequenceConstruct", "", "x x", "s");
        gb_node(&a.g, rows[i].op, "n", rows[i].inputs, "y");
        gb_output(&a.g, "y");
        T_TRUE(refused(&a, rows[i].why));
    }
}

/* y = the loop of the last @count nodes as its body */
static void loop(struct ran *a, size_t count, const char *body_inputs, const char *body_outputs,
                 const char *inputs, const char *outputs)
{
    const struct mdl_gbranch *body = gb_cut(&a->g, count, body_inputs, body_outputs);

    gb_node(&a->g, "Loop", "loop", inputs, outputs);
    gb_attr(&a->g, "body", MDL_ATTR_BRANCH)->branch = body;
    gb_output(&a->g, "y");
}

/* of the last output of the body of the last node */
static void declare(struct ran *a, struct mdl_gvalue v)
{
    const struct mdl_gattr *body = a->g.nodes[a->g.graph.node_count - 1].attrs;
    struct mdl_gbranch *b = (struct mdl_gbranch *)(uintptr_t)body->branch;
    struct mdl_gvalue *list = mdl_pool_alloc(a->g.pool, b->output_count, sizeof(*list));

    list[b->output_count - 1] = v;
    b->declared = list;
}

/* v doubles and i is added, three times; scans of both */
TEST(a_loop_over_data_becomes_its_body)
{
    RAN(a);
    start(&a);
    gb_node(&a.g, "Cast", "", "i", "real");
    gb_int(&a.g, "to", 1);
    gb_node(&a.g, "Add", "", "v v", "twice");
    gb_node(&a.g, "Add", "", "twice real", "w");
    loop(&a, 3, "i c v", "c w w i", "n3 - x", "y scan numbers");
    gb_output(&a.g, "scan");
    gb_output(&a.g, "numbers");
    T_TRUE(run(&a, DATA));
    /* ((2 x) 2 + 1) 2 + 2 */
    T_TRUE(FLOATS(&a, 0, 12, 20, 28, 36, 44, 52));
    T_EQ(gb_out(a.m, 1)->rank, 3);
    T_TRUE(FLOATS(&a, 1, 2, 4, 6, 8, 10, 12, 5, 9, 13, 17, 21, 25, 12, 20, 28, 36, 44, 52));
    T_TRUE(INTS(&a, 2, 0, 1, 2));
}

/* Its condition ends it: the first k with 2^k >= 40, computed at load. */
TEST(a_loop_over_constants_leaves_nothing)
{
    RAN(a);
    start(&a);
    gb_const(&a.g, "forty", MDL_I64, 0, NULL, &(const int64_t){40});
    gb_const(&a.g, "most", MDL_I64, 0, NULL, &(const int64_t){INT64_MAX});
    gb_node(&a.g, "Add", "", "p p", "q");
    gb_node(&a.g, "Less", "", "q forty", "more");
    loop(&a, 2, "i c p", "more q i", "most true n1", "power numbers");
    a.g.graph.output_count = 0;
    gb_output(&a.g, "power");
    gb_output(&a.g, "numbers");
    gb_output(&a.g, "x");
    T_TRUE(run(&a, DATA));
    T_EQ(gb_count_ops(a.m, MDL_OP_BINARY), 0);
    T_TRUE(INTS(&a, 0, 64));
    T_TRUE(INTS(&a, 1, 0, 1, 2, 3, 4, 5));
}

/* A sequence that grows, an If that asks for the round, a loop in a loop, shapes that change. */
TEST(loops_of_branches_loops_and_sequences)
{
    const struct mdl_gbranch *then, *other;
    RAN(a);
    start(&a);
    gb_node(&a.g, "Identity", "", "x", "first");
    then = gb_cut(&a.g, 1, "", "first");
    gb_node(&a.g, "ConcatFromSequence", "", "s", "joined");
    gb_int(&a.g, "axis", 0);
    other = gb_cut(&a.g, 1, "", "joined");
    gb_node(&a.g, "Equal", "", "i n0", "is_first");
    gb_node(&a.g, "If", "", "is_first", "t");
    gb_attr(&a.g, "then_branch", MDL_ATTR_BRANCH)->branch = then;
    gb_attr(&a.g, "else_branch", MDL_ATTR_BRANCH)->branch = other;
    gb_node(&a.g, "SequenceInsert", "", "s t", "s2");
    gb_node(&a.g, "Add", "", "k one", "k2");
    loop(&a, 1, "j d k", "d k2", "i - count", "count2"); /* i rounds more */
    loop(&a, 4, "i c s count", "c s2 count2", "n3 - empty n0", "all number");
    gb_const(&a.g, "one", MDL_I64, 0, NULL, &(const int64_t){1});
    a.g.nodes[1] = a.g.nodes[0]; /* the sequence that it starts with comes before it */
    a.g.graph.node_count = 0;
    gb_node(&a.g, "SequenceEmpty", "", "", "empty");
    a.g.graph.node_count = 2;
    gb_node(&a.g, "SequenceAt", "", "all n2", "last");
    a.g.graph.output_count = 0;
    gb_output(&a.g, "last");
    gb_output(&a.g, "number");
    T_TRUE(run(&a, DATA));
    /* [x], [x, x], then these three */
    T_TRUE(FLOATS(&a, 0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
    T_TRUE(INTS(&a, 1, 3)); /* 0 + 1 + 2 */
}

TEST(a_loop_that_never_runs_keeps_its_values)
{
    RAN(a);
    start(&a);
    gb_node(&a.g, "Neg", "", "v", "w");
    loop(&a, 1, "i c v", "c w", "n3 false x", "y");
    T_TRUE(GIVES(&a, 2, DIMS(2, 3), 1, 2, 3, 4, 5, 6));
    RAN(scan);
    start(&scan);
    gb_node(&scan.g, "Neg", "", "v", "w");
    loop(&scan, 1, "i c v", "c w w", "n0 - x", "z y");
    T_TRUE(refused(&scan, "it never runs, so the shape of output 1 is not known, and the body"));
    RAN(told);
    start(&told);
    gb_node(&told.g, "Neg", "", "v", "w");
    loop(&told, 1, "i c v", "c w w", "n0 - x", "z y");
    declare(&told, (struct mdl_gvalue){.typed = true, .dtype = MDL_F32, .rank = 2, .dim = {3, 7}});
    T_TRUE(run(&told, DATA));
    T_EQ(gb_out(told.m, 0)->rank, 3);
    T_TRUE(memcmp(gb_out(told.m, 0)->dim, (const size_t[]){0, 3, 7}, 3 * sizeof(size_t)) == 0);
    RAN(open);
    start(&open);
    gb_node(&open.g, "Neg", "", "v", "w");
    loop(&open, 1, "i c v", "c w w", "n0 - x", "z y");
    declare(&open, (struct mdl_gvalue){.typed = true, .dtype = MDL_F32, .rank = 2, .dim = {3, -1}});
    T_TRUE(refused(&open, "the body does not declare it"));
}

TEST(loops_that_are_refused)
{
    RAN(data);
    start(&data);
    gb_typed_input(&data.g, "n", MDL_I64, 0, NULL);
    gb_node(&data.g, "Neg", "", "v", "w");
    loop(&data, 1, "i c v", "c w", "n - x", "y");
    T_TRUE(refused(&data, "node loop (Loop): its trip count must be a constant"));
    RAN(ends);
    start(&ends);
    gb_node(&ends.g, "Neg", "", "v", "w");
    gb_node(&ends.g, "ReduceMax", "", "v", "most");
    gb_int(&ends.g, "keepdims", 0);
    gb_node(&ends.g, "Cast", "", "most", "more");
    gb_int(&ends.g, "to", 9);
    loop(&ends, 3, "i c v", "more w", "n3 true x", "y");
    T_TRUE(refused(&ends, "node loop (Loop): its condition must be a constant"));
    RAN(body);
    start(&body);
    gb_node(&body.g, "Neg", "", "v", "w");
    loop(&body, 1, "i c", "c w", "n3 - x", "y");
    T_TRUE(refused(&body, "its body has 2 inputs and 2 outputs, the node 3 and 1"));
    RAN(inside);
    start(&inside);
    gb_node(&inside.g, "NoSuchThing", "inner", "v", "w");
    loop(&inside, 1, "i c v", "c w", "n3 - x", "y");
    T_TRUE(refused(&inside, "operator NoSuchThing is not supported"));
    T_TRUE(!strstr(inside.g.error, "more"));
}

/* An hour of work in a few bytes. */
TEST(loops_without_an_end_are_refused)
{
    RAN(ever);
    start(&ever);
    gb_node(&ever.g, "Sub", "", "n0 v", "w");
    loop(&ever, 1, "i c v", "c w", "- true n1", "y");
    T_TRUE(refused(&ever, "node loop (Loop): loops become their bodies"));
    T_CONTAINS(ever.g.error, "more than 100000 nodes");
    RAN(nested);
    start(&nested);
    gb_const(&nested.g, "many", MDL_I64, 0, NULL, &(const int64_t){1000});
    gb_node(&nested.g, "Add", "", "u u", "u2");
    loop(&nested, 1, "j d u", "d u2", "many - v", "w");
    loop(&nested, 1, "i c v", "c w", "many - n1", "y");
    nested.g.graph.output_count = 0;
    gb_output(&nested.g, "y");
    T_TRUE(refused(&nested, "more than 100000 nodes"));
    RAN(wide);
    start(&wide);
    gb_i64(&wide.g, "four_thousand", 1, (int64_t[]){4000});
    gb_const(&wide.g, "many", MDL_I64, 0, NULL, &(const int64_t){30000});
    gb_node(&wide.g, "ConstantOfShape", "", "four_thousand", "zeros");
    gb_node(&wide.g, "SplitToSequence", "", "zeros", "parts");
    gb_node(&wide.g, "SequenceLength", "", "parts", "w");
    loop(&wide, 2, "i c v", "c w", "many - n1", "y");
    T_TRUE(refused(&wide, "the constants computed at load are too large"));
    RAN(data);
    start(&data);
    gb_const(&data.g, "many", MDL_I64, 0, NULL, &(const int64_t){30000});
    gb_node(&data.g, "Neg", "", "v", "w");
    loop(&data, 1, "i c v", "c w", "many - x", "y");
    T_TRUE(refused(&data, "the model has more than 20000 operators"));
}

TEST_MAIN()
