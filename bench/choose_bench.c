/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing primitives for one model on one core: what measuring takes, what each search finds and
 * looks at (QS-DNN's table III), what Q-learning has learned after how many episodes (figure 4),
 * the front of time against packed bytes, and whether the choice holds what it promises: it and the
 * uniform choices are run in turns, frame by frame, timed by the thread's own clock.
 *
 * --only: just these primitives are measured, of operators that have any of them, and the greedy
 * searches' choices run in place of the uniform ones. --unfused: the best choices without pairs as
 * one, and for the model as its file has it, an operator a node (figure 6).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/median.h"
#include "kernels/kernels.h"
#include "kernels/lib/blas.h"
#include "kernels/select/choose.h"
#include "tests/unit/kernels/choose_uniform.h"

#define WAYS_MAX 8u
#define FRONT_MAX 16u
#define COUNTS_MAX 8u
#define SEEDS 10u
#define EPSILONS 11u /* 1, 0.9 ... 0 */

static const struct {
    const char *name, *only;
} uniform[] = {{"ours", "__avx,__vec,__neon"},
               {"OpenBLAS", "__blas"},
               {"XNNPACK", "__xnn"},
               {"oneDNN", "__dnnl"},
               {"no pairs", ""}};

struct options {
    const char *model, *only;
    long ms, frames;
    size_t episodes[COUNTS_MAX], counts; /* of episodes */
    bool inexact, unfused;
};

struct measured {
    struct mdl_model *m;
    struct krn_times times;
    struct krn_mem mem;
};

struct way {
    const char *name;
    const struct measured *of;
    struct krn_chosen chosen;
    struct krn_net *net;
    struct krn_exec exec;
    size_t named; /* ops that a row of that name runs */
    double *ns;   /* [frames] */
};

struct bench {
    struct options o;
    struct measured fused, unfused;
    struct way ways[WAYS_MAX];
    size_t way_count;
};

static void must(const char *what, int r)
{
    if (r < 0) {
        fprintf(stderr, "choose_bench: %s: %s\n", what, strerror(-r));
        exit(1);
    }
}

static bool parse_counts(const char *text, struct options *o)
{
    char *end;

    for (o->counts = 0; o->counts < COUNTS_MAX; text = end + 1) {
        unsigned long n = strtoul(text, &end, 10);

        if (n == 0 || n > 1000000) {
            return false;
        }
        o->episodes[o->counts++] = n;
        if (*end != ',') {
            return *end == '\0';
        }
    }
    return false;
}

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.ms = 4000, .frames = 20, .episodes = {1000}, .counts = 1};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        long *number = strcmp(argv[i], "--ms") == 0       ? &o->ms
                       : strcmp(argv[i], "--frames") == 0 ? &o->frames
                                                          : NULL;

        if (argv[i][0] != '-' && !o->model) {
            o->model = argv[i];
        } else if (strcmp(argv[i], "--inexact") == 0) {
            o->inexact = true;
        } else if (strcmp(argv[i], "--unfused") == 0) {
            o->unfused = true;
        } else if (!next) {
            return false;
        } else if (number) {
            *number = strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = argv[++i];
        } else if (strcmp(argv[i], "--episodes") != 0 || !parse_counts(argv[++i], o)) {
            return false;
        }
    }
    return o->model && o->frames > 0 && o->frames <= 10000 && o->ms > 0;
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, base_align_up(bytes + 1, 64));

    must("memory", p ? 0 : -ENOMEM);
    memset(p, 0, bytes);
    return p;
}

static void measure(const struct options *o, bool no_fusion, struct measured *ret)
{
    struct mdl_load_options options = {.const_eval = krn_const_eval, .no_fusion = no_fusion};
    struct krn_measure_options mo = {.cpu = -1,
                                     .budget_ns = (uint64_t)o->ms * BASE_NS_PER_MS,
                                     .inexact = o->inexact,
                                     .only = o->only};
    char error[MDL_ERROR_MAX];
    void **inputs, **outputs;
    struct mdl_model *m;

    if (mdl_load(o->model, &options, error, &m) != 0) {
        fprintf(stderr, "choose_bench: %s: %s\n", o->model, error);
        exit(1);
    }
    inputs = memory(m->input_count * sizeof(*inputs));
    outputs = memory(m->output_count * sizeof(*outputs));
    for (size_t i = 0; i < m->input_count; i++) {
        inputs[i] = memory(m->inputs[i].bytes);
        for (size_t k = 0; k < m->inputs[i].bytes / sizeof(float); k++) {
            ((float *)inputs[i])[k] = (float)(k * 2654435761u % 1000) / 500.0f - 1.0f;
        }
    }
    for (size_t i = 0; i < m->output_count; i++) {
        outputs[i] = memory(m->outputs[i].bytes);
    }
    ret->m = m;
    ret->mem = (struct krn_mem){
        .arena = memory(m->arena_bytes), .inputs = (const void *const *)inputs, .outputs = outputs};
    must("measure", krn_measure(m, &mo, &ret->times));
}

