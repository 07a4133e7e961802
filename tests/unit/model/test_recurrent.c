/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN: what they become, properties that tie their options together, what is refused.
 * ONNX's own cases are among the conformance tests. */
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

enum { STEPS = 6, BATCH = 2, INPUTS = 3, HIDDEN = 5 };

static const char *const kinds[] = {"RNN", "GRU", "LSTM"};
static const size_t gates_of[] = {1, 3, 4};

/* f32 around 0 */
static void weights(struct gb *g, const char *name, size_t rank, const size_t *dim)
{
    size_t n = 1;
    float *w;

    for (size_t i = 0; i < rank; i++) {
        n *= dim[i];
    }
    w = mdl_pool_alloc(g->pool, n, sizeof(*w));
    for (size_t i = 0; i < n; i++) {
        w[i] = t_float() * 0.8f;
    }
    gb_const(g, name, MDL_F32, rank, dim, w);
}

/* input x and constants w, r, b */
static void start(struct gb *g, size_t kind, size_t dirs)
{
    size_t rows = gates_of[kind] * HIDDEN;

    gb_init(g, 14);
    gb_input(g, "x", 3, (int64_t[]){STEPS, BATCH, INPUTS});
    weights(g, "w", 3, (size_t[]){dirs, rows, INPUTS});
    weights(g, "r", 3, (size_t[]){dirs, rows, HIDDEN});
    weights(g, "b", 2, (size_t[]){dirs, 2 * rows});
}

static void cell(struct gb *g, size_t kind, const char *inputs, const char *outputs)
{
    gb_node(g, kinds[kind], outputs, inputs, outputs);
    gb_int(g, "hidden_size", HIDDEN);
}

static void slice(struct gb *g, const char *x, int64_t from, int64_t to, int64_t step,
                  const char *y)
{
    char name[3][32], inputs[160];

    for (int i = 0; i < 3; i++) {
        snprintf(name[i], sizeof(name[i]), "%s_%d", y, i);
    }
    gb_i64(g, name[0], 1, &from);
    gb_i64(g, name[1], 1, &to);
    gb_i64(g, name[2], 1, &step);
    if (g->nodes[0].op_type == NULL || strcmp(x, "x") == 0) {
        gb_i64(g, "axis0", 1, (int64_t[]){0});
    }
    snprintf(inputs, sizeof(inputs), "%s %s %s axis0 %s", x, name[0], name[1], name[2]);
    gb_node(g, "Slice", y, inputs, y);
}

/* Runs the graph. Return: whether outputs 0 and 1 are equal within rounding, and 2 and 3, ... */
static bool outputs_agree(struct gb *g)
{
    struct mdl_load_options options = {.const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, &options);
    struct run_model run = {0};
    bool ok = m != NULL;

    if (!m) {
        fprintf(stderr, "%s\n", g->error);
    } else {
        run_model_init(&run, m);
        ok = run_model_go(&run, 11);
    }
    for (size_t i = 0; ok && i + 1 < m->output_count; i += 2) {
        const float *a = run.outputs[i], *b = run.outputs[i + 1];
        size_t bytes = m->outputs[i].bytes;

        ok = bytes == m->outputs[i + 1].bytes && bytes > 0;
        for (size_t k = 0; ok && k < bytes / sizeof(*a); k++) {
            ok = fabsf(a[k] - b[k]) < 1e-6f;
            if (!ok) {
                fprintf(stderr, "output %zu[%zu]: %g and %g\n", i, k, (double)a[k], (double)b[k]);
            }
        }
    }
    run_model_deinit(&run);
    mdl_free(m);
    gb_free(g);
    return ok;
}

TEST(one_product_and_one_recurrence)
{
    for (size_t kind = 0; kind < 3; kind++) {
        struct mdl_model *m;
        struct gb g;

        start(&g, kind, 2);
        cell(&g, kind, "x w r b", "y h");
        gb_string(&g, "direction", "bidirectional");
        gb_output(&g, "y");
        gb_output(&g, "h");
        m = gb_compile(&g, NULL);
        T_TRUE(m);
        T_EQ(gb_count_ops(m, MDL_OP_GEMM), 1);
        T_EQ(gb_count_ops(m, MDL_OP_RECURRENT), 1);
        T_EQ(gb_count_ops(m, MDL_OP_BINARY), 0);
        T_EQ(m->unit_count, 2);
        T_EQ(gb_op(m, MDL_OP_RECURRENT)->macs,
             (double)(STEPS * 2 * BATCH * gates_of[kind] * HIDDEN * HIDDEN));
        T_EQ(gb_out(m, 0)->rank, 4);
        T_EQ(gb_out(m, 0)->dim[1], 2);
        T_EQ(gb_out(m, 1)->dim[0], 2);
        T_EQ(gb_out(m, 1)->dim[2], HIDDEN);
        mdl_free(m);
        gb_free(&g);
    }
}

