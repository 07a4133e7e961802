/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_bench [--ms N] [--rounds N] MODEL... - how well a cost table that knows memory foretells
 * plans (tuner/memory.h), on the first two cores of this process
 *
 * Each core is an EP, "a" and "b". A round measures each model on each core alone, which makes the
 * table, and then under plans that use both: two replicas, and two stages with three cuts. So what
 * changes the machine's speed hits table and plans alike. Meanwhile the other core computes in its
 * registers, and teams that wait spin, so that nobody else streams. What cores stream is measured
 * before.
 * On a machine that others use, run it by `chrt -f 1`, so that they have what it leaves.
 *
 * Both sides are the teams' own clocks, without what others took from their cores. Printed is, for
 * each plan, the median over rounds of what its slowest stage took, and of predicted / taken - 1
 * without and with memory, then the medians and worst over all plans.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/median.h"
#include "governor/bandwidth.h"
#include "kernels/lib/blas.h"
#include "model/op_bytes.h"
#include "pipeline/pipeline.h"
#include "tuner/eval.h"

#define ROUNDS_MAX 100u
#define PLANS_MAX 6u              /* of a model; the first two are each core alone */
#define ALL_MAX 256u              /* of all models */
#define BYTES ((size_t)128 << 20) /* streamed over: more than caches hold */
#define STREAM_MS 40u
#define SPIN_NS (30 * BASE_NS_PER_MS) /* so that nobody else runs on a core that waits a little */
#define HANDOFF_NS 5000.0             /* as the daemon begins with */
#define HANDOFF_NS_PER_BYTE 0.02

struct row {
    char text[96];
    struct pl_plan plan;
    struct pl_pipeline *p;
    double ns[ROUNDS_MAX]; /* of the slowest stage for a frame, by the teams' work */
    double without[ROUNDS_MAX], with[ROUNDS_MAX]; /* predicted / taken - 1 */
};

struct bench {
    size_t ms, rounds; /* ms: of one core, for a plan in a round */
    size_t frames;     /* in that time */
    double gbytes[2], gbytes_max;
    struct pl_ep_set eps;
    sem_t wake;
    /* of the model at hand */
    struct mdl_model *model;
    struct krn_net *net;
    struct tun_problem table;
    void *inputs[PL_FRAME_IO_MAX], *outputs[PL_FRAME_IO_MAX];
    struct row rows[PLANS_MAX];
    size_t row_count;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "memory_bench: %s: %s\n", what, why);
    exit(1);
}

static void notify(void *arg)
{
    sem_post(arg);
}

static bool submit(struct bench *b, struct pl_pipeline *p)
{
    struct pl_frame *f = pl_frame_get(p);

    if (f == NULL) {
        return false;
    }
    memcpy(f->inputs, b->inputs, sizeof(f->inputs));
    memcpy(f->outputs, b->outputs, sizeof(f->outputs));
    if (pl_submit(p, f) == 0) {
        return true;
    }
    pl_frame_put(p, f);
    return false;
}

/* Under a real-time policy threads of one priority wait for each other: teams that spin must not
 * hold up who feeds them. */
static void set_priority(int by)
{
    struct sched_param p;

    if (sched_getscheduler(0) == SCHED_FIFO && sched_getparam(0, &p) == 0) {
        p.sched_priority += by;
        sched_setscheduler(0, SCHED_FIFO, &p);
    }
}

/* Streams @frames with the pipeline always full. */
static void stream(struct bench *b, struct pl_pipeline *p, size_t frames)
{
    size_t sent = 0, got = 0;

    while (got < frames) {
        struct pl_frame *f;

        while (sent < frames && pl_in_flight(p) <= pl_depth(p) && submit(b, p)) {
            sent++;
        }
        f = pl_collect(p);
        if (f != NULL) {
            got++;
            pl_frame_put(p, f);
        } else {
            while (sem_wait(&b->wake) != 0 && errno == EINTR) {
            }
        }
    }
}

static struct row *add_row(struct bench *b, const char *text)
{
    struct pl_options o = {.spin_ns = SPIN_NS, .notify = notify, .notify_arg = &b->wake};
    struct row *r = &b->rows[b->row_count++];
    char error[160];

