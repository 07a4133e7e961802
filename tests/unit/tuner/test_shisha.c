/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"
#include "tuner/search/places.h"

static const struct tun_ep ONE[] = {{"fast", 1, 1, 1, 1}};
static const struct tun_ep TWO_TWO[] = {{"slow", 2, 0.5, 0.5, 1}, {"fast", 2, 1, 1, 1}};
static const struct tun_ep ONE_TWO[] = {{"fast", 1, 1, 1, 1}, {"slow", 2, 0.5, 0.5, 1}};

/* Machines C1..C6 of the paper's table 2, a core for each cluster. */
static const uint16_t CONFIGURATIONS[6][2] = {{1, 1}, {2, 2}, {4, 2}, {2, 4}, {4, 4}, {8, 0}};

/* The machine and the units of the hand-worked example: exact sums, no hand-off cost; N is as many
 * as cores. */
static struct tun_problem example(const struct tun_ep *eps, size_t ep_count, const double *weight,
                                  size_t units)
{
    struct tun_problem p = t_problem(units, eps, ep_count);

    p.handoff_ns = 0;
    p.bounds.stages_max = tun_core_count(&p);
    for (size_t u = 0; u < units; u++) {
        p.units[u].weight = weight[u];
        for (size_t k = 0; k < ep_count; k++) {
            for (size_t w = 1; w <= eps[k].cores; w++) {
                tun_cell_at(&p.costs, k, w, u)->ns = weight[u] / eps[k].speed;
            }
        }
    }
    return p;
}

static void check_plan(const struct tun_problem *p, const struct pl_plan *plan, const char *wanted)
{
    char text[PL_PLAN_TEXT_MAX];
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    T_EQ(pl_plan_format(plan, &eps, text, sizeof(text)), 0);
    T_STR(text, wanted);
}

/*
 * Algorithm 1 by hand: ten units on 2 slow and 2 fast cores, N = 4.
 *
 *     weights     9  2  5  1  1  1  6  3  7  4      the lightest, its lighter neighbour
 *     pass 1      9  2  5  2     1  6  3  7  4      1 (the first), 1 on its right (5 on its left)
 *     pass 2      9  2  5  3        6  3  7  4      1, 2 on its left (6 on its right)
 *     pass 3      9  7     3        6  3  7  4      2, 5 on its right (9 on its left)
 *     pass 4      9  7     9           3  7  4      3 (the first), 6 on its right (7 on its left)
 *     pass 5      9  7     9           10       4   3, 7 on its right (9 on its left)
 *     pass 6      9  7     9           14           4, 10, the only one
 *     units       1  2     4           3
 *
 * Rank_w: 14, 9 (the first), 9, 7:  stages 3 and 0 on fast cores, 2 and 1 on slow ones.
 * Rank_l: 1, 2, 3, 4 units:         stages 0 and 1 on fast cores, 3 and 2 on slow ones.
 */
static const double WEIGHTS[] = {9, 2, 5, 1, 1, 1, 6, 3, 7, 4};

/* @by_weight: by heuristics 1 and 2; @by_length: by 3 and 4. */
static void check_seeds(const struct tun_problem *p, const char *by_weight, const char *by_length)
{
    struct tun_random random = {0};
    struct tun_pipeline seed;
    struct pl_plan plan;

    for (unsigned h = 1; h <= 4; h++) {
        T_EQ(tun_shisha_seed(p, h, 4, &random, &seed), 0);
        tun_pipeline_plan(&seed, &plan);
        check_plan(p, &plan, h <= 2 ? by_weight : by_length);
    }
    T_EQ(random.state, 0); /* no chance in these four */
}

TEST(seed_worked_by_hand)
{
    struct tun_problem p = example(TWO_TWO, 2, WEIGHTS, 10);
    struct tun_random random = {0};
    struct tun_pipeline seed;

    check_seeds(&p, "0-0@fast|1-2@fast|3-6@slow|7-9@slow", "0-0@fast|1-2@slow|3-6@slow|7-9@fast");
    T_EQ(tun_shisha_seed(&p, 0, 4, &random, &seed), -EINVAL);
    T_EQ(tun_shisha_seed(&p, 7, 4, &random, &seed), -EINVAL);
    tun_problem_deinit(&p);
}

