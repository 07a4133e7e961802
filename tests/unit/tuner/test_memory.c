/* SPDX-License-Identifier: Apache-2.0 */
/* What teams lose to each other because they share memory. */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/brute.h"
#include "tuner/learn.h"
#include "tuner/memory.h"
#include "tuner/solve/solve.h"

static void release(struct tun_problem *p)
{
    tun_problem_deinit(p);
}
#define problem base_cleanup(release) struct tun_problem

/* Units of 1000 ns, of which bytes / 10 go to memory, on EPs that stream 10 bytes per ns a core.
 * @all: what all cores stream; each EP alone as much. */
static void make(struct tun_problem *p, size_t units, size_t eps, size_t cores, double bytes,
                 double all)
{
    struct tun_ep ep[PL_EP_MAX] = {0};

    for (size_t k = 0; k < eps; k++) {
        snprintf(ep[k].name, sizeof(ep[k].name), "%c", (int)('a' + k));
        ep[k].cores = (uint16_t)cores;
        ep[k].speed = ep[k].bandwidth = 1;
        ep[k].gbytes = 10;
        ep[k].gbytes_max = base_min(all, 10.0 * (double)cores);
    }
    if (tun_problem_init(p, units, ep, eps) < 0) {
        abort();
    }
    p->gbytes_max = all;
    for (size_t u = 0; u < units; u++) {
        p->units[u].bytes = bytes;
        for (size_t i = 0; i < eps * cores; i++) {
            *tun_cell_at(&p->costs, i / cores, i % cores + 1, u) =
                (struct tun_cell){.ns = 1000, .source = TUN_MEASURED};
        }
    }
}

static struct pl_plan plan_of(const struct tun_problem *p, const char *text)
{
    struct pl_ep_set eps;
    struct pl_plan plan;
    char error[160];

    tun_eps(p, &eps);
    if (pl_plan_parse(text, &eps, p->unit_count, error, sizeof(error), &plan) != 0) {
        abort();
    }
    return plan;
}

/* How much longer the plan's slowest stage takes than if nobody shared. */
static double slower(const struct tun_problem *p, const char *text)
{
    struct tun_problem alone = *p;
    struct pl_plan plan = plan_of(p, text);
    struct tun_outcome with, without;

    alone.gbytes_max = 0;
    for (size_t k = 0; k < alone.ep_count; k++) {
        alone.eps[k].gbytes_max = 0;
    }
    if (tun_eval(p, &plan, &with) != 0 || tun_eval(&alone, &plan, &without) != 0) {
        abort();
    }
    return with.bottleneck_ns / without.bottleneck_ns;
}

/* Both stream half of their time; together memory gives three quarters of what they ask for:
 *     s = 1 + x / 3,  x = s / (1 + s)   so   3 s^2 - s - 3 = 0,   T' / T = (1 + s) / 2 */
TEST(two_replicas_by_hand)
{
    problem p = TUN_PROBLEM_NULL;

    make(&p, 1, 1, 2, 5000, 15);
    T_NEAR(slower(&p, "0-0@a*2"), (1 + (1 + sqrt(37)) / 6) / 2, 1e-6);
}

TEST(who_is_alone_loses_nothing)
{
    problem p = TUN_PROBLEM_NULL;

    make(&p, 4, 2, 2, 5000, 15);
    T_NEAR(slower(&p, "0-3@a"), 1, 0);
    T_NEAR(slower(&p, "0-3@ax2"), 1, 0);
    T_TRUE(slower(&p, "0-3@a+b") > 1.05);
}

TEST(who_moves_nothing_disturbs_nobody)
{
    problem p = TUN_PROBLEM_NULL;

    make(&p, 2, 1, 2, 0, 15);
    p.units[0].bytes = 9000;
    T_NEAR(slower(&p, "0-0@a|1-1@a"), 1, 0);
    p.units[1].bytes = 9000;
    T_TRUE(slower(&p, "0-0@a|1-1@a") > 1.2);
}

/* A memory each: only the cores at one of them share it. */
TEST(two_memories_are_apart)
{
    problem p = TUN_PROBLEM_NULL;

    make(&p, 2, 2, 2, 9000, 15);
    p.gbytes_max = 30;
    T_NEAR(slower(&p, "0-1@a+b"), 1, 0);
    T_TRUE(slower(&p, "0-1@a*2") > 1.2);
}

/* The light stage waits for the heavy one, and streams less than its own time says. */
TEST(an_idle_stage_streams_less)
{
    problem p = TUN_PROBLEM_NULL;
    double busy, idle;

    make(&p, 2, 1, 2, 9000, 15);
    busy = slower(&p, "0-0@a|1-1@a");
    tun_cell_at(&p.costs, 0, 1, 1)->ns = 200; /* all of it is memory */
    idle = slower(&p, "0-0@a|1-1@a");
    T_TRUE(idle > 1.01 && idle < 1 + (busy - 1) / 2);
}

/* As the number of others that stream grows, so does what each loses; at most what the memory
 * gives is moved. */
