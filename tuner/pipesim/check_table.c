/* SPDX-License-Identifier: Apache-2.0 */
/* Every network on every machine by every algorithm, and what the papers claim of theirs. */
#include <math.h>

#include "base/base.h"
#include "base/cli/shown_print.h"
#include "tuner/pipesim/check.h"
#include "tuner/search/places.h"

static const char *const ALGORITHMS[] = {
    "exact",     "shisha",          "pipe-search",   "pipe-search-database",
    "pipe-it",   "random",          "hill-climbing", "hill-climbing-seeded",
    "annealing", "annealing-seeded"};

static int fill(struct psim_checks *c, struct psim_table *t)
{
    char **networks = psim_network_names(), **platforms = psim_platform_names();
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
                result = psim_table_add(t, &network, &platform, &options, error);
            }
        }
        if (!result) {
            psim_network_deinit(&network);
        }
    }
    if (result) {
        shown_fprintf(stderr, "pipesim: check: %s\n", error);
    }
    psim_names_free(networks);
    psim_names_free(platforms);
    return result;
}

static void check_exact(struct psim_checks *c, const struct psim_table *t)
{
    struct psim_summary exact;

    psim_table_summary(t, psim_table_column(t, "exact"), &exact);
    psim_check(c, exact.rows == t->row_count && exact.ratio_worst <= 1 + TUN_SLACK + 1e-9,
               "exact on every network and machine",
               "%zu rows, bottleneck %.4f of the optimum on average, %.3f at worst (%.0f %% are "
               "given for latency), %.1f trials",
               exact.rows, exact.ratio, exact.ratio_worst, 100 * TUN_SLACK, exact.trials);
}

/* Shisha, abstract and section 6.1: its convergence against the other searches'. */
static void check_shisha(struct psim_checks *c, const struct psim_table *t)
{
    static const char *const OTHERS[] = {"pipe-search",          "random",
                                         "hill-climbing",        "annealing",
                                         "hill-climbing-seeded", "annealing-seeded"};
    size_t own = psim_table_column(t, "shisha"), count = 0;
    double sum = 0;
    char text[256] = "";

    for (size_t i = 0; i < base_array_count(OTHERS); i++) {
        size_t column = psim_table_column(t, OTHERS[i]), rows = 0;
        double ratio = 0;

        for (size_t r = 0; r < t->row_count; r++) {
            const struct psim_score *s = t->rows[r].scores;

            if (!s[own].skipped && !s[column].skipped) {
                ratio += s[column].tuning_s / s[own].tuning_s;
                rows++;
            }
        }
        ratio /= base_max((double)rows, 1.0);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %.1f", i ? ", " : "",
                 OTHERS[i], ratio);
        sum += ratio;
        count++;
    }
    psim_check(c, sum / (double)count >= 10, "Shisha converges sooner",
               "%.1f times on average (the paper: about 35): %s", sum / (double)count, text);
}

/* Pipe-search, tables 3 and 4: VGG-16 counted as 21 layers on four cores of a TX2. */
static void check_pipe_search(struct psim_checks *c)
{
    struct psim_case on = PSIM_CASE_NULL;
    struct psim_machine machine = psim_machine(&on.truth, c->seed);
    struct tun_options options = {.seed = c->seed, .alpha = 10};
    struct psim_run run;
    char error[PSIM_ERROR_MAX];
    double space = tun_cut_count(21, 2, 4), best = INFINITY, near = 0, resets = 0;

    if (psim_case_init("vgg16", PSIM_LAYERS, "tx2-1", error, &on)) {
        psim_check(c, false, "Pipe-search on VGG-16", "%s", error);
        return;
    }
    if (psim_run("pipe-search", &on.truth, &options, &machine, error, &run)) {
        psim_check(c, false, "Pipe-search on VGG-16", "%s", error);
    } else {
        for (size_t i = 0; i < run.count; i++) {
            resets += run.log[i].measured.bottleneck_ns <= best;
            best = base_min(best, run.log[i].measured.bottleneck_ns);
        }
        for (size_t i = 0; i < run.count; i++) {
            near += run.log[i].measured.bottleneck_ns <= 1.5 * best;
        }
        psim_check(c, (double)run.count <= 0.03 * space, "Pipe-search on VGG-16",
                   "%zu trials, %.1f %% of the space (the paper: 38 trials, 2 %%), %.0f %% of them "
                   "within 1.5 times the best (the paper: 79 %%)",
                   run.count, 100 * (double)run.count / space, 100 * near / (double)run.count);
        psim_check(c, (double)run.count <= options.alpha * (4 + 1 + resets), "Pipe-search eq. 5",
                   "%zu trials, at most alpha (4 + 1) = %u and alpha more for each of %.0f resets",
                   run.count, 5 * options.alpha, resets);
        psim_run_deinit(&run);
    }
    psim_case_deinit(&on);
}

/* Pipe-it, table IV: against all four big cores on one layer at a time. */
static void check_pipe_it(struct psim_checks *c)
{
    static const char *const NETWORKS[] = {"alexnet", "googlenet", "mobilenet_v1", "resnet50",
                                           "squeezenet1_0"};
    char error[PSIM_ERROR_MAX] = "", text[256] = "";
    double gain = 0;
    int failed = 0;

    for (size_t n = 0; n < base_array_count(NETWORKS) && !failed; n++) {
        struct psim_case on = PSIM_CASE_NULL;
        const struct tun_problem *p = &on.truth;
        struct psim_machine machine = psim_machine(p, c->seed);
        struct psim_run run;
        size_t order[PL_EP_MAX];
        double big;

        failed = psim_case_init(NETWORKS[n], PSIM_UNITS, "hikey970", error, &on) ||
                 psim_run("pipe-it", p, NULL, &machine, error, &run);
        if (!failed) {
            tun_rank_eps(p, order);
            big = tun_team_ns(p, 0, p->unit_count - 1, order[0], p->eps[order[0]].cores);
            gain += big / run.bottleneck_ns - 1;
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %.0f %%",
                     n ? ", " : "", NETWORKS[n], 100 * (big / run.bottleneck_ns - 1));
            psim_run_deinit(&run);
            psim_case_deinit(&on);
        }
    }
    gain /= (double)base_array_count(NETWORKS);
    psim_check(c, !failed && gain >= 0.30, "Pipe-it against the big cores alone",
               "%.0f %% on average (the paper: 39 %%): %s%s", 100 * gain, text, error);
}

void psim_check_table(struct psim_checks *c)
{
    struct psim_table t;

    psim_table_init(&t, ALGORITHMS, base_array_count(ALGORITHMS));
    if (fill(c, &t) != 0) {
        psim_check(c, false, "every network on every machine", "could not run");
    } else {
        psim_table_print(&t, stdout);
        check_exact(c, &t);
        check_shisha(c, &t);
    }
    if (c->table_path) {
        FILE *to = fopen(c->table_path, "we");

        if (to) {
            psim_table_print_rows(&t, to);
        }
        if (!to || fclose(to) != 0) {
            psim_check(c, false, "table", "cannot write %s", c->table_path);
        }
    }
    psim_table_deinit(&t);
    check_pipe_search(c);
    check_pipe_it(c);
}
