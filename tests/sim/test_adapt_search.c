/* SPDX-License-Identifier: Apache-2.0 */
/* With another algorithm than exact, every shift runs that search, whatever gain exact predicts. */
#include <math.h>

#include "tests/sim/big_little.h"
#include "tuner/pipesim/adapting.h"

#define TRIALS 20u
#define SOON_S                                                                                     \
    8.0 /* noticed, sustained, decided; after a plan that no longer fits, the cool-down */
#define FREE_S 15.0 /* until what is over is noticed: a team of its own has to be faster */
#define SEEDS 2u

static const char *const ALGORITHMS[] = {"shisha", "pipe-search", "pipe-it", "annealing"};

/* A kind of shift, and how it ends again. */
static const struct shift {
    const char *scenario;
    enum tun_cause cause;
} SHIFTS[] = {
    {"governor", TUN_CAUSE_GOVERNOR},  {"frequency", TUN_CAUSE_FREQUENCY},
    {"thermal", TUN_CAUSE_THERMAL},    {"contention", TUN_CAUSE_CONTENTION},
    {"slow-30", TUN_CAUSE_THROUGHPUT}, {"hotplug", TUN_CAUSE_HOTPLUG},
    {"cpuset", TUN_CAUSE_CPUSET},
};

/* The first search in [from, from + within). Return: NULL: there was none. */
static const struct psim_searched *search_in(const struct psim_adapted *o, double from_s,
                                             double within_s)
{
    for (size_t i = 0; i < base_min(o->searches, (size_t)PSIM_CHANGES_MAX); i++) {
        if (o->found[i].at_s >= from_s && o->found[i].at_s < from_s + within_s) {
            return &o->found[i];
        }
    }
    return NULL;
}

static void play(const struct shift *shift, const char *algorithm,
                 const struct tun_adapt_options *options, uint64_t seed, struct psim_adapted *ret)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    struct psim_adapting how = {.truth = &truth,
                                .scenario = psim_scenario_find(shift->scenario),
                                .options = options,
                                .noise = PSIM_NOISE,
                                .seed = seed,
                                .algorithm = tun_algorithm_find(algorithm),
                                .trials_max = TRIALS};

    machine(&truth);
    T_TRUE(how.scenario && how.algorithm);
    T_EQ(psim_adapt(&how, ret), 0);
}

static void expect_search(const struct psim_searched *s, const char *what, const char *algorithm)
{
    if (!s) {
        printf("%s, %s: no search\n", what, algorithm);
    }
    T_TRUE(s != NULL);
    if (s) {
        T_LE(1, s->trials);
        T_LE(s->trials, TRIALS);
        T_TRUE(s->after_ms <= s->before_ms);
    }
}

/* Exact gains nothing by @gain_min, and is asked all the same. */
static void matrix(double gain_min)
{
    struct tun_adapt_options options = TUN_ADAPT_DEFAULTS;

    options.gain_min = gain_min;
    for (size_t i = 0; i < base_array_count(SHIFTS); i++) {
        const struct psim_scenario *scene = psim_scenario_find(SHIFTS[i].scenario);

        for (size_t a = 0; a < base_array_count(ALGORITHMS); a++) {
            for (uint64_t seed = t_seed; seed < t_seed + SEEDS; seed++) {
                const struct psim_searched *onset, *end;
                struct psim_adapted o;

                play(&SHIFTS[i], ALGORITHMS[a], &options, seed, &o);
                onset = search_in(&o, scene->onset_s, SOON_S);
                end = search_in(&o, scene->end_s, FREE_S);
                expect_search(onset, scene->name, ALGORITHMS[a]);
                expect_search(end, scene->name, ALGORITHMS[a]);
                T_TRUE(!onset || onset->cause == SHIFTS[i].cause);
                T_LE(o.searches, (size_t)options.hourly);
                printf("%s, %s: %zu searches, %zu changes, %zu back; %.1f ms instead of %.1f\n",
                       scene->name, ALGORITHMS[a], o.searches, o.changes, o.backs,
                       onset ? onset->after_ms : NAN, onset ? onset->before_ms : NAN);
            }
        }
    }
}

TEST(every_shift_runs_every_search)
{
    matrix(TUN_ADAPT_DEFAULTS.gain_min);
}

TEST(no_gain_that_exact_predicts_is_too_small)
{
    matrix(10);
}

TEST(the_ration_holds_searches_back)
{
    struct tun_adapt_options options = TUN_ADAPT_DEFAULTS;

    for (size_t most = 0; most < 2; most++) {
        options.hourly = (double)most;
        for (size_t a = 0; a < base_array_count(ALGORITHMS); a++) {
            struct psim_adapted o;

            play(&SHIFTS[0], ALGORITHMS[a], &options, t_seed, &o);
            T_EQ(o.searches, most);
            T_EQ(o.decisions > most, true);
        }
    }
}

/* A plan that fits the cores that are left serves at once; its search waits. */
TEST(what_the_cool_down_holds_back_is_run_later)
{
    static const struct shift cores_go = {"hotplug", TUN_CAUSE_HOTPLUG};
    const struct psim_scenario *scene = psim_scenario_find(cores_go.scenario);
    struct tun_adapt_options options = TUN_ADAPT_DEFAULTS;

    options.cooldown_ns = 60 * BASE_NS_PER_S;
    options.gain_urgent = 0;
    for (size_t a = 0; a < base_array_count(ALGORITHMS); a++) {
        struct psim_adapted o;

        play(&cores_go, ALGORITHMS[a], &options, t_seed, &o);
        T_TRUE(o.changed_s < 1);
        T_TRUE(!search_in(&o, 0, scene->onset_s + 60));
        expect_search(search_in(&o, scene->onset_s + 60, 3), "cool-down", ALGORITHMS[a]);
    }
}

TEST(noise_seldom_starts_a_search)
{
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    double hours = getenv("PIPED_TEST_SANITIZER") ? 2 : 10;
    struct psim_adapting how = {.truth = &truth,
                                .scenario = psim_scenario_find("noise"),
                                .noise = PSIM_NOISE,
                                .seconds = 3600 * hours,
                                .seed = 7,
                                .algorithm = &tun_shisha,
                                .trials_max = TRIALS};
    struct psim_adapted o;

    machine(&truth);
    T_EQ(psim_adapt(&how, &o), 0);
    printf("noise: %zu searches in %.0f hours, %zu alarms (seed 7)\n", o.searches, hours, o.alarms);
    T_LE(o.searches, (size_t)(2 * hours));
}

TEST(exact_searches_nothing_and_asks_for_its_gain)
{
    static const struct shift governor = {"governor", TUN_CAUSE_GOVERNOR};
    struct tun_adapt_options options = TUN_ADAPT_DEFAULTS;
    struct psim_adapted o;

    play(&governor, "exact", &options, t_seed, &o);
    T_EQ(o.searches, 0);
    T_LE(1, o.changes);
    options.gain_min = 10;
    play(&governor, "exact", &options, t_seed, &o);
    T_EQ(o.changes, 0);
}

TEST_MAIN()
