/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "model/onnx/onnx.h"
#include "tests/harness.h"
#include "tests/unit/model/onnx_bytes.h"

static char error[MDL_ERROR_MAX];

/* Reads and frees @model; the graph is only good until the next call (its bytes live on here). */
static int read_model(struct pb model, struct mdl_graph **ret)
{
    static struct pb last;
    static struct mdl_graph *last_graph;
    int r;

    last_graph = mdl_graph_free(last_graph);
    pb_free(&last);
    last = model;
    memset(error, 'X', sizeof(error));
    error[MDL_ERROR_MAX - 1] = '\0';
    r = mdl_onnx_read(last.data, last.bytes, NULL, error, &last_graph);
    if (r == 0 && ret) {
        *ret = last_graph;
    }
    if (r < 0) {
        printf("  %d: %s\n", r, error);
        last_graph = NULL;
    }
    return r;
}

/* One initializer @t, read by a node; x is the input. */
static struct pb model_with(struct pb t)
{
    static const int64_t x[] = {1, 4};
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("Add", "add", "x", "t", "y"));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    return pb_model(g, 7, 13);
}

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

TEST(half_and_double_become_f32)
{
    static const int64_t d[] = {6};
    static const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x3555, 0x8000};
    static const double want[] = {1, -2, 0x1p-24, INFINITY, 0.333251953125, -0.0};
    static const double wide[] = {1.5, -2, 1e-3, 4, 5, 6};
    static const uint16_t brain[] = {0x3f80, 0xc000, 0x7f80, 0x0000, 0x3dcc, 0x4049};
    struct mdl_graph *g = NULL;
    struct pb t = pb_tensor("t", 10, d, 1);
    const float *f;

    pb_bytes(&t, 9, half, sizeof(half));
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_EQ(g->initializers[0].dtype, MDL_F32);
    T_EQ(g->initializers[0].bytes, 24);
    T_TRUE(!g->initializers[0].in_file);
    for (int i = 0; i < 6; i++) {
        T_TRUE((double)f[i] == want[i]);
    }
    T_TRUE(signbit(f[5]));

    t = pb_tensor("t", 10, d, 1); /* halves in int32_data */
    for (int i = 0; i < 6; i++) {
        pb_int(&t, 5, half[i]);
    }
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_NEAR(f[4], want[4], 0);
    T_NEAR(f[1], -2, 0);

    t = pb_tensor("t", 11, d, 1);
    pb_bytes(&t, 10, wide, sizeof(wide)); /* packed double_data */
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_NEAR(f[0], 1.5, 0);
    T_NEAR(f[2], 1e-3f, 0);

    t = pb_tensor("t", 16, d, 1);
    pb_bytes(&t, 9, brain, sizeof(brain));
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_NEAR(f[0], 1, 0);
    T_NEAR(f[1], -2, 0);
    T_NEAR(f[5], 3.140625, 0);
}

TEST(typed_integers)
{
    static const int64_t d[] = {2, 2}, scalar[] = {0};
    struct mdl_graph *g = NULL;
    struct pb t = pb_tensor("t", 7, d, 2), packed = {0};
    const int64_t *l;
    const int8_t *c;

    pb_varint(&packed, (uint64_t)-5);
    pb_varint(&packed, 1);
    pb_varint(&packed, (uint64_t)INT64_MAX);
    pb_varint(&packed, 0);
    pb_sub(&t, 7, packed);
    T_EQ(read_model(model_with(t), &g), 0);
    l = g->initializers[0].data;
    T_EQ(g->initializers[0].dtype, MDL_I64);
    T_EQ(l[0], -5);
    T_EQ(l[2], INT64_MAX);

    t = pb_tensor("t", 3, d, 2);
    for (int i = -2; i < 2; i++) {
        pb_int(&t, 5, i * 64);
    }
    T_EQ(read_model(model_with(t), &g), 0);
    c = g->initializers[0].data;
    T_EQ(g->initializers[0].bytes, 4);
    T_EQ(c[0], -128);
    T_EQ(c[3], 64);

    t = pb_tensor("t", 3, d, 2);
    for (int i = 0; i < 4; i++) {
        pb_int(&t, 5, 100 + 10 * i);
    }
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_CONTAINS(error, "initializer 0 't': a value does not fit into int8");

    t = pb_tensor("t", 1, scalar, 0); /* a scalar has one element */
    pb_float(&t, 4, 3);
    T_EQ(read_model(model_with(t), &g), 0);
    T_EQ(g->initializers[0].rank, 0);
    T_EQ(g->initializers[0].bytes, 4);
    t = pb_tensor("t", 1, scalar, 1); /* a dimension of 0 has none */
    pb_bytes(&t, 9, "", 0);
    T_EQ(read_model(model_with(t), &g), 0);
    T_EQ(g->initializers[0].bytes, 0);
}

