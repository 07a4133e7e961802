/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_bench MODEL [--frames N] [--rounds N] [--only PRIMITIVES] - what plans make of one model
 *
 * In one process: one core, two balanced stages, two replicas, and one core without per-unit
 * clocks; rounds are interleaved, so that a change of the machine's speed hits all alike. The cut
 * of the two stages is where the unit times balance best, measured on one core and then, because
 * stages that run side by side share memory and caches, in the pipeline itself. Then one frame at a
 * time through the two stages: what a hand-off costs when the next team spins and when it sleeps.
 * JSON on stdout: medians with the lowest and highest round.
 */
#include <math.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/median.h"
#include "kernels/lib/blas.h"
#include "pipeline/clocks.h"
#include "pipeline/pipeline.h"

#define ROUNDS_MAX 200u
#define SPIN_NS (50 * BASE_NS_PER_US)

struct bench {
    struct mdl_model *model;
    struct krn_net *net;
    struct pl_ep_set eps;
    void *inputs[PL_FRAME_IO_MAX], *outputs[PL_FRAME_IO_MAX];
    size_t frames, rounds;
    sem_t wake;
};

struct row {
    const char *name;
    char plan[128];
    struct pl_pipeline *p;
    double fps[ROUNDS_MAX];
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "pipeline_bench: %s: %s\n", what, why);
    exit(1);
}

static void notify(void *arg)
{
    sem_post(arg);
}

static void wait_wake(struct bench *b)
{
    while (sem_wait(&b->wake) != 0 && errno == EINTR) {
    }
}

static bool submit(struct bench *b, struct pl_pipeline *p)
{
    struct pl_frame *f = pl_frame_get(p);

    if (f == NULL) {
        return false;
    }
    /* all frames read and write the same buffers: the answers are not looked at */
    memcpy(f->inputs, b->inputs, sizeof(f->inputs));
    memcpy(f->outputs, b->outputs, sizeof(f->outputs));
    if (pl_submit(p, f) == 0) {
        return true;
    }
    pl_frame_put(p, f);
    return false;
}

/* Streams @frames with the pipeline always full. Return: seconds from the first answer to the last.
 */
static double stream(struct bench *b, struct pl_pipeline *p, size_t frames)
{
    size_t sent = 0, got = 0;
    uint64_t first = 0, last = 0;

    while (got < frames + 1) {
        struct pl_frame *f;

        while (sent < frames + 1 && pl_in_flight(p) <= pl_depth(p) && submit(b, p)) {
            sent++;
        }
        f = pl_collect(p);
        if (f == NULL) {
            wait_wake(b);
            continue;
        }
        last = f->done_ns;
        first = got == 0 ? last : first;
        got++;
        pl_frame_put(p, f);
    }
    return (double)(last - first) / (double)BASE_NS_PER_S;
}

static struct pl_pipeline *build(struct bench *b, const char *text, bool no_clocks,
                                 uint64_t spin_ns)
{
    struct pl_options o = {
        .spin_ns = spin_ns, .notify = notify, .notify_arg = &b->wake, .no_clocks = no_clocks};
    struct pl_pipeline *p = NULL;
    struct pl_plan plan;
    char error[160];

    if (pl_plan_parse(text, &b->eps, b->model->unit_count, error, sizeof(error), &plan) != 0) {
        die(text, error);
    }
    if (pl_new(b->net, &b->eps, &plan, &o, &p) != 0) {
        die(text, "cannot be built");
    }
    return p;
}

/* The last unit of the first of two stages that come closest to each other; by the least times,
 * which other programs on the machine disturb least. */
static size_t balanced_cut(struct bench *b, const struct pl_pipeline *measured)
{
    size_t units = b->model->unit_count, best = 0;
    double all = 0, sum = 0, least = INFINITY;

    for (size_t u = 0; u < units; u++) {
        struct pl_series s;

        pl_unit_stats(measured, u, &s);
        all += s.min_ns;
    }
    for (size_t u = 0; u + 1 < units; u++) {
        struct pl_series s;
        double slower;

        pl_unit_stats(measured, u, &s);
        sum += s.min_ns;
        slower = base_max(sum, all - sum);
        if (slower < least) {
            least = slower;
            best = u;
        }
    }
    return best;
}