/* the end of the first half is the state of the second */
TEST(states_carry_a_sequence_on)
{
    for (size_t kind = 0; kind < 3; kind++) {
        bool lstm = kind == 2;
        struct gb g;

        start(&g, kind, 1);
        cell(&g, kind, "x w r b", lstm ? "y h c" : "y h");
        slice(&g, "x", 0, 2, 1, "x1");
        gb_node(&g, "Slice", "", "x x1_1 x1_9 axis0 x1_2", "x2");
        gb_i64(&g, "x1_9", 1, (int64_t[]){STEPS});
        cell(&g, kind, "x1 w r b", lstm ? "y1 h1 c1" : "y1 h1");
        cell(&g, kind, lstm ? "x2 w r b - h1 c1" : "x2 w r b - h1", lstm ? "y2 h2 c2" : "y2 h2");
        gb_node(&g, "Concat", "", "y1 y2", "y12");
        gb_int(&g, "axis", 0);
        for (size_t i = 0; i < (lstm ? 6 : 4); i++) {
            gb_output(&g, (const char *const[]){"y", "y12", "h", "h2", "c", "c2"}[i]);
        }
        T_TRUE(outputs_agree(&g));
    }
}

TEST(reverse_is_forward_on_the_reversed_input)
{
    for (size_t kind = 0; kind < 3; kind++) {
        struct gb g;

        start(&g, kind, 1);
        cell(&g, kind, "x w r b", "y h");
        gb_string(&g, "direction", "reverse");
        slice(&g, "x", -1, INT64_MIN, -1, "back");
        cell(&g, kind, "back w r b", "z h2");
        gb_node(&g, "Slice", "", "z back_0 back_1 axis0 back_2", "forth");
        gb_output(&g, "y");
        gb_output(&g, "forth");
        gb_output(&g, "h");
        gb_output(&g, "h2");
        T_TRUE(outputs_agree(&g));
    }
}

TEST(sequences_shorter_than_the_input)
{
    static const int32_t lengths[][BATCH] = {{4, 4}, {6, 4}};

    for (size_t i = 0; i < 6; i++) {
        size_t kind = i / 2;
        struct gb g;

        start(&g, kind, 1);
        gb_const(&g, "len", MDL_I32, 1, (size_t[]){BATCH}, lengths[i % 2]);
        cell(&g, kind, "x w r b len", "y h");
        slice(&g, "x", 0, 4, 1, "x4");
        cell(&g, kind, "x4 w r b", "y4 h4");
        /* the last sequence has four steps, and zeros behind them */
        gb_i64(&g, "pads", 8, (int64_t[]){0, 0, 0, 0, 2, 0, 0, 0});
        gb_node(&g, "Pad", "", "y4 pads", "padded");
        gb_i64(&g, "one", 1, (int64_t[]){1});
        gb_node(&g, "Gather", "", "y one", "got");
        gb_int(&g, "axis", 2);
        gb_node(&g, "Gather", "", "padded one", "want");
        gb_int(&g, "axis", 2);
        gb_node(&g, "Gather", "", "h one", "got_h");
        gb_int(&g, "axis", 1);
        gb_node(&g, "Gather", "", "h4 one", "want_h");
        gb_int(&g, "axis", 1);
        for (size_t k = 0; k < 4; k++) {
            gb_output(&g, (const char *const[]){"got", "want", "got_h", "want_h"}[k]);
        }
        T_TRUE(outputs_agree(&g));
    }
}

TEST(batch_first_is_a_transposition)
{
    for (size_t kind = 0; kind < 3; kind++) {
        struct gb g;

        start(&g, kind, 2);
        cell(&g, kind, "x w r b", "y h");
        gb_string(&g, "direction", "bidirectional");
        gb_node(&g, "Transpose", "", "x", "xt");
        gb_ints(&g, "perm", 3, (int64_t[]){1, 0, 2});
        cell(&g, kind, "xt w r b", "z h2");
        gb_string(&g, "direction", "bidirectional");
        gb_int(&g, "layout", 1);
        gb_node(&g, "Transpose", "", "z", "zt");
        gb_ints(&g, "perm", 4, (int64_t[]){1, 2, 0, 3});
        gb_node(&g, "Transpose", "", "h2", "ht");
        gb_ints(&g, "perm", 3, (int64_t[]){1, 0, 2});
        for (size_t k = 0; k < 4; k++) {
            gb_output(&g, (const char *const[]){"y", "zt", "h", "ht"}[k]);
        }
        T_TRUE(outputs_agree(&g));
    }
}

