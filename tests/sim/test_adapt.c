/* SPDX-License-Identifier: Apache-2.0 */
/* A machine that changes by script: what is noticed, named and done, and what is left alone. */
#include "base/base.h"
#include "tests/sim/big_little.h"
#include "tuner/pipesim/adapting.h"

/* Windows within which so many of 1000 runs noticed, and what the runs came to. */
struct tally {
    unsigned runs, noticed_in_3, changed_soon, first_cause, returned, backs;
    size_t changes;
    double ratio_slow, ratio_end;
};

static void play_one(const struct psim_adapting *how, struct tally *t)
{
    const struct psim_scenario *s = how->scenario;
    struct psim_adapted o;

    T_EQ(psim_adapt(how, &o), 0);
    t->runs++;
    t->noticed_in_3 += o.noticed_windows <= 3;
    t->changed_soon += o.changed_s <= 3;
    t->returned += o.returned_s <= 15;
    t->changes += o.changes;
    t->backs += (unsigned)o.backs;
    for (size_t i = 0; i < base_min(o.changes, (size_t)PSIM_CHANGES_MAX); i++) {
        if (o.log[i].at_s >= s->onset_s) {
            t->first_cause += o.log[i].cause == s->cause;
            break;
        }
    }
    t->ratio_slow += o.ratio_slow;
    t->ratio_end += o.ratio_end;
}

/* @error: of the planner's table; one that is wrong is a reason to re-plan that comes by itself. */
static void play(const char *name, unsigned runs, double error, struct tally *ret)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    struct psim_adapting how = {
        .truth = &truth, .scenario = psim_scenario_find(name), .noise = PSIM_NOISE};

    *ret = (struct tally){0};
    how.noise.error = error;
    machine(&truth);
    T_TRUE(how.scenario);
    for (unsigned i = 0; i < runs; i++) {
        how.seed = t_seed + i;
        play_one(&how, ret);
    }
    ret->ratio_slow /= runs;
    ret->ratio_end /= runs;
    printf("%s: of %u runs %u noticed in 3 windows, %u changed in 3 s, %u returned in 15 s, cause "
           "named %u, %zu changes, %u back, ratio %.3f, %.3f (seed %llu)\n",
           name, ret->runs, ret->noticed_in_3, ret->changed_soon, ret->returned, ret->first_cause,
           ret->changes, ret->backs, ret->ratio_slow, ret->ratio_end, (unsigned long long)t_seed);
}

TEST(slower_by_15_percent_is_noticed_in_three_windows)
{
    struct tally t;

    play("slow-15", 60, 0.03, &t);
    T_LE(60 * 85 / 100, t.noticed_in_3);
    T_TRUE(t.ratio_slow > 0.95);
    T_TRUE(t.ratio_end > 0.94);
}

TEST(slower_by_30_percent_is_replanned_in_three_and_returns)
{
    struct tally t;

    play("slow-30", 60, 0.03, &t);
    T_LE(60 * 80 / 100, t.changed_soon);
    T_LE(60 * 90 / 100, t.returned);
    T_TRUE(t.ratio_slow > 0.95);
    T_LE(t.changes, 60 * 3);
}

TEST(slower_by_8_percent_costs_little)
{
    struct tally t;

    play("slow-8", 20, 0.03, &t);
    T_TRUE(t.ratio_slow > 0.95);
    T_LE(t.changes, 20 * 4);
}

TEST(contention_is_named_replanned_in_three_and_returns)
{
    struct tally t;

    play("contention", 60, 0.03, &t);
    T_LE(60 * 95 / 100, t.noticed_in_3);
    T_LE(60 * 95 / 100, t.changed_soon);
    T_LE(60 * 95 / 100, t.first_cause);
    T_LE(60 * 95 / 100, t.returned);
    T_TRUE(t.ratio_slow > 0.95);
}