TEST(no_more_is_moved_than_memory_gives)
{
    double before = 1;

    for (size_t cores = 2; cores <= 64; cores *= 2) {
        char text[32];
        problem p = TUN_PROBLEM_NULL;
        double now;

        make(&p, 1, 1, cores, 8000, 15);
        snprintf(text, sizeof(text), "0-0@a*%zu", cores);
        now = slower(&p, text);
        T_TRUE(now > before);
        T_TRUE((double)cores * 8000 / (1000 * now) <= 15 * 1.05);
        before = now;
    }
    T_NEAR(before, 64 * 8000 / 15.0 / 1000, 0.05 * before); /* all of them wait for memory */
}

/* Figures are measured apart: all cores may seem to move less than one of them. */
TEST(less_for_all_than_for_one_does_not_slow_who_is_alone)
{
    problem p = TUN_PROBLEM_NULL;

    make(&p, 2, 2, 1, 5000, 8);
    T_NEAR(slower(&p, "0-1@a"), 1, 0);
    T_TRUE(slower(&p, "0-1@a+b") > 1.05);
}

TEST(unknown_figures_change_nothing)
{
    problem p = TUN_PROBLEM_NULL;
    struct pl_plan plan;
    struct tun_slowed slowed;

    make(&p, 1, 1, 2, 5000, 15);
    plan = plan_of(&p, "0-0@a*2");
    T_TRUE(tun_memory_slowed(&p, &plan, &slowed));
    p.eps[0].gbytes = 0;
    T_TRUE(!tun_memory_slowed(&p, &plan, &slowed));
    p.eps[0].gbytes = 10;
    p.boards.count = 2;
    T_TRUE(!tun_memory_slowed(&p, &plan, &slowed));
}

/* What a plan of sharing teams measured teaches what the units take alone. */
TEST(learning_takes_the_sharing_out)
{
    problem p = TUN_PROBLEM_NULL;
    struct tun_slowed slowed;
    struct pl_plan plan;
    struct tun_sample samples[3] = {0};
    struct tun_trial t = {.samples = samples, .sample_count = 3};

    make(&p, 3, 1, 2, 5000, 12);
    plan = plan_of(&p, "0-2@a*2");
    T_TRUE(tun_memory_slowed(&p, &plan, &slowed));
    T_TRUE(slowed.by[0][0] > 1.1);
    t.plan = plan;
    t.measured.team_ns[0][0] = slowed.by[0][0] * 3000;
    for (uint32_t u = 0; u < 3; u++) {
        samples[u] = (struct tun_sample){
            .width = 1, .unit = u, .ns = 1000 + 500 * (slowed.stretch[0][0] - 1), .sigma = 0.001};
    }
    tun_learn(&p, &t);
    for (size_t u = 0; u < 3; u++) {
        T_NEAR(tun_cell_at(&p.costs, 0, 1, u)->ns, 1000, 1e-6);
    }
    T_NEAR(p.handoff_ns, 0, 1e-6);
}

TEST(alone_and_stretched_agree)
{
    problem p = TUN_PROBLEM_NULL;

    make(&p, 1, 1, 2, 5000, 12);
    T_NEAR(tun_memory_ns(&p, 0, 1, 0), 500, 0);
    T_NEAR(tun_memory_alone_ns(&p, 0, 1, 0, 1100, 1.2), 1000, 1e-9);
    p.units[0].bytes = 20000; /* all of its time */
    T_NEAR(tun_memory_ns(&p, 0, 1, 0), 1000, 0);
    T_NEAR(tun_memory_alone_ns(&p, 0, 1, 0, 1200, 1.2), 1000, 1e-9);
}

/* The planner is exact for a table in which the others stream as on average. How far that is from
 * the best of all plans by tun_eval() is on docs/tuner.md. */
static struct brute_plans brute;
static struct tun_solution solution;

TEST(plans_are_near_the_best_of_all)
{
    double worst = 1, sum = 0;
    int count = 0;

    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(300); seed++) {
        struct tun_random random = {seed};
        problem p = TUN_PROBLEM_NULL;
        double ratio;

        if (brute_problem(&random, 6, 5, &p) != 0) {
            abort();
        }
        p.objective = TUN_THROUGHPUT;
        p.bounds = (struct tun_bounds){0};
        for (size_t k = 0; k < p.ep_count; k++) {
            p.eps[k].gbytes = 5 + 5 * tun_random_unit(&random);
            p.eps[k].gbytes_max = p.eps[k].gbytes * (1 + tun_random_unit(&random));
            p.gbytes_max = base_max(p.gbytes_max, p.eps[k].gbytes_max * 1.3);
        }
        for (size_t u = 0; u < p.unit_count; u++) {
            p.units[u].bytes = 4 * tun_random_unit(&random) * tun_cell_at(&p.costs, 0, 1, u)->ns;
        }
        T_EQ(brute_plans(&p, &brute), 0);
        T_EQ(tun_solve(&p, &solution), 0);
        ratio = solution.outcome.bottleneck_ns / brute.least_bottleneck_ns;
        T_TRUE(ratio >= 1 - 1e-9);
        worst = base_max(worst, ratio);
        sum += log(ratio);
        count++;
    }
    if (getenv("PIPED_TEST_SHOW")) {
        printf("%d problems: %.4f on average, at worst %.4f\n", count, exp(sum / count), worst);
    }
    T_TRUE(worst < 1.25);
    T_TRUE(exp(sum / count) < 1.01);
}

TEST_MAIN()