/* Cores of one speed at two memories (the paper's figure 3): the nearer memory's are the FEPs. */
TEST(bandwidth_alone_tells_fast_from_slow)
{
    static const struct tun_ep MEMORIES[] = {{"far", 2, 1, 0.5, 1}, {"near", 2, 1, 1, 1}};
    struct tun_problem p = example(MEMORIES, 2, WEIGHTS, 10);

    check_seeds(&p, "0-0@near|1-2@near|3-6@far|7-9@far", "0-0@near|1-2@far|3-6@far|7-9@near");
    tun_problem_deinit(&p);
}

TEST(seed_merges_to_the_left)
{
    static const double weight[] = {5, 1, 5};
    struct tun_problem p = example(TWO_TWO, 2, weight, 3);
    struct tun_random random = {0};
    struct tun_pipeline seed;

    T_EQ(tun_shisha_seed(&p, 3, 2, &random, &seed), 0);
    T_EQ(seed.stage_count, 2);
    T_EQ(seed.layers[0], 2);
    tun_problem_deinit(&p);
}

/* The same merges; every assignment of two and two comes up, the same seed gives the same. */
TEST(random_seeds)
{
    struct tun_problem p = example(TWO_TWO, 2, WEIGHTS, 10);
    bool met[16] = {false};
    size_t count = 0;

    for (uint64_t i = 0; i < 200; i++) {
        struct tun_random a = {i}, b = {i};
        struct tun_pipeline seed, again;
        size_t pattern = 0, fast = 0;

        T_EQ(tun_shisha_seed(&p, 5, 4, &a, &seed), 0);
        T_EQ(tun_shisha_seed(&p, 6, 4, &b, &again), 0);
        T_EQ(seed.layers[2], 4);
        for (size_t s = 0; s < 4; s++) {
            T_EQ(seed.places[s].ep, again.places[s].ep);
            fast += seed.places[s].ep;
            pattern |= (size_t)seed.places[s].ep << s;
        }
        T_EQ(fast, 2);
        count += !met[pattern];
        met[pattern] = true;
    }
    T_EQ(count, 6);
    tun_problem_deinit(&p);
}

static const struct tun_options AS_PRINTED = {.heuristic = 3}; /* and N */

/* Runs a search and compares what it asks for with a list. It asks for @trials and then no more;
 * after the end of the list, the last two of it take turns. */
static void check_steps(const struct tun_problem *p, const struct tun_options *o,
                        const char *const *steps, size_t count, size_t trials)
{
    struct tun_search *s = t_search("shisha", p, o);
    struct pl_plan plan;

    T_TRUE(s);
    for (size_t i = 0; i < trials; i++) {
        struct tun_trial t;

        t_note("step %zu", i);
        T_EQ(tun_search_ask(s, &plan), 0);
        check_plan(p, &plan, steps[i < count ? i : count - 2 + (i - count) % 2]);
        t = t_measured(p, &plan);
        T_EQ(tun_search_tell(s, &t), 0);
    }
    T_EQ(tun_search_ask(s, &plan), TUN_E_DONE);
    tun_search_free(s);
}

/*
 * Algorithm 2 by hand from that seed by H3; f: fast, s: slow, twice the weight. FEPs: 0 and 3.
 *
 *     units 1 2 4 3: 9f 14s 18s 14f    slowest 2; nlFEP is 0 (9), no neighbour: two borders move
 *     units 2 2 3 3: 11f 12s 16s 14f   better. Slowest 2; nlFEP is 0 (11)
 *     units 3 2 2 3: 16f 4s 14s 14f    no better than 16, gamma 1. Slowest 0; the other FEP is 3
 *     units 2 2 2 4: 11f 12s 4s 20f    gamma 2. Slowest 3; the other FEP is 0
 *     units 3 2 2 3                    as two steps before: run again, gamma 3, and so on in a
 *                                      circle; with gamma 10, after 12 trials, it ends
 */
TEST(moves_worked_by_hand_nlfep)
{
    static const char *const steps[] = {
        "0-0@fast|1-2@slow|3-6@slow|7-9@fast",
        "0-1@fast|2-3@slow|4-6@slow|7-9@fast",
        "0-2@fast|3-4@slow|5-6@slow|7-9@fast",
        "0-1@fast|2-3@slow|4-5@slow|6-9@fast",
    };
    struct tun_problem p = example(TWO_TWO, 2, WEIGHTS, 10);
    struct tun_options o = {.heuristic = 3};

    check_steps(&p, &o, steps, base_array_count(steps), 12);
    o.alpha = 101;
    check_steps(&p, &o, steps, base_array_count(steps), 103);
    o.alpha = 1; /* the first step without gain ends it */
    check_steps(&p, &o, steps, base_array_count(steps), 3);
    tun_problem_deinit(&p);
}

