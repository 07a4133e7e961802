/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the arena, on random graphs: what lives at the same time does not overlap, every view
 * stays inside its storage, and the answers are those of the same graph with nothing shared. */
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

#define ROUNDS 400

/* First and last byte that a view touches, relative to its storage. */
static void extent(const struct mdl_tensor *t, ptrdiff_t *first, ptrdiff_t *last)
{
    ptrdiff_t size = (ptrdiff_t)mdl_dtype_bytes(t->dtype);

    *first = (ptrdiff_t)t->offset;
    *last = (ptrdiff_t)t->offset + size - 1;
    for (size_t i = 0; i < t->rank; i++) {
        ptrdiff_t reach = t->stride[i] * (ptrdiff_t)(t->dim[i] - 1) * size;

        if (reach < 0) {
            *first += reach;
        } else {
            *last += reach;
        }
    }
}

static void check_views(const struct mdl_model *m)
{
    for (size_t i = 0; i < m->tensor_count; i++) {
        const struct mdl_tensor *t = &m->tensors[i];
        ptrdiff_t first, last;

        T_LT(t->storage, m->storage_count);
        if (mdl_elements(t) == 0) {
            continue;
        }
        extent(t, &first, &last);
        T_LE(0, first);
        T_LT(last, m->storages[t->storage].bytes);
    }
}

static void check_storages(const struct mdl_model *m)
{
    for (size_t a = 0; a < m->storage_count; a++) {
        const struct mdl_storage *s = &m->storages[a];

        if (s->home != MDL_HOME_ARENA || s->bytes == 0) {
            continue;
        }
        T_EQ(s->offset % 64, 0);
        T_LE(s->offset + s->bytes, m->arena_bytes);
        T_LT(s->last_op, m->op_count);
        for (size_t b = 0; b < a; b++) {
            const struct mdl_storage *t = &m->storages[b];

            if (t->home == MDL_HOME_ARENA && t->bytes && s->first_op <= t->last_op &&
                t->first_op <= s->last_op && s->offset < t->offset + t->bytes &&
                t->offset < s->offset + s->bytes) {
                T_FAIL("storages %zu and %zu overlap in ops %zu-%zu and %zu-%zu", a, b, s->first_op,
                       s->last_op, t->first_op, t->last_op);
            }
        }
    }
}

static void touch(const struct mdl_model *m, size_t t, size_t op)
{
    const struct mdl_storage *s;

    if (t == MDL_NONE) {
        return;
    }
    s = &m->storages[m->tensors[t].storage];
    if (s->home == MDL_HOME_ARENA) {
        T_LE(s->first_op, op);
        T_LE(op, s->last_op);
    }
}

static void check_lifetimes(const struct mdl_model *m)
{
    for (size_t k = 0; k < m->op_count; k++) {
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            touch(m, m->ops[k].in[i], k);
        }
        touch(m, m->ops[k].residual_in, k);
        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            touch(m, m->ops[k].out[i], k);
        }
    }
    for (size_t i = 0; i < m->input_count; i++) {
        if (m->inputs[i].entry_op != MDL_NONE) {
            const struct mdl_tensor *y = &m->tensors[m->ops[m->inputs[i].entry_op].out[0]];

            T_EQ(m->storages[y->storage].first_op, 0);
        }
    }
}

/* A random graph over images: every value has 4 dims. */
struct random_graph {
    struct gb *g;
    struct {
        char *name;
        int64_t dim[4];
    } value[80];
    size_t count;
};

static size_t new_value(struct random_graph *r, const int64_t *dim)
{
    r->value[r->count].name = mdl_pool_printf(r->g->pool, "v%zu", r->count);
    memcpy(r->value[r->count].dim, dim, sizeof(r->value[0].dim));
    return r->count++;
}

