/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference and refusals, operator by operator: a table of one-node graphs. */
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"

/* Dims "1,3,8,8" */
static size_t parse_dims(const char *text, int64_t *dim)
{
    size_t n = 0;
    char *end;

    for (; *text; text = *end ? end + 1 : end) {
        dim[n++] = strtoll(text, &end, 10);
    }
    return n;
}

static void dims_text(const struct mdl_tensor *t, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < t->rank; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%zu", i ? "," : "", t->dim[i]);
    }
}

/* "name=1,2" ints, "name:3" int, "name'text" string, "name~1.5" float; separated by spaces */
static void add_attrs(struct gb *g, const char *text)
{
    char *copy = mdl_pool_strdup(g->pool, text), *save = NULL;

    for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        char *sep = s + strcspn(s, "=:'~"), kind = *sep;
        int64_t values[2 * MDL_RANK_MAX];

        *sep++ = '\0';
        if (kind == '=') {
            gb_ints(g, s, parse_dims(sep, values), values);
        } else if (kind == ':') {
            gb_int(g, s, strtoll(sep, NULL, 10));
        } else if (kind == '~') {
            gb_float(g, s, strtof(sep, NULL));
        } else {
            gb_string(g, s, sep);
        }
    }
}

struct shape_case {
    int opset;
    const char *op, *x; /* dims of the run-time input */
    const char *w, *w2; /* dims of constant f32 inputs 1 and 2, or "i:1,2" for constant ints */
    const char *attrs;
    const char *want; /* dims of the output, or part of the message */
};

static void add_operand(struct gb *g, const char *text, const char *name)
{
    int64_t value[2 * MDL_RANK_MAX];
    size_t dim[MDL_RANK_MAX], rank;

    if (strncmp(text, "i:", 2) == 0) {
        gb_i64(g, name, parse_dims(text + 2, value), value);
        return;
    }
    rank = parse_dims(text, value);
    for (size_t i = 0; i < rank; i++) {
        dim[i] = (size_t)value[i];
    }
    gb_weights(g, name, rank, dim);
}