/* halves of bytes from the lower on, of an odd number of elements; 16 bits; both kinds of data */
TEST(integers_of_4_and_16_bits)
{
    static const int64_t d[] = {3};
    static const struct {
        int type;
        enum mdl_dtype dtype;
        enum mdl_narrow narrow;
        int32_t want[3];
    } cases[] = {{21, MDL_U8, MDL_NARROW_U4, {15, 2, 8}},
                 {22, MDL_I8, MDL_NARROW_I4, {-1, 2, -8}},
                 {4, MDL_I32, MDL_NARROW_U16, {65535, 2, 32768}},
                 {5, MDL_I32, MDL_NARROW_I16, {-1, 2, -32768}}};

    for (size_t i = 0; i < 2 * base_array_count(cases); i++) {
        bool half = i / 2 < 2;
        struct pb t = pb_tensor("t", cases[i / 2].type, d, 1);
        const struct mdl_gtensor *got;
        struct mdl_graph *g = NULL;

        if (i % 2 == 0) {
            pb_bytes(&t, 9, half ? "\x2f\x08" : "\xff\xff\x02\x00\x00\x80", half ? 2 : 6);
        } else {
            for (int k = 0; k < (half ? 2 : 3); k++) {
                pb_int(&t, 5, half ? (k ? 0x08 : 0x2f) : cases[i / 2].want[k]);
            }
        }
        T_EQ(read_model(model_with(t), &g), 0);
        got = &g->initializers[0];
        T_EQ(got->dtype, cases[i / 2].dtype);
        T_EQ(got->narrow, cases[i / 2].narrow);
        T_EQ(got->bytes, 3 * mdl_dtype_bytes(got->dtype));
        for (int k = 0; k < 3; k++) {
            int32_t want = cases[i / 2].want[k];

            T_EQ(!half                  ? ((const int32_t *)got->data)[k]
                 : got->dtype == MDL_I8 ? ((const int8_t *)got->data)[k]
                                        : ((const uint8_t *)got->data)[k],
                 want);
        }
        t = pb_tensor("t", cases[i / 2].type, d, 1);
        pb_bytes(&t, 9, "\x2f", 1); /* too short */
        T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    }
}

TEST(types_of_the_future_are_refused_by_name)
{
    static const int64_t d[] = {1};
    static const char *const names[] = {[17] = "float8e4m3fn", [18] = "float8e4m3fnuz",
                                        [19] = "float8e5m2",   [20] = "float8e5m2fnuz",
                                        [23] = "float4e2m1",   [24] = "float8e8m0",
                                        [25] = "uint2",        [26] = "int2"};

    for (size_t i = 0; i < base_array_count(names); i++) {
        if (names[i]) {
            T_EQ(read_model(model_with(pb_tensor("w", (int)i, d, 1)), NULL), -EOPNOTSUPP);
            T_CONTAINS(error, names[i]);
        }
    }
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
    T_CONTAINS(error, "node 0 'thing' (Thing): attribute 'value': 4 bytes of data");

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
    T_CONTAINS(error, "IR version 2 is not supported (3 to 13 are)");
    g = (struct pb){0};
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 7, 27), NULL), -EOPNOTSUPP);
    T_CONTAINS(error, "operator set version 27 is not supported (6 to 26 are)");
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
    T_CONTAINS(error, "initializer 0 'big.weight': its data is in another file");
    T_EQ(read_model(model_with(pb_tensor("w", 8, d, 1)), NULL), -EOPNOTSUPP);
    T_STR(error, "initializer 0 'w': element type string (8) is not supported");
    T_EQ(read_model(model_with(pb_tensor("w", -7, d, 1)), NULL), -EOPNOTSUPP);
    T_CONTAINS(error, "element type unknown (-7)");
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    pb_text(&g, 15, "");
    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EOPNOTSUPP);
    T_CONTAINS(error, "sparse_initializer is not supported");
    m = pb_small_model();
    pb_text(&m, 20, "");
    T_EQ(read_model(m, NULL), -EOPNOTSUPP);
    T_CONTAINS(error, "training_info is not supported");
}

