/* SPDX-License-Identifier: Apache-2.0 */
/* NSGA-II over plans. */
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"

static const struct tun_ep EPS[] = {{"big", 2, 1, 1, 2}, {"little", 4, 0.35, 0.5, 0.4}};

/* Units 6 1 1 1 1 1 1 on EPs of speed 2 and 1: one cut after k units takes max(sum / 2, rest). */
TEST(finds_the_best_cut_by_hand)
{
    static const struct tun_ep eps[] = {{"fast", 1, 1, 1, 1}, {"slow", 1, 0.5, 1, 1}};
    static const double weight[] = {6, 1, 1, 1, 1, 1, 1};
    struct tun_options o[] = {{.seed = 1}, {.stages = 1}, {.encoding = TUN_ENCODING_NE}};
    struct tun_problem p = t_problem(7, eps, 2);
    char text[PL_PLAN_TEXT_MAX];
    struct pl_ep_set set;

    p.handoff_ns = 0;
    for (size_t u = 0; u < 7; u++) {
        tun_cell_at(&p.costs, 0, 1, u)->ns = weight[u];
        tun_cell_at(&p.costs, 1, 1, u)->ns = 2 * weight[u];
    }
    tun_eps(&p, &set);
    for (size_t i = 0; i < base_array_count(o); i++) {
        struct tun_search *s = t_search("nsga2", &p, &o[i]);
        const struct tun_trial *best;

        t_drive(s, &p, NULL, NULL);
        best = tun_search_result(s);
        T_TRUE(best != NULL);
        T_EQ(best->measured.bottleneck_ns, 8.0); /* 6 + 1 + 1, and 4 on the slow one */
        T_EQ(pl_plan_format(&best->plan, &set, text, sizeof(text)), 0);
        T_STR(text, "0-2@fast|3-6@slow");
        T_EQ(t_repeats(s), 0u);
        tun_search_free(s);
    }
    T_EQ(tun_algorithm_space(&tun_nsga2, &p, &o[0]), 8.0);   /* C(7 + 1, 1) */
    T_EQ(tun_algorithm_space(&tun_nsga2, &p, &o[2]), 128.0); /* 2^7 */
    tun_problem_deinit(&p);
}

/* The ends of the front: least latency and least energy are found by that objective. */
TEST(each_objective_and_bounds)
{
    for (int round = 0; round < t_times(10); round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 12), EPS, 2);
        double least[3] = {INFINITY, INFINITY, INFINITY};

        for (size_t cut = 0; cut <= p.unit_count; cut++) {
            struct pl_plan plan = {0};
            struct tun_outcome o;

            for (size_t part = 0; part < 2; part++) {
                size_t from = part ? cut : 0, to = part ? p.unit_count : cut;

                if (from < to) {
                    plan.stages[plan.stage_count++] =
                        (struct pl_stage_plan){(uint16_t)from,
                                               (uint16_t)(to - 1),
                                               1,
                                               {{(uint16_t)part, EPS[part].cores, 1}}};
                }
            }
            T_EQ(tun_eval(&p, &plan, &o), 0);
            least[0] = fmin(least[0], o.bottleneck_ns);
            least[1] = fmin(least[1], o.latency_ns);
            least[2] = fmin(least[2], o.energy_nj);
        }
        for (int objective = 0; objective < 3; objective++) {
            struct tun_options o = {.seed = t_random()};
            struct tun_search *s;
            const struct tun_outcome *m;

            p.objective = (enum tun_objective)objective;
            p.bounds.period_max_ns = objective == TUN_POWER ? 1e12 : 0;
            s = t_search("nsga2", &p, &o);
            t_drive(s, &p, NULL, NULL);
            m = &tun_search_result(s)->measured;
            T_NEAR(objective == 0   ? m->bottleneck_ns
                   : objective == 1 ? m->latency_ns
                                    : m->energy_nj,
                   least[objective], 1e-6);
            tun_search_free(s);
        }
        tun_problem_deinit(&p);
    }
}

