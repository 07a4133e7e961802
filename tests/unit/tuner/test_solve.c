/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/brute.h"
#include "tuner/solve/solve.h"

static struct brute_plans brute;
static struct tun_solution solution, list[64];

static double figure(const struct tun_problem *p, const struct tun_outcome *o)
{
    return p->objective == TUN_POWER ? o->energy_nj : o->latency_ns;
}

static int plan_is_sound(const struct tun_problem *p, const struct tun_solution *s)
{
    struct pl_ep_set eps;
    struct tun_outcome o;
    char error[256];

    tun_eps(p, &eps);
    return pl_plan_check(&s->plan, &eps, p->unit_count, error, sizeof(error)) == 0 &&
           tun_fits(p, &s->plan) && tun_eval(p, &s->plan, &o) == 0 &&
           o.bottleneck_ns == s->outcome.bottleneck_ns && o.latency_ns == s->outcome.latency_ns;
}

static int keeps(const struct tun_problem *p, const struct tun_outcome *o)
{
    return (p->bounds.period_max_ns <= 0 || o->bottleneck_ns <= p->bounds.period_max_ns) &&
           (p->bounds.latency_max_ns <= 0 || o->latency_ns <= p->bounds.latency_max_ns);
}

static void random_problem(uint64_t seed, struct tun_problem *ret)
{
    struct tun_random random = {seed};

    brute_problem(&random, seed % 16 == 0 ? 8 : 6, seed % 16 == 0 ? 6 : 5, ret);
}

static void release(struct tun_problem *p)
{
    tun_problem_deinit(p);
}
#define problem base_cleanup(release) struct tun_problem

/* EPs with the given cores; unit u costs base on EP 0, three times as much on the next. */
static void simple(struct tun_problem *ret, size_t units, size_t eps, size_t cores, double base)
{
    struct tun_ep ep[PL_EP_MAX] = {0};

    for (size_t k = 0; k < eps; k++) {
        snprintf(ep[k].name, sizeof(ep[k].name), "k%zu", k);
        ep[k].cores = (uint16_t)cores;
        ep[k].speed = ep[k].bandwidth = 1.0 / (double)(k + 1);
    }
    if (tun_problem_init(ret, units, ep, eps) < 0) {
        abort();
    }
    for (size_t k = 0; k < eps; k++) {
        for (size_t w = 1; w <= cores; w++) {
            for (size_t u = 0; u < units; u++) {
                tun_cell_at(&ret->costs, k, w, u)->ns = base * (double)(1 + 2 * k) / (double)w;
                tun_cell_at(&ret->costs, k, w, u)->source = TUN_MEASURED;
            }
        }
    }
}

TEST(equals_brute_force)
{
    int possible = 0;

    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(400); seed++) {
        problem p = TUN_PROBLEM_NULL;
        int r;

        random_problem(seed, &p);
        T_EQ(brute_plans(&p, &brute), 0);
        r = tun_solve(&p, &solution);
        if (r != (brute.possible ? 0 : TUN_E_IMPOSSIBLE)) {
            T_FAIL("problem %llu: %d, by brute force %s", (unsigned long long)seed, r,
                   brute.possible ? "possible" : "impossible");
        }
        T_TRUE(plan_is_sound(&p, &solution));
        T_TRUE(!solution.blocks);
        if (!brute.possible) {
            T_NEAR(solution.outcome.bottleneck_ns, brute.least_bottleneck_ns,
                   1e-9 * brute.least_bottleneck_ns);
            continue;
        }
        possible++;
        T_TRUE(keeps(&p, &solution.outcome));
        if (fabs(figure(&p, &solution.outcome) - brute.figure) > 1e-9 * brute.figure) {
            T_FAIL("problem %llu: %.12g, by brute force %.12g", (unsigned long long)seed,
                   figure(&p, &solution.outcome), brute.figure);
        }
        if (p.objective == TUN_THROUGHPUT) {
            T_TRUE(solution.outcome.bottleneck_ns <=
                   brute.within_bottleneck_ns * (1 + p.bounds.slack) * (1 + 1e-9));
        }
    }
    T_TRUE(possible > t_times(200));
}

/* The bound is the bottleneck of a plan to the last bit: rounding must not lose it or pass it. */
TEST(bound_exactly_met)
{
    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(60); seed++) {
        problem p = TUN_PROBLEM_NULL;

        random_problem(seed, &p);
        p.objective = TUN_LATENCY;
        p.bounds.period_max_ns = p.bounds.latency_max_ns = 0;
        T_EQ(brute_plans(&p, &brute), 0);
        p.bounds.period_max_ns = brute.front[brute.front_count / 2][0];
        T_EQ(brute_plans(&p, &brute), 0);
        T_EQ(tun_solve(&p, &solution), 0);
        T_TRUE(keeps(&p, &solution.outcome));
        T_NEAR(solution.outcome.latency_ns, brute.figure, 1e-9 * brute.figure);
    }
}