static size_t pick(struct random_graph *r)
{
    /* mostly recent ones: chains, with some long ways around */
    size_t back = (size_t)t_range(0, t_range(0, 3) ? 3 : (int64_t)r->count);

    return r->count - 1 - base_min(back, r->count - 1);
}

/* another value like @a, or @a itself */
static size_t pick_like(struct random_graph *r, size_t a, bool any_channels)
{
    size_t start = (size_t)t_range(0, (int64_t)r->count - 1);

    for (size_t i = 0; i < r->count; i++) {
        size_t b = (start + i) % r->count;
        const int64_t *x = r->value[a].dim, *y = r->value[b].dim;

        if (b != a && x[0] == y[0] && x[2] == y[2] && x[3] == y[3] &&
            (any_channels || x[1] == y[1])) {
            return b;
        }
    }
    return a;
}

static void add_conv(struct random_graph *r, size_t a, int64_t *dim)
{
    struct gb *g = r->g;
    size_t kernel = t_range(0, 1) ? 3 : 1, out = (size_t)t_range(1, 6);
    char *w = mdl_pool_printf(g->pool, "w%zu", r->count);
    int64_t pad = (int64_t)(kernel / 2);

    gb_weights(g, w, 4, (size_t[]){out, (size_t)dim[1], kernel, kernel});
    dim[1] = (int64_t)out;
    gb_node(g, "Conv", "", mdl_pool_printf(g->pool, "%s %s", r->value[a].name, w),
            r->value[new_value(r, dim)].name);
    gb_ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
}

static void add_window(struct random_graph *r, const char *op, const char *in, int64_t *dim)
{
    dim[2] = (dim[2] + 1) / 2;
    dim[3] = (dim[3] + 1) / 2;
    gb_node(r->g, op, "", in, r->value[new_value(r, dim)].name);
    gb_ints(r->g, "kernel_shape", 2, (int64_t[]){1, 1});
    gb_ints(r->g, "strides", 2, (int64_t[]){2, 2});
}

static void add_reshape(struct random_graph *r, const char *in, int64_t *dim)
{
    char *s = mdl_pool_printf(r->g->pool, "s%zu", r->count);
    int64_t channels = dim[1];

    dim[1] = dim[3];
    dim[3] = channels;
    gb_i64(r->g, s, 4, dim);
    gb_node(r->g, "Reshape", "", mdl_pool_printf(r->g->pool, "%s %s", in, s),
            r->value[new_value(r, dim)].name);
}

static void add_node(struct random_graph *r)
{
    static const char *const unary[] = {"Relu", "Sigmoid", "Tanh", "Softsign", "Abs"};
    static const char *const binary[] = {"Add", "Add", "Mul", "Max", "Sub"};
    struct gb *g = r->g;
    size_t a = pick(r), b;
    const char *in = r->value[a].name;
    int64_t dim[4], half;

    memcpy(dim, r->value[a].dim, sizeof(dim));
    switch (t_range(0, 11)) {
    case 0:
    case 1:
        add_conv(r, a, dim);
        break;
    case 2:
    case 3:
        gb_node(g, unary[t_range(0, 4)], "", in, r->value[new_value(r, dim)].name);
        break;
    case 4:
    case 5:
        b = pick_like(r, a, false);
        gb_node(g, binary[t_range(0, 4)], "",
                mdl_pool_printf(g->pool, "%s %s", in, r->value[b].name),
                r->value[new_value(r, dim)].name);
        break;
    case 6:
    case 7:
        b = pick_like(r, a, true);
        if (dim[1] + r->value[b].dim[1] > 24) {
            break;
        }
        dim[1] += r->value[b].dim[1];
        gb_node(g, "Concat", "", mdl_pool_printf(g->pool, "%s %s", in, r->value[b].name),
                r->value[new_value(r, dim)].name);
        gb_int(g, "axis", 1);
        break;
    case 8:
        add_window(r, t_range(0, 1) ? "MaxPool" : "AveragePool", in, dim);
        break;
    case 9:
        add_reshape(r, in, dim);
        break;
    case 10:
        half = dim[3];
        dim[3] = dim[2];
        dim[2] = half;
        gb_node(g, "Transpose", "", in, r->value[new_value(r, dim)].name);
        gb_ints(g, "perm", 4, (int64_t[]){0, 1, 3, 2});
        break;
    default:
        half = (dim[1] + 1) / 2;
        dim[1] -= half;
        if (dim[1] == 0) {
            break;
        }
        gb_i64(g, mdl_pool_printf(g->pool, "b%zu", r->count), 1, &half);
        gb_i64(g, mdl_pool_printf(g->pool, "e%zu", r->count), 1, (int64_t[]){1000});
        gb_i64(g, mdl_pool_printf(g->pool, "x%zu", r->count), 1, (int64_t[]){1});
        in = mdl_pool_printf(g->pool, "%s b%zu e%zu x%zu", in, r->count, r->count, r->count);
        gb_node(g, "Slice", "", in, r->value[new_value(r, dim)].name);
        break;
    }
}

