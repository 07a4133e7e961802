/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default search on simulated machines: the truth differs from its table per (unit, kind), one
 * kind is slowed by contention it does not know of, and every measurement is noisy.
 */
#include "base.h"
#include "tests/harness.h"
#include "tuner/search/random.h"
#include "tuner/search/search.h"
#include "tuner/solve.h"

#define SIGMA 0.1
#define CONTENTION 0.2
#define NOISE 0.005
#define UNITS_MAX 40
#define ROWS_MAX 12

struct machine {
    struct tun_problem truth; /* owned; contention included */
    struct tun_random random;
    double noise;
    struct tun_sample samples[UNITS_MAX * ROWS_MAX];
};

/* A network and a machine: sizes over two orders of magnitude, kinds up to four times slower for
 * some units than for others, unequal gain from width. */
static void make(struct tun_problem *p, struct tun_random *r, size_t kind_count, size_t units)
{
    struct tun_kind kinds[3];
    double parallel;

    for (size_t k = 0; k < kind_count; k++) {
        kinds[k] = (struct tun_kind){.cores = (uint16_t)(1 + tun_random_below(r, 4)),
                                     .speed = k ? 0.2 + 0.7 * tun_random_unit(r) : 1,
                                     .bandwidth = 1,
                                     .watts = k ? 0.5 : 2};
        snprintf(kinds[k].name, sizeof(kinds[k].name), "kind%u", (unsigned)k);
    }
    if (tun_problem_init(p, units, kinds, kind_count) < 0) {
        abort();
    }
    p->handoff_ns = 5000;
    p->handoff_ns_per_byte = 0.05;
    p->bounds.slack = 0;
    for (size_t u = 0; u < units; u++) {
        p->units[u].weight = exp(12 + 2.5 * tun_random_unit(r));
        p->units[u].in_bytes = u ? 1e5 * tun_random_unit(r) : 0;
        parallel = 0.6 + 0.39 * tun_random_unit(r);
        for (size_t k = 0; k < kind_count; k++) {
            double ns = p->units[u].weight / kinds[k].speed * (1 + 0.3 * tun_random_unit(r));

            for (size_t w = 1; w <= kinds[k].cores; w++) {
                *tun_cell_at(&p->costs, k, w, u) = (struct tun_cell){
                    ns * (1 - parallel + parallel / (double)w), SIGMA, TUN_PREDICTED};
            }
        }
    }
}

/* The truth of a table: every (unit, kind) off by SIGMA, one kind slowed. */
static void spoil(const struct tun_problem *p, struct machine *m, uint64_t seed)
{
    size_t slow;

    if (tun_problem_copy(p, &m->truth) < 0) {
        abort();
    }
    m->random.state = seed;
    m->noise = NOISE;
    slow = tun_random_below(&m->random, p->kind_count);
    for (size_t k = 0; k < p->kind_count; k++) {
        double contention = k == slow ? 1 + CONTENTION * tun_random_unit(&m->random) : 1;

        for (size_t u = 0; u < p->unit_count; u++) {
            double factor = contention * exp(SIGMA * tun_random_normal(&m->random));

            for (size_t w = 1; w <= p->kinds[k].cores; w++) {
                tun_cell_at(&m->truth.costs, k, w, u)->ns *= factor;
            }
        }
    }
}

static double noisy(struct machine *m, double ns)
{
    return ns * exp(m->noise * tun_random_normal(&m->random));
}

/* Runs a plan: units with noise, teams with noise of their own on top. */
static void run(struct machine *m, const struct pl_plan *plan, struct tun_trial *ret)
{
    struct tun_problem seen = m->truth; /* shallow: its hand-off is used alone */
    size_t count = 0;

    *ret = (struct tun_trial){.plan = *plan, .samples = m->samples, .frames = 100};
    ret->measured.stage_count = plan->stage_count;
    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        double rate = 0, slowest = 0;

        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];
            double ns = seen.handoff_ns;

            ns += stage->first_unit
                      ? seen.handoff_ns_per_byte * seen.units[stage->first_unit].in_bytes
                      : 0;
            for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
                struct tun_sample *sample = &m->samples[count++];

                *sample = (struct tun_sample){group->ep, group->width, (uint32_t)u, 0, m->noise};
                sample->ns = noisy(m, tun_cell_at(&m->truth.costs, group->ep, group->width, u)->ns);
                ns += sample->ns;
            }
            ret->measured.team_ns[s][g] = ns = noisy(m, ns);
            rate += group->count / ns;
            slowest = base_max(slowest, ns);
        }
        ret->measured.stage_ns[s] = 1 / rate;
        ret->measured.bottleneck_ns = base_max(ret->measured.bottleneck_ns, 1 / rate);
        ret->measured.latency_ns += slowest;
    }
    ret->sample_count = count;
}