static void find_cpus(struct bench *b)
{
    struct pl_ep *ep = &b->eps.eps[0];
    cpu_set_t set;

    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && ep->cpu_count < PL_CPU_MAX; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            ep->cpus[ep->cpu_count++] = (uint16_t)cpu;
        }
    }
    snprintf(ep->name, sizeof(ep->name), "big");
    ep->speed = 1;
    b->eps.count = 1;
}

static void load(struct bench *b, const char *path, const char *only)
{
    struct mdl_load_options o = {.name = "bench", .const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];

    if (mdl_load(path, &o, error, &b->model) < 0 ||
        krn_net_new(b->model, only, error, &b->net) < 0) {
        die(path, error);
    }
    if (b->model->input_count > PL_FRAME_IO_MAX || b->model->output_count > PL_FRAME_IO_MAX) {
        die(path, "too many inputs or outputs");
    }
    for (size_t i = 0; i < b->model->input_count; i++) {
        b->inputs[i] = calloc(1, b->model->inputs[i].bytes);
    }
    for (size_t i = 0; i < b->model->output_count; i++) {
        b->outputs[i] = calloc(1, b->model->outputs[i].bytes);
    }
}

static void print_cpu(void)
{
    char line[256] = "";
    FILE *f = fopen("/proc/cpuinfo", "re");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char *value = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            value[strcspn(value, "\n\"\\")] = '\0';
            printf("  \"cpu\": \"%s\",\n", value + 2);
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

static void print_row(struct bench *b, struct row *r, const char *comma)
{
    double m = median(r->fps, b->rounds);

    printf("    {\"name\": \"%s\", \"plan\": \"%s\", \"fps\": %.3f, \"fps_min\": %.3f, "
           "\"fps_max\": %.3f}%s\n",
           r->name, r->plan, m, r->fps[0], r->fps[b->rounds - 1], comma);
}

/* Median over rounds of the ratio of two rows of the same round: drift of the machine cancels. */
static double ratio(struct bench *b, const struct row *over, const struct row *under)
{
    double v[ROUNDS_MAX];

    for (size_t i = 0; i < b->rounds; i++) {
        v[i] = over->fps[i] / under->fps[i];
    }
    return median(v, b->rounds);
}

/* What the one frame that came since @before took on a team; waits until it was counted. */
static double service_since(struct pl_pipeline *p, size_t team, struct pl_series *before)
{
    struct pl_team_stats s;
    struct pl_series one;

    do {
        pl_team_stats(p, team, &s);
    } while (s.service.count == before->count && sched_yield() == 0);
    pl_series_since(before, &s.service, &one);
    *before = s.service;
    return one.mean_ns;
}

/* One frame at a time: from the first stage's end to the second's start. */
static void hand_off(struct bench *b, const char *plan, uint64_t spin_ns, const char *name,
                     const char *comma)
{
    size_t n = base_min(base_max(b->frames, (size_t)30), (size_t)1000);
    struct pl_pipeline *p = build(b, plan, false, spin_ns);
    struct pl_series before[2] = {0};
    double *gaps = calloc(n, sizeof(gaps[0]));

    for (size_t i = 0; i < n; i++) {
        struct pl_frame *f;

        submit(b, p);
        while ((f = pl_collect(p)) == NULL) {
            wait_wake(b);
        }
        gaps[i] = (double)(f->done_ns - f->started_ns) - service_since(p, 0, &before[0]) -
                  service_since(p, 1, &before[1]);
        pl_frame_put(p, f);
    }
    pl_free(p);
    printf("    \"%s\": {\"median\": %.2f, ", name, median(gaps, n) / 1000);
    printf("\"p95\": %.2f, \"max\": %.2f}%s\n", gaps[n * 95 / 100] / 1000, gaps[n - 1] / 1000,
           comma);
    free(gaps);
}

static void read_cpu_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}

/*
 * What the clocks cost a team that runs all units of a frame in @service_ns, timed by itself: far
 * below what two rates of frames can tell apart. Tick readings, the fold, and the CPU clock's two
 * system calls for one frame in so many (pipeline/team.c: once in 2 ms).
 */