/* ---- searches ---- */

/* Ops that run on planes, or leave or take them; changes of layout within a frame. */
struct layouts {
    size_t on_planes, changes;
};

static struct layouts layouts_of(const struct measured *x, const struct krn_chosen *c)
{
    struct layouts all = {0};
    bool stays = false; /* the value before is on planes still */

    for (size_t i = 0; i < x->m->op_count; i++) {
        const struct krn_primitive *v = c->choice.own[i], *next;

        if (c->choice.fused[i]) { /* a pair takes and leaves what the model has */
            stays = false;
            i++;
            continue;
        }
        next = i + 1 < x->m->op_count && !c->choice.fused[i + 1] ? c->choice.own[i + 1] : NULL;
        all.on_planes += v->nchw_in || v->nchw_out;
        all.changes += v->nchw_in && !stays;
        stays = v->nchw_out && next && next->nchw_in && x->times.layouts[i].may_stay;
        all.changes += v->nchw_out && !stays;
    }
    return all;
}

static void search(const struct bench *b, const struct measured *of,
                   const struct krn_path_options *path, struct krn_chosen *ret)
{
    struct krn_choose_options o = {.exact = !b->o.inexact, .path = *path};

    must("search", krn_choose(&of->times, &o, ret));
}

/* The paper's DS sees no change of layout; ours sees those that belong to a node. */
static void search_unseeing(const struct bench *b, struct krn_chosen *ret)
{
    struct measured unseeing = b->fused;
    struct krn_chosen c;

    unseeing.times.layouts = NULL;
    search(b, &unseeing, &(struct krn_path_options){.algorithm = KRN_PATH_DIRECT}, &c);
    must("search", krn_choose_by(&b->fused.times, &c.choice, ret)); /* all have times */
    krn_chosen_deinit(&c);
}

static void print_search(const struct bench *b, const char *name, double took_ns,
                         struct krn_chosen *c)
{
    struct layouts layouts = layouts_of(&b->fused, c);

    printf("\n    {\"algorithm\": \"%s\", \"found_ms\": %.4f, \"states\": %zu, \"on_planes\": %zu, "
           "\"layout_changes\": %zu, \"took_ms\": %.3f}",
           name, c->ns / 1e6, c->states, layouts.on_planes, layouts.changes, took_ns / 1e6);
    krn_chosen_deinit(c);
}

static void print_searches(const struct bench *b)
{
    const struct krn_times *t = &b->fused.times;
    struct krn_chosen c;

    printf("  \"rows\": %zu, \"ops\": %zu, \"measured_s\": %.2f,\n  \"searches\": [", t->count,
           t->op_count, (double)t->took_ns / 1e9);
    for (size_t a = 0; a < KRN_PATH_ALGORITHM_COUNT; a++) {
        struct krn_path_options o = {.algorithm = (enum krn_path_algorithm)a,
                                     .episodes = b->o.episodes[b->o.counts - 1],
                                     .seed = 1};
        uint64_t start = base_now_ns();

        search(b, &b->fused, &o, &c);
        print_search(b, krn_path_name(o.algorithm), (double)(base_now_ns() - start), &c);
        printf(",");
    }
    search_unseeing(b, &c);
    print_search(b, "ds unseeing", 0, &c);
    printf("],\n");
}

/* Prints median, least and most. */
static void print_spread(const char *name, double v[SEEDS])
{
    qsort(v, SEEDS, sizeof(*v), by_value);
    printf(", \"%s\": [%.4f, %.4f, %.4f]", name, (v[(SEEDS - 1) / 2] + v[SEEDS / 2]) / 2, v[0],
           v[SEEDS - 1]);
}

struct learned {
    double least, mean[EPSILONS];
    size_t episodes, at, count[EPSILONS];
};