    *r = (struct row){0};
    snprintf(r->text, sizeof(r->text), "%s", text);
    if (pl_plan_parse(text, &b->eps, b->model->unit_count, error, sizeof(error), &r->plan) != 0) {
        die(text, error);
    }
    set_priority(-1);
    if (pl_new(b->net, &b->eps, &r->plan, &o, &r->p) != 0) {
        die(text, "cannot be built");
    }
    set_priority(1);
    return r;
}

/* Each core alone, both as replicas, and cuts at about a third, a half and two thirds. */
static void add_rows(struct bench *b)
{
    size_t last = b->model->unit_count - 1, next = 0;
    double all = 0, sum = 0;
    char text[96];

    b->row_count = 0;
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "0-%zu@%s", last, ((const char *[]){"a", "b", "a+b"})[i]);
        add_row(b, text);
    }
    stream(b, b->rows[0].p, 3);
    for (size_t pass = 0; pass < 2; pass++, all = sum, sum = 0) {
        b->frames = base_max((size_t)((double)b->ms * 1e6 / base_max(all, 1.0)), (size_t)3);
        for (size_t u = 0; u < last; u++) {
            struct pl_series s;

            pl_unit_stats(b->rows[0].p, u, &s);
            sum += s.min_ns;
            if (pass == 1 && next < 3 && sum >= all * (0.35 + 0.15 * (double)next)) {
                snprintf(text, sizeof(text), "0-%zu@a|%zu-%zu@b", u, u + 1, last);
                add_row(b, text);
                next++;
                while (next < 3 && sum >= all * (0.35 + 0.15 * (double)next)) {
                    next++;
                }
            }
        }
    }
}

/* The clocks of a row, before it ran. */
struct before {
    struct pl_series work[PL_TEAM_MAX], *units; /* units: [unit_count], owned */
};

static void take_before(struct bench *b, struct row *r, struct before *ret)
{
    for (size_t t = 0; t < pl_team_count(r->p); t++) {
        struct pl_team_stats s;

        pl_team_stats(r->p, t, &s);
        ret->work[t] = s.work;
    }
    for (size_t u = 0; u < b->model->unit_count; u++) {
        pl_unit_stats(r->p, u, &ret->units[u]);
    }
}

/* The slowest stage's time for a frame since @before. */
static double slowest_ns(struct row *r, const struct before *before)
{
    double rate[PL_STAGE_MAX] = {0}, least = INFINITY;

    for (size_t t = 0; t < pl_team_count(r->p); t++) {
        struct pl_team_stats s;

        pl_team_stats(r->p, t, &s);
        pl_series_since(&before->work[t], &s.work, &s.work);
        rate[s.stage] += 1 / s.work.mean_ns;
    }
    for (size_t s = 0; s < r->plan.stage_count; s++) {
        least = base_min(least, rate[s]);
    }
    return 1 / least;
}

/* Times of the units on core @k, which ran the frames since @before. */
static void enter_table(struct bench *b, size_t k, const struct before *before)
{
    for (size_t u = 0; u < b->model->unit_count; u++) {
        struct pl_series s;

        pl_unit_stats(b->rows[k].p, u, &s);
        pl_series_since(&before->units[u], &s, &s);
        *tun_cell_at(&b->table.costs, k, 1, u) =
            (struct tun_cell){.ns = base_max(s.mean_ns, 1.0), .source = TUN_MEASURED};
    }
}

static double predicted(const struct bench *b, const struct pl_plan *plan, bool memory)
{
    struct tun_problem p = b->table; /* shallow: read only */
    struct tun_outcome o;

    p.gbytes_max = memory ? b->gbytes_max : 0;
    if (tun_eval(&p, plan, &o) != 0) {
        die("a plan", "has no prediction");
    }
    return o.bottleneck_ns;
}

static void *compute(void *arg)
{
    _Atomic bool *ends = arg;

    while (!atomic_load_explicit(ends, memory_order_relaxed)) {
    }
    return NULL;
}

