/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/search/cuts.h"
#include "tuner/search/places.h"
#include "tuner/search/search.h"

#define TRIALS_MAX 4096u

static void cleanup_search(struct tun_search **s)
{
    *s = tun_search_free(*s);
}
#define AUTO_SEARCH base_cleanup(cleanup_search) struct tun_search
#define AUTO_PROBLEM base_cleanup(tun_problem_deinit) struct tun_problem

/* Cores of two EPs, the second three times as slow; a unit's cost goes with its weight, with
 * some of it not shared by wider teams, and @noise (relative) on every cell. */
static int machine(size_t units, const double *weight, uint16_t big, uint16_t little, double noise,
                   struct tun_problem *ret)
{
    struct tun_ep eps[2] = {
        {.name = "big", .cores = big, .speed = 1, .bandwidth = 1},
        {.name = "little", .cores = little, .speed = 1.0 / 3, .bandwidth = 0.5}};
    int error = tun_problem_init(ret, units, eps, little ? 2 : 1);

    for (size_t u = 0; !error && u < units; u++) {
        ret->units[u].weight = weight ? weight[u] : (double)t_range(1, 50);
        for (size_t k = 0; k < ret->ep_count; k++) {
            for (size_t w = 1; w <= ret->eps[k].cores; w++) {
                *tun_cell_at(&ret->costs, k, w, u) = (struct tun_cell){
                    .ns = 1e6 * ret->units[u].weight * (0.9 / (double)w + 0.1) * (k ? 3 : 1) *
                          (1 + noise * t_float()),
                    .source = TUN_MEASURED,
                };
            }
        }
    }
    return error;
}

static int new_search(const char *name, const struct tun_problem *p, unsigned alpha, uint64_t seed,
                      struct tun_search **ret)
{
    struct tun_options options = {.alpha = alpha, .seed = seed};
    char error[TUN_ERROR_MAX];

    return tun_search_new(name, p, &options, error, ret);
}

/* Runs the search to its end on its own table; every plan must be one that can run. */
static void play(struct tun_search *s, const struct tun_problem *p)
{
    struct tun_trial trial = {.spent_ns = 1};
    struct pl_ep_set eps;
    char error[TUN_ERROR_MAX];

    tun_eps(p, &eps);
    for (size_t n = 0; tun_search_ask(s, &trial.plan) == 0; n++) {
        T_LT(n, TRIALS_MAX);
        T_EQ(pl_plan_check(&trial.plan, &eps, p->unit_count, error, sizeof(error)), 0);
        T_TRUE(tun_fits(p, &trial.plan));
        T_EQ(tun_eval(p, &trial.plan, &trial.measured), 0);
        T_EQ(tun_search_tell(s, &trial), 0);
    }
    T_EQ(tun_search_ask(s, &trial.plan), TUN_E_DONE);
}

/* Algorithm 2 as printed, over databases, with all that it runs in its order. */
struct reference {
    const struct tun_problem *p;
    unsigned alpha;
    size_t most, trials, resets, visited[PL_STAGE_MAX + 1], count[PL_STAGE_MAX + 1];
    uint16_t *lists[PL_STAGE_MAX + 1];
    struct pl_plan plans[TRIALS_MAX];
    struct pl_plan lowest; /* S_min */
    double lowest_ns;
};

static double execute(struct reference *r, size_t p, size_t c, struct pl_plan *ret, bool log)
{
    struct tun_pipeline pipeline = {.stage_count = p};
    struct tun_outcome outcome;

    memcpy(pipeline.layers, &r->lists[p][c * p], p * sizeof(uint16_t));
    tun_slots(r->p, p, pipeline.places);
    tun_pipeline_plan(&pipeline, ret);
    tun_eval(r->p, ret, &outcome);
    if (log && r->trials < TRIALS_MAX) {
        r->plans[r->trials++] = *ret;
    }
    return outcome.bottleneck_ns;
}

