/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing primitives for one model on one core: what measuring takes, what each search finds and
 * looks at (QS-DNN's table III), the front of time against packed bytes, and whether the choice
 * holds what it promises: it and the uniform choices are run in turns, frame by frame.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "kernels/select/choose.h"
#include "tests/unit/kernels/choose_uniform.h"

#define WAYS_MAX 8u
#define FRONT_MAX 16u

static const struct {
    const char *name, *only;
} uniform[] = {{"ours", "__avx,__vec,__neon"},
               {"OpenBLAS", "__blas"},
               {"XNNPACK", "__xnn"},
               {"oneDNN", "__dnnl"}};

struct options {
    const char *model;
    long cpu;
    unsigned long ms, frames, episodes;
    bool inexact;
};

struct way {
    const char *name;
    struct krn_chosen chosen;
    struct krn_net *net;
    size_t named; /* ops that a row of that name runs */
    double *ns;   /* [frames] */
};

struct bench {
    struct options o;
    struct mdl_model *m;
    struct krn_times times;
    struct way ways[WAYS_MAX];
    size_t way_count;
    struct krn_mem mem;
};

static void fail(const char *what, int error)
{
    fprintf(stderr, "choose_bench: %s: %s\n", what, strerror(-error));
    exit(1);
}

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.cpu = -1, .ms = 4000, .frames = 20, .episodes = 1000};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;

        if (argv[i][0] != '-' && !o->model) {
            o->model = argv[i];
        } else if (strcmp(argv[i], "--inexact") == 0) {
            o->inexact = true;
        } else if (!next) {
            return false;
        } else if (strcmp(argv[i], "--ms") == 0) {
            o->ms = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--frames") == 0) {
            o->frames = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--episodes") == 0) {
            o->episodes = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--cpu") == 0) {
            o->cpu = strtol(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return o->model && o->frames > 0 && o->frames <= 10000 && o->ms > 0 && o->episodes > 0;
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, base_align_up(bytes + 1, 64));

    if (!p) {
        fail("memory", -ENOMEM);
    }
    memset(p, 0, bytes);
    return p;
}

static void load(struct bench *b)
{
    struct mdl_load_options options = {.const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];
    void **inputs, **outputs;

    if (mdl_load(b->o.model, &options, error, &b->m) != 0) {
        fprintf(stderr, "choose_bench: %s: %s\n", b->o.model, error);
        exit(1);
    }
    inputs = memory(b->m->input_count * sizeof(*inputs));
    outputs = memory(b->m->output_count * sizeof(*outputs));
    for (size_t i = 0; i < b->m->input_count; i++) {
        inputs[i] = memory(b->m->inputs[i].bytes);
        for (size_t k = 0; k < b->m->inputs[i].bytes / sizeof(float); k++) {
            ((float *)inputs[i])[k] = (float)(k * 2654435761u % 1000) / 500.0f - 1.0f;
        }
    }
    for (size_t i = 0; i < b->m->output_count; i++) {
        outputs[i] = memory(b->m->outputs[i].bytes);
    }
    b->mem = (struct krn_mem){.arena = memory(b->m->arena_bytes),
                              .inputs = (const void *const *)inputs,
                              .outputs = outputs};
}

/* ---- searches ---- */

/* Ops that run on planes, or leave or take them. */
static size_t on_planes(const struct bench *b, const struct krn_chosen *c)
{
    size_t count = 0;

    for (size_t i = 0; i < b->m->op_count; i++) {
        bool second = i > 0 && c->choice.fused[i - 1];
        const struct krn_primitive *v = second ? NULL : c->choice.own[i];

        count += v && !c->choice.fused[i] && (v->nchw_in || v->nchw_out);
    }
    return count;
}

static void print_searches(const struct bench *b)
{
    struct krn_choose_options o = {.exact = !b->o.inexact};
    struct krn_chosen c;

    printf("  \"rows\": %zu, \"ops\": %zu, \"measured_s\": %.2f,\n  \"searches\": [",
           b->times.count, b->times.op_count, (double)b->times.took_ns / 1e9);
    for (size_t a = 0; a < KRN_PATH_ALGORITHM_COUNT; a++) {
        uint64_t start = base_now_ns();
        int r;

        o.path = (struct krn_path_options){
            .algorithm = (enum krn_path_algorithm)a, .episodes = b->o.episodes, .seed = 1};
        r = krn_choose(&b->times, &o, &c);
        if (r < 0) {
            fail("search", r);
        }
        printf("%s\n    {\"algorithm\": \"%s\", \"found_ms\": %.4f, \"states\": %zu, "
               "\"on_planes\": %zu, \"took_ms\": %.3f}",
               a ? "," : "", krn_path_name((enum krn_path_algorithm)a), c.ns / 1e6, c.states,
               on_planes(b, &c), (double)(base_now_ns() - start) / 1e6);
        krn_chosen_deinit(&c);
    }
    printf("],\n");
}