static void known_cause(const char *name)
{
    struct tally t;

    play(name, 20, 0, &t);
    T_LE(20 * 80 / 100, t.changed_soon); /* all others gain so little that turns do not show it */
    T_LE(20 * 80 / 100, t.first_cause);
    T_TRUE(t.ratio_slow > 0.92);
    T_TRUE(t.ratio_end > 0.95); /* back, or on a plan that is as good */
    T_LE(t.backs, 2);           /* what a clock does to each unit is learned, not known */
}

TEST(frequency_is_named_and_needs_no_exploring)
{
    known_cause("frequency");
}

TEST(governor_is_named)
{
    known_cause("governor");
}

TEST(heat_is_named)
{
    known_cause("thermal");
}

TEST(cores_that_go_are_replanned_at_once_and_come_back)
{
    known_cause("hotplug");
    known_cause("cpuset");
}

static void left_alone(const char *name)
{
    struct tally t;

    play(name, 20, 0, &t);
    T_EQ(t.changes, 0);
}

TEST(fewer_frames_are_no_drop)
{
    left_alone("load");
}

TEST(other_frames_are_no_drop)
{
    left_alone("shape");
}

TEST(clocks_may_jump)
{
    left_alone("clock");
}

TEST(the_button_changes_nothing_where_nothing_is_to_be_gained)
{
    left_alone("button");
}

TEST(drift_is_followed)
{
    struct tally t;

    play("drift", 10, 0.03, &t);
    T_TRUE(t.ratio_end > 0.94);
    T_LE(10, t.changes);
    T_LE(t.changes, 10 * 4);
}

/* Each lasts an hour. */
TEST(square_wave_does_not_flap)
{
    struct tally t;

    play("square", 5, 0.03, &t);
    T_LE(t.changes, 5 * 6);
}

TEST(plan_of_before_serves_again)
{
    static const char *const names[] = {"contention", "slow-30"};
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    struct psim_adapting how = {.truth = &truth, .noise = PSIM_NOISE};
    unsigned returned = 0;

    machine(&truth);
    for (size_t i = 0; i < 2 * base_array_count(names); i++) {
        for (how.seed = t_seed; how.seed < t_seed + 10; how.seed++) {
            struct psim_adapted o;

            how.scenario = psim_scenario_find(names[i / 2]);
            how.noise.error = i % 2 ? 0.03 : 0;
            T_EQ(psim_adapt(&how, &o), 0);
            returned += o.changes > 0 && pl_plan_equal(&o.first, &o.last);
        }
    }
    printf("%u of 40 runs ended on the plan they began with\n", returned);
    T_LE(36, returned);
}

static void count_quotas(void *context, double at_s, const struct tun_record *r,
                         const struct tun_decision *d)
{
    (void)at_s;
    (void)r;
    *(unsigned *)context += d->cause == TUN_CAUSE_CONTENTION && d->quota;
}

TEST(quota_is_told_from_another_program)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    unsigned quotas = 0;
    struct psim_adapting how = {.truth = &truth,
                                .scenario = psim_scenario_find("contention"),
                                .noise = PSIM_NOISE,
                                .seed = t_seed,
                                .decided = count_quotas,
                                .context = &quotas};
    struct psim_adapted o;

    machine(&truth);
    T_EQ(psim_adapt(&how, &o), 0);
    T_TRUE(o.changes > 0);
    T_EQ(quotas, 0);
    how.scenario = psim_scenario_find("quota");
    T_EQ(psim_adapt(&how, &o), 0);
    T_LE(1, quotas);
}

/* A light team looks free under a quota: that is tried, seldom, and not believed. */
TEST(quota_is_not_mistaken_for_its_end)
{
    struct tally t;

    play("quota", 20, 0.03, &t);
    T_LE(20 * 90 / 100, t.changed_soon);
    T_LE(20 * 90 / 100, t.first_cause);
    T_TRUE(t.ratio_end > 0.94);
    T_LE(t.changes, 20 * 12);
}

