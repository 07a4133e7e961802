/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths that depend on the data: what the operators after NonMaxSuppression and NonZero do with
 * them, and which are refused. */
#include "tests/unit/model/counted_rows.h"

TEST(chosen_elements)
{
    RAN(a);
    begin(&a);
    gb_output(&a.g, "p");
    gb_output(&a.g, "at");
    T_TRUE(run(&a, X));
    T_EQ(a.m->output_count, 3); /* one count for both */
    T_STR(a.m->outputs[2].name, "p.rows");
    T_EQ(a.m->outputs[1].rows_dim, 0);
    T_EQ(rows_of(&a, 0), 3);
    T_EQ(rows_of(&a, 1), 3);
    T_TRUE(FLOATS(&a, 0, 3, 5, 4, 0, 0) && INTS(&a, 1, 0, 2, 3, 0, 0));
}

TEST(none_and_all_are_chosen)
{
    RAN(a);
    RAN(b);
    begin(&a);
    gb_output(&a.g, "p");
    T_TRUE(run(&a, ((const float[]){-1, -1, NAN, -1, -1})));
    T_EQ(rows_of(&a, 0), 0);
    T_TRUE(FLOATS(&a, 0, 0, 0, 0, 0, 0));
    begin(&b);
    gb_output(&b.g, "p");
    T_TRUE(run(&b, ((const float[]){1, 2, 3, 4, 5})));
    T_EQ(rows_of(&b, 0), 5);
}

TEST(elementwise_and_views_keep_the_count)
{
    RAN(a);
    begin(&a);
    gb_node(&a.g, "Unsqueeze", "", "p i1", "c");
    gb_node(&a.g, "Neg", "", "c", "n");
    gb_node(&a.g, "Concat", "", "c n", "both");
    gb_int(&a.g, "axis", 1);
    gb_node(&a.g, "Mul", "", "both c", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_TRUE(FLOATS(&a, 0, 9, -9, 25, -25, 16, -16, 0, 0, 0, 0));
}

TEST(reductions_take_the_valid_rows)
{
    RAN(a);
    begin(&a);
    gb_node(&a.g, "ReduceMin", "", "p", "least");
    gb_int(&a.g, "keepdims", 0);
    gb_node(&a.g, "ReduceSum", "", "p", "sum");
    gb_node(&a.g, "ReduceProd", "", "p", "product");
    gb_node(&a.g, "Neg", "", "p", "n");
    gb_node(&a.g, "ReduceMax", "", "n", "most");
    gb_node(&a.g, "ArgMax", "", "n", "where");
    gb_output(&a.g, "least");
    gb_output(&a.g, "sum");
    gb_output(&a.g, "product");
    gb_output(&a.g, "most");
    gb_output(&a.g, "where");
    T_TRUE(run(&a, X));
    T_EQ(a.m->output_count, 5);
    T_TRUE(FLOATS(&a, 0, 3) && FLOATS(&a, 1, 12) && FLOATS(&a, 2, 60) && FLOATS(&a, 3, -3) &&
           INTS(&a, 4, 0));
}

TEST(joining_packs_the_valid_rows)
{
    RAN(a);
    begin(&a);
    gb_const(&a.g, "more", MDL_F32, 1, (size_t[]){2}, ((const float[]){7, 8}));
    gb_node(&a.g, "Concat", "", "p more p", "y");
    gb_int(&a.g, "axis", 0);
    gb_output(&a.g, "y");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 8);
    T_TRUE(FLOATS(&a, 0, 3, 5, 4, 7, 8, 3, 5, 4, 0, 0, 0, 0));
}

TEST(slices_count_from_the_begin)
{
    RAN(a);
    begin(&a);
    gb_node(&a.g, "Slice", "", "p i0 i2", "head");
    gb_node(&a.g, "Slice", "", "p i2 big", "tail");
    gb_output(&a.g, "head");
    gb_output(&a.g, "tail");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 2);
    T_EQ(rows_of(&a, 1), 1);
    T_TRUE(FLOATS(&a, 0, 3, 5) && FLOATS(&a, 1, 4, 0, 0));
}