static void add_episode(void *arg, const size_t *nodes, size_t count, double cost)
{
    struct learned *l = arg;
    size_t twentieth = l->at++ * 20 / l->episodes, k = twentieth < 10 ? 0 : twentieth - 9;

    l->mean[k] += nodes && count ? (cost / l->least - l->mean[k]) / (double)++l->count[k] : 0;
}

/* What SEEDS searches of @episodes find, and, of Q-learning, what an episode of each epsilon costs
 * on average, over the shortest path. */
static void print_learned(const struct bench *b, size_t episodes, double least)
{
    static const enum krn_path_algorithm by_chance[] = {KRN_PATH_Q_LEARNING, KRN_PATH_RANDOM};
    double found[SEEDS], mean[EPSILONS][SEEDS] = {0};

    printf("{\"episodes\": %zu", episodes);
    for (size_t a = 0; a < base_array_count(by_chance); a++) {
        struct krn_path_options o = {
            .algorithm = by_chance[a], .episodes = episodes, .episode = a ? NULL : add_episode};

        for (size_t s = 0; s < SEEDS; s++) {
            struct learned l = {.least = least, .episodes = episodes};
            struct krn_chosen c;

            o.seed = s + 1;
            o.arg = &l;
            search(b, &b->fused, &o, &c);
            found[s] = c.ns / least;
            krn_chosen_deinit(&c);
            for (size_t k = 0; o.episode && k < EPSILONS; k++) {
                mean[k][s] = l.mean[k];
            }
        }
        print_spread(krn_path_name(o.algorithm), found);
    }
    for (size_t k = 0; k < EPSILONS; k++) {
        char name[32];

        snprintf(name, sizeof(name), "epsilon %.1f", (double)(EPSILONS - 1 - k) / 10);
        print_spread(name, mean[k]);
    }
    printf("}");
}

static const struct krn_path_options shortest = {.algorithm = KRN_PATH_DIJKSTRA};

static void print_curve(const struct bench *b)
{
    struct krn_chosen c;

    search(b, &b->fused, &shortest, &c);
    printf("  \"learned_over_dijkstra\": [");
    for (size_t i = 0; i < b->o.counts; i++) {
        printf("%s\n    ", i ? "," : "");
        print_learned(b, b->o.episodes[i], c.ns);
    }
    printf("],\n");
    krn_chosen_deinit(&c);
}

static void print_front(const struct bench *b)
{
    struct krn_choose_options o = {.exact = !b->o.inexact};
    struct krn_chosen front[FRONT_MAX];
    size_t count = 0;

    must("front", krn_choose_front(&b->fused.times, &o, FRONT_MAX, front, &count));
    printf("  \"front\": [");
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"ms\": %.4f, \"packed_mb\": %.3f, \"inexact\": %zu}", i ? ", " : "",
               front[i].ns / 1e6, (double)front[i].packed_bytes / 1e6, front[i].inexact);
        krn_chosen_deinit(&front[i]);
    }
    printf("],\n");
}

/* ---- the choice against others, in turns ---- */
/* @c: taken. @only: what its primitives are named, or it is no way; NULL: any */
static void add_way(struct bench *b, const char *name, const struct measured *of, const char *only,
                    struct krn_chosen *c)
{
    struct way *w = &b->ways[b->way_count];
    char error[MDL_ERROR_MAX];
    size_t named = 0;

    for (size_t i = 0; i < of->m->op_count; i++) {
        named += !only || !*only || krn_primitive_named(c->choice.own[i], only);
    }
    if (named == 0) {
        krn_chosen_deinit(c);
        return;
    }
    *w = (struct way){.name = name, .of = of, .chosen = *c, .named = named};
    w->ns = memory((size_t)b->o.frames * sizeof(*w->ns));
    must("net", krn_net_new_chosen(of->m, &c->choice, 1, KRN_PACK_ONE_STAGE, error, &w->net));
    b->way_count++;
}

static void add_ways(struct bench *b)
{
    struct krn_chosen c;

    search(b, &b->fused, &shortest, &c);
    add_way(b, "chosen", &b->fused, NULL, &c);
    for (size_t i = 0; i < base_array_count(uniform) && !b->o.only; i++) {
        if (b->o.unfused == (*uniform[i].only == '\0')) {
            must("uniform", choose_uniform(&b->fused.times, uniform[i].only, &c));
            add_way(b, uniform[i].name, &b->fused, uniform[i].only, &c);
        }
    }
    if (b->o.unfused) {
        measure(&b->o, true, &b->unfused);
        search(b, &b->unfused, &shortest, &c);
        add_way(b, "unfused", &b->unfused, NULL, &c);
    }
    if (b->o.only) {
        search(b, &b->fused, &(struct krn_path_options){.algorithm = KRN_PATH_DIRECT_PLUS}, &c);
        add_way(b, "ds+", &b->fused, NULL, &c);
        search_unseeing(b, &c);
        add_way(b, "ds unseeing", &b->fused, NULL, &c);
    }
}

