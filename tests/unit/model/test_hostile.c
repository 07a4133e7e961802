/* SPDX-License-Identifier: Apache-2.0 */
/* Random nodes of every operator with random and extreme shapes, attributes and constants: each is
 * compiled or refused with a reason; nothing crashes, hangs or grows (the sanitizer setups look
 * closer). */
#include "model/lower/lowering.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"

#define ROUNDS 20000

static const int64_t extremes[] = {
    0,         1,         -1,           2,     3,   7, INT32_MAX, INT32_MIN, INT64_MAX,
    INT64_MIN, 1ll << 32, -(1ll << 40), 65536, 100, -2};

static const char *const int_attrs[] = {"axis",
                                        "group",
                                        "ceil_mode",
                                        "transA",
                                        "transB",
                                        "keepdims",
                                        "blocksize",
                                        "size",
                                        "allowzero",
                                        "to",
                                        "storage_order",
                                        "start",
                                        "end",
                                        "num_outputs",
                                        "count_include_pad",
                                        "batch_dims",
                                        "largest",
                                        "center_point_box",
                                        "k",
                                        "time_axis",
                                        "batch_axis",
                                        "antialias",
                                        "align_corners",
                                        "sampling_ratio",
                                        "output_height",
                                        "output_width",
                                        "offset_group",
                                        "exclude_outside"};
static const char *const ints_attrs[] = {
    "kernel_shape", "strides", "pads",  "dilations",    "axes",           "perm",        "starts",
    "ends",         "split",   "shape", "output_shape", "output_padding", "pooled_shape"};

static int64_t number(void)
{
    return t_range(0, 2) ? t_range(0, 4)
                         : extremes[t_range(0, (int64_t)base_array_count(extremes) - 1)];
}

static const struct mdl_lower_row *random_operator(void)
{
    const struct mdl_lower_row *row = NULL;
    int64_t seen = 0;

    for (const struct mdl_lower_row *const *table = mdl_lower_tables; *table; table++) {
        for (const struct mdl_lower_row *r = *table; r->op_type; r++) {
            row = t_range(0, seen++) ? row : r; /* each is as likely as any other */
        }
    }
    return row;
}

static void random_node(struct gb *g, const char *name, const char *inputs, const char *outputs)
{
    const struct mdl_lower_row *row = random_operator();

    gb_node(g, row->op_type, name, inputs, outputs);
    if (row->domain) {
        g->nodes[g->graph.node_count - 1].domain = row->domain;
    }
}

static void add_value(struct gb *g, const char *name)
{
    size_t dim[MDL_RANK_MAX], rank = (size_t)t_range(0, 5), count = 1;
    int64_t open[MDL_RANK_MAX];
    void *data;

    switch (t_range(0, 2)) {
    case 0: /* a model input */
        for (size_t i = 0; i < rank; i++) {
            open[i] = t_range(0, 9) ? t_range(0, 6) : number();
            open[i] = open[i] < 0 ? -1 : open[i];
        }
        gb_typed_input(g, name, t_range(0, 3) ? MDL_F32 : (enum mdl_dtype)t_range(0, 5), rank,
                       open);
        break;
    case 1: /* integers, as shapes and axes come */
        count = (size_t)t_range(0, 6);
        data = mdl_pool_alloc(g->pool, count, sizeof(int64_t));
        for (size_t i = 0; i < count; i++) {
            ((int64_t *)data)[i] = number();
        }
        gb_i64(g, name, count, data);
        break;
    default:
        for (size_t i = 0; i < rank; i++) {
            dim[i] = (size_t)t_range(0, 4);
        }
        gb_weights(g, name, rank, dim);
        break;
    }
}

static void add_attributes(struct gb *g)
{
    for (int64_t n = t_range(0, 5); n > 0; n--) {
        int64_t values[10];
        size_t count = (size_t)t_range(0, 9);

        if (t_range(0, 1)) {
            gb_int(g, int_attrs[t_range(0, (int64_t)base_array_count(int_attrs) - 1)], number());
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            values[i] = number();
        }
        gb_ints(g, ints_attrs[t_range(0, (int64_t)base_array_count(ints_attrs) - 1)], count,
                values);
    }
}

TEST(random_nodes)
{
    struct mdl_load_options small = {.arena_bytes_max = 1 << 20, .weight_bytes_max = 1 << 20};
    size_t compiled = 0, refused = 0;

    for (int round = 0; round < ROUNDS; round++) {
        static const char *const lists[] = {"", "a", "a b", "a b c", "a - b", "a b c d", "a a"};
        static const char *const operands[] = {"a", "b", "c", "d"};
        struct gb g;
        struct mdl_model *m = NULL;
        int r;

        small.no_fusion = t_range(0, 3) == 0;
        gb_init(&g, t_range(6, 24));
        for (size_t i = 0; i < base_array_count(operands); i++) {
            add_value(&g, operands[i]);
        }
        random_node(&g, "n", lists[t_range(1, 6)], t_range(0, 3) ? "t" : "t u");
        add_attributes(&g);
        random_node(&g, "m", t_range(0, 1) ? "t" : "t b", "y");
        add_attributes(&g);
        gb_output(&g, t_range(0, 1) ? "y" : "t");
        r = mdl_compile(&g.graph, &small, g.error, &m);
        if (r == 0) {
            compiled++;
            T_TRUE(m->op_count > 0 && m->unit_count > 0);
            T_LE(m->arena_bytes, small.arena_bytes_max);
        } else {
            refused++;
            T_TRUE(r == -EBADMSG || r == -EOPNOTSUPP || r == -E2BIG);
            T_TRUE(strlen(g.error) > 10);
        }
        mdl_free(m);
        gb_free(&g);
    }
    /* both happen, or this tests nothing */
    T_LT(ROUNDS / 20, compiled);
    T_LT(ROUNDS / 20, refused);
}

/* A long chain, deeper than any stack would like, and a wide one. */
TEST(long_chains)
{
    enum { COUNT = 30000 };
    struct gb g;
    struct mdl_gnode *nodes;
    char(*names)[16];
    const char **ports;

    gb_init(&g, 13);
    gb_input(&g, "x", 1, (int64_t[]){4});
    nodes = mdl_pool_alloc(g.pool, COUNT, sizeof(*nodes));
    names = mdl_pool_alloc(g.pool, COUNT + 1, sizeof(*names));
    ports = mdl_pool_alloc(g.pool, COUNT + 1, sizeof(*ports));
    for (size_t i = 0; i <= COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), i ? "v%zu" : "x", i);
        ports[i] = names[i];
    }
    for (size_t i = 0; i < COUNT; i++) {
        /* backwards in the file */
        nodes[COUNT - 1 - i] = (struct mdl_gnode){.op_type = "Neg",
                                                  .domain = "",
                                                  .name = "",
                                                  .input_count = 1,
                                                  .output_count = 1,
                                                  .inputs = &ports[i],
                                                  .outputs = &ports[i + 1]};
    }
    g.graph.nodes = nodes;
    g.graph.node_count = COUNT;
    gb_output(&g, names[COUNT]);
    T_TRUE(!gb_compile(&g, NULL));
    T_CONTAINS(g.error, "more than 20000 operators");
    g.outputs[0].name = names[10000];
    {
        struct mdl_model *m = gb_compile(&g, NULL);

        T_TRUE(m);
        T_EQ(m->op_count, 10000);
        T_LE(m->arena_bytes, 192); /* all in place */
        mdl_free(m);
    }
    gb_free(&g);
}

TEST_MAIN()
