/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base.h"
#include "tests/harness.h"
#include "tuner/balance.h"

static void add_ep(struct pl_ep_set *eps, const char *name, size_t cores, double speed)
{
    struct pl_ep *ep = &eps->eps[eps->count++];

    snprintf(ep->name, sizeof(ep->name), "%s", name);
    ep->cpu_count = cores;
    for (size_t i = 0; i < cores; i++) {
        ep->cpus[i] = (uint16_t)(eps->count * 32 + i);
    }
    ep->speed = speed;
}

static double unit_cost(const double *cost, const double *cost_on, size_t units,
                        const struct pl_ep_set *eps, size_t ep, size_t u)
{
    return cost_on && cost_on[ep * units + u] >= 0 ? cost_on[ep * units + u]
                                                   : cost[u] / eps->eps[ep].speed;
}

/* What the plan really costs, after checking that it is one. Return: -1 if it is not. */
static double plan_cost(const struct pl_plan *p, const double *cost, const double *cost_on,
                        size_t units, const struct pl_ep_set *eps)
{
    size_t next = 0, used[PL_EP_MAX] = {0};
    double worst = 0;

    for (size_t s = 0; s < p->stage_count; s++) {
        const struct pl_stage_plan *st = &p->stages[s];
        double sum = 0;

        if (st->first_unit != next || st->last_unit < st->first_unit || st->last_unit >= units ||
            st->group_count != 1 || st->groups[0].width != 1 || st->groups[0].count != 1 ||
            st->groups[0].ep >= eps->count ||
            ++used[st->groups[0].ep] > eps->eps[st->groups[0].ep].cpu_count) {
            return -1;
        }
        for (size_t u = st->first_unit; u <= st->last_unit; u++) {
            sum += unit_cost(cost, cost_on, units, eps, st->groups[0].ep, u);
        }
        worst = base_max(worst, sum);
        next = (size_t)st->last_unit + 1;
    }
    return next == units ? worst : -1;
}

struct search {
    const double *cost, *cost_on;
    size_t units, stages_max, core_count;
    const struct pl_ep_set *eps;
    uint16_t cores[64];
    double best;
};

/* Every way to give units [first, units) to cores[core..], each core empty or not. */
static void try_all(struct search *s, size_t core, size_t first, size_t stages, double worst)
{
    double sum = 0;

    if (first == s->units) {
        s->best = base_min(s->best, worst);
        return;
    }
    if (core == s->core_count || worst >= s->best) {
        return;
    }
    try_all(s, core + 1, first, stages, worst);
    for (size_t u = first; u < s->units && stages < s->stages_max; u++) {
        sum += unit_cost(s->cost, s->cost_on, s->units, s->eps, s->cores[core], u);
        try_all(s, core + 1, u + 1, stages + 1, base_max(worst, sum));
    }
}

static double brute_force(const double *cost, const double *cost_on, size_t units,
                          const struct pl_ep_set *eps, size_t stages_max)
{
    struct search s = {.cost = cost,
                       .cost_on = cost_on,
                       .units = units,
                       .stages_max = stages_max ? stages_max : SIZE_MAX,
                       .eps = eps,
                       .best = INFINITY};
    uint16_t order[PL_EP_MAX];

    for (size_t e = 0; e < eps->count; e++) {
        order[e] = (uint16_t)e;
    }
    /* Bubbles: EPs of equal speed stay in their order. */
    for (size_t round = 0; round < eps->count; round++) {
        for (size_t i = 1; i < eps->count; i++) {
            if (eps->eps[order[i]].speed > eps->eps[order[i - 1]].speed) {
                uint16_t swap = order[i];
                order[i] = order[i - 1];
                order[i - 1] = swap;
            }
        }
    }
    for (int reversed = 0; reversed < 2; reversed++) {
        s.core_count = 0;
        for (size_t i = 0; i < eps->count; i++) {
            uint16_t e = order[reversed ? eps->count - 1 - i : i];

            for (size_t k = 0; k < eps->eps[e].cpu_count; k++) {
                s.cores[s.core_count++] = e;
            }
        }
        try_all(&s, 0, 0, 0, 0);
    }
    return s.best;
}

/* Whole numbers and speeds that are powers of two: sums are exact, so that == is fair. */
TEST(random_problems_match_brute_force)
{
    for (int round = 0; round < 4000; round++) {
        static const double speeds[] = {1, 0.5, 0.25, 0.125};
        struct pl_ep_set eps = {0};
        double cost[8], cost_on[4 * 8], bottleneck = -1;
        size_t units = (size_t)t_range(1, 8), ep_count = (size_t)t_range(1, 3);
        size_t stages_max = (size_t)t_range(0, 4);
        bool measured = t_range(0, 1);
        struct pl_plan plan;

        for (size_t e = 0; e < ep_count; e++) {
            add_ep(&eps, "ep", (size_t)t_range(e ? 0 : 1, 2), speeds[t_range(0, 3)]);
        }
        for (size_t u = 0; u < units; u++) {
            cost[u] = (double)t_range(0, 20) * 8;
        }
        for (size_t i = 0; i < ep_count * units; i++) {
            cost_on[i] = t_range(0, 3) ? (double)t_range(0, 300) : -1;
        }
        const double *on = measured ? cost_on : NULL;
        T_EQ(tun_balance(cost, on, units, &eps, stages_max, &plan, &bottleneck), 0);
        T_NEAR(plan_cost(&plan, cost, on, units, &eps), bottleneck, 0);
        T_NEAR(bottleneck, brute_force(cost, on, units, &eps, stages_max), 0);
        if (stages_max) {
            T_LE(plan.stage_count, stages_max);
        }
    }
}

