/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"
#include "tuner/search/places.h"
#include "tuner/search/search_private.h"

static const char *const WALKS[] = {"hill-climbing", "hill-climbing-seeded", "annealing",
                                    "annealing-seeded"};
static const struct tun_ep ONE[] = {{"big", 1, 1, 1, 1}};
static const struct tun_ep SMALL[] = {{"big", 2, 1, 1, 1}, {"little", 2, 0.4, 0.5, 1}};
static const struct tun_ep THREE[] = {
    {"big", 1, 1, 1, 1}, {"middle", 3, 0.6, 1, 1}, {"little", 4, 0.3, 0.5, 1}};

static struct tun_pipeline to_pipeline(const struct pl_plan *plan)
{
    struct tun_pipeline c = {.stage_count = plan->stage_count};

    for (size_t s = 0; s < plan->stage_count; s++) {
        c.layers[s] = (uint16_t)(plan->stages[s].last_unit - plan->stages[s].first_unit + 1);
        c.places[s].ep = plan->stages[s].groups[0].ep;
        c.places[s].width = plan->stages[s].groups[0].width;
    }
    return c;
}

/* A pipeline that a search drew. */
static struct tun_pipeline drawn(const struct tun_problem *p, bool wide)
{
    struct tun_options o = {.seed = t_random(), .space = wide ? TUN_SPACE_ALL : TUN_SPACE_PLACES};
    struct tun_search *s = t_search("hill-climbing", p, &o);
    struct pl_plan plan = {0};

    if (!s || tun_search_ask(s, &plan)) {
        abort();
    }
    tun_search_free(s);
    return to_pipeline(&plan);
}

/* The neighbours of a pipeline: plans, within the cores, unlike it and each other; and each has it
 * for a neighbour, but for splits and merges away from the middle. */
TEST(neighbours)
{
    static struct tun_move moves[TUN_MOVE_MAX], back[TUN_MOVE_MAX];

    for (int round = 0; round < 60; round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 20), THREE, 3);
        bool wide = round % 2;
        struct tun_pipeline from = drawn(&p, wide), to, again;
        size_t count = tun_moves(&p, &from, wide, moves);
        struct pl_plan plans[400], here;
        struct pl_ep_set eps;

        tun_eps(&p, &eps);
        tun_pipeline_plan(&from, &here);
        T_LT(0, count);
        T_LT(count, 400);
        for (size_t i = 0; i < count; i++) {
            bool returns = moves[i].what == TUN_MOVE_MERGE || moves[i].what == TUN_MOVE_SPLIT ||
                           (wide && moves[i].what == TUN_MOVE_REPLACE);
            size_t back_count;

            tun_move_apply(&p, &from, &moves[i], &to);
            tun_pipeline_plan(&to, &plans[i]);
            T_EQ(pl_plan_check(&plans[i], &eps, p.unit_count, NULL, 0), 0);
            T_TRUE(tun_fits(&p, &plans[i]));
            T_TRUE(!pl_plan_equal(&plans[i], &here));
            for (size_t j = 0; j < i; j++) {
                T_TRUE(!pl_plan_equal(&plans[i], &plans[j]));
            }
            back_count = tun_moves(&p, &to, wide, back);
            for (size_t j = 0; j < back_count && !returns; j++) {
                struct pl_plan plan;

                tun_move_apply(&p, &to, &back[j], &again);
                tun_pipeline_plan(&again, &plan);
                returns = pl_plan_equal(&plan, &here);
            }
            T_TRUE(returns);
        }
        tun_problem_deinit(&p);
    }
}