static void reference_walk(struct reference *r, size_t p)
{
    size_t c = r->visited[p];

    for (unsigned gamma = 0; gamma < r->alpha && c < r->count[p]; c++) {
        struct pl_plan plan;
        double ns = execute(r, p, c, &plan, c > 0); /* seeds have run */

        if (ns > r->lowest_ns || pl_plan_equal(&plan, &r->lowest)) {
            gamma++;
        } else {
            r->lowest_ns = ns;
            r->lowest = plan;
            r->resets++;
            gamma = 0;
        }
    }
    r->visited[p] = c;
}

static int reference_run(struct reference *r, const struct tun_problem *p, unsigned alpha)
{
    base_autofree double *weight = calloc(p->unit_count, sizeof(*weight));

    memset(r, 0, sizeof(*r)); /* too large for a literal on the stack */
    r->p = p;
    r->alpha = alpha;
    r->lowest_ns = INFINITY;
    r->most = base_min(tun_core_count(p), p->unit_count);
    for (size_t u = 0; u < p->unit_count; u++) {
        weight[u] = p->units[u].weight;
    }
    for (size_t n = 2; n <= r->most; n++) {
        if (tun_cuts_sorted(weight, p->unit_count, n, &r->lists[n], &r->count[n]) < 0) {
            return -1;
        }
    }
    for (size_t n = 2; n <= r->most; n++) {
        struct pl_plan plan;
        double ns = execute(r, n, 0, &plan, true);

        if (ns < r->lowest_ns) {
            r->lowest_ns = ns;
            r->lowest = plan;
        }
    }
    for (size_t n = 2; n <= r->most; n++) {
        reference_walk(r, n);
    }
    reference_walk(r, r->lowest.stage_count);
    for (size_t n = 2; n <= r->most; n++) {
        free(r->lists[n]);
    }
    return 0;
}

static void check_against_reference(const struct tun_problem *p, unsigned alpha)
{
    static struct reference r;
    static const char *const names[] = {"pipe-search", "pipe-search-database"};

    T_EQ(reference_run(&r, p, alpha), 0);
    for (size_t i = 0; i < base_array_count(names); i++) {
        AUTO_SEARCH *s = NULL;
        const struct tun_trial *log, *result;
        size_t count;

        T_EQ(new_search(names[i], p, alpha, t_random(), &s), 0);
        play(s, p);
        log = tun_search_log(s, &count);
        result = tun_search_result(s);
        T_EQ(count, r.trials);
        for (size_t n = 0; n < count; n++) {
            T_TRUE(pl_plan_equal(&log[n].plan, &r.plans[n]));
            for (size_t m = 0; m < n; m++) {
                T_TRUE(!pl_plan_equal(&log[n].plan, &log[m].plan)); /* never twice */
            }
        }
        T_TRUE(result && result->measured.bottleneck_ns == r.lowest_ns);
        /* Eq. 5, and alpha more for each reset. */
        T_LE(count, alpha * (r.most + r.resets));
    }
}

TEST(trials_are_algorithm_2)
{
    for (int round = 0; round < 200; round++) {
        AUTO_PROBLEM p = TUN_PROBLEM_NULL;
        size_t units = (size_t)t_range(2, 11);
        uint16_t big = (uint16_t)t_range(1, 3);

        T_EQ(machine(units, NULL, big, (uint16_t)t_range(1, 3), 0.3, &p), 0);
        check_against_reference(&p, (unsigned)t_range(1, 7));
    }
}