/* A whole search. Return: trials; the outcome of its result by the truth. */
static size_t search(const struct tun_problem *p, struct machine *m, struct tun_outcome *ret)
{
    struct tun_search *s;
    struct tun_trial trial;
    struct pl_plan plan;
    char error[TUN_ERROR_MAX];
    size_t count;

    if (tun_search_new("exact", p, NULL, error, &s) < 0) {
        fprintf(stderr, "%s\n", error);
        return 99;
    }
    while (tun_search_ask(s, &plan) == 0) {
        run(m, &plan, &trial);
        if (!tun_fits(p, &plan) || tun_search_tell(s, &trial) < 0) {
            return 99;
        }
    }
    tun_search_log(s, &count);
    if (!tun_search_result(s) || tun_eval(&m->truth, &tun_search_result(s)->plan, ret) != 0) {
        count = 99;
    }
    tun_search_free(s);
    return count;
}

struct tally {
    size_t cases, good, over_five, in_one_percent;
    double trials, worst;
};

static void simulate(double told_sigma, enum tun_source source, size_t cases, struct tally *t)
{
    static struct machine m;
    struct tun_random r = {t_random()};

    *t = (struct tally){.cases = cases};
    for (size_t i = 0; i < cases; i++) {
        uint64_t seed = tun_random_next(&r);
        struct tun_random own = {seed};
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;
        size_t trials;
        double ratio;

        make(&p, &own, 1 + tun_random_below(&own, 3), 3 + tun_random_below(&own, UNITS_MAX - 2));
        spoil(&p, &m, tun_random_next(&own));
        for (size_t c = 0; c < p.unit_count * tun_core_count(&p); c++) {
            p.costs.cells[c].sigma = told_sigma;
            p.costs.cells[c].source = source;
        }
        trials = search(&p, &m, &end);
        if (trials > 5 || tun_solve(&m.truth, &best) != 0) {
            t->over_five++;
            fprintf(stderr, "seed %llu: %zu trials\n", (unsigned long long)seed, trials);
            tun_problem_deinit(&p);
            tun_problem_deinit(&m.truth);
            continue;
        }
        ratio = end.bottleneck_ns / best.outcome.bottleneck_ns;
        t->good += ratio <= 1.01 && trials <= 3;
        t->in_one_percent += ratio <= 1.01;
        t->trials += (double)trials / (double)cases;
        t->worst = base_max(t->worst, ratio);
        if (getenv("PIPED_TEST_VERBOSE") && (ratio > 1.01 || trials > 3)) {
            fprintf(stderr, "seed %llu: %zu units, %zu kinds, %zu trials, %.4f\n",
                    (unsigned long long)seed, p.unit_count, p.kind_count, trials, ratio);
        }
        tun_problem_deinit(&p);
        tun_problem_deinit(&m.truth);
    }
    printf("%zu cases: %.1f %% within 1 %% in 3 trials, %.1f %% within 1 %%, %.2f trials, worst "
           "%.4f\n",
           cases, 100 * (double)t->good / (double)cases,
           100 * (double)t->in_one_percent / (double)cases, t->trials, t->worst);
}

TEST(a_table_that_knows_its_doubt)
{
    struct tally t;

    simulate(SIGMA, TUN_PREDICTED, 300, &t);
    T_EQ(t.over_five, 0);
    T_LE(285, t.good);
}