/* The largest pipeline fits the list. */
TEST(most_neighbours)
{
    static struct tun_move moves[TUN_MOVE_MAX];
    struct tun_ep eps[PL_EP_MAX];
    struct tun_pipeline c = {.stage_count = PL_STAGE_MAX - 1};
    struct tun_problem p;

    for (size_t k = 0; k < PL_EP_MAX; k++) {
        eps[k] = (struct tun_ep){"k", 64, 1, 1, 1};
    }
    p = t_problem(640, eps, PL_EP_MAX);
    for (size_t s = 0; s < c.stage_count; s++) {
        c.layers[s] = s ? 10 : 20;
        c.places[s] = (struct tun_place){.ep = (uint16_t)(s % PL_EP_MAX), .width = 2};
    }
    T_LT(tun_moves(&p, &c, true, moves), TUN_MOVE_MAX);
    tun_problem_deinit(&p);
}

static void run(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
                t_spoil_fn spoil, struct tun_search **ret)
{
    *ret = t_search(algorithm, p, o);
    T_TRUE(*ret);
    t_drive(*ret, p, spoil, NULL);
}

/* No plan twice, as many trials as allowed at most, the same again with the same seed. */
TEST(same_seed_same_trials)
{
    for (int round = 0; round < 20; round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 30), THREE, 3);
        struct tun_options o = {.seed = t_random(),
                                .space = round % 2 ? TUN_SPACE_ALL : TUN_SPACE_DEFAULT,
                                .trials_max = (size_t)t_range(1, 150)};

        p.bounds.stages_max = (size_t)t_range(0, 4);
        for (size_t w = 0; w < base_array_count(WALKS); w++) {
            struct tun_search *a = NULL, *b = NULL;
            const struct tun_trial *log_a, *log_b;
            size_t count_a = 0, count_b = 0;

            run(WALKS[w], &p, &o, NULL, &a);
            run(WALKS[w], &p, &o, NULL, &b);
            log_a = tun_search_log(a, &count_a);
            log_b = tun_search_log(b, &count_b);
            T_LT(0, count_a);
            T_LE(count_a, o.trials_max);
            T_EQ(count_a, count_b);
            T_EQ(t_repeats(a), 0);
            for (size_t i = 0; i < count_a; i++) {
                T_TRUE(pl_plan_equal(&log_a[i].plan, &log_b[i].plan));
            }
            T_TRUE(!a->problem.bounds.one_ep_stages);
            tun_search_free(a);
            tun_search_free(b);
        }
        tun_problem_deinit(&p);
    }
}

/* Where hill climbing ends by itself, no neighbour is better. */
TEST(hill_climbing_ends_on_a_hill)
{
    static struct tun_move moves[TUN_MOVE_MAX];

    for (int round = 0; round < 40; round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 25), THREE, 3);
        struct tun_options o = {.seed = t_random(), .trials_max = 100000};
        struct tun_search *s = NULL;
        const struct tun_trial *end;
        struct tun_pipeline here, next;
        size_t count;

        o.space = round % 4 < 2 ? TUN_SPACE_PLACES : TUN_SPACE_ALL;
        run(WALKS[round % 2], &p, &o, NULL, &s);
        end = tun_search_result(s);
        here = to_pipeline(&end->plan);
        count = tun_moves(&p, &here, o.space == TUN_SPACE_ALL, moves);
        for (size_t i = 0; i < count; i++) {
            struct pl_plan plan;
            struct tun_trial t;

            tun_move_apply(&p, &here, &moves[i], &next);
            tun_pipeline_plan(&next, &plan);
            t = t_measured(&p, &plan);
            T_TRUE(!tun_better(&p, &t.measured, &end->measured));
        }
        tun_search_free(s);
        tun_problem_deinit(&p);
    }
}