static double clock_cost_ns(size_t units, double service_ns)
{
    const size_t frames = 200;
    double ticks[101], cpu[101];
    struct pl_clocks c;

    if (pl_clocks_init(&c, units) < 0) {
        die("clocks", "out of memory");
    }
    for (size_t i = 0; i < base_array_count(ticks); i++) {
        uint64_t start = base_now_ns(), middle;

        for (size_t k = 0; k < frames; k++) {
            struct pl_clock_run f = {.end_ns = 1000 + k, .computed = 1, .timed = true};

            for (size_t u = 0; u <= units; u++) {
                pl_clocks_lap(&c, u);
            }
            pl_clocks_fold(&c, &f);
        }
        middle = base_now_ns();
        for (size_t k = 0; k < 2 * frames; k++) {
            read_cpu_clock();
        }
        ticks[i] = (double)(middle - start) / (double)frames;
        cpu[i] = (double)(base_now_ns() - middle) / (double)frames;
    }
    pl_clocks_deinit(&c);
    return median(ticks, base_array_count(ticks)) +
           median(cpu, base_array_count(cpu)) / (1 + floor(2e6 / service_ns));
}

/* How long the loop thread is held up by a switch, and by taking the old teams down. */
static void switching(struct bench *b, const char *one, const char *two)
{
    struct pl_pipeline *p = build(b, one, false, SPIN_NS);
    struct pl_plan plans[2];
    double make[40], reap[40];
    char error[160];

    pl_plan_parse(one, &b->eps, b->model->unit_count, error, sizeof(error), &plans[0]);
    pl_plan_parse(two, &b->eps, b->model->unit_count, error, sizeof(error), &plans[1]);
    for (size_t i = 0; i < base_array_count(make); i++) {
        uint64_t start = base_now_ns(), longest = 0;

        if (pl_switch(p, &plans[(i + 1) % 2]) != 0) {
            die(two, "cannot be switched to");
        }
        make[i] = (double)(base_now_ns() - start) / 1000;
        while (pl_switching(p)) {
            wait_wake(b);
            start = base_now_ns();
            pl_reap(p);
            longest = base_max(longest, base_now_ns() - start);
        }
        reap[i] = (double)longest / 1000;
    }
    pl_free(p);
    printf("  \"switch_us\": {\"make\": %.1f, ", median(make, base_array_count(make)));
    printf("\"reap\": %.1f}\n", median(reap, base_array_count(reap)));
}

static void usage(void)
{
    fprintf(stderr, "usage: pipeline_bench MODEL [--frames N] [--rounds N] [--only PRIMITIVES]\n");
    exit(2);
}

static const char *parse_args(struct bench *b, int argc, char **argv)
{
    const char *only = NULL;

    if (argc < 2 || argv[1][0] == '-') {
        usage();
    }
    for (int i = 2; i < argc; i += 2) {
        if (i + 1 == argc) {
            usage();
        } else if (strcmp(argv[i], "--frames") == 0) {
            b->frames = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0) {
            b->rounds = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            only = argv[i + 1];
        } else {
            usage();
        }
    }
    if (b->frames < 1 || b->rounds < 1 || b->rounds > ROUNDS_MAX) {
        usage();
    }
    return only;
}

#define TRIALS 3 /* of a cut */

enum { ONE_CORE, TWO_STAGES, TWO_REPLICAS, NO_CLOCKS, ROWS };

static void make_rows(struct bench *b, struct row *rows)
{
    static const char *const names[ROWS] = {"one core", "two stages", "two replicas", "no clocks"};
    size_t last = b->model->unit_count - 1, cut;

    for (size_t i = 0; i < ROWS; i++) {
        rows[i].name = names[i];
        snprintf(rows[i].plan, sizeof(rows[i].plan), "0-%zu@big%s", last,
                 i == TWO_REPLICAS ? "*2" : "");
    }
    rows[ONE_CORE].p = build(b, rows[ONE_CORE].plan, false, SPIN_NS);
    stream(b, rows[ONE_CORE].p, base_max(b->frames, (size_t)10));
    cut = balanced_cut(b, rows[ONE_CORE].p);
    for (size_t trial = 0, before = last; trial < TRIALS && cut != before; trial++) {
        snprintf(rows[TWO_STAGES].plan, sizeof(rows[TWO_STAGES].plan), "0-%zu@big|%zu-%zu@big", cut,
                 cut + 1, last);
        pl_free(rows[TWO_STAGES].p);
        rows[TWO_STAGES].p = build(b, rows[TWO_STAGES].plan, false, SPIN_NS);
        stream(b, rows[TWO_STAGES].p, base_max(b->frames, (size_t)10));
        before = cut;
        cut = balanced_cut(b, rows[TWO_STAGES].p);
    }
    rows[TWO_REPLICAS].p = build(b, rows[TWO_REPLICAS].plan, false, SPIN_NS);
    rows[NO_CLOCKS].p = build(b, rows[NO_CLOCKS].plan, true, SPIN_NS);
}

