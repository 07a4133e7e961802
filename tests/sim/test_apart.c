/* SPDX-License-Identifier: Apache-2.0 */
/* Cores of one EP: which are slower than their siblings, what is no reason to say so, and which
 * plan pays on the parts. */
#include <math.h>

#include "tests/sim/two_cores.h"
#include "tuner/adapt/apart.h"
#include "tuner/adapt/decide.h"
#include "tuner/search/random.h"

#define CV 0.05 /* of a window's mean */

static void apart_free(struct tun_apart **a)
{
    tun_apart_free(*a);
}

/* @count windows of cores 10, 11, ... of EP 0, whose times differ from what is expected by the
 * factors, with noise. Return: cores that are apart at the end. */
static size_t windows(struct tun_apart *a, struct tun_random *r, size_t count,
                      const double *factors, size_t cores, struct tun_slow_core *ret)
{
    struct tun_core_seen seen[8];

    for (size_t w = 0; w < count; w++) {
        for (size_t i = 0; i < cores; i++) {
            seen[i] = (struct tun_core_seen){.cpu = (uint16_t)(10 + i),
                                             .level = log(factors[i]) + CV * tun_random_normal(r)};
        }
        tun_apart_see(a, seen, cores, w);
    }
    return tun_apart_slow(a, ret);
}

TEST(a_slowed_core_is_told_with_its_factor)
{
    struct tun_random r = {t_seed};
    struct tun_slow_core slow[TUN_APART_CORES_MAX];

    for (int run = 0; run < 100; run++) {
        size_t cores = 2 + (size_t)run % 4, which = tun_random_below(&r, cores);
        double factors[8] = {1, 1, 1, 1, 1, 1, 1, 1};

        base_cleanup(apart_free) struct tun_apart *a = tun_apart_new();

        T_TRUE(a);
        T_EQ(windows(a, &r, 50, factors, cores, slow), 0);
        factors[which] = 3;
        T_EQ(windows(a, &r, 5, factors, cores, slow), 0); /* may be a moment's */
        T_EQ(windows(a, &r, 15, factors, cores, slow), 1);
        T_EQ(slow[0].cpu, 10 + which);
        T_NEAR(slow[0].factor, 3, 0.4);
        T_NEAR(slow[0].least, 1, 0.1);
        T_TRUE(!tun_apart_alike(a, slow[0].cpu, TUN_APART_RECENT));
        factors[which] = 1;
        windows(a, &r, TUN_APART_RECENT / 2, factors, cores, slow); /* may be a moment's */
        T_TRUE(!tun_apart_alike(a, (uint16_t)(10 + which), TUN_APART_RECENT));
        windows(a, &r, TUN_APART_RECENT - TUN_APART_RECENT / 2, factors, cores, slow);
        T_TRUE(tun_apart_alike(a, (uint16_t)(10 + which), TUN_APART_RECENT));
        T_EQ(windows(a, &r, 60, factors, cores, slow), 0);
    }
}

TEST(what_slows_all_cores_alike_tells_none_apart)
{
    struct tun_random r = {t_seed};
    struct tun_slow_core slow[TUN_APART_CORES_MAX];
    const double factors[] = {3, 3.1, 2.9, 3};

    base_cleanup(apart_free) struct tun_apart *a = tun_apart_new();

    T_TRUE(a);
    for (int run = 0; run < 300; run++) {
        T_EQ(windows(a, &r, 10, factors, 4, slow), 0);
    }
}

TEST(what_slows_all_cores_and_one_more_is_told_of_both)
{
    struct tun_random r = {t_seed};
    struct tun_slow_core slow[TUN_APART_CORES_MAX];
    const double free[] = {1, 1}, both[] = {1.5, 3.6};

    base_cleanup(apart_free) struct tun_apart *a = tun_apart_new();

    T_TRUE(a);
    T_EQ(windows(a, &r, 50, free, 2, slow), 0);
    T_EQ(windows(a, &r, 20, both, 2, slow), 1);
    T_EQ(slow[0].cpu, 11);
    T_NEAR(slow[0].factor, 2.4, 0.3);
    T_NEAR(slow[0].least, 1.5, 0.1);
}

TEST(equal_noise_tells_none_apart_nor_do_small_differences_or_spikes)
{
    struct tun_random r = {t_seed};
    struct tun_slow_core slow[TUN_APART_CORES_MAX];
    const double equal[] = {1, 1}, near[] = {1, 1.25}, spike[] = {1, 6};

    for (int run = 0; run < 20; run++) {
        base_cleanup(apart_free) struct tun_apart *a = tun_apart_new();

        T_TRUE(a);
        for (int i = 0; i < 50; i++) {
            T_EQ(windows(a, &r, 20, run % 2 ? near : equal, 2, slow), 0);
            T_EQ(windows(a, &r, 1, spike, 2, slow), 0);
        }
    }
}