TEST(data_and_shape_must_agree)
{
    static const int64_t d[] = {4}, negative[] = {2, -3}, huge[] = {1ll << 40, 1ll << 40},
                         hidden[] = {0, 1ll << 40, 1ll << 40}, deep[] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                         wide[] = {(1ll << 62) + 1};
    struct pb t = pb_tensor("w", 1, d, 1);

    pb_bytes(&t, 9, "0123456789abcde", 15);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_STR(error, "initializer 0 'w': 15 bytes of data where its shape of float32 needs 16");
    T_EQ(read_model(model_with(pb_tensor("w", 1, d, 1)), NULL), -EBADMSG);
    T_CONTAINS(error, "0 bytes of data");
    t = pb_tensor("w", 1, d, 1); /* raw and typed */
    pb_bytes(&t, 9, "0123456789abcdef", 16);
    pb_bytes(&t, 4, "0123456789abcdef", 16);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_CONTAINS(error, "several or in wrong fields");
    t = pb_tensor("w", 1, d, 1);
    pb_bytes(&t, 9, "01234567", 8);
    pb_bytes(&t, 9, "89abcdef", 8);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_CONTAINS(error, "raw_data is given twice");
    t = pb_tensor("w", 6, d, 1); /* integers in float_data */
    pb_bytes(&t, 4, "0123456789abcdef", 16);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_EQ(read_model(model_with(pb_tensor("w", 1, negative, 2)), NULL), -EBADMSG);
    T_STR(error, "initializer 0 'w': dimension 1 is negative (-3)");
    T_EQ(read_model(model_with(pb_tensor("w", 1, huge, 2)), NULL), -E2BIG);
    T_CONTAINS(error, "initializer 0 'w': the number of elements overflows");
    T_EQ(read_model(model_with(pb_tensor("w", 1, hidden, 3)), NULL), -E2BIG);
    T_EQ(read_model(model_with(pb_tensor("w", 1, deep, 9)), NULL), -EOPNOTSUPP);
    T_CONTAINS(error, "9 dimensions, more than 8");
    T_EQ(read_model(model_with(pb_tensor("w", 1, wide, 1)), NULL), -E2BIG);
    T_CONTAINS(error, "the number of bytes overflows");
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

TEST(names_are_checked)
{
    static const int64_t d[] = {0};
    struct pb g = {0}, m;

    T_EQ(read_model(two_nodes("y", "y", "y"), NULL), -EBADMSG);
    T_STR(error, "value 'y' is made twice: by node 0 and node 1");
    T_EQ(read_model(two_nodes("x", "y", "y"), NULL), -EBADMSG);
    T_CONTAINS(error, "value 'x' is made twice: by input 0 and node 0");
    T_EQ(read_model(two_nodes("y", "", "y"), NULL), 0); /* an absent optional output */
    T_EQ(read_model(two_nodes("y", "z", ""), NULL), -EBADMSG);
    T_CONTAINS(error, "graph output '' has no name");
    T_EQ(read_model(two_nodes("y", "bad\x1b[2J", "y"), NULL), -EBADMSG);
    T_CONTAINS(error, "graph[0].node[1] 'second': output");
    T_CONTAINS(error, "is not UTF-8 text, or holds a character that cannot be seen");
    T_EQ(read_model(two_nodes("y", "bad\xff", "y"), NULL), -EBADMSG);
    T_EQ(read_model(two_nodes("y", "gut \xc3\xa4", "y"), NULL), 0);
    m = model_with(pb_tensor("", 1, d, 1));
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_CONTAINS(error, "initializer 0 '' has no name");
    pb_sub(&g, 1, pb_node(NULL, "n", "x", NULL, "y"));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EBADMSG);
    T_CONTAINS(error, "node 0 'n' () has no operator type");
}

TEST(empty_graphs_are_refused)
{
    struct pb g = {0}, m = {0};

    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EBADMSG);
    T_STR(error, "the model's graph has no nodes");
    pb_sub(&g, 1, pb_node("Relu", "r", "x", NULL, "y"));
    T_EQ(read_model(pb_model(g, 7, 13), NULL), -EBADMSG);
    T_STR(error, "the model's graph has no outputs");
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_STR(error, "the file is empty");
    pb_int(&m, 5, 1);
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_STR(error, "not an ONNX model: there is no IR version");
    m = pb_small_model(); /* merging two graphs is a way to confuse readers */
    pb_bytes(&m, 7, "", 0);
    T_EQ(read_model(m, NULL), -EBADMSG);
    T_CONTAINS(error, "graph is given twice");
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
        T_CONTAINS(error, "graph input 'x'");
        T_CONTAINS(error, i == 0   ? "9 dimensions"
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