/* The same error, but the table claims to be exact. */
TEST(a_table_that_claims_to_be_exact)
{
    struct tally t;

    simulate(0, TUN_MEASURED, 300, &t);
    T_EQ(t.over_five, 0);
    T_LE(270, t.in_one_percent);
    simulate(0, TUN_PREDICTED, 300, &t);
    T_EQ(t.over_five, 0);
    T_LE(270, t.in_one_percent);
}

static struct machine machine;

static void make_one(struct tun_problem *p, uint64_t seed, size_t kinds, size_t units)
{
    struct tun_random r = {seed};

    make(p, &r, kinds, units);
    spoil(p, &machine, seed + 1);
}

static void unmake(struct tun_problem *p)
{
    tun_problem_deinit(p);
    tun_problem_deinit(&machine.truth);
}

/* An exact table: the first trial is the optimum, and it is the only one. */
TEST(an_exact_table_needs_one_trial)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;

        make_one(&p, t_random(), 1 + seed % 3, 20);
        machine.noise = 0;
        for (size_t c = 0; c < p.unit_count * tun_core_count(&p); c++) {
            p.costs.cells[c] =
                (struct tun_cell){machine.truth.costs.cells[c].ns, 0.005, TUN_MEASURED};
        }
        T_EQ(search(&p, &machine, &end), 1);
        T_EQ(tun_solve(&machine.truth, &best), 0);
        T_NEAR(end.bottleneck_ns, best.outcome.bottleneck_ns, 1e-6 * end.bottleneck_ns);
        unmake(&p);
    }
}

/* Nothing known but weights and speeds. */
TEST(a_table_of_holes)
{
    double worst = 1, sum = 0;

    for (int round = 0; round < 50; round++) {
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;

        make_one(&p, t_random(), (size_t)t_range(1, 3), (size_t)t_range(3, 30));
        for (size_t c = 0; c < p.unit_count * tun_core_count(&p); c++) {
            p.costs.cells[c] = (struct tun_cell){-1, 0, TUN_UNKNOWN};
        }
        T_LE(search(&p, &machine, &end), 5);
        T_EQ(tun_solve(&machine.truth, &best), 0);
        worst = base_max(worst, end.bottleneck_ns / best.outcome.bottleneck_ns);
        sum += end.bottleneck_ns / best.outcome.bottleneck_ns / 50;
        unmake(&p);
    }
    printf("holes alone: %.4f of the optimum on average, %.4f at worst\n", sum, worst);
    T_TRUE(sum < 1.02 && worst < 1.15);
}

TEST(one_unit_one_core)
{
    const struct tun_kind kind = {.name = "only", .cores = 1, .speed = 1, .bandwidth = 1};
    struct tun_problem p;
    struct tun_outcome end;

    T_EQ(tun_problem_init(&p, 1, &kind, 1), 0);
    machine = (struct machine){.noise = NOISE};
    T_EQ(tun_problem_copy(&p, &machine.truth), 0);
    machine.truth.costs.cells[0] = (struct tun_cell){1e6, 0, TUN_MEASURED};
    T_EQ(search(&p, &machine, &end), 1);
    T_NEAR(end.bottleneck_ns, 1e6, 0);
    unmake(&p);

    make_one(&p, 7, 3, 1); /* one unit, several cores */
    T_LE(search(&p, &machine, &end), 5);
    unmake(&p);
}