static const struct shape_case cases[] = {
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "", "1,4,6,6"},
    {11, "Conv", "1,3,8,9", "4,3,3,3", "4", "pads=1,0,1,2 strides=2,1", "1,4,4,9"},
    {11, "Conv", "1,3,9,9", "4,3,3,3", NULL, "auto_pad'SAME_UPPER strides=2,2", "1,4,5,5"},
    {11, "Conv", "1,3,9,9", "4,3,3,3", NULL, "auto_pad'SAME_LOWER strides=4,4", "1,4,3,3"},
    {11, "Conv", "1,3,9,9", "4,3,3,3", NULL, "auto_pad'VALID dilations=2,2", "1,4,5,5"},
    {11, "Conv", "1,6,8,8", "9,2,1,1", NULL, "group:3", "1,9,8,8"},
    {11, "Conv", "1,6,8", "9,6,3", NULL, "", "1,9,6"},
    {11, "Conv", "1,2,4,5,6", "3,2,2,2,2", NULL, "", "1,3,3,4,5"},
    {11, "Conv", "1,3,8,8", "4,2,3,3", NULL, "", "do not fit 3 input channels"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "group:2", "group 2 does not divide 3"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "group:0", "group 0 does not divide"},
    {11, "Conv", "1,3,2,2", "4,3,3,3", NULL, "", "larger than the input"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "strides=0,1", "strides 0 is out of range"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "dilations=-1,1", "dilations -1 is out of range"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "pads=-1,0,0,0", "pads -1 is out of range"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "pads=2147483648,0,0,0", "out of range"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "pads=1,1", "pads has 2 values"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "kernel_shape=5,5", "kernel_shape says 5"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", "5", "", "bias has 5 values for 4 channels"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "pads=2000000000,0,2000000000,0", "larger than"},
    {11, "Conv", "1,3,8,8", "4,3,3,3", NULL, "auto_pad'FULL", "auto_pad FULL is not supported"},
    {11, "Conv", "1,3,8,8", "4,3,3", NULL, "", "rank"},
    {11, "ConvTranspose", "1,3,4,4", "3,2,3,3", NULL, "strides=2,2", "1,2,9,9"},
    {11, "ConvTranspose", "1,3,4,4", "3,2,3,3", NULL, "strides=2,2 pads=1,1,1,1 output_padding=1,1",
     "1,2,8,8"},
    {11, "ConvTranspose", "1,3,4,4", "3,2,3,3", NULL, "strides=2,2 output_shape=8,10", "1,2,8,10"},
    {11, "ConvTranspose", "1,3,4,4", "3,2,3,3", NULL, "strides=3,3 auto_pad'SAME_UPPER",
     "1,2,12,12"},
    {11, "ConvTranspose", "1,1,5,4", "1,1,1,2", NULL, "strides=3,1 auto_pad'SAME_UPPER",
     "1,1,13,4"}, /* the windows end at 13 */
    {11, "ConvTranspose", "1,3,4,4", "3,2,3,3", NULL, "pads=9,9,9,9", "output size -12"},
    {12, "MaxPool", "1,2,7,7", NULL, NULL, "kernel_shape=3,3 strides=2,2", "1,2,3,3"},
    {12, "MaxPool", "1,2,8,8", NULL, NULL, "kernel_shape=3,3 strides=2,2 ceil_mode:1", "1,2,4,4"},
    /* the last window would start in the padding: none */
    {12, "MaxPool", "1,2,5,5", NULL, NULL, "kernel_shape=2,2 strides=3,3 pads=1,1,1,1 ceil_mode:1",
     "1,2,2,2"},
    {12, "MaxPool", "1,2,9,9", NULL, NULL, "kernel_shape=3,3 dilations=2,2", "1,2,5,5"},
    {12, "MaxPool", "1,2,9,9", NULL, NULL, "", "kernel_shape is missing"},
    {12, "MaxPool", "1,2,9,9", NULL, NULL, "kernel_shape=2,2 pads=2,0,0,0", "without any input"},
    {12, "MaxPool", "1,9", NULL, NULL, "kernel_shape=2", "rank 2"},
    {11, "AveragePool", "1,2,7,7", NULL, NULL, "kernel_shape=2,2 pads=0,0,1,1 strides=2,2",
     "1,2,4,4"},
    {11, "GlobalAveragePool", "1,5,7,9", NULL, NULL, "", "1,5,1,1"},
    {11, "GlobalMaxPool", "2,5,7", NULL, NULL, "", "2,5,1"},
    {13, "LRN", "1,5,7,7", NULL, NULL, "size:5", "1,5,7,7"},
    {13, "LRN", "1,5,7,7", NULL, NULL, "", "size 0 is out of range"},
    {13, "Gemm", "2,3", "3,4", "4", "", "2,4"},
    {13, "Gemm", "3,2", "4,3", "2,1", "transA:1 transB:1", "2,4"},
    {13, "Gemm", "2,3", "4,4", NULL, "", "inner dimensions 3 and 4"},
    {13, "Gemm", "2,3,1", "3,4", NULL, "", "rank 3 and 2"},
    {13, "Gemm", "2,3", "3,4", "3,4", "", "does not broadcast"},
    {13, "MatMul", "2,3", "3,4", NULL, "", "2,4"},
    {13, "MatMul", "5,2,3", "3,4", NULL, "", "5,2,4"},
    {13, "MatMul", "5,1,2,3", "7,3,4", NULL, "", "5,7,2,4"},
    {13, "MatMul", "3", "3,4", NULL, "", "4"},
    {13, "MatMul", "2,3", "3", NULL, "", "2"},
    {13, "MatMul", "2,3", "2,4", NULL, "", "inner dimensions"},
    {13, "MatMul", "2,2,3", "5,3,4", NULL, "", "batches 2 and 5"},
    {13, "Relu", "2,0,3", NULL, NULL, "", "2,0,3"},
    {13, "Add", "2,3,4", "3,1", NULL, "", "2,3,4"},
    {13, "Add", "1,1", "2,3,4", NULL, "", "2,3,4"},
    {13, "Add", "2,3,4", "2", NULL, "", "4 and 2 do not broadcast"},
    {6, "Add", "2,3,4", "3", NULL, "broadcast:1 axis:1", "2,3,4"},
    {13, "Sum", "2,1", "1,3", "1", "", "2,3"},
    {13, "PRelu", "1,3,4,4", "3,1,1", NULL, "", "1,3,4,4"},
    {6, "PRelu", "1,3,4,4", "3", NULL, "", "1,3,4,4"},
    {13, "PRelu", "1,3,4,4", "2", NULL, "", "does not broadcast"},
    {13, "Concat", "2,3", "2,5", NULL, "axis:1", "2,8"},
    {13, "Concat", "2,3", "2,5", NULL, "axis:-1", "2,8"},
    {13, "Concat", "2,3", "3,5", NULL, "axis:1", "input 1 does not fit"},
    {13, "Concat", "2,3", "2,5", NULL, "axis:2", "axis 2 is outside rank 2"},
    {9, "Slice", "5,6", NULL, NULL, "starts=1,-3 ends=4,100", "3,3"},
    {13, "Slice", "5,6", "i:4,0", "i:-100,9223372036854775807", "", "0,6"},
    {13, "Flatten", "2,3,4", NULL, NULL, "axis:2", "6,4"},
    {13, "Flatten", "2,3,4", NULL, NULL, "axis:-1", "6,4"},
    {13, "Flatten", "2,3,4", NULL, NULL, "axis:4", "axis 4"},
    {13, "Reshape", "2,3,4", "i:0,-1", NULL, "", "2,12"},
    {13, "Reshape", "2,3,4", "i:-1,5", NULL, "", "do not divide"},
    {13, "Reshape", "2,3,4", "i:-1,-1", NULL, "", "size -1 of dimension 1"},
    {13, "Reshape", "2,3,4", "i:25", NULL, "", "cannot reshape 24 elements to 25"},
    {14, "Reshape", "2,0,4", "i:0,8", NULL, "allowzero:1", "0,8"},
    {13, "Reshape", "2,3,4", "i:4294967296,4294967296,4294967296", NULL, "", "too many elements"},
    {13, "Transpose", "2,3,4", NULL, NULL, "", "4,3,2"},
    {13, "Transpose", "2,3,4", NULL, NULL, "perm=1,0,2", "3,2,4"},
    {13, "Transpose", "2,3,4", NULL, NULL, "perm=1,1,2", "dimension 1 twice"},
    {13, "Transpose", "2,3,4", NULL, NULL, "perm=1,0", "perm has 2 values"},
    {13, "Squeeze", "1,3,1", "i:0", NULL, "", "3,1"},
    {11, "Squeeze", "1,3,1", NULL, NULL, "", "3"},
    {11, "Squeeze", "1,3,1", NULL, NULL, "axes=1", "is 3; only a dimension of 1"},
    {11, "Unsqueeze", "3", NULL, NULL, "axes=0,-1", "1,3,1"},
    {13, "Unsqueeze", "3", "i:0,0", NULL, "", "named twice"},
    {13, "Expand", "3,1", "i:2,1,6", NULL, "", "2,3,6"},
    {13, "Expand", "3,1", "i:1099511627776,1,6", NULL, "", "larger than"},
    {13, "Tile", "2,3", "i:1,2", NULL, "", "2,6"},
    {13, "Tile", "2,3", "i:2", NULL, "", "1 repeats for rank 2"},
    {13, "DepthToSpace", "1,8,2,3", NULL, NULL, "blocksize:2", "1,2,4,6"},
    {13, "DepthToSpace", "1,6,2,3", NULL, NULL, "blocksize:2",
     "6 channels do not divide into blocks of 2"},
    {13, "SpaceToDepth", "1,2,4,6", NULL, NULL, "blocksize:2", "1,8,2,3"},
    {13, "SpaceToDepth", "1,2,4,6", NULL, NULL, "blocksize:0", "blocksize 0"},
    {13, "ReduceMean", "2,3,4", NULL, NULL, "axes=1 keepdims:0", "2,4"},
    {13, "ReduceMean", "2,3,4", NULL, NULL, "axes=-1", "2,3,1"},
    {13, "ReduceSum", "2,3,4", "i:0,2", NULL, "keepdims:0", "3"},
    {13, "ReduceSum", "2,3,4", NULL, NULL, "noop_with_empty_axes:1", "2,3,4"},
    {13, "ReduceMax", "2,3,4", NULL, NULL, "", "1,1,1"},
    {13, "ArgMax", "2,3,4", NULL, NULL, "axis:1 keepdims:0", "2,4"},
    {13, "Softmax", "2,3,4", NULL, NULL, "", "2,3,4"},
    {11, "Softmax", "2,3,4", NULL, NULL, "axis:4", "axis 4"},
    {13, "Gather", "4,5", "i:0,-1", NULL, "axis:1", "4,2"},
    {13, "Gather", "4,5", "i:5", NULL, "axis:1", "index 5 is outside a dimension of 5"},
    {10, "Pad", "2,3", NULL, NULL, "pads=0,1,2,-1", "4,3"},
    {13, "Pad", "2,3", "i:0,0,0,-4", NULL, "", "crop more than"},
    {13, "Pad", "2,3", "i:0,3,0,0", NULL, "mode'reflect", "too large"},
    {13, "Pad", "2,3", "i:0,3", NULL, "", "2 pads for 2 dimensions"},
    {13, "Pad", "2,3", "i:0,0,0,1", NULL, "mode'wrap", "2,4"},
    {9, "Upsample", "1,2,3,3", "i:1", NULL, "", "scales must be constant floats"},
    {13, "Dropout", "2,3", NULL, NULL, "", "2,3"},
    {13, "Conv", "1,3,8,8", NULL, NULL, "", "input 1 is missing"},
    {13, "Det", "2,3", NULL, NULL, "", "operator Det is not supported"},
    {13, "LeakyRelu", "2,3", NULL, NULL, "alpha:1", "attribute alpha has the wrong type"},
};