static double thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_ways(struct bench *b)
{
    for (size_t w = 0; w < b->way_count; w++) {
        struct way *x = &b->ways[w];
        size_t scratch = 0;

        must("join", krn_net_join(x->net, 0, 0, x->of->m->op_count - 1, 1, &scratch));
        x->exec = (struct krn_exec){.width = 1, .scratch = memory(scratch)};
    }
    for (size_t f = 0; f < (size_t)b->o.frames + 2; f++) {
        for (size_t w = 0; w < b->way_count; w++) {
            struct way *x = &b->ways[w];
            double start = thread_ns();

            krn_net_run_ops(x->net, 0, x->of->m->op_count - 1, &x->of->mem, &x->exec);
            if (f >= 2) {
                x->ns[f - 2] = thread_ns() - start;
            }
        }
    }
}

/* The share of each kind of operator in as many frames, run one by one; a pair is its first's. */
static void print_kinds(const struct bench *b, const struct way *w)
{
    double ns[MDL_OP_COUNT] = {0}, all = thread_ns();
    const char *comma = "";

    for (long f = 0; f < b->o.frames; f++) {
        for (size_t i = 0; i < w->of->m->op_count; i++) {
            size_t first = i;
            double start = thread_ns();

            i += w->chosen.choice.fused[first] ? 1 : 0;
            krn_net_run_ops(w->net, first, i, &w->of->mem, &w->exec);
            ns[w->of->m->ops[first].kind] += thread_ns() - start;
        }
    }
    all = thread_ns() - all;
    printf(",\n     \"shares\": {");
    for (size_t k = 0; k < MDL_OP_COUNT; k++) {
        if (ns[k] >= 0.0005 * all) {
            printf("%s\"%s\": %.3f", comma, mdl_op_kind_name((enum mdl_op_kind)k), ns[k] / all);
            comma = ", ";
        }
    }
    printf("}");
}

/* Sets @ret [n] to @v, or @v / @over frame by frame, and sorts it. Return: its median. */
static double sorted(const double *v, const double *over, size_t n, double *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = over ? v[i] / over[i] : v[i];
    }
    qsort(ret, n, sizeof(*ret), by_value);
    return ret[n / 2];
}

static void print_ways(struct bench *b)
{
    size_t n = (size_t)b->o.frames;
    base_autofree double *sort = memory(n * sizeof(*sort));

    printf("  \"ways\": [");
    for (size_t w = 0; w < b->way_count; w++) {
        struct way *x = &b->ways[w];
        double median = sorted(x->ns, NULL, n, sort);

        printf(
            "%s\n    {\"way\": \"%s\", \"ops\": %zu, \"on_planes\": %zu, \"predicted_ms\": %.4f, "
            "\"median_ms\": %.4f, \"min_ms\": %.4f, \"packed_mb\": %.2f",
            w ? "," : "", x->name, x->named, layouts_of(x->of, &x->chosen).on_planes,
            x->chosen.ns / 1e6, median / 1e6, sort[0] / 1e6, (double)x->chosen.packed_bytes / 1e6);
        median = sorted(x->ns, b->ways[0].ns, n, sort);
        printf(", \"over_chosen\": [%.4f, %.4f, %.4f]", median, sort[n / 4], sort[n * 3 / 4]);
        if (b->o.unfused) {
            print_kinds(b, x);
        }
        printf("}");
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    struct krn_blas_status blas;
    struct bench b = {0};

    if (!parse(argc, argv, &b.o)) {
        fputs("usage: choose_bench MODEL [--ms N] [--frames N] [--episodes N[,N...]] "
              "[--only NAMES] [--unfused] [--inexact]\n",
              stderr);
        return 2;
    }
    krn_blas_check(&blas); /* one thread */
    measure(&b.o, false, &b.fused);
    printf("{\"model\": \"%s\",\n", b.fused.m->name);
    print_searches(&b);
    print_curve(&b);
    print_front(&b);
    add_ways(&b);
    run_ways(&b);
    print_ways(&b);
    return 0;
}