/* Sums with rounding: within a few ulp of what the plan's own sums say. */
TEST(random_fractions_are_consistent)
{
    for (int round = 0; round < 1000; round++) {
        struct pl_ep_set eps = {0};
        double cost[40], bottleneck;
        size_t units = (size_t)t_range(1, 40);
        struct pl_plan plan;

        add_ep(&eps, "big", (size_t)t_range(1, 4), 1);
        add_ep(&eps, "little", (size_t)t_range(0, 4), 0.3);
        for (size_t u = 0; u < units; u++) {
            cost[u] = 0.001 + fabs(t_float());
        }
        T_EQ(tun_balance(cost, NULL, units, &eps, 0, &plan, &bottleneck), 0);
        T_NEAR(plan_cost(&plan, cost, NULL, units, &eps), bottleneck, 1e-12);
    }
}

TEST(even_split_on_two_equal_cores)
{
    struct pl_ep_set eps = {0};
    double cost[] = {4, 1, 1, 2, 3, 3, 2}, bottleneck;
    struct pl_plan plan;

    add_ep(&eps, "big", 2, 1);
    T_EQ(tun_balance(cost, NULL, 7, &eps, 0, &plan, &bottleneck), 0);
    T_EQ(plan.stage_count, 2);
    T_EQ(plan.stages[0].last_unit, 3);
    T_NEAR(bottleneck, 8, 0);
}

/* VGG-16's convolutions and products by equations 1 and 2 of the Pipe-search paper, in millions
 * (output height x width x channels in x kernel x kernel x channels out): four equal cores can do
 * no better than the heaviest run of neighbours allows. */
TEST(vgg16_weights_of_the_paper)
{
    double cost[] = {86.7,   1849.7, 924.8, 1849.7, 924.8, 1849.7, 1849.7, 924.8,
                     1849.7, 1849.7, 462.4, 462.4,  462.4, 102.8,  16.8,   4.1};
    struct pl_ep_set eps = {0};
    double bottleneck, total = 0;
    struct pl_plan plan;

    for (size_t u = 0; u < 16; u++) {
        total += cost[u];
    }
    add_ep(&eps, "big", 4, 1);
    T_EQ(tun_balance(cost, NULL, 16, &eps, 0, &plan, &bottleneck), 0);
    T_NEAR(bottleneck, brute_force(cost, NULL, 16, &eps, 0), 1e-9);
    T_EQ(plan.stage_count, 4);
    T_TRUE(bottleneck >= total / 4);
    T_TRUE(bottleneck <= total / 4 * 1.25);
}

/* Equal weights on a core twice as fast: it takes two thirds. */
TEST(unequal_cores_share_by_speed)
{
    struct pl_ep_set eps = {0};
    double cost[30], bottleneck;
    struct pl_plan plan;

    for (size_t u = 0; u < 30; u++) {
        cost[u] = 1;
    }
    add_ep(&eps, "little", 1, 0.5);
    add_ep(&eps, "big", 1, 1);
    T_EQ(tun_balance(cost, NULL, 30, &eps, 0, &plan, &bottleneck), 0);
    T_NEAR(bottleneck, 20, 0);
    T_EQ(plan.stages[0].groups[0].ep, 1); /* the fastest comes first */
    T_EQ(plan.stages[0].last_unit, 19);
}

/* The heavy unit is last: only the reversed order has the fast core there. */
TEST(reversed_order_is_considered)
{
    struct pl_ep_set eps = {0};
    double cost[] = {1, 1, 1, 12}, bottleneck;
    struct pl_plan plan;

    add_ep(&eps, "big", 1, 1);
    add_ep(&eps, "little", 1, 0.25);
    T_EQ(tun_balance(cost, NULL, 4, &eps, 0, &plan, &bottleneck), 0);
    T_NEAR(bottleneck, 12, 0);
    T_EQ(plan.stage_count, 2);
    T_EQ(plan.stages[0].groups[0].ep, 1);
    T_EQ(plan.stages[1].groups[0].ep, 0);
}

TEST(measured_times_win_over_weights)
{
    struct pl_ep_set eps = {0};
    double cost[] = {1, 1}, cost_on[] = {10, 10, 4, -1}, bottleneck;
    struct pl_plan plan;

    add_ep(&eps, "big", 1, 1);
    add_ep(&eps, "little", 1, 0.5);
    T_EQ(tun_balance(cost, cost_on, 2, &eps, 0, &plan, &bottleneck), 0);
    T_NEAR(bottleneck, 6, 0); /* both on little: 4 measured, 1 / 0.5 predicted */
    T_EQ(plan.stage_count, 1);
    T_EQ(plan.stages[0].groups[0].ep, 1);
}

