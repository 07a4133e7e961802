/* SPDX-License-Identifier: Apache-2.0 */
/* The default search on simulated machines: what it asks for, whatever becomes of its trials. */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/noisy_machine.h"

static struct noisy_machine machine;

TEST(one_unit_one_core)
{
    const struct tun_ep ep = {.name = "only", .cores = 1, .speed = 1, .bandwidth = 1};
    struct tun_problem p;
    struct tun_outcome end;

    T_EQ(tun_problem_init(&p, 1, &ep, 1), 0);
    machine = (struct noisy_machine){.noise = NOISY_TRIAL_SIGMA};
    T_EQ(tun_problem_copy(&p, &machine.truth), 0);
    machine.truth.costs.cells[0] = (struct tun_cell){1e6, 0, TUN_MEASURED};
    T_EQ(noisy_search(&p, &machine, &end), 1);
    T_NEAR(end.bottleneck_ns, 1e6, 0);
    noisy_unmake(&p, &machine);

    noisy_make_one(&p, &machine, 7, 3, 1); /* one unit, several cores */
    T_LE(noisy_search(&p, &machine, &end), 5);
    noisy_unmake(&p, &machine);
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

        noisy_make_one(&p, &machine, 11, 3, 25);
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        for (counts[i] = 0; tun_search_ask(s, &plans[i][counts[i]]) == 0; counts[i]++) {
            noisy_run(&machine, &plans[i][counts[i]], &trial);
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        tun_search_free(s);
        noisy_unmake(&p, &machine);
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

        noisy_make_one(&p, &machine, t_random(), (size_t)t_range(1, 3), (size_t)t_range(2, 20));
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        while (tun_search_ask(s, &plan) == 0) {
            int fate = (int)t_range(0, round % 4);

            for (size_t i = 0; i < count; i++) {
                T_TRUE(!pl_plan_equal(&asked[i], &plan));
            }
            T_LT(count, 5);
            asked[count++] = plan;
            noisy_run(&machine, &plan, &trial);
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
        noisy_unmake(&p, &machine);
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

        noisy_make_one(&p, &machine, 3 + after, 3, 30);
        T_EQ(tun_search_new("exact", &p, &o, error, &s), 0);
        for (size_t i = 0; i < after && tun_search_ask(s, &plan) == 0; i++) {
            noisy_run(&machine, &plan, &trial);
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        T_EQ(tun_search_result(s) != NULL, after > 0);
        if (after > 0) {
            T_EQ(tun_search_ask(s, &plan), TUN_E_DONE);
        }
        tun_search_free(s);
        noisy_unmake(&p, &machine);
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

        noisy_make_one(&p, &machine, t_random(), (size_t)t_range(1, 3), (size_t)t_range(2, 25));
        p.bounds.slack = round % 2 ? 0 : TUN_SLACK;
        T_EQ(tun_search_new("exact", &p, NULL, error, &s), 0);
        while (tun_search_ask(s, &plan) == 0) {
            noisy_run(&machine, &plan, &trial);
            trial.measured.bottleneck_ns *= plan.stage_count > 1 ? penalty : 1;
            best = base_min(best, trial.measured.bottleneck_ns);
            count++;
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        T_LE(count, 5);
        T_TRUE(tun_search_result(s)->measured.bottleneck_ns <= best * (1 + p.bounds.slack));
        tun_search_free(s);
        noisy_unmake(&p, &machine);
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

        noisy_make_one(&p, &machine, t_random(), 3, 20);
        T_EQ(tun_search_new("exact", &p, &o, error, &s), 0);
        while (tun_search_ask(s, &plan) == 0) {
            noisy_run(&machine, &plan, &trial);
            trial.measured.bottleneck_ns *= 8;
            count++;
            T_EQ(tun_search_tell(s, &trial), 0);
        }
        most = base_max(most, count);
        tun_search_free(s);
        noisy_unmake(&p, &machine);
    }
    T_EQ(most, 5);
}

/* Bounds that nothing keeps: the search still ends, with the fastest plan it can serve. */
TEST(impossible_bounds)
{
    struct tun_problem p;
    struct tun_outcome end;

    noisy_make_one(&p, &machine, 5, 2, 12);
    p.objective = TUN_POWER;
    p.bounds.period_max_ns = 1;
    T_LE(noisy_search(&p, &machine, &end), 5);
    T_TRUE(end.bottleneck_ns > 1);
    noisy_unmake(&p, &machine);
}

TEST(a_problem_that_is_none_is_refused)
{
    const struct tun_ep ep = {.name = "only", .cores = 2, .speed = 1, .bandwidth = 1};
    struct tun_problem p;
    struct tun_search *s;
    char error[TUN_ERROR_MAX];

    T_EQ(tun_problem_init(&p, 3, &ep, 1), 0);
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