/* The first trial is Shisha's seed, and the end never below it. */
TEST(seeded_ones_begin_with_the_seed)
{
    for (unsigned h = 1; h <= 6; h++) {
        struct tun_problem p = t_problem(24, THREE, 3);
        struct tun_options o = {.seed = t_random(), .heuristic = h};

        for (size_t w = 1; w < base_array_count(WALKS); w += 2) {
            struct tun_random random = {o.seed};
            struct tun_pipeline seed;
            struct tun_search *s = NULL;
            const struct tun_trial *log;
            struct pl_plan plan;
            size_t count;

            T_EQ(tun_shisha_seed(&p, h, tun_places_max(&p), &random, &seed), 0);
            tun_pipeline_plan(&seed, &plan);
            run(WALKS[w], &p, &o, NULL, &s);
            log = tun_search_log(s, &count);
            T_LT(1, count);
            T_TRUE(pl_plan_equal(&log[0].plan, &plan));
            T_TRUE(tun_search_result(s)->measured.bottleneck_ns <= log[0].measured.bottleneck_ns);
            tun_search_free(s);
        }
        tun_problem_deinit(&p);
    }
}

/* Without a limit of the caller: by its own end. On a small machine annealing reaches the best plan
 * of all in most runs, and hill climbing, that stops on every ridge, in some. */
TEST(walks_end_and_find)
{
    size_t found[base_array_count(WALKS)] = {0};

    for (int round = 0; round < 20; round++) {
        struct tun_problem p = t_problem(8, SMALL, 2);
        struct tun_options o = {.seed = t_random(), .space = TUN_SPACE_PLACES};
        struct tun_search *all = NULL;

        run("exhaustive", &p, &o, NULL, &all);
        for (size_t w = 0; w < base_array_count(WALKS); w++) {
            struct tun_search *s = NULL;
            size_t count;

            run(WALKS[w], &p, &o, NULL, &s);
            tun_search_log(s, &count);
            T_LE(count, 1000);
            found[w] += tun_search_result(s)->measured.bottleneck_ns <=
                        tun_search_result(all)->measured.bottleneck_ns;
            tun_search_free(s);
        }
        tun_search_free(all);
        tun_problem_deinit(&p);
    }
    T_LT(0, found[0]);
    T_LT(0, found[1]);
    T_LT(10, found[2]);
    T_LT(10, found[3]);
}

/* Annealing takes worse plans early and none late; hill climbing never. Seen from the log: a plan
 * that is a neighbour of the last trial only. Its own end comes with the temperature. */
TEST(annealing_cools)
{
    struct tun_problem p = t_problem(40, THREE, 3);
    struct tun_options o = {.seed = t_seed, .alpha = 100000};
    struct tun_search *s = NULL;
    const struct tun_trial *log;
    double early = 0, late = 0, first;
    size_t count;

    run("annealing", &p, &o, NULL, &s);
    log = tun_search_log(s, &count);
    T_LE(count, 1000);
    T_LT(200, count);
    first = tun_search_result(s)->measured.bottleneck_ns;
    for (size_t i = 0; i < 50; i++) {
        early += log[i].measured.bottleneck_ns / first;
        late += log[count - 1 - i].measured.bottleneck_ns / first;
    }
    T_TRUE(late < early);
    tun_search_free(s);
    o.alpha = 1; /* ten proposals in a row that are not taken */
    run("annealing", &p, &o, NULL, &s);
    tun_search_log(s, &o.trials_max);
    T_LT(o.trials_max, count);
    tun_search_free(s);
    tun_problem_deinit(&p);
}

TEST(bounds_and_other_objectives)
{
    for (size_t w = 0; w < base_array_count(WALKS); w++) {
        for (int objective = TUN_LATENCY; objective <= TUN_POWER; objective++) {
            struct tun_problem p = t_problem(12, SMALL, 2);
            struct tun_options o = {.seed = t_seed, .space = TUN_SPACE_ALL};
            struct tun_search *s = NULL;
            double all = 0;

            for (size_t u = 0; u < 12; u++) {
                all += p.units[u].weight;
            }
            p.objective = (enum tun_objective)objective;
            p.bounds.period_max_ns = all * 0.75; /* one big core alone takes `all` */
            run(WALKS[w], &p, &o, NULL, &s);
            T_TRUE(tun_search_result(s)->measured.bottleneck_ns <= p.bounds.period_max_ns);
            tun_search_free(s);
            tun_problem_deinit(&p);
        }
    }
}