TEST(one_core_is_one_stage)
{
    struct pl_ep_set eps = {0};
    double cost[] = {3, 4, 5}, bottleneck;
    struct pl_plan plan;

    add_ep(&eps, "big", 1, 1);
    T_EQ(tun_balance(cost, NULL, 3, &eps, 0, &plan, &bottleneck), 0);
    T_EQ(plan.stage_count, 1);
    T_EQ(plan.stages[0].first_unit, 0);
    T_EQ(plan.stages[0].last_unit, 2);
    T_NEAR(bottleneck, 12, 0);
}

TEST(more_cores_than_units)
{
    struct pl_ep_set eps = {0};
    double cost[] = {5, 2, 5}, bottleneck;
    struct pl_plan plan;

    add_ep(&eps, "big", 8, 1);
    add_ep(&eps, "little", 8, 0.5);
    T_EQ(tun_balance(cost, NULL, 3, &eps, 0, &plan, &bottleneck), 0);
    T_EQ(plan.stage_count, 3);
    T_NEAR(bottleneck, 5, 0);
    T_NEAR(plan_cost(&plan, cost, NULL, 3, &eps), 5, 0);
    /* Two stages are as good when the costs allow it: then two it is. */
    double light[] = {5, 1, 4};
    T_EQ(tun_balance(light, NULL, 3, &eps, 0, &plan, &bottleneck), 0);
    T_EQ(plan.stage_count, 2);
}

TEST(stages_are_bounded)
{
    struct pl_ep_set eps = {0};
    static double cost[1000];
    double bottleneck, free_bottleneck;
    static struct pl_plan plan;

    for (size_t u = 0; u < 1000; u++) {
        cost[u] = 1;
    }
    add_ep(&eps, "big", 100, 1);
    T_EQ(tun_balance(cost, NULL, 1000, &eps, 0, &plan, &free_bottleneck), 0);
    T_LE(plan.stage_count, PL_STAGE_MAX);
    T_NEAR(free_bottleneck, 16, 0); /* 64 stages at most */
    T_EQ(tun_balance(cost, NULL, 1000, &eps, 3, &plan, &bottleneck), 0);
    T_EQ(plan.stage_count, 3);
    T_NEAR(bottleneck, 334, 0);
}

/* The largest problem that the limits allow still ends soon (the suite's timeout watches). */
TEST(largest_problem)
{
    static struct pl_ep_set eps;
    static struct pl_plan plan;
    base_autofree double *cost = malloc(65535 * sizeof(double));
    double bottleneck;

    T_TRUE(cost);
    for (size_t u = 0; u < 65535; u++) {
        cost[u] = (double)t_range(1, 1000);
    }
    for (size_t e = 0; e < 8; e++) {
        add_ep(&eps, "ep", 32, 1.0 / (double)(e + 1));
    }
    T_EQ(tun_balance(cost, NULL, 65535, &eps, 0, &plan, &bottleneck), 0);
    T_NEAR(plan_cost(&plan, cost, NULL, 65535, &eps), bottleneck, bottleneck * 1e-9);
}

TEST(zero_costs)
{
    struct pl_ep_set eps = {0};
    double cost[] = {0, 0, 0}, bottleneck;
    struct pl_plan plan;

    add_ep(&eps, "big", 2, 1);
    T_EQ(tun_balance(cost, NULL, 3, &eps, 0, &plan, &bottleneck), 0);
    T_EQ(plan.stage_count, 1);
    T_NEAR(bottleneck, 0, 0);
}

TEST(refuses_nonsense)
{
    struct pl_ep_set eps = {0}, none = {0};
    double cost[] = {1, 1}, nan_cost[] = {1, NAN}, negative[] = {1, -1}, huge[] = {1e308, 1e308};
    double bottleneck = 7;
    struct pl_plan plan;

    add_ep(&eps, "big", 2, 1);
    T_EQ(tun_balance(cost, NULL, 0, &eps, 0, &plan, &bottleneck), -EINVAL);
    T_EQ(tun_balance(cost, NULL, 65536, &eps, 0, &plan, &bottleneck), -EINVAL);
    T_EQ(tun_balance(cost, NULL, 2, &none, 0, &plan, &bottleneck), -EINVAL);
    T_EQ(tun_balance(nan_cost, NULL, 2, &eps, 0, &plan, &bottleneck), -EINVAL);
    T_EQ(tun_balance(negative, NULL, 2, &eps, 0, &plan, &bottleneck), -EINVAL);
    T_EQ(tun_balance(huge, NULL, 2, &eps, 0, &plan, &bottleneck), -EINVAL);
    eps.eps[0].speed = 0;
    T_EQ(tun_balance(cost, NULL, 2, &eps, 0, &plan, &bottleneck), -EINVAL);
    T_NEAR(bottleneck, 7, 0); /* written only on success */
}

TEST_MAIN()