static void print_front(const struct bench *b)
{
    struct krn_choose_options o = {.exact = !b->o.inexact};
    struct krn_chosen front[FRONT_MAX];
    size_t count = 0;
    int r = krn_choose_front(&b->times, &o, FRONT_MAX, front, &count);

    if (r < 0) {
        fail("front", r);
    }
    printf("  \"front\": [");
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"ms\": %.4f, \"packed_mb\": %.3f, \"inexact\": %zu}", i ? ", " : "",
               front[i].ns / 1e6, (double)front[i].packed_bytes / 1e6, front[i].inexact);
        krn_chosen_deinit(&front[i]);
    }
    printf("],\n");
}

/* ---- the choice against uniform ones ---- */

static void add_way(struct bench *b, const char *name, const char *only)
{
    struct way *w = &b->ways[b->way_count];
    struct krn_choose_options o = {.exact = true};
    char error[MDL_ERROR_MAX];
    int r =
        only ? choose_uniform(&b->times, only, &w->chosen) : krn_choose(&b->times, &o, &w->chosen);

    if (r < 0) {
        fail(name, r);
    }
    for (size_t i = 0; only && i < b->m->op_count; i++) {
        w->named += krn_primitive_named(w->chosen.choice.own[i], only);
    }
    if (only && w->named == 0) {
        krn_chosen_deinit(&w->chosen);
        return;
    }
    w->name = name;
    w->ns = memory(b->o.frames * sizeof(*w->ns));
    r = krn_net_new_chosen(b->m, &w->chosen.choice, 1, KRN_PACK_ONE_STAGE, error, &w->net);
    if (r < 0) {
        fail(error, r);
    }
    b->way_count++;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static void run_ways(struct bench *b)
{
    struct krn_exec exec[WAYS_MAX];
    size_t last = b->m->op_count - 1;

    for (size_t w = 0; w < b->way_count; w++) {
        size_t scratch = 0;

        if (krn_net_join(b->ways[w].net, 0, 0, last, 1, &scratch) < 0) {
            fail("join", -ENOMEM);
        }
        exec[w] = (struct krn_exec){.width = 1, .scratch = memory(scratch)};
    }
    for (size_t f = 0; f < b->o.frames + 2; f++) {
        for (size_t w = 0; w < b->way_count; w++) {
            uint64_t start = base_now_ns();

            krn_net_run_ops(b->ways[w].net, 0, last, &b->mem, &exec[w]);
            if (f >= 2) {
                b->ways[w].ns[f - 2] = (double)(base_now_ns() - start);
            }
        }
    }
    for (size_t w = 0; w < b->way_count; w++) {
        free(exec[w].scratch);
    }
}

static void print_ways(struct bench *b)
{
    double best = 0, chosen;

    for (size_t w = 0; w < b->way_count; w++) {
        struct way *x = &b->ways[w];

        qsort(x->ns, b->o.frames, sizeof(*x->ns), by_value);
        if (w > 0 && (best == 0 || x->ns[b->o.frames / 2] < best)) {
            best = x->ns[b->o.frames / 2];
        }
    }
    chosen = b->ways[0].ns[b->o.frames / 2];
    printf("  \"ways\": [");
    for (size_t w = 0; w < b->way_count; w++) {
        struct way *x = &b->ways[w];

        printf("%s\n    {\"way\": \"%s\", \"ops\": %zu, \"on_planes\": %zu, \"predicted_ms\": "
               "%.4f, \"median_ms\": "
               "%.4f, \"min_ms\": %.4f, \"packed_mb\": %.2f}",
               w ? "," : "", x->name, w ? x->named : b->m->op_count, on_planes(b, &x->chosen),
               x->chosen.ns / 1e6, x->ns[b->o.frames / 2] / 1e6, x->ns[0] / 1e6,
               (double)x->chosen.packed_bytes / 1e6);
        krn_net_free(x->net);
        krn_chosen_deinit(&x->chosen);
    }
    printf("],\n  \"best_uniform_over_chosen\": %.4f}\n", best / chosen);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct krn_measure_options mo;
    int r;

    if (!parse(argc, argv, &b.o)) {
        fputs("usage: choose_bench MODEL [--cpu C] [--ms N] [--frames N] [--episodes N] "
              "[--inexact]\n",
              stderr);
        return 2;
    }
    if (b.o.cpu >= 0) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t)b.o.cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
    load(&b);
    mo = (struct krn_measure_options){
        .cpu = (int)b.o.cpu, .budget_ns = b.o.ms * BASE_NS_PER_MS, .inexact = b.o.inexact};
    r = krn_measure(b.m, &mo, &b.times);
    if (r < 0) {
        fail("measure", r);
    }
    printf("{\"model\": \"%s\",\n", b.m->name);
    print_searches(&b);
    print_front(&b);
    add_way(&b, "chosen", NULL);
    for (size_t i = 0; i < base_array_count(uniform); i++) {
        add_way(&b, uniform[i].name, uniform[i].only);
    }
    run_ways(&b);
    print_ways(&b);
    return 0;
}
