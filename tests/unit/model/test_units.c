/* SPDX-License-Identifier: Apache-2.0 */
/* How ops are cut into units, and what a planner is told about them. */
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"

struct net {
    struct gb g;
    size_t n; /* values so far */
};

/* conv, batch norm and, if asked for, relu: as torchvision writes them. Returns the value's name.
 */
static const char *conv_bn(struct net *t, const char *x, size_t in, size_t out, size_t kernel,
                           int64_t stride, bool relu)
{
    struct gb *g = &t->g;
    size_t id = t->n++;
    int64_t pad = (int64_t)(kernel / 2);
    char *y = mdl_pool_printf(g->pool, "y%zu", id);

    gb_weights(g, mdl_pool_printf(g->pool, "w%zu", id), 4, (size_t[]){out, in, kernel, kernel});
    for (const char *p = "sbmv"; *p; p++) {
        gb_weights(g, mdl_pool_printf(g->pool, "%c%zu", *p, id), 1, &out);
    }
    gb_node(g, "Conv", mdl_pool_printf(g->pool, "conv%zu", id),
            mdl_pool_printf(g->pool, "%s w%zu", x, id), mdl_pool_printf(g->pool, "c%zu", id));
    gb_ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    gb_ints(g, "strides", 2, (int64_t[]){stride, stride});
    gb_node(g, "BatchNormalization", "",
            mdl_pool_printf(g->pool, "c%zu s%zu b%zu m%zu v%zu", id, id, id, id, id),
            relu ? mdl_pool_printf(g->pool, "n%zu", id) : y);
    if (relu) {
        gb_node(g, "Relu", "", mdl_pool_printf(g->pool, "n%zu", id), y);
    }
    return y;
}

static const char *bottleneck(struct net *t, const char *x, size_t in, size_t mid, int64_t stride)
{
    struct gb *g = &t->g;
    size_t id = t->n++;
    const char *a = conv_bn(t, x, in, mid, 1, 1, true);
    const char *b = conv_bn(t, a, mid, mid, 3, stride, true);
    const char *c = conv_bn(t, b, mid, 4 * mid, 1, 1, false);
    const char *s = in != 4 * mid || stride != 1 ? conv_bn(t, x, in, 4 * mid, 1, stride, false) : x;
    char *y = mdl_pool_printf(g->pool, "block%zu", id);

    gb_node(g, "Add", "", mdl_pool_printf(g->pool, "%s %s", c, s),
            mdl_pool_printf(g->pool, "sum%zu", id));
    gb_node(g, "Relu", "", mdl_pool_printf(g->pool, "sum%zu", id), y);
    return y;
}

/* ResNet-50 at a tenth of its width */
static void resnet(struct net *t)
{
    static const size_t depth[4] = {3, 4, 6, 3};
    struct gb *g = &t->g;
    const char *x;
    size_t in = 6, mid = 6;

    t->n = 0;
    gb_init(g, 13);
    gb_input(g, "x", 4, (int64_t[]){1, 3, 64, 64});
    x = conv_bn(t, "x", 3, 6, 7, 2, true);
    gb_node(g, "MaxPool", "", x, "pool");
    gb_ints(g, "kernel_shape", 2, (int64_t[]){3, 3});
    gb_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    gb_ints(g, "strides", 2, (int64_t[]){2, 2});
    x = "pool";
    for (size_t stage = 0; stage < 4; stage++, mid *= 2) {
        for (size_t i = 0; i < depth[stage]; i++) {
            x = bottleneck(t, x, in, mid, i == 0 && stage ? 2 : 1);
            in = 4 * mid;
        }
    }
    gb_node(g, "GlobalAveragePool", "", x, "gap");
    gb_node(g, "Flatten", "", "gap", "flat");
    gb_weights(g, "fc", 2, (size_t[]){10, in});
    gb_weights(g, "fcb", 1, (size_t[]){10});
    gb_node(g, "Gemm", "fc", "flat fc fcb", "y");
    gb_int(g, "transB", 1);
    gb_output(g, "y");
}

TEST(resnet_50)
{
    static struct net t;
    struct mdl_model *m;
    size_t heavy = 0, next = 0, weight_bytes = 0;
    double macs = 0;

    resnet(&t);
    m = gb_compile(&t.g, NULL);
    T_TRUE(m);
    T_EQ(m->unit_count, 54); /* 53 convolutions and the product */
    T_EQ(m->op_count, 57);   /* and the entry, two pools */
    for (size_t i = 0; i < m->unit_count; i++) {
        const struct mdl_unit *u = &m->units[i];

        T_EQ(u->first_op, next); /* all ops, in order, once */
        T_LE(u->first_op, u->last_op);
        T_TRUE(u->heavy_op >= u->first_op && u->heavy_op <= u->last_op);
        T_TRUE(u->weight > 0 && u->macs > 0);
        next = u->last_op + 1;
        macs += u->macs;
        weight_bytes += u->weight_bytes;
        for (size_t k = u->first_op; k <= u->last_op; k++) {
            heavy += m->ops[k].kind == MDL_OP_CONV || m->ops[k].kind == MDL_OP_GEMM;
        }
    }
    T_EQ(next, m->op_count);
    T_EQ(heavy, 54);
    T_NEAR(macs, m->macs, 1);
    T_EQ(weight_bytes, m->weight_bytes);
    T_STR(m->units[0].name, "conv0");
    T_EQ(m->units[0].heavy_op, 1); /* the entry goes with it ... */
    T_EQ(m->units[0].last_op, 2);  /* ... and so does the pool */
    /* equation (1), H W C R S K of the input, and the pool's input */
    T_NEAR(m->units[0].weight, 64.0 * 64 * 3 * 7 * 7 * 6 + 32 * 32 * 6, 0);
    T_NEAR(m->units[0].macs, 32.0 * 32 * 3 * 7 * 7 * 6, 0);
    /* equation (2) */
    T_NEAR(m->units[53].weight, 192.0 * 10, 0);
    T_EQ(m->units[53].weight_bytes, 192 * 10 * 4 + 10 * 4);
    T_EQ(m->units[53].live_bytes, 0);
    /* across the first cut: the pool's 16 x 16 x 6 */
    T_EQ(m->units[0].live_bytes, 16 * 16 * 6 * 4);
    /* a small part of what all values take */
    T_LT(m->arena_bytes * 100, m->tensor_bytes * 15);
    mdl_free(m);
    gb_free(&t.g);
}

TEST(without_heavy_operators)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){4, 5});
    gb_node(&g, "Exp", "a", "x", "t");
    gb_node(&g, "Softmax", "b", "t", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->unit_count, 2);
    T_STR(m->units[1].name, "b");
    T_TRUE(m->units[0].weight > 0);
    mdl_free(m);
    gb_free(&g);
}

/* Groups count their own channels only. */
TEST(grouped_weight)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 8, 10, 10});
    gb_weights(&g, "w", 4, (size_t[]){8, 1, 3, 3});
    gb_node(&g, "Conv", "dw", "x w", "y");
    gb_int(&g, "group", 8);
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_NEAR(m->units[0].weight, 10.0 * 10 * 9 * 8, 0);
    T_NEAR(m->units[0].macs, 8.0 * 8 * 9 * 8, 0);
    mdl_free(m);
    gb_free(&g);
}

TEST_MAIN()