/* Fewer hours where everything is ten times slower. */
TEST(noise_alone_changes_nothing_for_fifty_hours)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    double hours = getenv("PIPED_TEST_SANITIZER") ? 5 : 50;
    struct psim_adapting how = {.truth = &truth,
                                .scenario = psim_scenario_find("noise"),
                                .noise = PSIM_NOISE,
                                .seconds = 3600 * hours,
                                .seed = 7};
    struct psim_adapted o;

    how.noise.error = 0;
    machine(&truth);
    T_EQ(psim_adapt(&how, &o), 0);
    printf("noise: %zu changes in %.0f hours, %zu alarms, %zu decisions (seed 7)\n", o.changes,
           hours, o.alarms, o.decisions);
    T_LE(o.changes, base_max((size_t)(0.1 * hours), (size_t)3)); /* few hours: chance */
    T_LE(100, o.alarms);                                         /* or nothing was watched */
}

/* Frames served from the first plan on, over those that it would have served alone. */
static double on_over_off(const struct psim_scenario *s, double *ret_changes)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    struct psim_adapting how = {.truth = &truth, .scenario = s, .noise = PSIM_NOISE};
    double ratios[5];

    machine(&truth);
    *ret_changes = 0;
    for (size_t i = 0; i < base_array_count(ratios); i++) {
        struct psim_adapted o;

        how.seed = t_seed + i;
        if (psim_adapt(&how, &o) < 0) {
            return 0;
        }
        ratios[i] = o.frames / o.frames_first;
        *ret_changes += (double)o.changes / base_array_count(ratios);
        for (size_t k = i; k > 0 && ratios[k] < ratios[k - 1]; k--) {
            double swap = ratios[k];

            ratios[k] = ratios[k - 1];
            ratios[k - 1] = swap;
        }
    }
    return ratios[base_array_count(ratios) / 2];
}

/* The slowdowns of bench/adapt_cost.py: each comes once in ten seconds at most. */
TEST(adapting_never_costs)
{
    static const double factors[] = {1.2, 1.5, 2, 3, 5}, durations_s[] = {1, 4, 15, 60, 90};

    for (size_t f = 0; f < base_array_count(factors); f++) {
        for (size_t d = 0; d < base_array_count(durations_s); d++) {
            for (unsigned both = 0; both < 2; both++) {
                struct psim_scenario s = {.name = "slowed",
                                          .onset_s = 3,
                                          .then.contended = {factors[f], both ? factors[f] : 1}};
                double ratio, changes;

                s.end_s = s.onset_s + durations_s[d];
                s.seconds = s.onset_s + base_max(10.0, durations_s[d] + 10);
                ratio = on_over_off(&s, &changes);
                printf("%s EP slowed %.1f times for %.0f s: on over off %.3f, %.1f changes\n",
                       both ? "either" : "one", factors[f], durations_s[d], ratio, changes);
                T_TRUE(ratio >= 0.99);
            }
        }
    }
}

TEST(same_seed_same_answer)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    struct psim_adapting how = {.truth = &truth,
                                .scenario = psim_scenario_find("square"),
                                .noise = PSIM_NOISE,
                                .seconds = 600,
                                .seed = t_seed};
    struct psim_adapted a, b;

    machine(&truth);
    T_EQ(psim_adapt(&how, &a), 0);
    T_EQ(psim_adapt(&how, &b), 0);
    T_EQ(a.changes, b.changes);
    T_EQ(a.alarms, b.alarms);
    T_LE(2, a.changes);
    for (size_t i = 0; i < base_min(a.changes, (size_t)PSIM_CHANGES_MAX); i++) {
        T_TRUE(a.log[i].at_s == b.log[i].at_s && a.log[i].gain == b.log[i].gain);
        T_TRUE(pl_plan_equal(&a.log[i].plan, &b.log[i].plan));
    }
}

TEST_MAIN()