/* By H4 the FEP nearest to stage 2 is 3, its neighbour. */
TEST(moves_worked_by_hand_nfep)
{
    static const char *const steps[] = {
        "0-0@fast|1-2@slow|3-6@slow|7-9@fast", /*  9 14 18 14: 2 gives 6 to 3 */
        "0-0@fast|1-2@slow|3-5@slow|6-9@fast", /*  9 14  6 20: 3 gives one to 0 */
        "0-1@fast|2-3@slow|4-6@slow|7-9@fast", /* 11 12 16 14: 2 gives 6 to 3 */
        "0-1@fast|2-3@slow|4-5@slow|6-9@fast", /* 11 12  4 20: 3 gives one to 0 */
        "0-2@fast|3-4@slow|5-6@slow|7-9@fast", /* 16  4 14 14: 0 gives one to 3, a circle */
    };
    struct tun_problem p = example(TWO_TWO, 2, WEIGHTS, 10);
    struct tun_options o = {.heuristic = 4};

    check_steps(&p, &o, steps, base_array_count(steps), 13);
    o.alpha = 2; /* one without gain, a gain, then two without */
    check_steps(&p, &o, steps, base_array_count(steps), 5);
    tun_problem_deinit(&p);
}

/* A slowest stage of one unit has nothing to give: the seed is the end. */
TEST(one_unit_stays)
{
    static const double weight[] = {1, 2, 9, 9, 1};
    static const char *const steps[] = {"0-1@slow|2-2@slow|3-4@fast"}; /* 6 18 10 */
    struct tun_problem p = example(ONE_TWO, 2, weight, 5);

    check_steps(&p, &AS_PRINTED, steps, 1, 1);
    tun_problem_deinit(&p);
}

/* The only FEP is the slowest stage: the nearest lighter stage gets the unit. */
TEST(lone_fast_core_gives_to_the_nearest_lighter)
{
    static const struct tun_ep eps[] = {{"fast", 1, 1, 1, 1}, {"slow", 2, 0.8, 0.5, 1}};
    static const double weight[] = {5, 5, 5, 5};
    static const char *const steps[] = {
        "0-1@fast|2-2@slow|3-3@slow", /* 10 6.25 6.25: 0 gives one to 1 */
        "0-0@fast|1-2@slow|3-3@slow", /* 5 12.5 6.25: 1 gives it back to the FEP, a circle */
    };
    struct tun_problem p = example(eps, 2, weight, 4);

    check_steps(&p, &AS_PRINTED, steps, base_array_count(steps), 11);
    tun_problem_deinit(&p);
}

/* Two EPs described alike are both fast ones: by H1 the units go to the lighter of them. */
TEST(eps_of_one_speed_are_all_fast)
{
    static const struct tun_ep eps[] = {
        {"node0", 1, 1, 1, 1}, {"node1", 1, 1, 1, 1}, {"slow", 1, 0.5, 0.5, 1}};
    static const double weight[] = {4, 4, 5, 4};
    static const char *const steps[] = {
        "0-1@slow|2-2@node0|3-3@node1", /* 16 5 4: 0 gives one to 2, both borders move */
        "0-0@slow|1-1@node0|2-3@node1", /* 8 4 9: better; 2 gives one to 1 */
        "0-0@slow|1-2@node0|3-3@node1", /* 8 9 4: gamma 1; 1 gives it back, a circle */
    };
    struct tun_problem p = example(eps, 3, weight, 4);
    struct tun_options o = {.heuristic = 1};

    check_steps(&p, &o, steps, base_array_count(steps), 12);
    tun_problem_deinit(&p);
}

/* A worse configuration is not taken back; the best one serves all the same. */
TEST(the_best_seen_serves)
{
    struct tun_problem p = example(TWO_TWO, 2, WEIGHTS, 10);
    struct tun_search *s = t_search("shisha", &p, &AS_PRINTED);
    const struct tun_trial *log;
    size_t count;

    T_TRUE(s);
    t_drive(s, &p, NULL, NULL);
    log = tun_search_log(s, &count);
    T_EQ(count, 12);
    T_NEAR(log[count - 1].measured.bottleneck_ns, 20, 0);
    T_NEAR(tun_search_result(s)->measured.bottleneck_ns, 16, 0);
    check_plan(&p, &tun_search_result(s)->plan, "0-1@fast|2-3@slow|4-6@slow|7-9@fast");
    tun_search_free(s);
    tun_problem_deinit(&p);
}

