/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"
#include "tuner/search/draw.h"

static const struct tun_ep ONE[] = {{"big", 1, 1, 1, 1}};
static const struct tun_ep TWO_ONE[] = {{"big", 2, 1, 1, 1}, {"little", 1, 0.4, 0.5, 1}};
static const struct tun_ep THREE[] = {
    {"big", 1, 1, 1, 1}, {"middle", 2, 0.6, 1, 1}, {"little", 2, 0.3, 0.5, 1}};
static const struct tun_ep HIKEY[] = {{"big", 4, 1, 1, 1}, {"little", 4, 0.35, 0.5, 1}};

static const enum tun_space SPACES[] = {TUN_SPACE_CUTS, TUN_SPACE_PLACES, TUN_SPACE_PIPELINES,
                                        TUN_SPACE_ALL};

/* Every plan told by the table; all as they should be, as many as counted, and the best one found.
 */
static void check_space(const struct tun_problem *p, const char *algorithm, enum tun_space space)
{
    struct tun_options o = {
        .seed = t_seed, .space = space, .trials_max = strcmp(algorithm, "random") ? 0 : SIZE_MAX};
    struct tun_search *s = t_search(algorithm, p, &o);
    double size = tun_space_size(p, space), best = INFINITY;
    const struct tun_trial *log;
    size_t count;

    T_TRUE(s);
    t_drive(s, p, NULL, NULL);
    log = tun_search_log(s, &count);
    T_EQ(count, size);
    T_EQ(t_repeats(s), 0);
    for (size_t i = 0; i < count; i++) {
        struct tun_outcome outcome;

        T_EQ(tun_eval(p, &log[i].plan, &outcome), 0);
        best = base_min(best, outcome.bottleneck_ns);
    }
    T_NEAR(tun_search_result(s)->measured.bottleneck_ns, best, 0);
    T_NEAR(tun_algorithm_space(tun_algorithm_find(algorithm), p, &o), size, 0);
    tun_search_free(s);
}

static void check_spaces(const struct tun_ep *eps, size_t ep_count, size_t units, size_t stages_max,
                         bool one_ep)
{
    struct tun_problem p = t_problem(units, eps, ep_count);

    p.bounds.stages_max = stages_max;
    p.bounds.one_ep_stages = one_ep;
    for (size_t i = 0; i < base_array_count(SPACES); i++) {
        t_note("%zu units, %zu EPs, %zu stages at most, one EP %d", units, ep_count, stages_max,
               one_ep);
        check_space(&p, "exhaustive", SPACES[i]);
        check_space(&p, "random", SPACES[i]);
    }
    tun_problem_deinit(&p);
}

TEST(as_many_plans_as_counted)
{
    for (size_t units = 1; units <= 4; units++) {
        for (size_t stages_max = 0; stages_max <= 3; stages_max++) {
            for (int one_ep = 0; one_ep < 2; one_ep++) {
                check_spaces(ONE, 1, units, stages_max, one_ep);
                check_spaces(TWO_ONE, 2, units, stages_max, one_ep);
                check_spaces(THREE, 3, base_min(units, (size_t)3), stages_max, one_ep);
            }
        }
    }
}

/* All plans of two units on big, big, little, written out: teams of one stage are B, B*2, Bx2, L,
 * B+L, B*2+L, Bx2+L, and two stages take two, or one and two, of the three cores. */
TEST(all_plans_of_a_small_machine)
{
    struct tun_problem p = t_problem(2, TWO_ONE, 2);
    struct tun_search *s = t_search("exhaustive", &p, &(struct tun_options){0});
    struct pl_ep_set eps;
    struct pl_plan plan;
    static const char *const wanted[] = {
        "0-1@big",
        "0-0@big|1-1@big",
        "0-0@big|1-1@big+little",
        "0-0@big|1-1@little",
        "0-1@big+little",
        "0-0@big+little|1-1@big",
        "0-1@big*2",
        "0-0@big*2|1-1@little",
        "0-1@big*2+little",
        "0-1@bigx2",
        "0-0@bigx2|1-1@little",
        "0-1@bigx2+little",
        "0-1@little",
        "0-0@little|1-1@big",
        "0-0@little|1-1@big*2",
        "0-0@little|1-1@bigx2",
    };
    size_t found[base_array_count(wanted)] = {0}, count = 0;
    char text[PL_PLAN_TEXT_MAX];

    T_TRUE(s);
    tun_eps(&p, &eps);
    while (tun_search_ask(s, &plan) == 0) {
        struct tun_trial t = t_measured(&p, &plan);

        T_EQ(pl_plan_format(&plan, &eps, text, sizeof(text)), 0);
        for (size_t i = 0; i < base_array_count(wanted); i++) {
            found[i] += strcmp(text, wanted[i]) == 0;
        }
        T_EQ(tun_search_tell(s, &t), 0);
        count++;
    }
    for (size_t i = 0; i < base_array_count(wanted); i++) {
        if (found[i] != 1) {
            T_FAIL("%s came %zu times", wanted[i], found[i]);
        }
    }
    T_EQ(count, base_array_count(wanted));
    tun_search_free(s);
    tun_problem_deinit(&p);
}