TEST(two_of_five_are_told_apart_and_other_places_are_not_compared)
{
    struct tun_random r = {t_seed};
    struct tun_slow_core slow[TUN_APART_CORES_MAX];
    const double factors[] = {2, 1, 1, 4, 1};
    const struct tun_core_seen little = {.ep = 1, .cpu = 20, .level = log(9)};

    base_cleanup(apart_free) struct tun_apart *a = tun_apart_new();

    T_TRUE(a);
    for (int i = 0; i < 30; i++) {
        windows(a, &r, 1, factors, 5, slow);
        tun_apart_see(a, &little, 1, 0);
    }
    T_EQ(tun_apart_slow(a, slow), 2);
    T_EQ(slow[0].cpu, 10);
    T_EQ(slow[1].cpu, 13);
    tun_apart_forget(a);
    T_EQ(tun_apart_slow(a, slow), 0);
    T_TRUE(!tun_apart_alike(a, 11, TUN_APART_RECENT)); /* nothing is known of it */
}

/* A slow core finishes a frame every few windows only. */
TEST(a_core_that_is_seen_now_and_then_is_compared_with_what_the_others_showed_last)
{
    struct tun_slow_core slow[TUN_APART_CORES_MAX];

    base_cleanup(apart_free) struct tun_apart *a = tun_apart_new();

    T_TRUE(a);
    for (size_t w = 0; w < 60; w++) {
        const struct tun_core_seen seen[] = {{.cpu = 10, .level = 0},
                                             {.cpu = 11, .level = w % 4 ? NAN : log(5)}};

        tun_apart_see(a, seen, 2, w);
    }
    T_EQ(tun_apart_slow(a, slow), 1);
    T_NEAR(slow[0].factor, 5, 1e-5);
    for (size_t w = 0; w < TUN_APART_STALE; w++) { /* and is forgotten when it shows nothing */
        const struct tun_core_seen seen = {.cpu = 10, .level = 0};

        tun_apart_see(a, &seen, 1, w);
    }
    T_EQ(tun_apart_slow(a, slow), 0);
}

/* All frames of two cores of which the second is 3 times slower: by turns, or in stages that take
 * as long each. Both do as many frames; a stage's slowest frame takes half as long. */
static void decide_on_halves(double measured_ns, struct tun_decision *ret)
{
    base_cleanup(tun_record_deinit) struct tun_record r = TUN_RECORD_NULL;

    machine(&r.problem);
    r.problem.handoff_ns = 0;
    r.problem.bounds.slack = 0.1;
    r.measured_ns = measured_ns;
    r.plan = (struct pl_plan){.stage_count = 1};
    r.plan.stages[0] = (struct pl_stage_plan){
        .last_unit = UNITS - 1,
        .group_count = 2,
        .groups = {{.ep = 0, .width = 1, .count = 1}, {.ep = 1, .width = 1, .count = 1}}};
    r.beta = calloc(UNITS, sizeof(*r.beta));
    r.slow = calloc(2 * UNITS, sizeof(*r.slow));
    T_TRUE(r.beta && r.slow);
    for (size_t u = 0; u < UNITS; u++) {
        r.slow[u] = 1;
        r.slow[UNITS + u] = 3;
    }
    r.eps[0].cores = r.eps[1].cores = 1;
    r.events = TUN_EVENT_PARTS;
    r.gain_min = 0.03;
    r.budget_left = 1;
    T_EQ(tun_decide(&r, ret), 0);
}

TEST(one_window_tells_how_slow_a_core_is)
{
    static const struct tun_core_seen seen[] = {{.ep = 0, .cpu = 4, .level = 0.1},
                                                {.ep = 1, .cpu = 7, .level = -3},
                                                {.ep = 0, .cpu = 5, .level = 1.1},
                                                {.ep = 0, .cpu = 6, .level = 0.3},
                                                {.ep = 0, .cpu = 8, .level = NAN}};
    const size_t count = base_array_count(seen);

    T_NEAR(tun_apart_times(seen, count, 5), exp(1.0), 1e-9);
    T_NEAR(tun_apart_times(seen, count, 4), exp(-0.2), 1e-9);
    T_TRUE(isnan(tun_apart_times(seen, count, 7))); /* alone in its EP */
    T_TRUE(isnan(tun_apart_times(seen, count, 8)) && isnan(tun_apart_times(seen, count, 9)));
    T_TRUE(isnan(tun_apart_times(seen, 0, 5)));
}

TEST(a_split_pays_only_where_the_plan_is_measured_below_the_bound)
{
    static const double bound_ns = UNITS * UNIT_NS * 3 / 4;
    static const double measured_ns[] = {0, bound_ns, 1.04 * bound_ns, 1.06 * bound_ns};

    for (size_t i = 0; i < base_array_count(measured_ns); i++) {
        base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;

        decide_on_halves(measured_ns[i], &d);
        T_TRUE(d.cause == TUN_CAUSE_CONTENTION);
        T_EQ(d.replan, i == 3);
        if (d.replan) {
            T_EQ(d.plan.stage_count, 2);
            T_NEAR(d.gain, 0.06, 1e-9);
        }
    }
}

TEST_MAIN()