static void run_case(const struct shape_case *c, char *got, size_t size)
{
    struct gb g;
    struct mdl_model *m;
    int64_t dim[MDL_RANK_MAX];

    gb_init(&g, c->opset);
    gb_input(&g, "x", parse_dims(c->x, dim), dim);
    if (c->w) {
        add_operand(&g, c->w, "w");
    }
    if (c->w2) {
        add_operand(&g, c->w2, "w2");
    }
    gb_node(&g, c->op, "it", c->w2 ? "x w w2" : c->w ? "x w" : "x", "y");
    add_attrs(&g, c->attrs);
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    if (m) {
        dims_text(gb_out(m, 0), got, size);
    } else {
        snprintf(got, size, "%s", g.error);
    }
    mdl_free(m);
    gb_free(&g);
}

TEST(operators)
{
    for (size_t i = 0; i < base_array_count(cases); i++) {
        const struct shape_case *c = &cases[i];
        char got[MDL_ERROR_MAX];
        bool dims = c->want[0] >= '0' && c->want[0] <= '9' && !strchr(c->want, ' ');

        run_case(c, got, sizeof(got));
        if (dims ? strcmp(got, c->want) != 0 : !strstr(got, c->want)) {
            T_FAIL("case %zu, %s %s %s: \"%s\", expected \"%s\"", i, c->op, c->x, c->attrs, got,
                   c->want);
        }
        if (!dims) {
            T_CONTAINS(got, "node it (");
        }
    }
}

