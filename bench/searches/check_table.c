/* SPDX-License-Identifier: Apache-2.0 */
/* Every network on every machine by every algorithm, and what the papers claim of theirs. */
#include <math.h>

#include "base/base.h"
#include "bench/searches/check.h"
#include "tuner/search/places.h"
#include "tuner/solve/solve.h"

#define NEAR 1.5 /* Pipe-search, table 4: the first of its three ranges */

#define ALGORITHMS_MAX 16u

struct score {
    bool skipped;         /* its space is too large for it; the other fields are 0 */
    double ratio;         /* bottleneck of its result / optimum of the whole space */
    double latency_ratio; /* worst-frame latency / that of one worker on every core */
    double trials, space;
    double tuning_s;   /* until it stopped: trials and its own time */
    double converge_s; /* until the trial that it ended with */
    double own_s;      /* database and thinking, measured on the machine that runs this */
    double near;       /* share of its trials within 1.5 x of the optimum (Pipe-search table 4) */
};

struct row {
    char network[64], platform[64];
    double optimum_ns, bound_ns; /* exact, and tun_bound_ns() */
    struct score scores[ALGORITHMS_MAX];
};

struct table {
    size_t algorithm_count, row_count, room;
    const char *algorithms[ALGORITHMS_MAX]; /* borrowed */
    struct row *rows;                       /* owned */
};

/* Over the rows where the algorithm ran: arithmetic means of trials and near; geometric means of
 * ratio and of the times; the worst ratio. */
struct summary {
    size_t rows;
    double ratio, ratio_worst, trials, tuning_s, converge_s, near, optimal; /* share within 1 % */
};

static void table_init(struct table *t, const char *const *algorithms, size_t count)
{
    *t = (struct table){.algorithm_count = base_min(count, (size_t)ALGORITHMS_MAX)};
    memcpy(t->algorithms, algorithms, t->algorithm_count * sizeof(*algorithms));
}

static void table_deinit(struct table *t)
{
    free(t->rows);
    *t = (struct table){0};
}

/* One independent worker on every core: what a frame may take in the worst case. */
static double workers_latency_ns(const struct tun_problem *p)
{
    double worst = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        worst = base_max(worst, tun_team_ns(p, 0, p->unit_count - 1, k, 1));
    }
    return worst;
}

static void score(const struct psim_run *r, double workers_ns, struct score *ret)
{
    double spent_ns = 0, near = 0;

    *ret = (struct score){.ratio = r->bottleneck_ns / r->optimum_ns,
                          .latency_ratio = r->latency_ns / workers_ns,
                          .trials = (double)r->count,
                          .space = r->space,
                          .tuning_s = r->tuning_s,
                          .own_s = r->own_s};
    for (size_t i = 0; i < r->count; i++) {
        spent_ns += r->log[i].spent_ns;
        if (i == r->result) {
            ret->converge_s = r->own_s + spent_ns / 1e9;
        }
        near += r->log[i].measured.bottleneck_ns <= NEAR * r->optimum_ns;
    }
    ret->near = r->count ? near / (double)r->count : 0;
}

/* Runs every algorithm on one network and machine. Return: 0 or -errno with @ret_error. */
static int table_add(struct table *t, const struct psim_network *network,
                     const struct psim_platform *platform, const struct tun_options *options,
                     char ret_error[PSIM_ERROR_MAX])
{
    struct tun_problem truth;
    struct row *row;
    int error;

    if (!base_room(&t->rows, sizeof(*t->rows), t->row_count, &t->room)) {
        return -ENOMEM;
    }
    error = psim_problem(network, platform, &truth);
    if (error) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%s on %s: %s", network->name, platform->name,
                 strerror(-error));
        return error;
    }
    row = &t->rows[t->row_count];
    *row = (struct row){.bound_ns = tun_bound_ns(&truth)};
    snprintf(row->network, sizeof(row->network), "%s", network->name);
    snprintf(row->platform, sizeof(row->platform), "%s", platform->name);
    for (size_t a = 0; a < t->algorithm_count && !error; a++) {
        struct psim_machine machine = psim_machine(&truth, options->seed);
        struct psim_run run;

        error = psim_run(t->algorithms[a], &truth, options, &machine, ret_error, &run);
        if (error == -EINVAL || error == -E2BIG) {
            row->scores[a].skipped = true;
            error = 0;
        } else if (!error) {
            row->optimum_ns = run.optimum_ns;
            score(&run, workers_latency_ns(&truth), &row->scores[a]);
            psim_run_deinit(&run);
        }
    }
    t->row_count += error == 0;
    tun_problem_deinit(&truth);
    return error;
}