/* Trials without gain in a row, at most: alpha. */
static void check_alpha(const struct tun_search *s, unsigned alpha)
{
    size_t count, without = 0;
    const struct tun_trial *log = tun_search_log(s, &count);
    double best = INFINITY;

    for (size_t i = 0; i < count; i++) {
        bool better = !log[i].failed && !log[i].stopped && log[i].measured.bottleneck_ns < best;

        T_LT(without, alpha);
        best = better ? log[i].measured.bottleneck_ns : best;
        without = better ? 0 : without + 1;
    }
}

TEST(all_heuristics_on_the_paper_machines)
{
    for (size_t c = 0; c < 6; c++) {
        for (int slower = 3; slower <= 12; slower *= 2) {
            struct tun_ep eps[] = {{"fast", CONFIGURATIONS[c][0], 1, 1, 1},
                                   {"slow", CONFIGURATIONS[c][1], 1.0 / slower, 0.5, 1}};
            struct tun_problem p =
                t_problem((size_t)t_range(1, 60), eps, CONFIGURATIONS[c][1] ? 2 : 1);

            p.bounds.stages_max = tun_core_count(&p);
            for (unsigned h = 1; h <= 6; h++) {
                struct tun_options o = {
                    .seed = t_random(), .heuristic = h, .alpha = (unsigned)t_range(1, 30)};
                struct tun_search *s = t_search("shisha", &p, &o);
                const struct tun_trial *log;
                size_t count;

                T_TRUE(s);
                t_drive(s, &p, NULL, NULL);
                log = tun_search_log(s, &count);
                T_LT(0, count);
                T_TRUE(tun_search_result(s)->measured.bottleneck_ns <=
                       log[0].measured.bottleneck_ns);
                check_alpha(s, o.alpha);
                tun_search_free(s);
            }
            tun_problem_deinit(&p);
        }
    }
}

TEST(failed_and_stopped_trials)
{
    static const struct tun_ep eps[] = {{"fast", 4, 1, 1, 1}, {"slow", 4, 0.3, 0.5, 1}};

    for (int round = 0; round < 200; round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 40), eps, 2);
        struct tun_options o = {.seed = t_random(), .heuristic = (unsigned)t_range(1, 6)};
        struct tun_search *s;

        p.bounds.stages_max = (size_t)t_range(1, 8);
        s = t_search("shisha", &p, &o);
        T_TRUE(s);
        t_drive(s, &p, round % 2 ? t_spoil_all : t_spoil_some, NULL);
        check_alpha(s, 10);
        if (round % 2) {
            T_TRUE(!tun_search_result(s));
        }
        tun_search_free(s);
        tun_problem_deinit(&p);
    }
}

/* One plan, and the end. */
static void check_single(size_t units, const struct tun_ep *eps, size_t ep_count, size_t stages_max,
                         const char *wanted)
{
    struct tun_problem p = t_problem(units, eps, ep_count);

    p.bounds.stages_max = stages_max;
    check_steps(&p, &AS_PRINTED, &wanted, 1, 1);
    tun_problem_deinit(&p);
}

TEST(nothing_to_choose)
{
    check_single(1, ONE, 1, 1, "0-0@fast");
    check_single(9, ONE, 1, 1, "0-8@fast");
    check_single(1, TWO_TWO, 2, 4, "0-0@fast");
    check_single(9, TWO_TWO, 2, 1, "0-8@fastx2");
    check_single(2, TWO_TWO, 2, 4, "0-0@fast|1-1@fast"); /* the fastest two of four */
}

/* With as many places as EPs each has a whole one. By hand, further from the four groups above: 9 7
 * 9 14 become 16 9 14 (the left of two neighbours of 9) and 16 23. A second core adds nothing. */
TEST(a_place_may_be_a_cluster)
{
    static const char *const steps[] = {
        "0-2@slowx2|3-9@fastx2", /* 32 23: 0 gives one to the FEP */
        "0-1@slowx2|2-9@fastx2", /* 22 28: better; the only FEP gives it back, a circle */
    };
    struct tun_problem p = example(TWO_TWO, 2, WEIGHTS, 10);

    p.bounds.stages_max = 2;
    check_steps(&p, &AS_PRINTED, steps, base_array_count(steps), 12);
    tun_problem_deinit(&p);
}

/* Where N is not given, seeds run from a core each to one place; then Algorithm 2 begins at each,
 * the best first. Two cores are 1.6 times as fast as one. */