TEST(resize_sizes)
{
    static const float up[] = {1, 1, 2, 2.6f};
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 9);
    gb_input(&g, "x", 4, (int64_t[]){1, 2, 3, 3});
    gb_const(&g, "s", MDL_F32, 1, (size_t[]){4}, up);
    gb_node(&g, "Upsample", "it", "x s", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(gb_out(m, 0)->dim[2], 6);
    T_EQ(gb_out(m, 0)->dim[3], 7); /* floor of 7.8 */
    mdl_free(m);
    gb_free(&g);

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 2, 3, 3});
    gb_i64(&g, "s", 4, (int64_t[]){1, 2, 5, 1});
    gb_node(&g, "Resize", "it", "x - - s", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(gb_out(m, 0)->dim[2], 5);
    T_EQ(gb_out(m, 0)->dim[3], 1);
    mdl_free(m);
    gb_free(&g);
}

TEST(split_forms)
{
    static const struct {
        int opset;
        const char *attrs, *error;
        size_t want[3];
    } forms[] = {
        {11, "axis:1", NULL, {2, 2, 2}},
        {11, "axis:1 split=1,2,3", NULL, {1, 2, 3}},
        {18, "axis:1 num_outputs:3", NULL, {2, 2, 2}},
        {11, "axis:1 split=1,2,4", "do not fit 3 outputs", {0}},
        {11, "axis:1 split=3,3", "2 parts", {0}},
        {11, "axis:0", "does not divide by 3", {0}},
        {11, "axis:1 split=7,-1,0", "a part of size 7", {0}},
    };

    for (size_t i = 0; i < base_array_count(forms); i++) {
        struct gb g;
        struct mdl_model *m;

        gb_init(&g, forms[i].opset);
        gb_input(&g, "x", 2, (int64_t[]){2, 6});
        gb_node(&g, "Split", "it", "x", "a b c");
        add_attrs(&g, forms[i].attrs);
        gb_output(&g, "a");
        gb_output(&g, "b");
        gb_output(&g, "c");
        m = gb_compile(&g, NULL);
        if (forms[i].error) {
            T_TRUE(!m);
            T_CONTAINS(g.error, forms[i].error);
        } else {
            T_TRUE(m);
            for (size_t k = 0; k < 3; k++) {
                T_EQ(gb_out(m, k)->dim[1], forms[i].want[k]);
            }
        }
        mdl_free(m);
        gb_free(&g);
    }
}