/* As stream(), while core @k computes in its registers. */
static void stream_beside(struct bench *b, struct pl_pipeline *p, size_t k)
{
    static _Atomic bool ends;
    pthread_t thread;
    cpu_set_t set;

    atomic_store(&ends, false);
    set_priority(-1);
    if (pthread_create(&thread, NULL, compute, &ends) != 0) {
        die("a thread", "cannot be made");
    }
    set_priority(1);
    CPU_ZERO(&set);
    CPU_SET(b->eps.eps[k].cpus[0], &set);
    pthread_setaffinity_np(thread, sizeof(set), &set);
    stream(b, p, b->frames);
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
}

static void run_round(struct bench *b, size_t round)
{
    struct before before = {.units = calloc(b->model->unit_count, sizeof(*before.units))};

    for (size_t i = 0; i < b->row_count && before.units; i++) {
        struct row *r = &b->rows[i];

        stream(b, r->p, 1); /* caches and clocks of the core */
        take_before(b, r, &before);
        if (i < 2) {
            stream_beside(b, r->p, 1 - i);
            enter_table(b, i, &before);
        } else {
            stream(b, r->p, b->frames);
        }
        r->ns[round] = slowest_ns(r, &before);
    }
    for (size_t i = 0; i < b->row_count; i++) {
        struct row *r = &b->rows[i];

        r->without[round] = predicted(b, &r->plan, false) / r->ns[round] - 1;
        r->with[round] = predicted(b, &r->plan, true) / r->ns[round] - 1;
    }
    free(before.units);
}

static double unit_bytes(const struct bench *b, const struct mdl_unit *unit)
{
    double bytes = base_max((double)unit->weight_bytes,
                            (double)krn_net_ops_need_bytes(b->net, unit->first_op, unit->last_op));

    for (size_t i = unit->first_op; i <= unit->last_op; i++) {
        bytes += mdl_op_bytes(b->model, &b->model->ops[i], false);
    }
    return bytes;
}

static void load(struct bench *b, const char *path)
{
    struct mdl_load_options o = {.name = "bench", .const_eval = krn_const_eval};
    struct tun_ep eps[2] = {0};
    char error[MDL_ERROR_MAX];

    if (mdl_load(path, &o, error, &b->model) < 0 ||
        krn_net_new(b->model, NULL, error, &b->net) < 0) {
        die(path, error);
    }
    if (b->model->input_count > PL_FRAME_IO_MAX || b->model->output_count > PL_FRAME_IO_MAX ||
        b->model->unit_count < 2) {
        die(path, "has one unit only, or too many inputs or outputs");
    }
    for (size_t i = 0; i < b->model->input_count; i++) {
        b->inputs[i] = calloc(1, b->model->inputs[i].bytes);
    }
    for (size_t i = 0; i < b->model->output_count; i++) {
        b->outputs[i] = calloc(1, b->model->outputs[i].bytes);
    }
    for (size_t k = 0; k < 2; k++) {
        eps[k] = (struct tun_ep){.cores = 1, .speed = 1, .bandwidth = 1, .gbytes = b->gbytes[k]};
        eps[k].name[0] = b->eps.eps[k].name[0];
    }
    if (tun_problem_init(&b->table, b->model->unit_count, eps, 2) < 0) {
        die(path, "out of memory");
    }
    b->table.handoff_ns = HANDOFF_NS;
    b->table.handoff_ns_per_byte = HANDOFF_NS_PER_BYTE;
    for (size_t u = 0; u < b->model->unit_count; u++) {
        b->table.units[u].bytes = unit_bytes(b, &b->model->units[u]);
        b->table.units[u].in_bytes = u ? (double)b->model->units[u - 1].live_bytes : 0;
    }
}

static void unload(struct bench *b)
{
    for (size_t i = 0; i < b->row_count; i++) {
        pl_free(b->rows[i].p);
    }
    for (size_t i = 0; i < PL_FRAME_IO_MAX; i++) {
        free(base_take(b->inputs[i]));
        free(base_take(b->outputs[i]));
    }
    tun_problem_deinit(&b->table);
    krn_net_free(b->net);
    mdl_free(b->model);
}

