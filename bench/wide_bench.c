/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_bench MODEL [--frames N] [--rounds N] [--only PRIMITIVES] [--slow PROGRAM BUSY_US PERIOD_US]
 * - what a frame that is alone takes on one core, on two as a team, and on two as a team over EPs
 *
 * The second core is an EP of its own, which PROGRAM (tests/system/slow_core.c), if it is given,
 * takes for BUSY_US of every PERIOD_US. Rounds are interleaved, so that a change of the machine's
 * speed hits all alike. JSON on stdout: medians over rounds, with the lowest and highest, of the
 * median of a round's frames; and the ratios to the first core alone, of the same round. "limit" is
 * what two cores of these speeds could reach; "units": what each takes, in all rounds, in us.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/median.h"
#include "pipeline/pipeline.h"

#define ROUNDS_MAX 200u
#define FRAMES_MAX 1000u
#define SPIN_NS (50 * BASE_NS_PER_US)
#define SLOW_SECONDS "3600"

extern char **environ;

struct bench {
    struct mdl_model *model;
    struct krn_net *net;
    struct pl_ep_set eps;
    void *inputs[PL_FRAME_IO_MAX], *outputs[PL_FRAME_IO_MAX];
    size_t frames, rounds;
    const char *only, *slow, *busy_us, *period_us;
    sem_t wake;
};

enum { FAST, SLOW, TEAM, OVER, ROWS };
static const char *const names[ROWS] = {"first core", "second core", "team", "team over EPs"};
static const char *const teams[ROWS] = {"fast", "slow", "bothx2", "fast&slow"};

struct row {
    char plan[128];
    struct pl_pipeline *p;
    double us[ROUNDS_MAX];
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "wide_bench: %s: %s\n", what, why);
    exit(1);
}

static void notify(void *arg)
{
    sem_post(arg);
}

/* One frame at a time. Return: the median of their times. */
static double alone_us(struct bench *b, struct pl_pipeline *p)
{
    double us[FRAMES_MAX];

    for (size_t i = 0; i < b->frames; i++) {
        struct pl_frame *f = pl_frame_get(p);

        if (f == NULL) {
            die("a frame", "there is none");
        }
        memcpy(f->inputs, b->inputs, sizeof(f->inputs));
        memcpy(f->outputs, b->outputs, sizeof(f->outputs));
        if (pl_submit(p, f) != 0) {
            die("a frame", "refused");
        }
        while ((f = pl_collect(p)) == NULL) {
            while (sem_wait(&b->wake) != 0 && errno == EINTR) {
            }
        }
        us[i] = (double)(f->done_ns - f->started_ns) / 1000;
        pl_frame_put(p, f);
    }
    return median(us, b->frames);
}

static void build(struct bench *b, size_t k, struct row *r)
{
    struct pl_options o = {.spin_ns = SPIN_NS, .notify = notify, .notify_arg = &b->wake};
    struct pl_plan plan;
    char error[160];

    snprintf(r->plan, sizeof(r->plan), "0-%zu@%s", b->model->unit_count - 1, teams[k]);
    if (pl_plan_parse(r->plan, &b->eps, b->model->unit_count, error, sizeof(error), &plan) != 0) {
        die(r->plan, error);
    }
    if (pl_new(b->net, &b->eps, &plan, &o, &r->p) != 0) {
        die(r->plan, "cannot be built");
    }
    alone_us(b, r->p); /* caches, and the speeds of the members */
}

static void add_ep(struct bench *b, const char *name, size_t count, const uint16_t *cpus)
{
    struct pl_ep *ep = &b->eps.eps[b->eps.count++];

    snprintf(ep->name, sizeof(ep->name), "%s", name);
    memcpy(ep->cpus, cpus, count * sizeof(cpus[0]));
    ep->cpu_count = count;
    ep->speed = 1;
}

/* Return: there are two cores. */
static bool find_cpus(struct bench *b)
{
    uint16_t cpus[2];
    size_t count = 0;
    cpu_set_t set;

    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            cpus[count++] = (uint16_t)cpu;
        }
    }
    if (count < 2) {
        return false;
    }
    add_ep(b, "fast", 1, &cpus[0]);
    add_ep(b, "slow", 1, &cpus[1]);
    add_ep(b, "both", 2, cpus);
    return true;
}