TEST(front_equals_brute_force)
{
    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(60); seed++) {
        problem p = TUN_PROBLEM_NULL;
        size_t count = 0;

        random_problem(seed, &p);
        p.bounds.period_max_ns = p.bounds.latency_max_ns = 0;
        T_EQ(brute_plans(&p, &brute), 0);
        T_EQ(tun_front(&p, base_array_count(list), list, &count), 0);
        T_TRUE(count >= 1);
        T_NEAR(list[0].outcome.bottleneck_ns, brute.least_bottleneck_ns,
               1e-9 * brute.least_bottleneck_ns);
        T_NEAR(list[count - 1].outcome.latency_ns, brute.front[brute.front_count - 1][1],
               1e-9 * list[count - 1].outcome.latency_ns);
        for (size_t i = 0; i < count; i++) {
            T_TRUE(plan_is_sound(&p, &list[i]));
            T_TRUE(i == 0 || (list[i].outcome.bottleneck_ns > list[i - 1].outcome.bottleneck_ns &&
                              list[i].outcome.latency_ns < list[i - 1].outcome.latency_ns));
        }
        for (size_t b = 0; b < brute.front_count; b++) {
            double latency = INFINITY;

            for (size_t i = 0; i < count; i++) {
                if (list[i].outcome.bottleneck_ns <= brute.front[b][0] * (1 + 1e-8)) {
                    latency = list[i].outcome.latency_ns;
                }
            }
            T_TRUE(latency <= brute.front[b][1] * (1 + 1e-8));
        }
    }
}

TEST(front_is_thinned_to_what_is_asked)
{
    problem p = TUN_PROBLEM_NULL;
    size_t all = 0, count = 0;
    double first, last;

    simple(&p, 12, 2, 4, 1000);
    for (size_t u = 0; u < 12; u++) { /* no two units alike */
        for (size_t w = 1; w <= 4; w++) {
            tun_cell_at(&p.costs, 0, w, u)->ns *=
                (1 + 0.37 * (double)((u * 5) % 12)) * (0.5 + 0.5 * (double)w);
        }
    }
    T_EQ(tun_front(&p, base_array_count(list), list, &all), 0);
    T_TRUE(all > 3);
    first = list[0].outcome.bottleneck_ns;
    last = list[all - 1].outcome.latency_ns;
    T_EQ(tun_front(&p, 3, list, &count), 0);
    T_EQ(count, 3);
    T_NEAR(list[0].outcome.bottleneck_ns, first, 1e-9 * first);
    T_NEAR(list[2].outcome.latency_ns, last, 1e-9 * last);
    T_EQ(tun_front(&p, 0, list, &count), -EINVAL);
}

TEST(top_is_distinct_and_sorted)
{
    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(60); seed++) {
        problem p = TUN_PROBLEM_NULL;
        size_t count = 0;
        int r;

        random_problem(seed, &p);
        r = tun_solve_top(&p, 8, list, &count);
        T_TRUE(r == 0 || r == TUN_E_IMPOSSIBLE);
        T_TRUE(count >= 1 && count <= 8);
        T_EQ(tun_solve(&p, &solution), r);
        T_TRUE(pl_plan_equal(&solution.plan, &list[0].plan));
        for (size_t i = 0; i < count; i++) {
            T_TRUE(plan_is_sound(&p, &list[i]));
            for (size_t j = 0; j < i; j++) {
                T_TRUE(!pl_plan_equal(&list[i].plan, &list[j].plan));
            }
            T_TRUE(i < 2 || !tun_better(&p, &list[i].outcome, &list[i - 1].outcome));
        }
        for (size_t k = 0; k < p.ep_count; k++) {
            bool alone = false;

            for (size_t i = 0; i < count; i++) {
                size_t others = 0;

                for (size_t o = 0; o < p.ep_count; o++) {
                    others += o != k ? pl_plan_cores(&list[i].plan, o) : 0;
                }
                alone |= others == 0;
            }
            T_TRUE(alone);
        }
    }
}

TEST(one_core_and_one_unit)
{
    problem p = TUN_PROBLEM_NULL, one = TUN_PROBLEM_NULL;

    simple(&p, 5, 1, 1, 100);
    T_EQ(tun_solve(&p, &solution), 0);
    T_EQ(solution.plan.stage_count, 1);
    T_NEAR(solution.outcome.bottleneck_ns, 500, 0);
    simple(&one, 1, 2, 4, 100);
    one.bounds.slack = 0;
    T_EQ(tun_solve(&one, &solution), 0);
    T_EQ(solution.plan.stage_count, 1);
    T_NEAR(solution.outcome.bottleneck_ns, 100 / (4 + 4.0 / 3), 1e-9); /* all eight cores */
}