/* k = min(4, size of p), as torchvision's detectors compute it */
TEST(top_k_of_at_most)
{
    RAN(a);
    begin(&a);
    gb_i64(&a.g, "four", 1, (int64_t[]){4});
    gb_node(&a.g, "Shape", "", "p", "s");
    gb_node(&a.g, "Gather", "", "s i0", "n");
    gb_node(&a.g, "Concat", "", "n four", "list");
    gb_int(&a.g, "axis", 0);
    gb_node(&a.g, "ReduceMin", "", "list", "k");
    gb_node(&a.g, "TopK", "", "p k", "v i");
    gb_node(&a.g, "Gather", "", "p i", "again");
    gb_output(&a.g, "v");
    gb_output(&a.g, "i");
    gb_output(&a.g, "again");
    T_TRUE(run(&a, X));
    T_EQ(a.m->tensors[a.m->outputs[0].tensor].dim[0], 4);
    T_EQ(rows_of(&a, 0), 3);
    T_TRUE(FLOATS(&a, 0, 5, 4, 3, 0) && INTS(&a, 1, 1, 2, 0, 0) && FLOATS(&a, 2, 5, 4, 3, 0));
}

/* zeros of the length of p, and p in a column beside them */
TEST(lengths_become_shapes)
{
    RAN(a);
    begin(&a);
    gb_node(&a.g, "Shape", "", "p", "s");
    gb_node(&a.g, "ConstantOfShape", "", "s", "zeros");
    gb_node(&a.g, "Add", "", "zeros p", "sum");
    gb_node(&a.g, "Concat", "", "s i1", "column");
    gb_int(&a.g, "axis", 0);
    gb_node(&a.g, "Reshape", "", "sum column", "y");
    gb_node(&a.g, "Size", "", "y", "size");
    gb_output(&a.g, "y");
    gb_output(&a.g, "size");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_TRUE(FLOATS(&a, 0, 3, 5, 4, 0, 0) && INTS(&a, 1, 3));
}

TEST(scatter_of_counted_updates)
{
    RAN(a);
    begin(&a);
    gb_node(&a.g, "Neg", "", "p", "n");
    gb_node(&a.g, "ScatterND", "", "x at n", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, X));
    T_TRUE(FLOATS(&a, 0, -3, -1, -5, -4, -2));
}

/* A ramp, read in the middle of the squares [0, 0, p, p]. */
TEST(regions_of_counted_rows)
{
    float ramp[64];

    for (size_t i = 0; i < 64; i++) {
        ramp[i] = (float)(i % 8);
    }
    for (int aligned = 0; aligned < 2; aligned++) {
        RAN(a);
        begin(&a);
        gb_const(&a.g, "image", MDL_F32, 4, (size_t[]){1, 1, 8, 8}, ramp);
        gb_const(&a.g, "corner", MDL_F32, 2, (size_t[]){1, 4}, ((const float[]){0, 0, 1, 1}));
        gb_const(&a.g, "corner5", MDL_F32, 2, (size_t[]){1, 5}, ((const float[]){0, 0, 0, 1, 1}));
        gb_node(&a.g, "Unsqueeze", "", "p i1", "column");
        gb_node(&a.g, "Mul", "", aligned ? "column corner" : "column corner5", "squares");
        gb_node(&a.g, "Shape", "", "p", "s");
        gb_node(&a.g, "ConstantOfShape", "", "s", "zeros");
        gb_node(&a.g, "Cast", "", "zeros", "first");
        gb_int(&a.g, "to", 7);
        if (aligned) {
            gb_node(&a.g, "RoiAlign", "", "image squares first", "y");
            gb_int(&a.g, "sampling_ratio", 1);
        } else {
            gb_node(&a.g, "MaxRoiPool", "", "image squares", "y");
            gb_ints(&a.g, "pooled_shape", 2, (int64_t[]){1, 1});
        }
        gb_output(&a.g, "y");
        T_TRUE(run(&a, X));
        T_EQ(rows_of(&a, 0), 3);
        T_TRUE(aligned ? FLOATS(&a, 0, 1, 2, 1.5f, 0, 0) : FLOATS(&a, 0, 3, 5, 4, 0, 0));
    }
}