TEST(open_dimensions)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){-1, 6});
    gb_node(&g, "Relu", "it", "x", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(gb_out(m, 0)->dim[0], 1);
    mdl_free(m);
    g.inputs[0].dim[1] = -1;
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "input x: dimension 1 is open");
    g.inputs[0].typed = false;
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "input x has no type");
    gb_free(&g);
}

TEST(order_of_nodes)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 1, (int64_t[]){4});
    gb_node(&g, "Exp", "last", "b", "y"); /* written backwards */
    gb_node(&g, "Log", "middle", "a", "b");
    gb_node(&g, "Neg", "first", "x", "a");
    gb_node(&g, "Det", "dead", "a", "unused"); /* nobody needs it: not even refused */
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->op_count, 3);
    T_STR(m->ops[0].name, "first");
    T_STR(m->ops[2].name, "last");
    mdl_free(m);

    g.nodes[2].inputs = (const char *const[]){"y"}; /* a ring */
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "is part of a cycle");
    g.nodes[2].inputs = (const char *const[]){"nowhere"};
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "node first (Neg): input \"nowhere\" is produced by nothing");
    g.nodes[2].inputs = (const char *const[]){"x"};
    g.nodes[1].outputs = (const char *const[]){"a"};
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "\"a\" is produced twice");
    g.nodes[1].outputs = (const char *const[]){"x"};
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "\"x\" is produced twice");
    g.nodes[1].outputs = (const char *const[]){"b"};
    g.outputs[0].name = "nothing";
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "output \"nothing\" is produced by nothing");
    gb_free(&g);
}

TEST(node_that_eats_itself)
{
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 1, (int64_t[]){4});
    gb_node(&g, "Add", "self", "x y", "y");
    gb_output(&g, "y");
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "node self (Add): is part of a cycle");
    gb_free(&g);
}

TEST(limits)
{
    struct mdl_load_options small = {.arena_bytes_max = 1024, .weight_bytes_max = 1 << 20};
    struct gb g;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){40, 40});
    gb_node(&g, "Relu", "a", "x", "t");
    gb_node(&g, "Transpose", "b", "t", "u");
    gb_node(&g, "MatMul", "c", "t u", "y");
    gb_output(&g, "y");
    T_TRUE(!gb_compile(&g, &small));
    T_CONTAINS(g.error, "one frame needs more than 1024 bytes");
    gb_weights(&g, "w", 2, (size_t[]){1024, 300});
    T_TRUE(!gb_compile(&g, &small));
    T_CONTAINS(g.error, "the weights are larger than 1048576 bytes");
    gb_free(&g);

    /* dims whose product overflows */
    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, INT64_MAX, INT64_MAX, 2});
    gb_node(&g, "Relu", "a", "x", "y");
    gb_output(&g, "y");
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "larger than");
    gb_free(&g);
}

TEST_MAIN()