/* Index of an algorithm. */
static size_t table_column(const struct table *t, const char *algorithm)
{
    for (size_t a = 0; a < t->algorithm_count; a++) {
        if (strcmp(t->algorithms[a], algorithm) == 0) {
            return a;
        }
    }
    return SIZE_MAX;
}

static void table_summary(const struct table *t, size_t column, struct summary *ret)
{
    struct summary s = {0};
    double n;

    for (size_t r = 0; r < t->row_count; r++) {
        const struct score *x = &t->rows[r].scores[column];

        if (x->skipped) {
            continue;
        }
        s.rows++;
        s.ratio += log(x->ratio);
        s.ratio_worst = base_max(s.ratio_worst, x->ratio);
        s.trials += x->trials;
        s.tuning_s += log(x->tuning_s);
        s.converge_s += log(x->converge_s);
        s.near += x->near;
        s.optimal += x->ratio <= 1.01;
    }
    n = base_max((double)s.rows, 1.0);
    s.ratio = exp(s.ratio / n);
    s.tuning_s = exp(s.tuning_s / n);
    s.converge_s = exp(s.converge_s / n);
    s.trials /= n;
    s.near /= n;
    s.optimal /= n;
    *ret = s;
}

/* The summary, aligned for a terminal. */
static void table_print(const struct table *t, FILE *to)
{
    fprintf(to, "%-23s %5s %7s %7s %8s %8s %9s %9s %6s\n", "algorithm", "rows", "ratio", "worst",
            "optimal", "trials", "tuning s", "found s", "near");
    for (size_t a = 0; a < t->algorithm_count; a++) {
        struct summary s;

        table_summary(t, a, &s);
        if (s.rows == 0) {
            fprintf(to, "%-23s %5d\n", t->algorithms[a], 0);
            continue;
        }
        fprintf(to, "%-23s %5zu %7.3f %7.2f %7.0f%% %8.1f %9.3g %9.3g %5.0f%%\n", t->algorithms[a],
                s.rows, s.ratio, s.ratio_worst, 100 * s.optimal, s.trials, s.tuning_s, s.converge_s,
                100 * s.near);
    }
}

/* Everything, one line a row, as a Markdown table. */
static void table_print_rows(const struct table *t, FILE *to)
{
    fprintf(to, "| network | machine | optimum ms | of bound |");
    for (size_t a = 0; a < t->algorithm_count; a++) {
        fprintf(to, " %s |", t->algorithms[a]);
    }
    fprintf(to, "\n| --- | --- | ---: | ---: |");
    for (size_t a = 0; a < t->algorithm_count; a++) {
        fprintf(to, " ---: |");
    }
    fprintf(to, "\n");
    for (size_t r = 0; r < t->row_count; r++) {
        const struct row *row = &t->rows[r];

        fprintf(to, "| %s | %s | %.4g | %.3f |", row->network, row->platform, row->optimum_ns / 1e6,
                row->optimum_ns / row->bound_ns);
        for (size_t a = 0; a < t->algorithm_count; a++) {
            const struct score *x = &row->scores[a];

            if (x->skipped) {
                fprintf(to, " - |");
            } else {
                fprintf(to, " %.3f (%.0f; %.3g s;", x->ratio, x->trials, x->tuning_s);
                if (x->space > 0) {
                    fprintf(to, " %.2g;", x->trials / x->space);
                }
                fprintf(to, " %.0f %%) |", 100 * x->near);
            }
        }
        fprintf(to, "\n");
    }
}

/* ---- the checks ---- */

static const char *const ALGORITHMS[] = {
    "exact",     "shisha",          "pipe-search",   "pipe-search-database",
    "pipe-it",   "random",          "hill-climbing", "hill-climbing-seeded",
    "annealing", "annealing-seeded"};

static int fill(struct checks *c, struct table *t)
{
    char **networks = psim_names(&psim_networks), **platforms = psim_names(&psim_platforms);
    struct tun_options options = {.seed = c->seed};
    char error[PSIM_ERROR_MAX] = "";
    int result = networks && platforms ? 0 : -ENOMEM;

    for (size_t n = 0; !result && networks[n]; n++) {
        struct psim_network network;

        result = psim_network_load(networks[n], PSIM_UNITS, error, &network);
        for (size_t m = 0; !result && platforms[m]; m++) {
            struct psim_platform platform;

            result = psim_platform_load(platforms[m], error, &platform);
            /* the papers' searches know nothing of links */
            if (!result && platform.boards.count == 0) {
                result = table_add(t, &network, &platform, &options, error);
            }
        }
        if (!result) {
            psim_network_deinit(&network);
        }
    }
    if (result) {
        fprintf(stderr, "search_check: %s\n", error);
    }
    psim_names_free(networks);
    psim_names_free(platforms);
    return result;
}