/* As torchvision joins what it has pooled from several levels. */
TEST(counted_updates_of_counted_rows)
{
    static const char *const levels[] = {"Greater", "LessOrEqual"};
    RAN(a);
    begin(&a);
    gb_scalar(&a.g, "limit", 3.5f);
    gb_i64(&a.g, "minus", 1, (int64_t[]){-1});
    gb_node(&a.g, "Shape", "", "p", "s");
    gb_node(&a.g, "ConstantOfShape", "", "s", "y0");
    for (int i = 0; i < 2; i++) {
        char in[64], out[16];

        gb_node(&a.g, levels[i], "", "p limit", i ? "here1" : "here0");
        gb_node(&a.g, "NonZero", "", i ? "here1" : "here0", i ? "nz1" : "nz0");
        gb_node(&a.g, "Squeeze", "", i ? "nz1 i0" : "nz0 i0", i ? "k1" : "k0");
        gb_node(&a.g, "Gather", "", i ? "p k1" : "p k0", i ? "u1" : "u0");
        /* a shape of which an element may stand for "as it is": none does */
        gb_node(&a.g, "Shape", "", i ? "k1" : "k0", i ? "shape1" : "shape0");
        gb_node(&a.g, "Equal", "", i ? "shape1 minus" : "shape0 minus", i ? "as1" : "as0");
        gb_node(&a.g, "Where", "", i ? "as1 i1 shape1" : "as0 i1 shape0", i ? "to1" : "to0");
        gb_node(&a.g, "Expand", "", i ? "k1 to1" : "k0 to0", i ? "e1" : "e0");
        snprintf(in, sizeof(in), "y%d e%d u%d", i, i, i);
        snprintf(out, sizeof(out), "y%d", i + 1);
        gb_node(&a.g, "ScatterElements", "", in, out);
    }
    gb_output(&a.g, "y1");
    gb_output(&a.g, "y2");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_EQ(rows_of(&a, 1), 3);
    T_TRUE(FLOATS(&a, 0, 0, 5, 4, 0, 0) && FLOATS(&a, 1, 3, 5, 4, 0, 0));
}

/* An element of a shape that does not depend on the data is a constant. */
TEST(what_is_known_of_a_counted_shape)
{
    RAN(a);
    begin(&a);
    gb_const(&a.g, "zero_i", MDL_I64, 0, NULL, &(const int64_t){0});
    gb_const(&a.g, "one_i", MDL_I64, 0, NULL, &(const int64_t){1});
    gb_node(&a.g, "Unsqueeze", "", "p i1", "column");
    gb_node(&a.g, "Concat", "", "column column", "pairs");
    gb_int(&a.g, "axis", 1);
    gb_node(&a.g, "Shape", "", "pairs", "s");
    gb_node(&a.g, "Gather", "", "s one_i", "two");
    gb_node(&a.g, "Range", "", "zero_i two one_i", "y");
    gb_output(&a.g, "y");
    gb_output(&a.g, "p");
    T_TRUE(run(&a, X));
    T_TRUE(INTS(&a, 0, 0, 1));
}

/* [rows, 1, 1, 1], twice as wide, with a zero before. */
TEST(pads_and_sizes_beside_the_rows)
{
    RAN(a);
    begin(&a);
    gb_i64(&a.g, "image", 4, (int64_t[]){-1, 1, 1, 1});
    gb_const(&a.g, "scales", MDL_F32, 1, (size_t[]){4}, ((const float[]){1, 1, 1, 2}));
    gb_i64(&a.g, "pads", 8, (int64_t[]){0, 0, 0, 1, 0, 0, 0, 0});
    gb_node(&a.g, "Reshape", "", "p image", "i");
    gb_node(&a.g, "Resize", "", "i - scales", "wide");
    gb_node(&a.g, "Pad", "", "wide pads", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_TRUE(FLOATS(&a, 0, 0, 3, 3, 0, 5, 5, 0, 4, 4, 0, 0, 0, 0, 0, 0));
}

/* As a detector of masks numbers what it found. */
TEST(a_range_as_long_as_the_rows)
{
    RAN(a);
    begin(&a);
    gb_const(&a.g, "zero_i", MDL_I64, 0, NULL, &(const int64_t){0});
    gb_const(&a.g, "one_i", MDL_I64, 0, NULL, &(const int64_t){1});
    gb_node(&a.g, "Size", "", "p", "n");
    gb_node(&a.g, "Range", "", "zero_i n one_i", "numbers");
    gb_node(&a.g, "Cast", "", "numbers", "real");
    gb_int(&a.g, "to", 1);
    gb_node(&a.g, "Add", "", "real p", "y");
    gb_const(&a.g, "three", MDL_I64, 2, (size_t[]){1, 1}, &(const int64_t){3});
    gb_node(&a.g, "Mul", "", "numbers three", "places"); /* both are constants */
    gb_node(&a.g, "Less", "", "numbers three", "below"); /* by their bounds, too */
    gb_node(&a.g, "Cast", "", "below", "few");
    gb_int(&a.g, "to", 1);
    gb_output(&a.g, "numbers");
    gb_output(&a.g, "y");
    gb_output(&a.g, "places");
    gb_output(&a.g, "few");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_EQ(rows_of(&a, 2), 3);
    T_TRUE(INTS(&a, 0, 0, 1, 2, 0, 0) && FLOATS(&a, 1, 3, 6, 6, 0, 0));
    T_EQ(rows_of(&a, 3), 3);
    T_TRUE(INTS(&a, 2, 0, 3, 6, 0, 0) && FLOATS(&a, 3, 1, 1, 1, 0, 0));
}

/* It takes one value always, and has as many rows as the other. */
TEST(a_choice_that_is_known_keeps_the_count)
{
    RAN(a);
    begin(&a);
    gb_const(&a.g, "always", MDL_BOOL, 0, NULL, "\1");
    gb_const(&a.g, "seven", MDL_F32, 1, (size_t[]){1}, &(const float){7});
    gb_node(&a.g, "Where", "", "always seven p", "y");
    gb_node(&a.g, "Where", "", "always p seven", "z");
    gb_output(&a.g, "y");
    gb_output(&a.g, "z");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_EQ(rows_of(&a, 1), 3);
    T_TRUE(FLOATS(&a, 0, 7, 7, 7, 0, 0) && FLOATS(&a, 1, 3, 5, 4, 0, 0));
}

TEST(compress_by_a_computed_condition)
{
    RAN(a);
    begin(&a);
    gb_node(&a.g, "Compress", "", "x mask", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, X));
    T_EQ(rows_of(&a, 0), 3);
    T_TRUE(FLOATS(&a, 0, 3, 5, 4, 0, 0));
}