static void run_rounds(struct bench *b, struct row *rows)
{
    for (size_t round = 0; round < b->rounds; round++) {
        for (size_t k = 0; k < ROWS; k++) {
            /* every other round the other way round */
            struct row *r = &rows[round % 2 ? ROWS - 1 - k : k];

            stream(b, r->p, 1); /* caches and clocks of the core */
            r->fps[round] = (double)b->frames / stream(b, r->p, b->frames);
        }
    }
}

static void report(struct bench *b, struct row *rows)
{
    double clocks, fps;

    printf("{\n");
    print_cpu();
    printf("  \"units\": %zu, \"frames\": %zu, \"rounds\": %zu,\n", b->model->unit_count, b->frames,
           b->rounds);
    printf("  \"stages_over_one\": %.3f,\n", ratio(b, &rows[TWO_STAGES], &rows[ONE_CORE]));
    printf("  \"replicas_over_one\": %.3f,\n", ratio(b, &rows[TWO_REPLICAS], &rows[ONE_CORE]));
    printf("  \"clocks_percent_by_fps\": %.3f,\n",
           (ratio(b, &rows[NO_CLOCKS], &rows[ONE_CORE]) - 1) * 100);
    fps = median(rows[ONE_CORE].fps, b->rounds);
    clocks = clock_cost_ns(b->model->unit_count, 1e9 / fps);
    printf("  \"clocks_ns_per_frame\": %.0f, \"clocks_percent\": %.5f,\n", clocks,
           clocks / 1e9 * fps * 100);
    printf("  \"rows\": [\n");
    for (size_t k = 0; k < ROWS; k++) {
        print_row(b, &rows[k], k + 1 < ROWS ? "," : "");
    }
    printf("  ],\n");
}

int main(int argc, char **argv)
{
    struct bench b = {.frames = 20, .rounds = 7};
    struct row rows[ROWS] = {0};
    struct krn_blas_status blas;
    char text[KRN_CPU_TEXT_MAX];
    const char *only = parse_args(&b, argc, argv);

    if (krn_cpu_check(text) < 0) {
        fprintf(stderr, "pipeline_bench: %s\n", text);
        return 2;
    }
    krn_blas_check(&blas);
    if (blas.wanted[0] != '\0') {
        fprintf(stderr, "pipeline_bench: OpenBLAS runs as %s; OPENBLAS_CORETYPE=%s is faster\n",
                blas.core, blas.wanted);
    }
    sem_init(&b.wake, 0, 0);
    find_cpus(&b);
    if (b.eps.eps[0].cpu_count < 2) {
        fprintf(stderr, "pipeline_bench: skipped, one CPU\n");
        return 77;
    }
    load(&b, argv[1], only);
    if (b.model->unit_count < 2) {
        die(argv[1], "has one unit only");
    }
    make_rows(&b, rows);
    run_rounds(&b, rows);
    report(&b, rows);
    for (size_t k = 0; k < ROWS; k++) {
        pl_free(rows[k].p);
    }
    printf("  \"hand_off_us\": {\n");
    hand_off(&b, rows[TWO_STAGES].plan, BASE_NS_PER_S, "spinning", ",");
    hand_off(&b, rows[TWO_STAGES].plan, 0, "asleep", "");
    printf("  },\n");
    switching(&b, rows[ONE_CORE].plan, rows[TWO_STAGES].plan);
    printf("}\n");
    krn_net_free(b.net);
    mdl_free(b.model);
    return 0;
}
