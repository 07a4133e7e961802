/* SPDX-License-Identifier: Apache-2.0 */
/* The default search on simulated machines: how good its plan is, by what its table knows. */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/noisy_machine.h"
#include "tuner/solve/solve.h"

struct tally {
    size_t cases, good, over_five, in_one_percent;
    double trials, worst;
};

static void simulate(double told_sigma, enum tun_source source, struct tally *t)
{
    const size_t cases = (size_t)t_times(300);
    static struct noisy_machine m;
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

        noisy_make(&p, &own, 1 + tun_random_below(&own, 3),
                   3 + tun_random_below(&own, NOISY_UNITS_MAX - 2));
        noisy_spoil(&p, &m, tun_random_next(&own));
        for (size_t c = 0; c < p.unit_count * tun_core_count(&p); c++) {
            p.costs.cells[c].sigma = told_sigma;
            p.costs.cells[c].source = source;
        }
        trials = noisy_search(&p, &m, &end);
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
            fprintf(stderr, "seed %llu: %zu units, %zu EPs, %zu trials, %.4f\n",
                    (unsigned long long)seed, p.unit_count, p.ep_count, trials, ratio);
        }
        tun_problem_deinit(&p);
        tun_problem_deinit(&m.truth);
    }
    printf("%zu cases: %.1f %% within 1 %% in 3 trials, %.1f %% within 1 %%, %.2f trials, worst "
           "%.4f\n",
           cases, 100 * (double)t->good / (double)cases,
           100 * (double)t->in_one_percent / (double)cases, t->trials, t->worst);
}

TEST(a_table_that_knows_its_uncertainty)
{
    struct tally t;

    simulate(NOISY_TABLE_SIGMA, TUN_PREDICTED, &t);
    T_EQ(t.over_five, 0);
    T_LE(t.cases * 95 / 100, t.good);
}

/* The same error, but the table claims to be exact. */
TEST(a_table_that_claims_to_be_exact)
{
    struct tally t;

    simulate(0, TUN_MEASURED, &t);
    T_EQ(t.over_five, 0);
    T_LE(t.cases * 90 / 100, t.in_one_percent);
    simulate(0, TUN_PREDICTED, &t);
    T_EQ(t.over_five, 0);
    T_LE(t.cases * 90 / 100, t.in_one_percent);
}

static struct noisy_machine machine;

/* An exact table: the first trial is the optimum, and it is the only one. */
TEST(an_exact_table_needs_one_trial)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;

        noisy_make_one(&p, &machine, t_random(), 1 + seed % 3, 20);
        machine.noise = 0;
        for (size_t c = 0; c < p.unit_count * tun_core_count(&p); c++) {
            p.costs.cells[c] =
                (struct tun_cell){machine.truth.costs.cells[c].ns, 0.005, TUN_MEASURED};
        }
        T_EQ(noisy_search(&p, &machine, &end), 1);
        T_EQ(tun_solve(&machine.truth, &best), 0);
        T_NEAR(end.bottleneck_ns, best.outcome.bottleneck_ns, 1e-6 * end.bottleneck_ns);
        noisy_unmake(&p, &machine);
    }
}

/* Nothing known but weights and speeds. */
TEST(a_table_of_holes)
{
    double worst = 1, sum = 0;

    for (int round = 0; round < t_times(50); round++) {
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;

        noisy_make_one(&p, &machine, t_random(), (size_t)t_range(1, 3), (size_t)t_range(3, 30));
        for (size_t c = 0; c < p.unit_count * tun_core_count(&p); c++) {
            p.costs.cells[c] = (struct tun_cell){-1, 0, TUN_UNKNOWN};
        }
        T_LE(noisy_search(&p, &machine, &end), 5);
        T_EQ(tun_solve(&machine.truth, &best), 0);
        worst = base_max(worst, end.bottleneck_ns / best.outcome.bottleneck_ns);
        sum += end.bottleneck_ns / best.outcome.bottleneck_ns;
        noisy_unmake(&p, &machine);
    }
    sum /= t_times(50);
    printf("holes alone: %.4f of the optimum on average, %.4f at worst\n", sum, worst);
    T_TRUE(sum < 1.02 && worst < 1.15);
}

/* An uncertain table: the first plan runs every unit on every EP. A bound on stages of one EP
 * rules that plan out. */
TEST(an_uncertain_table_is_asked_everything_first)
{
    for (int bound = 0; bound < 2; bound++) {
        struct tun_problem p;
        struct tun_search *s;
        struct pl_plan plan;
        char error[TUN_ERROR_MAX];

        noisy_make_one(&p, &machine, 21, 3, 20);
        p.bounds.one_ep_stages = bound;
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        T_EQ(tun_search_ask(s, &plan), 0);
        T_TRUE(tun_fits(&p, &plan));
        for (size_t k = 0; k < 3 && !bound; k++) {
            T_EQ(plan.stage_count, 1);
            T_EQ(plan.stages[0].group_count, 3);
            T_EQ(plan.stages[0].groups[k].ep, k);
            T_EQ(plan.stages[0].groups[k].width, 1);
            T_EQ(plan.stages[0].groups[k].count, p.eps[k].cores);
        }
        tun_search_free(s);
        noisy_unmake(&p, &machine);
    }
}

/* Each objective ends near what the solver finds on the truth, by its own figure and bounds. */
TEST(all_objectives)
{
    size_t near[3] = {0}, kept[3] = {0}, cases = (size_t)t_times(60);

    for (size_t i = 0; i < 3 * cases; i++) {
        enum tun_objective objective = (enum tun_objective)(i % 3);
        struct tun_problem p;
        struct tun_outcome end;
        struct tun_solution best;
        double bound, figure, least;

        noisy_make_one(&p, &machine, t_random(), 1 + i % 2, (size_t)t_range(3, 20));
        T_EQ(tun_solve(&machine.truth, &best), 0);
        bound = best.outcome.bottleneck_ns * 1.3;
        p.objective = machine.truth.objective = objective;
        p.bounds.slack = machine.truth.bounds.slack = TUN_SLACK;
        if (objective != TUN_THROUGHPUT) {
            p.bounds.period_max_ns = machine.truth.bounds.period_max_ns = bound;
        } else {
            bound = best.outcome.bottleneck_ns * (1 + TUN_SLACK);
        }
        T_LE(noisy_search(&p, &machine, &end), 5);
        T_EQ(tun_solve(&machine.truth, &best), 0);
        figure = objective == TUN_POWER ? end.energy_nj : end.latency_ns;
        least = objective == TUN_POWER ? best.outcome.energy_nj : best.outcome.latency_ns;
        near[objective] += figure <= least * 1.1;
        kept[objective] += end.bottleneck_ns <= bound * 1.01;
        noisy_unmake(&p, &machine);
    }
    for (size_t o = 0; o < 3; o++) {
        printf("objective %zu: figure within 10 %% in %zu, bound kept in %zu of %zu\n", o, near[o],
               kept[o], cases);
        T_LE(cases * 9 / 10, kept[o]);
        T_LE(cases * 8 / 10, near[o]);
    }
}

TEST_MAIN()