/* The default space is the largest that ends. */
TEST(default_space)
{
    static const struct {
        size_t units;
        enum tun_space space;
    } cases[] = {{2, TUN_SPACE_ALL}, {6, TUN_SPACE_PLACES}, {20, TUN_SPACE_CUTS}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct tun_problem p = t_problem(cases[i].units, HIKEY, 2);
        struct tun_options o = {0};

        T_NEAR(tun_algorithm_space(tun_algorithm_find("exhaustive"), &p, &o),
               tun_space_size(&p, cases[i].space), 0);
        tun_problem_deinit(&p);
    }
}

TEST(too_many_plans_are_refused)
{
    struct tun_problem p = t_problem(60, HIKEY, 2);
    struct tun_options o = {0};
    struct tun_search *s = NULL;
    char error[TUN_ERROR_MAX] = "";
    size_t count;

    T_EQ(tun_search_new("exhaustive", &p, &o, error, &s), -EINVAL);
    T_CONTAINS(error, "limit the trials");
    T_TRUE(!s);
    o.trials_max = 30;
    for (size_t i = 0; i < base_array_count(SPACES); i++) {
        o.space = SPACES[i];
        s = t_search("exhaustive", &p, &o);
        T_TRUE(s);
        t_drive(s, &p, NULL, NULL);
        tun_search_log(s, &count);
        T_EQ(count, 30);
        T_EQ(t_repeats(s), 0);
        s = tun_search_free(s);
    }
    tun_problem_deinit(&p);
}

/* Every plan as likely as the others: 16 plans, 16,000 first draws; a count is off by more than
 * 250 (8 sigma) once in 10^15. */
TEST(random_plans_are_uniform)
{
    struct tun_problem p = t_problem(2, TWO_ONE, 2);
    struct pl_plan plans[16], plan;
    size_t hits[16] = {0}, known = 0;

    T_EQ(tun_space_size(&p, TUN_SPACE_ALL), 16);
    for (uint64_t seed = 0; seed < 16000; seed++) {
        struct tun_options o = {.seed = t_random(), .space = TUN_SPACE_ALL};
        struct tun_search *s = seed % 100 ? NULL : t_search("random", &p, &o);
        static struct tun_search *kept;
        size_t i = 0;

        if (s) {
            tun_search_free(kept);
            kept = s;
        }
        /* asked and not told: nothing counts as tried */
        T_EQ(tun_search_ask(kept, &plan), 0);
        while (i < known && !pl_plan_equal(&plans[i], &plan)) {
            i++;
        }
        if (i == known) {
            T_LT(known, 16);
            plans[known++] = plan;
        }
        hits[i]++;
        if (seed + 1 == 16000) {
            kept = tun_search_free(kept);
        }
    }
    T_EQ(known, 16);
    for (size_t i = 0; i < known; i++) {
        T_NEAR((double)hits[i], 1000, 250);
    }
    tun_problem_deinit(&p);
}

TEST(random_stops_by_itself)
{
    struct tun_problem p = t_problem(30, HIKEY, 2);
    struct tun_search *s = t_search("random", &p, NULL);
    size_t count;

    T_TRUE(s);
    t_drive(s, &p, NULL, NULL);
    tun_search_log(s, &count);
    T_EQ(count, 500);
    T_EQ(t_repeats(s), 0);
    tun_search_free(s);
    tun_problem_deinit(&p);
}

/* The most a problem can have: counts pass every double, plans pass what a plan can hold. */
TEST(largest_machine)
{
    struct tun_ep eps[PL_EP_MAX];
    struct tun_problem p;
    struct tun_options o = {.seed = t_seed, .trials_max = 20};

    for (size_t k = 0; k < PL_EP_MAX; k++) {
        eps[k] = (struct tun_ep){"k", 48, 1 / (1.0 + (double)k), 1, 1};
        snprintf(eps[k].name, sizeof(eps[k].name), "k%zu", k);
    }
    p = t_problem(600, eps, PL_EP_MAX);
    for (size_t i = 0; i < base_array_count(SPACES); i++) {
        for (int random = 0; random < 2; random++) {
            struct tun_search *s;

            o.space = SPACES[i];
            s = t_search(random ? "random" : "exhaustive", &p, &o);
            T_TRUE(s);
            t_drive(s, &p, NULL, NULL);
            T_EQ(t_repeats(s), 0);
            tun_search_free(s);
        }
    }
    tun_problem_deinit(&p);
}

/* Failures and early ends change nothing here but the result. */
TEST(failed_and_stopped_trials)
{
    struct tun_problem p = t_problem(3, TWO_ONE, 2);

    for (size_t i = 0; i < base_array_count(SPACES); i++) {
        for (int random = 0; random < 2; random++) {
            struct tun_options o = {.seed = t_seed, .space = SPACES[i]};
            struct tun_search *s = t_search(random ? "random" : "exhaustive", &p, &o);
            size_t count;

            T_TRUE(s);
            t_drive(s, &p, t_spoil_all, NULL);
            tun_search_log(s, &count);
            T_EQ(count, tun_space_size(&p, SPACES[i]));
            T_TRUE(!tun_search_result(s));
            tun_search_free(s);
        }
    }
    tun_problem_deinit(&p);
}

TEST_MAIN()
