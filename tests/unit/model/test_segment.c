/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of small models: what is alive at a border, where it lies, and that chains of segments
 * equal the whole, bit for bit, on the reference operators. */
#include <sys/mman.h>

#include "model/segment/segment.h"
#include "model/segment/segment_name.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

static char error[MDL_ERROR_MAX];

/* ---- chains ---- */

static struct mdl_model *cut(const struct mdl_model *m, size_t first, size_t last)
{
    struct mdl_model *s = NULL;

    if (mdl_segment(m, first, last, NULL, error, &s) < 0) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
    return s;
}

/* Frees a run and its model. */
static void end_run(struct run_model *r)
{
    struct mdl_model *m = (struct mdl_model *)(uintptr_t)r->m;

    run_model_deinit(r);
    mdl_free(m);
}

/* Runs the segments that @cuts make, the outputs of each as the inputs of the next; checks that no
 * input is written. */
static bool chain_equals(const struct mdl_model *m, const struct run_model *whole,
                         const size_t *cuts, size_t count)
{
    struct run_model last = {0};
    bool same = true;

    for (size_t i = 0; i <= count && same; i++) {
        size_t first = i ? cuts[i - 1] : 0, end = i < count ? cuts[i] : m->unit_count;
        struct mdl_model *s = cut(m, first, end - 1);
        struct run_model r;
        void *kept[RUN_MODEL_IO];

        run_model_init(&r, s);
        same = r.net && s->input_count == (i ? last.m->output_count : m->input_count);
        for (size_t k = 0; k < s->input_count && same; k++) {
            size_t bytes = s->inputs[k].bytes;

            same = !i || bytes == last.m->outputs[k].bytes;
            kept[k] = run_model_alloc(bytes, 0);
            memcpy(r.inputs[k], i ? last.outputs[k] : whole->inputs[k], bytes);
            memcpy(kept[k], r.inputs[k], bytes);
        }
        if (same) {
            struct krn_mem mem = {r.arena, (const void *const *)r.inputs, r.outputs};
            struct krn_exec exec = {.width = 1, .scratch = r.scratch};

            krn_net_run_ops(r.net, 0, s->op_count - 1, &mem, &exec);
        }
        for (size_t k = 0; k < s->input_count; k++) {
            same = same && memcmp(kept[k], r.inputs[k], s->inputs[k].bytes) == 0;
            free(kept[k]);
        }
        end_run(&last);
        last = r;
    }
    for (size_t k = 0; k < m->output_count; k++) {
        same = same && memcmp(last.outputs[k], whole->outputs[k], m->outputs[k].bytes) == 0;
    }
    end_run(&last);
    return same;
}

/* Every cut, every unit alone, and some chains. */
static bool chains_equal(const struct mdl_model *m, uint64_t seed)
{
    struct run_model whole;
    size_t all[GB_MAX];
    bool same;

    run_model_init(&whole, m);
    same = run_model_go(&whole, seed);
    for (size_t u = 1; u < m->unit_count; u++) {
        all[u - 1] = u;
        if (same && !chain_equals(m, &whole, &u, 1)) {
            fprintf(stderr, "cut before %zu\n", u);
            same = false;
        }
    }
    if (same && !chain_equals(m, &whole, all, m->unit_count - 1)) {
        fprintf(stderr, "each unit alone\n");
        same = false;
    }
    for (size_t a = 1; a + 2 < m->unit_count && same; a++) {
        same = chain_equals(m, &whole, (size_t[]){a, a + 1, m->unit_count - 1}, 3);
    }
    same = same && chain_equals(m, &whole, NULL, 0);
    run_model_deinit(&whole);
    return same;
}

/* ---- graphs ---- */

static void conv(struct gb *g, const char *name, const char *in, size_t from, size_t to,
                 const char *out)
{
    char w[32], inputs[128];

    snprintf(w, sizeof(w), "w_%s", name);
    snprintf(inputs, sizeof(inputs), "%s %s", in, w);
    gb_weights(g, w, 4, (size_t[]){to, from, 3, 3});
    gb_node(g, "Conv", name, inputs, out);
    gb_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
}

static void concat(struct gb *g, const char *name, const char *in, const char *out)
{
    gb_node(g, "Concat", name, in, out);
    gb_int(g, "axis", 1);
}