static void check_exact(struct checks *c, const struct table *t)
{
    struct summary exact;

    table_summary(t, table_column(t, "exact"), &exact);
    check_that(c, exact.rows == t->row_count && exact.ratio_worst <= 1 + TUN_SLACK + 1e-9,
               "exact on every network and machine",
               "%zu rows, bottleneck %.4f of the optimum on average, %.3f at worst (%.0f %% are "
               "given for latency), %.1f trials",
               exact.rows, exact.ratio, exact.ratio_worst, 100 * TUN_SLACK, exact.trials);
}

/* Shisha, abstract and section 6.1: its convergence against the other searches'. */
static void check_shisha(struct checks *c, const struct table *t)
{
    static const char *const OTHERS[] = {"pipe-search",          "random",
                                         "hill-climbing",        "annealing",
                                         "hill-climbing-seeded", "annealing-seeded"};
    size_t own = table_column(t, "shisha"), count = 0;
    double sum = 0;
    char text[256] = "";

    for (size_t i = 0; i < base_array_count(OTHERS); i++) {
        size_t column = table_column(t, OTHERS[i]), rows = 0;
        double ratio = 0;

        for (size_t r = 0; r < t->row_count; r++) {
            const struct score *s = t->rows[r].scores;

            if (!s[own].skipped && !s[column].skipped) {
                ratio += s[column].tuning_s / s[own].tuning_s;
                rows++;
            }
        }
        ratio /= base_max((double)rows, 1.0);
        base_append(text, sizeof(text), "%s%s %.1f", i ? ", " : "", OTHERS[i], ratio);
        sum += ratio;
        count++;
    }
    check_that(c, sum / (double)count >= 10, "Shisha converges sooner",
               "%.1f times on average (the paper: about 35): %s", sum / (double)count, text);
}

/* Pipe-search, tables 3 and 4: VGG-16 counted as 21 layers on four cores of a TX2. */
static void check_pipe_search(struct checks *c)
{
    struct psim_case on = PSIM_CASE_NULL;
    struct psim_machine machine = psim_machine(&on.truth, c->seed);
    struct tun_options options = {.seed = c->seed, .alpha = 10};
    struct psim_run run;
    char error[PSIM_ERROR_MAX];
    double space = tun_cut_count(21, 2, 4), best = INFINITY, near = 0, resets = 0;

    if (psim_case_init("vgg16", PSIM_LAYERS, "tx2-1", error, &on)) {
        check_that(c, false, "Pipe-search on VGG-16", "%s", error);
        return;
    }
    if (psim_run("pipe-search", &on.truth, &options, &machine, error, &run)) {
        check_that(c, false, "Pipe-search on VGG-16", "%s", error);
    } else {
        for (size_t i = 0; i < run.count; i++) {
            resets += run.log[i].measured.bottleneck_ns <= best;
            best = base_min(best, run.log[i].measured.bottleneck_ns);
        }
        for (size_t i = 0; i < run.count; i++) {
            near += run.log[i].measured.bottleneck_ns <= 1.5 * best;
        }
        check_that(c, (double)run.count <= 0.03 * space, "Pipe-search on VGG-16",
                   "%zu trials, %.1f %% of the space (the paper: 38 trials, 2 %%), %.0f %% of them "
                   "within 1.5 times the best (the paper: 79 %%)",
                   run.count, 100 * (double)run.count / space, 100 * near / (double)run.count);
        check_that(c, (double)run.count <= options.alpha * (4 + 1 + resets), "Pipe-search eq. 5",
                   "%zu trials, at most alpha (4 + 1) = %u and alpha more for each of %.0f resets",
                   run.count, 5 * options.alpha, resets);
        psim_run_deinit(&run);
    }
    psim_case_deinit(&on);
}

void check_table(struct checks *c)
{
    struct table t;

    table_init(&t, ALGORITHMS, base_array_count(ALGORITHMS));
    if (fill(c, &t) != 0) {
        check_that(c, false, "every network on every machine", "could not run");
    } else {
        table_print(&t, stdout);
        check_exact(c, &t);
        check_shisha(c, &t);
    }
    if (c->table_path) {
        FILE *to = fopen(c->table_path, "we");

        if (to) {
            table_print_rows(&t, to);
        }
        if (!to || fclose(to) != 0) {
            check_that(c, false, "table", "cannot write %s", c->table_path);
        }
    }
    table_deinit(&t);
    check_pipe_search(c);
}