TEST(failed_and_stopped_trials)
{
    for (int round = 0; round < 30; round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 20), THREE, 3);
        struct tun_options o = {.seed = t_random()};

        for (size_t w = 0; w < base_array_count(WALKS); w++) {
            struct tun_search *s = NULL;

            run(WALKS[w], &p, &o, round % 2 ? t_spoil_all : t_spoil_some, &s);
            T_EQ(t_repeats(s), 0);
            if (round % 2) {
                T_TRUE(!tun_search_result(s));
            }
            tun_search_free(s);
        }
        tun_problem_deinit(&p);
    }
}

TEST(nothing_to_choose)
{
    static const struct tun_options single = {.space = TUN_SPACE_PLACES};
    static const struct {
        size_t units, stages_max, plans;
        bool alone;
    } cases[] = {{1, 0, 1, true}, {7, 0, 1, true}, {1, 0, 2, false}, {7, 1, 2, false}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct tun_problem p =
            t_problem(cases[i].units, cases[i].alone ? ONE : SMALL, cases[i].alone ? 1 : 2);

        p.bounds.stages_max = cases[i].stages_max;
        for (size_t w = 0; w < base_array_count(WALKS); w++) {
            struct tun_search *s = NULL;
            size_t count;

            run(WALKS[w], &p, &single, NULL, &s);
            tun_search_log(s, &count);
            T_EQ(count, cases[i].plans);
            tun_search_free(s);
        }
        tun_problem_deinit(&p);
    }
}

/* A walk goes on from the plan that serves; from Shisha's seed if that is no pipeline. */
TEST(from_the_present_plan)
{
    static const char *const names[] = {"annealing", "hill-climbing"};

    for (size_t w = 0; w < base_array_count(names); w++) {
        struct tun_problem p = t_problem(9, SMALL, 2);
        struct pl_plan serving = {.stage_count = 2};
        struct tun_pipeline seed;
        struct tun_options o = {.seed = t_random(), .from = &serving, .trials_max = 5};
        struct tun_random unused = {0};
        struct tun_search *s;
        struct pl_plan asked, wanted;

        serving.stages[0] = (struct pl_stage_plan){.last_unit = 2, .group_count = 1};
        serving.stages[0].groups[0] = (struct pl_group){.ep = 1, .width = 1, .count = 1};
        serving.stages[1] = (struct pl_stage_plan){.first_unit = 3, .last_unit = 8};
        serving.stages[1].group_count = 1;
        serving.stages[1].groups[0] = (struct pl_group){.ep = 0, .width = 1, .count = 1};
        s = t_search(names[w], &p, &o);
        T_EQ(tun_search_ask(s, &asked), 0);
        T_TRUE(pl_plan_equal(&asked, &serving));
        tun_search_free(s);

        serving.stages[1].groups[0].more = 3; /* four frames at once */
        s = t_search(names[w], &p, &o);
        T_EQ(tun_search_ask(s, &asked), 0);
        T_EQ(tun_shisha_seed(&p, 3, tun_places_max(&p), &unused, &seed), 0);
        tun_pipeline_plan(&seed, &wanted);
        T_TRUE(pl_plan_equal(&asked, &wanted));
        tun_search_free(s);
        tun_problem_deinit(&p);
    }
}

TEST(refusals)
{
    struct tun_problem p = t_problem(4, SMALL, 2);
    struct tun_options cuts = {.space = TUN_SPACE_CUTS}, seven = {.heuristic = 7};
    struct tun_search *s = NULL;
    char error[TUN_ERROR_MAX];

    for (size_t w = 0; w < base_array_count(WALKS); w++) {
        T_EQ(tun_search_new(WALKS[w], &p, &cuts, error, &s), -EINVAL);
        T_CONTAINS(error, "places");
    }
    T_EQ(tun_search_new("annealing-seeded", &p, &seven, error, &s), -EINVAL);
    T_CONTAINS(error, "1 to 6");
    tun_problem_deinit(&p);
}

TEST_MAIN()