/* boxes beside each other; box 2 overlaps box 0 */
static void begin_nms(struct ran *a, int64_t limit)
{
    static const float boxes[] = {0, 0, 1, 1, 0, 5, 1, 6, 0.1f, 0, 1.1f, 1, 0, 9, 1, 10};

    *a = (struct ran){0};
    gb_init(&a->g, 11);
    gb_input(&a->g, "scores", 3, (int64_t[]){1, 1, 4});
    gb_const(&a->g, "boxes", MDL_F32, 3, (size_t[]){1, 4, 4}, boxes);
    gb_i64(&a->g, "limit", 1, &limit);
    gb_scalar(&a->g, "iou", 0.5f);
    gb_scalar(&a->g, "least", 0.25f);
    gb_i64(&a->g, "two", 1, (int64_t[]){2});
}

TEST(nms_is_padded_and_counted)
{
    RAN(a);
    begin_nms(&a, 3);
    gb_node(&a.g, "NonMaxSuppression", "", "boxes scores limit iou least", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, ((const float[]){0.5f, 0.25f, 0.75f, 0.5f})));
    T_EQ(rows_of(&a, 0), 2);
    T_TRUE(INTS(&a, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0));
}

TEST(nms_takes_no_nan_and_keeps_the_order_of_equals)
{
    RAN(a);
    begin_nms(&a, INT64_MAX);
    gb_node(&a.g, "NonMaxSuppression", "", "boxes scores limit iou", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, ((const float[]){NAN, -1, -1, -1})));
    T_EQ(rows_of(&a, 0), 3);
    T_TRUE(INTS(&a, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 0));
}