/* ---- what is refused ---- */

static void refuse(struct gb *g, const char *because)
{
    struct mdl_model *m = gb_compile(g, NULL);

    T_TRUE(!m);
    T_CONTAINS(g->error, because);
    gb_free(g);
}

static void refuse_inputs(size_t kind, const char *inputs, const char *because)
{
    struct gb g;

    start(&g, kind, 1);
    weights(&g, "flat", 2, (size_t[]){4, 5});
    weights(&g, "wide", 3, (size_t[]){1, 20, 7});
    weights(&g, "empty", 3, (size_t[]){1, 0, 0});
    weights(&g, "p", 2, (size_t[]){1, 15});
    gb_const(&g, "ints", MDL_I32, 2, (size_t[]){1, 40}, (int32_t[40]){0});
    gb_const(&g, "none", MDL_I32, 1, (size_t[]){2}, (int32_t[]){0, 3});
    gb_const(&g, "minus", MDL_I32, 1, (size_t[]){2}, (int32_t[]){-1, 3});
    gb_const(&g, "long", MDL_I32, 1, (size_t[]){2}, (int32_t[]){7, 3});
    gb_const(&g, "one", MDL_I32, 1, (size_t[]){1}, (int32_t[]){3});
    gb_typed_input(&g, "later", MDL_I32, 1, (int64_t[]){BATCH});
    cell(&g, kind, inputs, "y");
    gb_output(&g, "y");
    refuse(&g, because);
}

TEST(inputs_that_do_not_fit_are_refused)
{
    refuse_inputs(2, "x w", "missing");
    refuse_inputs(2, "flat w r", "rank");
    refuse_inputs(2, "x flat r", "input 1 does not fit");
    refuse_inputs(2, "x wide r", "input 1 does not fit");
    refuse_inputs(2, "x w empty", "hidden_size");
    refuse_inputs(2, "x w r flat", "input 3 does not fit");
    refuse_inputs(2, "x w r ints", "type i32");
    refuse_inputs(2, "x w r b - p", "input 5 does not fit");
    refuse_inputs(2, "x w r b - - r", "input 6 does not fit");
    refuse_inputs(2, "x w r b - - - b", "input 7 does not fit");
    refuse_inputs(0, "x w r b none", "0 steps");
    refuse_inputs(0, "x w r b minus", "-1 steps");
    refuse_inputs(0, "x w r b long", "7 steps");
    refuse_inputs(0, "x w r b one", "one int32 for each");
    refuse_inputs(0, "x w r b b", "one int32 for each");
    refuse_inputs(0, "x w r b later", "must be a constant");
}

TEST(attributes_that_do_not_fit_are_refused)
{
    struct gb g;

    for (int i = 0; i < 8; i++) {
        static const char *const because[] = {"direction",  "hidden_size",     "layout",
                                              "clip",       "activation Gelu", "1 names",
                                              "no default", "wrong type"};
        static const char *const names[][2] = {{"Gelu", ""}, {"Tanh", "Tanh"}, {"ScaledTanh", ""}};
        struct mdl_gattr *a;

        start(&g, 0, 1);
        gb_node(&g, "RNN", "", "x w r b", "y");
        if (i == 0) {
            gb_string(&g, "direction", "sideways");
        } else if (i == 3) {
            gb_float(&g, "clip", -1);
        } else if (i == 7) {
            gb_int(&g, "activation_alpha", 1);
        } else if (i < 3) {
            gb_int(&g, i == 1 ? "hidden_size" : "layout", i == 1 ? HIDDEN + 1 : 2);
        } else {
            a = gb_attr(&g, "activations", MDL_ATTR_STRINGS);
            a->strings = names[i - 4];
            a->count = i == 5 ? 2 : 1;
        }
        gb_output(&g, "y");
        refuse(&g, because[i]);
    }
    start(&g, 0, 1);
    g.graph.opset = 6;
    cell(&g, 0, "x w r b", "y");
    gb_output(&g, "y");
    refuse(&g, "operator set 7");
}

/* a product that overflows, and one that only is too large */
TEST(huge_sizes_are_refused)
{
    static const int64_t steps[] = {1ll << 40, 1ll << 24};

    for (size_t i = 0; i < 2; i++) {
        struct gb g;

        start(&g, 2, 1);
        g.inputs[0].dim[0] = steps[i];
        cell(&g, 2, "x w r b", "y");
        gb_output(&g, "y");
        refuse(&g, "");
    }
}

TEST_MAIN()