/* The same seed and trials: the same questions. */
TEST(deterministic)
{
    struct pl_plan plans[2][8];
    size_t counts[2];

    for (int i = 0; i < 2; i++) {
        struct tun_problem p;
        struct tun_search *s;
        struct tun_trial trial;
        char error[TUN_ERROR_MAX];

        make_one(&p, 11, 3, 25);
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        for (counts[i] = 0; tun_search_ask(s, &plans[i][counts[i]]) == 0; counts[i]++) {
            run(&machine, &plans[i][counts[i]], &trial);
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        tun_search_free(s);
        unmake(&p);
    }
    T_EQ(counts[0], counts[1]);
    for (size_t i = 0; i < counts[0]; i++) {
        T_TRUE(pl_plan_equal(&plans[0][i], &plans[1][i]));
    }
}

/* Trials that fail or are stopped: another plan is asked for, none twice, and what could not be
 * measured to its end does not serve. */
TEST(failed_and_stopped_trials)
{
    for (int round = 0; round < 100; round++) {
        struct tun_problem p;
        struct tun_search *s;
        struct tun_trial trial;
        struct pl_plan plan, asked[8];
        char error[TUN_ERROR_MAX];
        size_t count = 0, finished = 0;

        make_one(&p, t_random(), (size_t)t_range(1, 3), (size_t)t_range(2, 20));
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        while (tun_search_ask(s, &plan) == 0) {
            int fate = (int)t_range(0, round % 4);

            for (size_t i = 0; i < count; i++) {
                T_TRUE(!pl_plan_equal(&asked[i], &plan));
            }
            T_LT(count, 5);
            asked[count++] = plan;
            run(&machine, &plan, &trial);
            trial.failed = fate == 1 || fate == 3;
            trial.stopped = fate == 2;
            if (trial.failed) {
                trial.samples = NULL;
                trial.sample_count = 0;
                trial.measured = (struct tun_outcome){0};
            }
            finished += fate == 0;
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        T_EQ(tun_search_result(s) != NULL, finished > 0);
        T_TRUE(!tun_search_result(s) ||
               (!tun_search_result(s)->failed && !tun_search_result(s)->stopped));
        tun_search_free(s);
        unmake(&p);
    }
}

/* A caller may walk away at any point, and may ask for fewer trials. */
TEST(cancelled_in_the_middle)
{
    for (size_t after = 0; after < 3; after++) {
        const struct tun_options o = {.trials_max = after};
        struct tun_problem p;
        struct tun_search *s;
        struct tun_trial trial;
        struct pl_plan plan;
        char error[TUN_ERROR_MAX];

        make_one(&p, 3 + after, 3, 30);
        T_EQ(tun_search_new("exact", &p, &o, error, &s), 0);
        for (size_t i = 0; i < after && tun_search_ask(s, &plan) == 0; i++) {
            run(&machine, &plan, &trial);
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        T_EQ(tun_search_result(s) != NULL, after > 0);
        if (after > 0) {
            T_EQ(tun_search_ask(s, &plan), TUN_E_DONE);
        }
        tun_search_free(s);
        unmake(&p);
    }
}

/* Plans of several stages are slower than any table of units says: the end is the best plan seen,
 * and that is the fastest of those within the slack. */
TEST(never_below_the_best_seen)
{
    for (int round = 0; round < 100; round++) {
        struct tun_problem p;
        struct tun_search *s;
        struct tun_trial trial;
        struct pl_plan plan;
        char error[TUN_ERROR_MAX];
        double best = INFINITY, penalty = 1 + (double)t_range(0, 30) / 100;
        size_t count = 0;

        make_one(&p, t_random(), (size_t)t_range(1, 3), (size_t)t_range(2, 25));
        p.bounds.slack = round % 2 ? 0 : TUN_SLACK;
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        while (tun_search_ask(s, &plan) == 0) {
            run(&machine, &plan, &trial);
            trial.measured.bottleneck_ns *= plan.stage_count > 1 ? penalty : 1;
            best = base_min(best, trial.measured.bottleneck_ns);
            count++;
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        T_LE(count, 5);
        T_TRUE(tun_search_result(s)->measured.bottleneck_ns <= best * (1 + p.bounds.slack));
        tun_search_free(s);
        unmake(&p);
    }
}

/* Each objective ends near what the solver finds on the truth, by its own figure and bounds. */
TEST(all_objectives)
{
    size_t near[3] = {0}, kept[3] = {0}, cases = 60;

    for (size_t i = 0; i < 3 * cases; i++) {
        enum tun_objective objective = (enum tun_objective)(i % 3);
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;
        double bound, figure, least;

        make_one(&p, t_random(), 1 + i % 2, (size_t)t_range(3, 20));
        T_EQ(tun_solve(&machine.truth, &best), 0);
        bound = best.outcome.bottleneck_ns * 1.3;
        p.objective = machine.truth.objective = objective;
        p.bounds.slack = machine.truth.bounds.slack = TUN_SLACK;
        if (objective != TUN_THROUGHPUT) {
            p.bounds.period_max_ns = machine.truth.bounds.period_max_ns = bound;
        } else {
            bound = best.outcome.bottleneck_ns * (1 + TUN_SLACK);
        }
        T_LE(search(&p, &machine, &end), 5);
        T_EQ(tun_solve(&machine.truth, &best), 0);
        figure = objective == TUN_POWER ? end.energy_nj : end.latency_ns;
        least = objective == TUN_POWER ? best.outcome.energy_nj : best.outcome.latency_ns;
        near[objective] += figure <= least * 1.1;
        kept[objective] += end.bottleneck_ns <= bound * 1.01;
        unmake(&p);
    }
    for (size_t o = 0; o < 3; o++) {
        printf("objective %zu: figure within 10 %% in %zu, bound kept in %zu of %zu\n", o, near[o],
               kept[o], cases);
        T_LE(cases * 9 / 10, kept[o]);
        T_LE(cases * 8 / 10, near[o]);
    }
}

/* A doubtful table: the first plan runs every unit on every kind. A bound on stages of one kind
 * rules that plan out. */
TEST(doubt_asks_everything_first)
{
    for (int bound = 0; bound < 2; bound++) {
        struct tun_problem p;
        struct tun_search *s;
        struct pl_plan plan;
        char error[TUN_ERROR_MAX];

        make_one(&p, 21, 3, 20);
        p.bounds.one_kind_stages = bound;
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        T_EQ(tun_search_ask(s, &plan), 0);
        T_TRUE(tun_fits(&p, &plan));
        for (size_t k = 0; k < 3 && !bound; k++) {
            T_EQ(plan.stage_count, 1);
            T_EQ(plan.stages[0].group_count, 3);
            T_EQ(plan.stages[0].groups[k].ep, k);
            T_EQ(plan.stages[0].groups[k].width, 1);
            T_EQ(plan.stages[0].groups[k].count, p.kinds[k].cores);
        }
        tun_search_free(s);
        unmake(&p);
    }
}

/* Every plan is far slower than the table says, so that the next one always looks better: five
 * trials and no more. */
TEST(chaos_ends)
{
    size_t most = 0;

    for (int round = 0; round < 20; round++) {
        const struct tun_options o = {.top = 20};
        struct tun_problem p;
        struct tun_search *s;
        struct tun_trial trial;
        struct pl_plan plan;
        char error[TUN_ERROR_MAX];
        size_t count = 0;

        make_one(&p, t_random(), 3, 20);
        T_EQ(tun_search_new("exact", &p, &o, error, &s), 0);
        while (tun_search_ask(s, &plan) == 0) {
            run(&machine, &plan, &trial);
            trial.measured.bottleneck_ns *= 8;
            count++;
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        most = base_max(most, count);
        tun_search_free(s);
        unmake(&p);
    }
    T_EQ(most, 5);
}

/* Bounds that nothing keeps: the search still ends, with the fastest plan it can serve. */
TEST(impossible_bounds)
{
    struct tun_problem p;
    struct tun_outcome end;

    make_one(&p, 5, 2, 12);
    p.objective = TUN_POWER;
    p.bounds.period_max_ns = 1;
    T_LE(search(&p, &machine, &end), 5);
    T_TRUE(end.bottleneck_ns > 1);
    unmake(&p);
}

TEST(a_problem_that_is_none_is_refused)
{
    const struct tun_kind kind = {.name = "only", .cores = 2, .speed = 1, .bandwidth = 1};
    struct tun_problem p;
    struct tun_search *s;
    char error[TUN_ERROR_MAX];

    T_EQ(tun_problem_init(&p, 3, &kind, 1), 0);
    p.units[1].weight = NAN;
    T_EQ(tun_search_new("exact", &p, NULL, error, &s), -EINVAL);
    T_CONTAINS(error, "unit 1");
    p.units[1].weight = 1;
    p.objective = TUN_POWER;
    T_EQ(tun_search_new("exact", &p, NULL, error, &s), -EINVAL);
    T_CONTAINS(error, "frame rate");
    tun_problem_deinit(&p);
}

TEST_MAIN()