/* the boxes that were found, as Ultralytics' exports take them */
TEST(nms_rows_are_gathered)
{
    RAN(a);
    begin_nms(&a, 4);
    gb_node(&a.g, "NonMaxSuppression", "", "boxes scores limit iou least", "y");
    gb_node(&a.g, "Gather", "", "y two", "column");
    gb_int(&a.g, "axis", 1);
    gb_node(&a.g, "Squeeze", "", "column", "at");
    gb_ints(&a.g, "axes", 1, (int64_t[]){1});
    gb_node(&a.g, "Gather", "", "boxes at", "found");
    gb_int(&a.g, "axis", 1);
    gb_output(&a.g, "found");
    T_TRUE(run(&a, ((const float[]){0.5f, 0, 0.75f, 1})));
    T_EQ(a.m->outputs[0].rows_dim, 1);
    T_EQ(rows_of(&a, 0), 2);
    T_TRUE(FLOATS(&a, 0, 0, 9, 1, 10, 0.1f, 0, 1.1f, 1, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(nms_limit_of_none_finds_nothing)
{
    struct gb *g;
    RAN(a);
    begin_nms(&a, -3);
    g = &a.g;
    gb_node(g, "NonMaxSuppression", "", "boxes scores limit", "y");
    gb_node(g, "Cast", "", "y", "f");
    gb_int(g, "to", 1);
    gb_output(g, "f");
    a.m = gb_compile(g, &options);
    T_TRUE(a.m);
    T_EQ(a.m->outputs[0].bytes, 0);
}

/* @node: its inputs and the output y, of the graph of begin() */
static void refused(const char *op, const char *inputs, const char *attr, int64_t value,
                    const char *why)
{
    RAN(a);
    begin(&a);
    gb_const(&a.g, "column", MDL_F32, 1, (size_t[]){5}, ((const float[5]){2, 2, 2, 2, 3}));
    gb_const(&a.g, "w", MDL_F32, 2, (size_t[]){5, 2}, ((const float[10]){1}));
    gb_i64(&a.g, "minus", 1, (int64_t[]){-1});
    gb_i64(&a.g, "nine", 1, (int64_t[]){9});
    gb_i64(&a.g, "tuple1", 2, (int64_t[]){1, 0});
    gb_const(&a.g, "tuple", MDL_I64, 2, (size_t[]){1, 2}, ((const int64_t[]){0, 0}));
    gb_i64(&a.g, "ones", 2, (int64_t[]){1, 1});
    gb_node(&a.g, "Slice", "", "p i0 i1", "head");
    gb_node(&a.g, op, "n", inputs, strcmp(op, "Split") ? "y" : "y z");
    if (attr) {
        gb_int(&a.g, attr, value);
    } else if (strcmp(op, "Einsum") == 0) {
        gb_string(&a.g, "equation", "i,ij->j");
    }
    gb_output(&a.g, "y");
    a.m = gb_compile(&a.g, &options);
    T_TRUE(!a.m);
    T_CONTAINS(a.g.error, why);
    T_TRUE(!strstr(a.g.error, "\"\"")); /* a name is told, or none */
}

TEST(what_mixes_rows_is_refused)
{
    refused("ReduceMean", "p", NULL, 0, "depends on the data");
    refused("MatMul", "p w", NULL, 0, "depends on the data");
    refused("Einsum", "p w", NULL, 0, "of an input depends on the data (at most 5)");
    refused("Add", "p x", NULL, 0, "not known that they are equal");
    refused("Add", "p column", NULL, 0, "not known that they are equal");
    refused("Split", "p", NULL, 0, "depends on the data");
    refused("Slice", "p i0 minus", NULL, 0, "counts from the end");
    refused("Slice", "p minus big", NULL, 0, "counts from the end");
    refused("Slice", "p i2 big i0 minus", NULL, 0, "depends on the data");
    refused("Pad", "p tuple1", NULL, 0, "depends on the data");
    refused("ScatterElements", "p i0 p", NULL, 0, "");
    refused("TopK", "p nine", NULL, 0, "dimension 0 is 5");
    refused("Range", "zero zero zero", NULL, 0, "");
    refused("Reshape", "head ones", NULL, 0, "depends on the data (at most 1)");
}

TEST(bad_indices_are_refused)
{
    refused("Gather", "x nine", NULL, 0, "index 9 is outside a dimension of 5");
    refused("GatherElements", "x nine", NULL, 0, "index 9 is outside");
    refused("GatherElements", "x tuple", NULL, 0, "rank 2");
    refused("GatherND", "x tuple", NULL, 0, "2 indices in a row");
    refused("GatherND", "x i0", "batch_dims", 1, "batch dimensions");
    refused("GatherND", "x i0", "batch_dims", -1, "batch dimensions");
    refused("GatherND", "x nine", NULL, 0, "index 9 is outside");
    refused("ScatterElements", "x nine i0", NULL, 0, "type");
    refused("ScatterElements", "x nine zero", NULL, 0, "index 9 is outside");
    refused("ScatterElements", "x i0 zero", NULL, 0, "differ in shape");
    refused("ScatterND", "x i0 x", NULL, 0, "shape of the updates");
    refused("TopK", "x minus", NULL, 0, "must not be negative");
    refused("TopK", "x nine", NULL, 0, "k is 9");
    refused("ReverseSequence", "x i0", NULL, 0, "rank 2");
    refused("NonMaxSuppression", "w w", NULL, 0, "must be [batch][boxes][4]");
    refused("Compress", "x i0", NULL, 0, "list of bool");
}

TEST_MAIN()