TEST(bounds_that_cannot_be_kept)
{
    problem p = TUN_PROBLEM_NULL;

    simple(&p, 6, 2, 3, 1000);
    p.bounds.period_max_ns = 1;
    for (int objective = TUN_THROUGHPUT; objective <= TUN_POWER; objective++) {
        p.objective = (enum tun_objective)objective;
        T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
        T_TRUE(plan_is_sound(&p, &solution));
        T_NEAR(solution.outcome.bottleneck_ns, 6000 / (3 + 1.0), 1e-6);
    }
    p.bounds.period_max_ns = 1e9;
    p.bounds.latency_max_ns = 1;
    for (int objective = TUN_THROUGHPUT; objective <= TUN_POWER; objective++) {
        p.objective = (enum tun_objective)objective;
        T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
    }
    p.objective = TUN_POWER;
    p.bounds.period_max_ns = 0;
    T_EQ(tun_solve(&p, &solution), -EINVAL);
}

TEST(huge_beside_tiny_costs)
{
    problem p = TUN_PROBLEM_NULL;

    simple(&p, 6, 2, 3, 1);
    for (size_t w = 1; w <= 3; w++) {
        tun_cell_at(&p.costs, 0, w, 3)->ns = 1e15;
        tun_cell_at(&p.costs, 1, w, 3)->ns = 1e15;
    }
    T_EQ(tun_solve(&p, &solution), 0);
    T_TRUE(plan_is_sound(&p, &solution));
    T_TRUE(solution.outcome.bottleneck_ns <= 1e15 / 5);
    p.objective = TUN_LATENCY;
    T_EQ(tun_solve(&p, &solution), 0);
    T_NEAR(solution.outcome.latency_ns, 1e15, 1e6);
}

TEST(few_stages)
{
    problem p = TUN_PROBLEM_NULL;
    double worse = 0;

    simple(&p, 9, 2, 3, 1000);
    p.bounds.one_ep_stages = true;
    for (size_t max = 6; max > 0; max--) {
        p.bounds.stages_max = max;
        T_EQ(tun_solve(&p, &solution), 0);
        T_LE(solution.plan.stage_count, max);
        T_TRUE(plan_is_sound(&p, &solution));
        p.bounds.slack = 0;
        T_EQ(tun_solve(&p, &solution), 0);
        T_TRUE(solution.outcome.bottleneck_ns >= worse * (1 - 1e-9));
        worse = solution.outcome.bottleneck_ns;
    }
    T_NEAR(worse, 3000, 1e-6); /* one team of three big cores */
}

/* What passes the limits is still answered with a valid plan, and soon. */
TEST(largest_problems)
{
    static const struct {
        size_t units, eps, cores;
    } sizes[] = {{24, 16, 1}, {6, 16, 16}, {20, 1, 256}, {300, 4, 3}, {4096, 2, 2}};

    for (size_t i = 0; i < base_array_count(sizes); i++) {
        problem p = TUN_PROBLEM_NULL;
        int r;

        simple(&p, sizes[i].units, sizes[i].eps, sizes[i].cores, 1000);
        r = tun_solve(&p, &solution);
        if (r != 0 || !plan_is_sound(&p, &solution)) {
            T_FAIL("%zu units on %zu EPs of %zu: %d", sizes[i].units, sizes[i].eps, sizes[i].cores,
                   r);
        }
    }
}

TEST(divisible_work_is_a_bound)
{
    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(100); seed++) {
        problem p = TUN_PROBLEM_NULL;
        double bound;

        random_problem(seed, &p);
        bound = tun_bound_ns(&p);
        p.objective = TUN_THROUGHPUT;
        p.bounds = (struct tun_bounds){0};
        T_EQ(tun_solve(&p, &solution), 0);
        T_TRUE(bound > 0 && bound <= solution.outcome.bottleneck_ns * (1 + 1e-9));
    }
}

/* Worked by hand: fast a for both 2 ms units; b takes one of them in 4 ms: P = 8 / 3. */
TEST(divisible_work_by_hand)
{
    problem p = TUN_PROBLEM_NULL, many = TUN_PROBLEM_NULL;
    double sum = 0;

    simple(&p, 2, 2, 1, 2);
    tun_cell_at(&p.costs, 1, 1, 0)->ns = 4;
    tun_cell_at(&p.costs, 1, 1, 1)->ns = 40;
    T_NEAR(tun_bound_ns(&p), 8.0 / 3, 1e-8);
    simple(&many, 30, 5, 3, 1000);
    for (size_t k = 0; k < 5; k++) {
        sum += 3.0 / (double)(1 + 2 * k);
    }
    T_NEAR(tun_bound_ns(&many), 30000 / sum, 1e-3); /* the same ratio everywhere */
}

/* Two cores together may be more than twice as fast, as by their caches: 2 * 3 ms instead of 10. */
TEST(teams_that_gain_more_than_their_cores_are_within_the_bound)
{
    problem p = TUN_PROBLEM_NULL;

    simple(&p, 1, 1, 2, 10);
    tun_cell_at(&p.costs, 0, 2, 0)->ns = 3;
    T_NEAR(tun_bound_ns(&p), 3, 1e-8);
    p.objective = TUN_THROUGHPUT;
    T_EQ(tun_solve(&p, &solution), 0);
    T_NEAR(solution.outcome.bottleneck_ns, 3, 1e-8);
}

TEST_MAIN()