static struct mdl_model *residual(struct gb *g)
{
    gb_init(g, 13);
    gb_input(g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(g, "a", "x", 3, 8, "ya");
    conv(g, "b", "ya", 8, 8, "yb");
    conv(g, "c", "yb", 8, 8, "yc");
    gb_node(g, "Add", "add", "yc ya", "sum");
    conv(g, "d", "sum", 8, 4, "y");
    gb_output(g, "y");
    return gb_compile(g, NULL);
}

/* A dense block: every layer reads the concat of all before it. */
static struct mdl_model *dense(struct gb *g)
{
    gb_init(g, 13);
    gb_input(g, "x", 4, (int64_t[]){1, 3, 6, 6});
    conv(g, "a", "x", 3, 4, "p0");
    conv(g, "b", "p0", 4, 5, "p1");
    concat(g, "c1", "p0 p1", "k1");
    conv(g, "c", "k1", 9, 6, "p2");
    concat(g, "c2", "p0 p1 p2", "k2");
    conv(g, "d", "k2", 15, 7, "p3");
    concat(g, "c3", "p0 p1 p2 p3", "k3");
    conv(g, "e", "k3", 22, 4, "y");
    gb_output(g, "y");
    return gb_compile(g, NULL);
}

/* An output that is ready early, an input that is needed late, a value that is overwritten in
 * place, a split. */
static struct mdl_model *odd(struct gb *g)
{
    gb_init(g, 13);
    gb_input(g, "x", 4, (int64_t[]){1, 4, 6, 6});
    gb_input(g, "late", 4, (int64_t[]){1, 4, 6, 6});
    conv(g, "a", "x", 4, 4, "ya");
    conv(g, "early", "ya", 4, 2, "y1");
    gb_node(g, "Exp", "exp", "ya", "ye");
    conv(g, "b", "x", 4, 4, "yb");
    gb_node(g, "Mul", "mul", "ye yb", "ym");
    conv(g, "c", "ym", 4, 8, "yc");
    gb_node(g, "Split", "split", "yc", "s0 s1");
    gb_int(g, "axis", 1);
    conv(g, "d", "s1", 4, 4, "yd");
    gb_node(g, "Add", "add", "yd s0", "sum");
    conv(g, "e", "late", 4, 4, "yl");
    gb_node(g, "Mul", "mul2", "yl sum", "y2");
    gb_output(g, "y1");
    gb_output(g, "y2");
    return gb_compile(g, NULL);
}

TEST(chains_of_small_models)
{
    struct mdl_model *(*const makers[])(struct gb *) = {residual, dense, odd};
    static struct gb g;

    for (size_t i = 0; i < base_array_count(makers); i++) {
        struct mdl_model *m = makers[i](&g);

        T_TRUE(m != NULL);
        T_TRUE(chains_equal(m, 5 + i));
        mdl_free(m);
        gb_free(&g);
    }
}

/* Values of one size; each op reads any that are there. */
TEST(chains_of_random_models)
{
    static struct gb g;

    for (int round = 0; round < t_times(60); round++) {
        size_t channels[64], count = 1, ops = (size_t)t_range(3, 14);
        struct mdl_model *m;
        char out[16], in[64];

        gb_init(&g, 13);
        gb_input(&g, "v0", 4, (int64_t[]){1, 3, 5, 4});
        channels[0] = 3;
        for (size_t i = 0; i < ops; i++, count++) {
            size_t a = (size_t)t_range((int64_t)(count > 4 ? count - 4 : 0), (int64_t)count - 1);
            size_t b = (size_t)t_range(0, (int64_t)count - 1);
            int64_t kind = t_range(0, 5);
            char name[32];

            snprintf(out, sizeof(out), "v%zu", count);
            snprintf(name, sizeof(name), "op%zu", i);
            snprintf(in, sizeof(in), "v%zu", a);
            if (kind == 2 && channels[a] != channels[b]) {
                kind = 3;
            }
            switch (kind) {
            case 0:
                snprintf(in, sizeof(in), "v%zu v%zu", a, b);
                concat(&g, name, in, out);
                channels[count] = channels[a] + channels[b];
                break;
            case 1:
                gb_node(&g, t_range(0, 1) ? "Tanh" : "Relu", name, in, out);
                channels[count] = channels[a];
                break;
            case 2:
                snprintf(in, sizeof(in), "v%zu v%zu", a, b);
                gb_node(&g, "Mul", name, in, out);
                channels[count] = channels[a];
                break;
            default:
                channels[count] = (size_t)t_range(1, 6);
                conv(&g, name, in, channels[a], channels[count], out);
                break;
            }
        }
        gb_output(&g, out);
        snprintf(in, sizeof(in), "v%zu", (size_t)t_range(1, (int64_t)count - 2));
        gb_output(&g, in);
        m = gb_compile(&g, NULL);
        T_TRUE(m != NULL);
        T_TRUE(chains_equal(m, (uint64_t)round));
        mdl_free(m);
        gb_free(&g);
    }
}

/* ---- borders ---- */

TEST(tensors_at_a_border)
{
    static struct gb g;
    struct mdl_model *m = dense(&g);
    struct mdl_border b, other;

    T_TRUE(m != NULL);
    T_EQ(m->unit_count, 5u);
    /* p0 and p1 adjoin, and are one tensor; p2 and p3 are not written yet */
    T_EQ(mdl_border(m, 2, &b), 0);
    T_EQ(b.count, 1u);
    T_EQ(b.live[0].t.dim[1], 9u);
    T_EQ(b.live[0].dense[1], 1);
    T_EQ(b.live[0].dense[3], 9);
    T_EQ(b.live[0].t.stride[3], 22);
    T_EQ(b.bytes, 9u * 36 * 4);
    T_EQ(mdl_border(m, 2, &other), 0);
    T_STR(b.hash, other.hash);
    mdl_border_deinit(&other);
    T_EQ(mdl_border(m, 3, &other), 0);
    T_TRUE(strcmp(b.hash, other.hash) != 0);
    mdl_border_deinit(&other);
    mdl_border_deinit(&b);
    /* the finished concat is one tensor with its name, and needs no copy */
    T_EQ(mdl_border(m, 4, &b), 0);
    T_EQ(b.count, 1u);
    T_STR(b.live[0].t.name, "k3");
    mdl_border_deinit(&b);
    T_EQ(mdl_border(m, 6, &b), -EINVAL);
    mdl_free(m);
    gb_free(&g);
}

TEST(early_outputs_and_late_inputs_pass_by)
{
    static struct gb g;
    struct mdl_model *m = odd(&g), *s;
    struct mdl_border b;

    T_TRUE(m != NULL);
    T_EQ(mdl_border(m, 3, &b), 0);
    T_EQ(b.count >= 3, 1);
    T_STR(b.live[0].t.name, "late");
    mdl_border_deinit(&b);
    s = cut(m, 2, 2);
    T_STR(s->inputs[0].name, "late");
    T_STR(s->outputs[0].name, "late");
    T_EQ(s->units[0].first_op, 0u);
    T_EQ(s->units[0].last_op, s->op_count - 1);
    mdl_free(s);
    mdl_free(m);
    gb_free(&g);
}

static size_t copies(const struct mdl_model *m)
{
    return gb_count_ops(m, MDL_OP_COPY);
}

TEST(copies_only_where_a_tensor_passes_by)
{
    static struct gb g;
    struct mdl_model *m = residual(&g), *s;
    struct mdl_model *head;

    for (size_t u = 1; u < m->unit_count; u++) {
        head = cut(m, 0, u - 1);
        s = cut(m, u, m->unit_count - 1);
        T_EQ(copies(head) + copies(s), copies(m));
        T_TRUE(head->arena_bytes <= m->arena_bytes);
        mdl_free(head);
        T_TRUE(s->arena_bytes <= m->arena_bytes);
        T_TRUE(s->weight_bytes < m->weight_bytes);
        mdl_free(s);
    }
    s = cut(m, 1, 1); /* what the second convolution reads is needed behind it, too */
    T_EQ(copies(s), 1u);
    T_STR(s->units[0].name, "b");
    T_STR(s->name, "built#1-1");
    T_EQ(s->preproc.known, false);
    mdl_free(s);
    mdl_free(m);
    gb_free(&g);
}

TEST(segments_outlive_the_model)
{
    static struct gb g;
    struct mdl_model *m = residual(&g), *s = cut(m, 1, 2);
    struct run_model r;

    mdl_free(m);
    gb_free(&g);
    run_model_init(&r, s);
    T_TRUE(run_model_go(&r, 1));
    run_model_deinit(&r);
    mdl_free(s);
}

TEST(bad_ranges_are_refused)
{
    static struct gb g;
    struct mdl_model *m = residual(&g), *s = cut(m, 1, 2), *none = NULL;
    struct mdl_segment_limits small = {.arena_bytes_max = 64};

    T_EQ(mdl_segment(m, 2, 1, NULL, error, &none), -EINVAL);
    T_STR(error, "units 2-1: built has units 0-3");
    T_EQ(mdl_segment(m, 0, 4, NULL, error, &none), -EINVAL);
    T_EQ(mdl_segment(m, SIZE_MAX, SIZE_MAX, NULL, error, &none), -EINVAL);
    T_EQ(mdl_segment(s, 0, 0, NULL, error, &none), -EINVAL);
    T_STR(error, "built#1-2 is a segment; only a whole model can be cut");
    T_EQ(mdl_segment(m, 0, 2, &small, error, &none), -E2BIG);
    small = (struct mdl_segment_limits){.weight_bytes_max = 64};
    T_EQ(mdl_segment(m, 0, 2, &small, error, &none), -E2BIG);
    T_TRUE(none == NULL);
    mdl_free(s);
    mdl_free(m);
    gb_free(&g);
}

/* ---- names ---- */

TEST(names)
{
    static const char *const bad[] = {"",
                                      "#",
                                      "#1-2",
                                      "-a",
                                      "a b",
                                      "a#",
                                      "a#1",
                                      "a#1-",
                                      "a#-1",
                                      "a#2-1",
                                      "a#01-2",
                                      "a#1-02",
                                      "a#1-2#3-4",
                                      "a#1-2 ",
                                      "a# 1-2",
                                      "a#+1-2",
                                      "a#1--2",
                                      "a#0-10000000",
                                      "a#99999999999999999999-99999999999999999999",
                                      "a/b",
                                      "a\nb",
                                      "a#1-2\n",
                                      ".",
                                      "..",
                                      "..#0-1",
                                      "a/b",
                                      "a%2e",
                                      "\xff"};
    char text[MDL_SEGMENT_NAME_MAX + 20];
    struct mdl_segment_name n;

    for (size_t i = 0; i < base_array_count(bad); i++) {
        if (mdl_segment_name_parse(bad[i], &n)) {
            T_FAIL("\"%s\" is a name", bad[i]);
        }
    }
    T_TRUE(mdl_segment_name_parse("res.Net_5-0", &n) && !n.is_segment);
    T_STR(n.model, "res.Net_5-0");
    T_TRUE(mdl_segment_name_parse("resnet#17-44", &n) && n.is_segment);
    T_STR(n.model, "resnet");
    T_EQ(n.first_unit, 17u);
    T_EQ(n.last_unit, 44u);
    T_TRUE(mdl_segment_name_parse("a#0-0", &n));
    memset(text, 'a', sizeof(text));
    text[MDL_SEGMENT_NAME_MAX] = '\0';
    T_TRUE(!mdl_segment_name_parse(text, &n));
    text[MDL_SEGMENT_NAME_MAX - 1] = '\0';
    T_TRUE(mdl_segment_name_parse(text, &n));
}

/* Random bytes: what is parsed is all of the text. */
TEST(random_names)
{
    static const char bytes[] = "ab0129.#--_ \x80";

    for (int i = 0; i < t_times(20000); i++) {
        char text[24] = "", back[MDL_SEGMENT_NAME_MAX + 40];
        size_t length = (size_t)t_range(0, 12);
        struct mdl_segment_name n;

        for (size_t k = 0; k < length; k++) {
            text[k] = bytes[t_range(0, (int64_t)sizeof(bytes) - 2)];
        }
        if (mdl_segment_name_parse(text, &n)) {
            snprintf(back, sizeof(back), n.is_segment ? "%s#%zu-%zu" : "%s", n.model, n.first_unit,
                     n.last_unit);
            T_STR(back, text);
        }
    }
}

TEST_MAIN()