static void make_graph(struct gb *g, struct random_graph *r)
{
    *r = (struct random_graph){.g = g};
    gb_init(g, 13);
    gb_input(g, r->value[new_value(r, (int64_t[]){1, t_range(1, 4), 4, 6})].name, 4,
             r->value[0].dim);
    for (int64_t n = t_range(3, 30); n > 0; n--) {
        add_node(r);
    }
    gb_output(g, r->value[r->count - 1].name);
    for (int64_t n = t_range(0, 2); n > 0; n--) {
        gb_output(g, r->value[t_range(0, (int64_t)r->count - 1)].name);
    }
}

static void one_round(uint64_t seed)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct gb g;
    struct random_graph r;
    struct mdl_model *m, *single;
    struct run_model a, b;

    t_state = seed;
    make_graph(&g, &r);
    m = gb_compile(&g, NULL);
    single = gb_compile(&g, &plain);
    if (!m || !single) {
        T_FAIL("round seed %llu: %s", (unsigned long long)seed, g.error);
    }
    check_views(m);
    check_storages(m);
    check_lifetimes(m);
    check_views(single);
    check_storages(single);
    run_model_init(&a, m);
    run_model_init(&b, single);
    T_TRUE(run_model_go(&a, seed));
    T_TRUE(run_model_go(&b, seed));
    for (size_t i = 0; i < m->output_count; i++) {
        double d = run_model_distance(&a, &b, i);

        if (!(d <= 1e-4)) {
            T_FAIL("round seed %llu, output %zu of %zu ops: %g", (unsigned long long)seed, i,
                   m->op_count, d);
        }
    }
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(m);
    mdl_free(single);
    gb_free(&g);
}

TEST(random_graphs)
{
    uint64_t state = t_state;

    for (int round = 0; round < ROUNDS; round++) {
        one_round(state + (uint64_t)round * 7919);
    }
}

/* Element functions in a row need one buffer, not one each. */
TEST(in_place)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){64, 64});
    gb_node(&g, "Exp", "", "x", "a");
    gb_node(&g, "Sin", "", "x", "dead");
    gb_node(&g, "Abs", "", "a", "b");
    gb_node(&g, "Sqrt", "", "b", "c");
    gb_node(&g, "Add", "", "c x", "d");
    gb_node(&g, "Transpose", "", "d", "e");
    gb_node(&g, "MatMul", "", "d e", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    /* the input's own room (an image is converted into it), and one buffer for a, b, c, d */
    T_EQ(m->arena_bytes, 2 * 64 * 64 * 4);
    mdl_free(m);
    gb_free(&g);
}