/* Units 0 and 2 are cheap on the head alone, unit 1 on b2 alone: the best mapping comes back. */
TEST(over_boards_a_mapping_may_come_back)
{
    static const struct tun_ep eps[] = {{"a", 1, 1, 1, 1, 0}, {"b2:a", 1, 1, 1, 1, 1}};
    struct tun_options o = {.encoding = TUN_ENCODING_NE, .seed = 1};
    struct tun_problem p = t_problem(3, eps, 2);
    char text[PL_PLAN_TEXT_MAX];
    struct tun_search *s;

    p.handoff_ns = 0;
    for (size_t u = 0; u < 3; u++) {
        tun_cell_at(&p.costs, 0, 1, u)->ns = u == 1 ? 100 : 1;
        tun_cell_at(&p.costs, 1, 1, u)->ns = u == 1 ? 1 : 100;
    }
    p.boards.count = 2;
    snprintf(p.boards.boards[0].name, PL_BOARD_NAME_MAX, "head");
    snprintf(p.boards.boards[1].name, PL_BOARD_NAME_MAX, "b2");
    s = t_search("nsga2", &p, &o);
    t_drive(s, &p, NULL, NULL);
    T_EQ(tun_plan_text(&p, &tun_search_result(s)->plan, text), 0);
    T_STR(text, "0-0@a|1-1@b2:a|2-2@a");
    T_NEAR(tun_search_result(s)->measured.bottleneck_ns, 2, 1e-9); /* both visits of the head */
    tun_search_free(s);
    p.bounds.stages_max = 2;
    s = t_search("nsga2", &p, &o);
    t_drive(s, &p, NULL, NULL);
    T_TRUE(tun_search_result(s)->plan.stage_count <= 2);
    tun_search_free(s);
    tun_problem_deinit(&p);
}

TEST(one_place_is_one_plan)
{
    static const struct tun_ep one[] = {{"core", 1, 1, 1, 1}};

    for (size_t units = 1; units < 4; units++) {
        struct tun_problem p = t_problem(units, one, 1);
        struct tun_search *s = t_search("nsga2", &p, NULL);
        size_t count;

        t_drive(s, &p, NULL, NULL);
        tun_search_log(s, &count);
        T_EQ(count, 1u);
        tun_search_free(s);
        tun_problem_deinit(&p);
    }
}

TEST(trials_that_fail_or_stop)
{
    for (int round = 0; round < t_times(20); round++) {
        struct tun_problem p = t_problem((size_t)t_range(1, 20), EPS, 2);
        struct tun_options o = {.seed = t_random(),
                                .encoding = round % 2 ? TUN_ENCODING_NE : TUN_ENCODING_SPE,
                                .stages = (unsigned)t_range(0, 2)};
        struct tun_search *s = t_search("nsga2", &p, &o);

        t_drive(s, &p, round % 3 ? t_spoil_some : t_spoil_all, NULL);
        T_EQ(t_repeats(s), 0u);
        tun_search_free(s);
        tun_problem_deinit(&p);
    }
}

/* Four EPs: two stages. Trials are limited, and it may go in the middle. */
TEST(limits_of_trials_and_of_stages)
{
    static const struct tun_ep four[] = {
        {"a", 2, 1, 1, 1}, {"b", 2, 0.8, 1, 1}, {"c", 2, 0.6, 1, 1}, {"d", 2, 0.4, 1, 1}};
    struct tun_problem p = t_problem(60, four, 4);
    struct tun_options o = {.seed = 3, .trials_max = 90};
    struct tun_search *s = t_search("nsga2", &p, &o);
    struct pl_plan plan;
    size_t count;

    t_drive(s, &p, NULL, NULL);
    tun_search_log(s, &count);
    T_EQ(count, 90u);
    tun_search_free(s);
    p.bounds.stages_max = 2;
    s = t_search("nsga2", &p, &o);
    t_drive(s, &p, NULL, NULL);
    T_LE(tun_search_result(s)->plan.stage_count, 2);
    tun_search_free(s);
    s = t_search("nsga2", &p, NULL);
    T_EQ(tun_search_ask(s, &plan), 0);
    tun_search_free(s);
    tun_problem_deinit(&p);
}

TEST_MAIN()