/* Return: how many plans were added to @without and @with, each the median error. */
static size_t bench_model(struct bench *b, const char *path, double *without, double *with)
{
    const char *slash = strrchr(path, '/');

    load(b, path);
    add_rows(b);
    for (size_t round = 0; round < b->rounds; round++) {
        run_round(b, round);
    }
    for (size_t i = 0; i < b->row_count; i++) {
        struct row *r = &b->rows[i];
        double low, high;

        without[i] = median(r->without, b->rounds);
        with[i] = median(r->with, b->rounds);
        low = r->with[b->rounds / 4];
        high = r->with[b->rounds - 1 - b->rounds / 4];
        printf("%-22.*s %-22s %9.3f ms %8.1f %% %8.1f %%   %.1f to %.1f\n",
               (int)strcspn(slash ? slash + 1 : path, "."), slash ? slash + 1 : path, r->text,
               median(r->ns, b->rounds) / 1e6, 100 * without[i], 100 * with[i], 100 * low,
               100 * high);
        fflush(stdout);
    }
    unload(b);
    return b->row_count;
}

static void summarise(const char *what, double *error, size_t count)
{
    double middle;

    for (size_t i = 0; i < count; i++) {
        error[i] = fabs(error[i]);
    }
    middle = median(error, count); /* sorts */
    printf("%s memory: off by %.1f %% (median), %.1f %% (worst) over %zu plans on both cores\n",
           what, 100 * middle, 100 * error[count - 1], count);
}

/* The best of some tries, since others only take from it. */
static double streamed(const uint16_t *cpus, size_t count)
{
    double best = 0;

    for (int i = 0; i < 5; i++) {
        double now;

        if (gov_bandwidth_measure(cpus, count, BYTES / count, STREAM_MS, &now) != 0) {
            die("memory", "cannot be measured");
        }
        best = base_max(best, now);
    }
    return best;
}

static void find_cores(struct bench *b)
{
    uint16_t cpus[2];
    cpu_set_t set;

    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && b->eps.count < 2; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            struct pl_ep *ep = &b->eps.eps[b->eps.count];

            snprintf(ep->name, sizeof(ep->name), "%c", (int)('a' + b->eps.count));
            ep->cpus[0] = cpus[b->eps.count++] = (uint16_t)cpu;
            ep->cpu_count = 1;
            ep->speed = 1;
        }
    }
    if (b->eps.count < 2) {
        fprintf(stderr, "memory_bench: skipped, one CPU\n");
        exit(77);
    }
    b->gbytes[0] = streamed(&cpus[0], 1);
    b->gbytes[1] = streamed(&cpus[1], 1);
    b->gbytes_max = streamed(cpus, 2);
    printf("a streams %.1f GB/s, b %.1f, both at once %.1f\n", b->gbytes[0], b->gbytes[1],
           b->gbytes_max);
}

int main(int argc, char **argv)
{
    static struct bench b = {.ms = 200, .rounds = 9};
    static double without[ALL_MAX], with[ALL_MAX], both[2][PLANS_MAX];
    size_t count = 0;
    struct krn_blas_status blas;
    int i = 1;

    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        size_t *to = strcmp(argv[i], "--ms") == 0       ? &b.ms
                     : strcmp(argv[i], "--rounds") == 0 ? &b.rounds
                                                        : NULL;
        *(to ? to : &b.rounds) = to ? strtoul(argv[i + 1], NULL, 10) : 0;
    }
    if (i >= argc || argv[i][0] == '-' || b.ms < 1 || b.rounds < 1 || b.rounds > ROUNDS_MAX) {
        fputs("usage: memory_bench [--ms N] [--rounds N] MODEL...\n", stderr);
        return 2;
    }
    krn_blas_check(&blas);
    sem_init(&b.wake, 0, 0);
    find_cores(&b);
    set_priority(1);
    printf("%-22s %-22s %12s %10s %10s   middle half\n", "model", "plan", "taken", "without",
           "with");
    for (; i < argc; i++) {
        size_t rows = bench_model(&b, argv[i], both[0], both[1]);

        for (size_t k = 2; k < rows && count < ALL_MAX; k++, count++) {
            without[count] = both[0][k];
            with[count] = both[1][k];
        }
    }
    summarise("without", without, count);
    summarise("with", with, count);
    return 0;
}