/* x + transpose(x) reads x elsewhere than it writes: not in place. */
TEST(not_in_place)
{
    struct gb g;
    struct mdl_model *m;
    const struct mdl_op *add;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){8, 8});
    gb_node(&g, "Exp", "", "x", "a");
    gb_node(&g, "Transpose", "", "a", "b");
    gb_node(&g, "Add", "", "a b", "c");
    gb_node(&g, "MatMul", "", "c c", "y");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    add = &m->ops[1];
    T_EQ(add->kind, MDL_OP_BINARY);
    T_NE(m->tensors[add->in[0]].storage, m->tensors[add->out[0]].storage);
    mdl_free(m);
    gb_free(&g);
}

/* Places of the input of a first layer and of the result of the pooling after it. @channels: of
 * what comes later. Return: both lie beside each other. */
static bool stem_and_pooling(size_t channels, size_t *ret_arena_bytes)
{
    struct gb g;
    struct mdl_model *m;
    const struct mdl_storage *x, *y;
    bool apart;

    gb_init(&g, 13);
    gb_input(&g, "x", 4, (int64_t[]){1, 3, 32, 32});
    gb_weights(&g, "w", 4, (size_t[]){8, 3, 3, 3});
    gb_node(&g, "Conv", "", "x w", "a");
    gb_ints(&g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    gb_node(&g, "MaxPool", "", "a", "b");
    gb_ints(&g, "kernel_shape", 2, (int64_t[]){2, 2});
    gb_ints(&g, "strides", 2, (int64_t[]){2, 2});
    gb_node(&g, "Conv", "", "b w2", "c");
    gb_weights(&g, "w2", 4, (size_t[]){channels, 8, 1, 1});
    gb_node(&g, "Conv", "", "c w3", "d");
    gb_weights(&g, "w3", 4, (size_t[]){1, channels, 1, 1});
    gb_output(&g, "d");
    m = gb_compile(&g, NULL);
    x = &m->storages[m->tensors[m->ops[1].in[0]].storage];
    y = &m->storages[m->tensors[m->ops[2].out[0]].storage];
    apart = m->ops[1].kind == MDL_OP_CONV && m->ops[2].kind == MDL_OP_MAX_POOL &&
            x->home == MDL_HOME_ARENA && y->home == MDL_HOME_ARENA &&
            (x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset);
    *ret_arena_bytes = m->arena_bytes;
    mdl_free(m);
    gb_free(&g);
    return apart;
}

/* They may run as one if the pooling's result does not lie on what the first layer reads, which is
 * to cost no memory. */
TEST(first_layer_and_pooling)
{
    const size_t x = 3 * 32 * 32 * 4, a = 8 * 32 * 32 * 4, b = 8 * 16 * 16 * 4;
    size_t bytes;

    T_TRUE(stem_and_pooling(64, &bytes)); /* more is needed later */
    T_EQ(bytes, b + 64 * 16 * 16 * 4);
    T_TRUE(!stem_and_pooling(8, &bytes));
    T_EQ(bytes, x + a);
}

/* Empty tensors: nothing runs on them, what is made of them is right. */
TEST(empty_tensors)
{
    struct gb g;
    struct mdl_model *m;
    struct run_model r;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){4, 3});
    gb_i64(&g, "s", 1, (int64_t[]){4});
    gb_i64(&g, "e", 1, (int64_t[]){9});
    gb_node(&g, "Slice", "", "x s e", "none");
    gb_node(&g, "Exp", "", "none", "n2");
    gb_node(&g, "Concat", "", "n2 x n2", "y");
    gb_int(&g, "axis", 0);
    gb_output(&g, "y");
    gb_output(&g, "n2");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(gb_out(m, 0)->dim[0], 4);
    T_EQ(m->outputs[1].bytes, 0);
    run_model_init(&r, m);
    T_TRUE(run_model_go(&r, 5));
    T_EQ(memcmp(r.outputs[0], r.inputs[0], 48), 0);
    run_model_deinit(&r);
    mdl_free(m);
    gb_free(&g);
}

TEST_MAIN()