/* Eq. 5 without any gain: every trial measures worse than the one before. */
TEST(trials_without_reset)
{
    for (unsigned alpha = 1; alpha <= 12; alpha++) {
        AUTO_PROBLEM p = TUN_PROBLEM_NULL;
        AUTO_SEARCH *s = NULL;
        struct tun_trial trial = {.spent_ns = 1};
        size_t count = 0;

        T_EQ(machine(20, NULL, 2, 2, 0, &p), 0);
        T_EQ(new_search("pipe-search", &p, alpha, 1, &s), 0);
        while (tun_search_ask(s, &trial.plan) == 0) {
            trial.measured.bottleneck_ns = 1e6 + (double)count++;
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        /* alpha of each stage count with its seed, then alpha more of 2 stages, which has 19 */
        T_EQ(count, base_min(2 * alpha, 19u) + 2 * alpha);
    }
}

/* The paper's example: 7 layers on 4 cores, stage counts 2, 3, 4; seeds first. */
TEST(seeds_run_first)
{
    const double weight[7] = {1, 4, 8, 4, 8, 8, 4};
    static const char *const want[] = {"0-3@bigx2|4-6@bigx2", "0-2@bigx2|3-4@big|5-6@big",
                                       "0-1@big|2-2@big|3-4@big|5-6@big"};
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *s = NULL;
    struct pl_ep_set eps;
    const struct tun_trial *log;
    char text[PL_PLAN_TEXT_MAX];
    size_t count;

    T_EQ(machine(7, weight, 4, 0, 0, &p), 0);
    T_EQ(new_search("pipe-search", &p, 3, 1, &s), 0);
    play(s, &p);
    log = tun_search_log(s, &count);
    T_LE(3, count);
    tun_eps(&p, &eps);
    for (size_t i = 0; i < 3; i++) {
        T_EQ(pl_plan_format(&log[i].plan, &eps, text, sizeof(text)), 0);
        T_STR(text, want[i]);
    }
}

/* The least bottleneck of any way to cut units first.. into the stages from @stage on. */
static double best_cut(const struct tun_problem *p, struct tun_pipeline *pipeline, size_t stage,
                       size_t first)
{
    size_t left = pipeline->stage_count - stage - 1;
    struct tun_outcome outcome;
    struct pl_plan plan;
    double best = INFINITY;

    if (left == 0) {
        pipeline->layers[stage] = (uint16_t)(p->unit_count - first);
        tun_pipeline_plan(pipeline, &plan);
        return tun_eval(p, &plan, &outcome) == 0 ? outcome.bottleneck_ns : NAN;
    }
    for (size_t units = 1; first + units + left <= p->unit_count; units++) {
        pipeline->layers[stage] = (uint16_t)units;
        best = base_min(best, best_cut(p, pipeline, stage + 1, first + units));
    }
    return best;
}

/* With more patience than there are configurations it tries them all and finds the best. */
TEST(patience_finds_the_best_cut)
{
    for (int round = 0; round < 40; round++) {
        AUTO_PROBLEM p = TUN_PROBLEM_NULL;
        AUTO_SEARCH *s = NULL;
        double best = INFINITY;
        size_t count;

        T_EQ(machine((size_t)t_range(3, 9), NULL, 2, 2, 0.5, &p), 0);
        for (size_t stages = 2; stages <= 4 && stages <= p.unit_count; stages++) {
            struct tun_pipeline pipeline = {.stage_count = stages};

            T_EQ(tun_slots(&p, stages, pipeline.places), 0);
            best = base_min(best, best_cut(&p, &pipeline, 0, 0));
        }
        T_EQ(new_search("pipe-search", &p, 1000, 1, &s), 0);
        play(s, &p);
        tun_search_log(s, &count);
        /* Phase two walks on in one list; the others were walked to their ends as well. */
        T_TRUE((double)count == tun_algorithm_space(tun_search_algorithm(s), &p, NULL));
        T_TRUE(tun_search_result(s)->measured.bottleneck_ns == best);
    }
}

/* Where time goes with weight on equal cores, a seed with CV 0 is the end: Synth 2 of table 7 has
 * one of 4 stages. */
TEST(perfect_seeds_stay)
{
    const double weight[15] = {1, 9, 4, 8, 5, 4, 8, 5, 7, 1, 1, 1, 4, 8, 22};
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *s = NULL;

    T_EQ(machine(15, weight, 4, 0, 0, &p), 0);
    T_EQ(new_search("pipe-search", &p, 15, 1, &s), 0);
    play(s, &p);
    T_EQ(tun_search_result(s)->plan.stage_count, 4);
    T_TRUE(tun_search_result(s) == tun_search_log(s, &(size_t){0}) + 2);
}

/* It walks away from the seeds where one EP is slower: Synth 2 of table 7, two cores slowed. */
TEST(leaves_the_seeds_on_unequal_cores)
{
    const double weight[15] = {1, 9, 4, 8, 5, 4, 8, 5, 7, 1, 1, 1, 4, 8, 22};
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *s = NULL;
    const struct tun_trial *log, *result;
    double seed = INFINITY;
    size_t count;

    T_EQ(machine(15, weight, 2, 2, 0, &p), 0);
    T_EQ(new_search("pipe-search", &p, 15, 1, &s), 0);
    play(s, &p);
    log = tun_search_log(s, &count);
    result = tun_search_result(s);
    for (size_t i = 0; i < 3; i++) {
        seed = base_min(seed, log[i].measured.bottleneck_ns);
    }
    T_TRUE(result->measured.bottleneck_ns < 0.9 * seed);
}

TEST(the_one_obvious_plan)
{
    static const struct {
        size_t units;
        uint16_t big, little;
        size_t stages_max;
        const char *want;
    } rows[] = {{5, 1, 0, 0, "0-4@big"}, {1, 2, 2, 0, "0-0@bigx2"}, {6, 2, 2, 1, "0-5@bigx2"}};
    static const char *const names[] = {"pipe-search", "pipe-search-database"};

    for (size_t i = 0; i < 2 * base_array_count(rows); i++) {
        AUTO_PROBLEM p = TUN_PROBLEM_NULL;
        AUTO_SEARCH *s = NULL;
        struct pl_ep_set eps;
        char text[PL_PLAN_TEXT_MAX];
        size_t count;

        T_EQ(machine(rows[i / 2].units, NULL, rows[i / 2].big, rows[i / 2].little, 0, &p), 0);
        p.bounds.stages_max = rows[i / 2].stages_max;
        T_EQ(new_search(names[i % 2], &p, 0, 1, &s), 0);
        play(s, &p);
        tun_search_log(s, &count);
        T_EQ(count, 1);
        T_TRUE(tun_algorithm_space(tun_search_algorithm(s), &p, NULL) == 1);
        tun_eps(&p, &eps);
        T_EQ(pl_plan_format(&tun_search_result(s)->plan, &eps, text, sizeof(text)), 0);
        T_STR(text, rows[i / 2].want);
    }
}

/* More cores than units: at most one stage a unit. */
TEST(more_cores_than_units)
{
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *s = NULL;
    const struct tun_trial *log;
    size_t count;

    T_EQ(machine(3, NULL, 4, 4, 0.1, &p), 0);
    T_EQ(new_search("pipe-search", &p, 10, 1, &s), 0);
    play(s, &p);
    log = tun_search_log(s, &count);
    T_EQ(count, 3); /* 1|2, 2|1, 1|1|1 */
    for (size_t i = 0; i < count; i++) {
        T_LE(log[i].plan.stage_count, 3);
    }
}

/* Trials that stop early or fail are no gain; when nothing runs it ends, without a result. */
TEST(trials_that_do_not_run)
{
    for (int how = 0; how < 2; how++) {
        AUTO_PROBLEM p = TUN_PROBLEM_NULL;
        AUTO_SEARCH *s = NULL;
        struct tun_trial trial = {.spent_ns = 1, .stopped = how == 0, .failed = how == 1};
        size_t count = 0;

        trial.measured.bottleneck_ns = 1;
        T_EQ(machine(12, NULL, 2, 2, 0, &p), 0);
        T_EQ(new_search("pipe-search", &p, 5, 1, &s), 0);
        while (tun_search_ask(s, &trial.plan) == 0) {
            T_LT(count++, 100);
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        T_EQ(count, 3 * 5);
        T_TRUE(tun_search_result(s) == NULL);
    }
}

/* One good trial among failures is what serves, and its stage count is walked on in. */
TEST(one_trial_that_runs)
{
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *s = NULL;
    struct tun_trial trial = {.spent_ns = 1};
    size_t count = 0;

    T_EQ(machine(12, NULL, 2, 2, 0, &p), 0);
    T_EQ(new_search("pipe-search", &p, 5, 1, &s), 0);
    while (tun_search_ask(s, &trial.plan) == 0) {
        T_LT(count, 100);
        trial.failed = count++ != 4;
        trial.measured.bottleneck_ns = 7;
        T_EQ(tun_search_tell(s, &trial), 0);
    }
    T_TRUE(tun_search_result(s) && tun_search_result(s)->measured.bottleneck_ns == 7);
    /* 3 seeds; of 2 stages the second next one runs, then 5 do not; 4 more of 3 and of 4 stages;
     * phase two has 2 of 2 stages left (11 in all, 8 tried) */
    T_EQ(count, 3 + 7 + 4 + 4 + 3);
}

TEST(same_trials_every_time)
{
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *a = NULL, *b = NULL;
    const struct tun_trial *x, *y;
    size_t count, other;

    T_EQ(machine(20, NULL, 2, 3, 0.2, &p), 0);
    T_EQ(new_search("pipe-search", &p, 8, 5, &a), 0);
    T_EQ(new_search("pipe-search", &p, 8, 5, &b), 0);
    play(a, &p);
    play(b, &p);
    x = tun_search_log(a, &count);
    y = tun_search_log(b, &other);
    T_EQ(count, other);
    for (size_t i = 0; i < count; i++) {
        T_TRUE(pl_plan_equal(&x[i].plan, &y[i].plan));
    }
}

/* Given up at any point: before the first question, after any question, after any answer. */
TEST(given_up_at_any_point)
{
    static const char *const names[] = {"pipe-search", "pipe-search-database"};
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;

    T_EQ(machine(14, NULL, 2, 2, 0.2, &p), 0);
    for (size_t steps = 0; steps < 60; steps++) {
        AUTO_SEARCH *s = NULL;
        struct tun_trial trial = {.spent_ns = 1};

        T_EQ(new_search(names[steps % 2], &p, 6, 1, &s), 0);
        for (size_t i = 0; i < steps / 2 && tun_search_ask(s, &trial.plan) == 0; i++) {
            if (i + 1 < steps / 2 || steps % 4 < 2) {
                T_EQ(tun_eval(&p, &trial.plan, &trial.measured), 0);
                T_EQ(tun_search_tell(s, &trial), 0);
            }
        }
    }
}

/* ResNet-50 on 8 cores: the lazy form starts, the database would not fit. */
TEST(long_chains_need_no_database)
{
    AUTO_PROBLEM p = TUN_PROBLEM_NULL;
    AUTO_SEARCH *s = NULL, *none = NULL;
    char error[TUN_ERROR_MAX];

    T_EQ(machine(54, NULL, 4, 4, 0.1, &p), 0);
    T_EQ(tun_search_new("pipe-search-database", &p, NULL, error, &none), -EINVAL);
    T_CONTAINS(error, "too long to keep");
    T_EQ(new_search("pipe-search", &p, 10, 1, &s), 0);
    play(s, &p);
    T_TRUE(tun_search_result(s) != NULL);
}

TEST(impossible_weights)
{
    static const char *const names[] = {"pipe-search", "pipe-search-database"};
    const double bad[] = {-1, NAN, INFINITY};

    for (size_t i = 0; i < 6; i++) {
        AUTO_PROBLEM p = TUN_PROBLEM_NULL;
        struct tun_search *s;
        char error[TUN_ERROR_MAX];

        T_EQ(machine(6, NULL, 2, 2, 0, &p), 0);
        p.units[3].weight = bad[i / 2];
        T_EQ(tun_search_new(names[i % 2], &p, NULL, error, &s), -EINVAL);
        T_CONTAINS(error, "weight");
    }
}

TEST_MAIN()