/* Takes the second core in part, and waits until that began. */
static pid_t slow_down(struct bench *b)
{
    posix_spawn_file_actions_t actions;
    char cpu[8], ready[8];
    int ends[2];
    pid_t pid;

    snprintf(cpu, sizeof(cpu), "%u", b->eps.eps[SLOW].cpus[0]);
    if (pipe(ends) < 0) {
        die("pipe", strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawn(&pid, b->slow, &actions, NULL,
                    (char *[]){(char *)(uintptr_t)b->slow, cpu, (char *)(uintptr_t)b->busy_us,
                               (char *)(uintptr_t)b->period_us, (char[]){SLOW_SECONDS}, NULL},
                    environ) != 0) {
        die(b->slow, "cannot be started");
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (read(ends[0], ready, sizeof(ready)) <= 0) {
        die(b->slow, "did not begin");
    }
    close(ends[0]);
    return pid;
}

static void load(struct bench *b, const char *path)
{
    struct mdl_load_options o = {.name = "bench", .const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];

    if (mdl_load(path, &o, error, &b->model) < 0 ||
        krn_net_new(b->model, b->only, error, &b->net) < 0) {
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

static void report(struct bench *b, struct row *rows)
{
    double v[ROUNDS_MAX];

    printf("{\n  \"frames\": %zu, \"rounds\": %zu,\n", b->frames, b->rounds);
    for (size_t i = 0; i < b->rounds; i++) {
        v[i] = rows[SLOW].us[i] / (rows[FAST].us[i] + rows[SLOW].us[i]);
    }
    printf("  \"limit\": %.3f,\n  \"rows\": [\n", median(v, b->rounds));
    for (size_t k = ROWS; k-- > 0;) { /* the last one sorts what the others are compared with */
        for (size_t i = 0; i < b->rounds; i++) {
            v[i] = rows[k].us[i] / rows[FAST].us[i];
        }
        printf("    {\"name\": \"%s\", \"plan\": \"%s\", \"ratio\": %.3f, ", names[k], rows[k].plan,
               median(v, b->rounds));
        printf("\"ratio_min\": %.3f, \"ratio_max\": %.3f, ", v[0], v[b->rounds - 1]);
        printf("\"us\": %.0f}%s\n",
               median(k == FAST ? rows[k].us : memcpy(v, rows[k].us, sizeof(v)), b->rounds),
               k > 0 ? "," : "");
    }
    printf("  ],\n  \"units\": [\n");
    for (size_t u = 0; u < b->model->unit_count; u++) {
        printf("    {\"unit\": \"%s\"", b->model->units[u].name);
        for (size_t k = 0; k < ROWS; k++) {
            struct pl_series s;

            pl_unit_stats(rows[k].p, u, &s);
            printf(", \"%s\": %.0f", names[k], s.mean_ns / 1000);
        }
        printf("}%s\n", u + 1 < b->model->unit_count ? "," : "");
    }
    printf("  ]\n}\n");
}

static void usage(void)
{
    fprintf(stderr, "usage: wide_bench MODEL [--frames N] [--rounds N] [--only PRIMITIVES] "
                    "[--slow PROGRAM BUSY_US PERIOD_US]\n");
    exit(2);
}

static void parse_args(struct bench *b, int argc, char **argv)
{
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
            b->only = argv[i + 1];
        } else if (strcmp(argv[i], "--slow") == 0 && i + 3 < argc) {
            b->slow = argv[i + 1];
            b->busy_us = argv[i + 2];
            b->period_us = argv[i + 3];
            i += 2;
        } else {
            usage();
        }
    }
    if (b->frames < 1 || b->frames > FRAMES_MAX || b->rounds < 1 || b->rounds > ROUNDS_MAX) {
        usage();
    }
}

int main(int argc, char **argv)
{
    struct bench b = {.frames = 20, .rounds = 15};
    struct row rows[ROWS] = {0};
    char text[KRN_CPU_TEXT_MAX];
    pid_t thief = 0;

    parse_args(&b, argc, argv);
    if (krn_cpu_check(text) < 0) {
        fprintf(stderr, "wide_bench: %s\n", text);
        return 2;
    }
    sem_init(&b.wake, 0, 0);
    if (!find_cpus(&b)) {
        fprintf(stderr, "wide_bench: skipped, one CPU\n");
        return 77;
    }
    load(&b, argv[1]);
    thief = b.slow != NULL ? slow_down(&b) : 0;
    for (size_t k = 0; k < ROWS; k++) {
        build(&b, k, &rows[k]);
    }
    for (size_t round = 0; round < b.rounds; round++) {
        for (size_t k = 0; k < ROWS; k++) {
            struct row *r = &rows[round % 2 ? ROWS - 1 - k : k];

            r->us[round] = alone_us(&b, r->p);
        }
    }
    report(&b, rows);
    if (thief > 0) {
        kill(thief, SIGKILL);
    }
    for (size_t k = 0; k < ROWS; k++) {
        pl_free(rows[k].p);
    }
    krn_net_free(b.net);
    mdl_free(b.model);
    return 0;
}