TEST(without_n_there_are_several_seeds)
{
    static const double weight[] = {8, 1, 1, 1, 2};
    static const char *const steps[] = {
        "0-0@fast|1-2@fast|3-3@slow|4-4@slow", /* 8 2 2 4 */
        "0-0@fastx2|1-4@slowx2",               /* 5 6.25 */
        "0-4@fastx2",                          /* 8.125 */
        "0-1@fastx2|2-4@slowx2",               /* from the second: 5.625 5, better */
    };
    struct tun_problem p = example(TWO_TWO, 2, weight, 5);
    struct tun_options o = {.heuristic = 3};

    p.bounds.stages_max = 0;
    for (size_t k = 0; k < 2; k++) {
        for (size_t u = 0; u < 5; u++) {
            tun_cell_at(&p.costs, k, 2, u)->ns /= 1.6;
        }
    }
    /* Then the FEP would give the unit back, which ran before; the first seed's slowest stage has
     * one unit, the third is one stage. */
    check_steps(&p, &o, steps, base_array_count(steps), base_array_count(steps));
    tun_problem_deinit(&p);
}

/* Where no heuristic is given, the mirror image of a seed is one, too: here slow cores are bad at
 * the last unit, which weights do not tell. */
TEST(without_a_heuristic_seeds_have_mirror_images)
{
    static const double weight[] = {9, 3, 1, 4};
    static const char *const steps[] = {
        "0-0@fast|1-3@slowx2", /* 9 43 */
        "0-0@slowx2|1-3@fast", /* 18 8: better, but its slowest stage has one unit */
        "0-1@fast|2-3@slowx2", /* so the other's turn: 12 37 */
        "0-2@fast|3-3@slowx2", /* 13 35 */
    };
    struct tun_problem p = example(ONE_TWO, 2, weight, 4);

    p.bounds.stages_max = 2;
    tun_cell_at(&p.costs, 1, 2, 3)->ns = 35;
    check_steps(&p, NULL, steps, base_array_count(steps), base_array_count(steps));
    tun_problem_deinit(&p);
}

/* Figure 6's random seeds: as many stages as N, cut anywhere; every cut comes up. */
TEST(drawn_seeds_cut_anywhere)
{
    static const double weight[] = {8, 1, 1, 1, 2};
    struct tun_problem p = example(ONE_TWO, 2, weight, 5);
    bool met[5][5] = {{false}};
    size_t count = 0;

    for (uint64_t i = 0; i < 200; i++) {
        struct tun_options o = {.seed = i, .drawn_seed = true};
        struct tun_search *s = t_search("shisha", &p, &o);
        struct pl_plan plan;

        T_TRUE(s);
        T_EQ(tun_search_ask(s, &plan), 0);
        T_EQ(plan.stage_count, 3);
        T_LT(plan.stages[0].last_unit, plan.stages[1].last_unit);
        T_EQ(plan.stages[2].last_unit, 4);
        count += !met[plan.stages[0].last_unit][plan.stages[1].last_unit];
        met[plan.stages[0].last_unit][plan.stages[1].last_unit] = true;
        tun_search_free(s);
    }
    T_EQ(count, 6);
    tun_problem_deinit(&p);
}

TEST(refuses_a_heuristic_that_is_none)
{
    struct tun_problem p = t_problem(4, TWO_TWO, 2);
    struct tun_options o = {.heuristic = 7};
    char error[TUN_ERROR_MAX];
    struct tun_search *s = NULL;

    T_EQ(tun_search_new("shisha", &p, &o, error, &s), -EINVAL);
    T_CONTAINS(error, "1 to 6");
    tun_problem_deinit(&p);
}

/* Costs are not read: with none known, trials alone lead. */
TEST(needs_no_costs)
{
    struct tun_problem p = t_problem(20, TWO_TWO, 2), blind;
    struct tun_search *s;
    size_t count;

    T_EQ(tun_problem_copy(&p, &blind), 0);
    for (size_t k = 0; k < 2; k++) {
        for (size_t w = 1; w <= 2; w++) {
            for (size_t u = 0; u < 20; u++) {
                *tun_cell_at(&blind.costs, k, w, u) = (struct tun_cell){.ns = -1};
            }
        }
    }
    s = t_search("shisha", &blind, NULL);
    T_TRUE(s);
    t_drive(s, &p, NULL, NULL);
    tun_search_log(s, &count);
    T_LT(0, count);
    tun_search_free(s);
    tun_problem_deinit(&p);
    tun_problem_deinit(&blind);
}

TEST_MAIN()
