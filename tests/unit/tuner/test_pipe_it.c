/* SPDX-License-Identifier: Apache-2.0 */
/* Pipe-it's algorithms from the inside (the source is included), then as a search. */
#include "tests/harness.h"
#include "tuner/search/pipe_it.c" /* its static functions are what is tested */
#include "tuner/search/random.h"
#include "tuner/search/search_private.h"

static const struct tun_ep EPS[2] = {{.name = "B", .cores = 4, .speed = 1, .bandwidth = 1},
                                     {.name = "s", .cores = 4, .speed = 0.4, .bandwidth = 1}};

/* @percent: [EP][width - 1] of a layer's time on one big core. */
static void make(struct tun_problem *p, const int *layers, size_t count, const int percent[2][4])
{
    if (tun_problem_init(p, count, EPS, 2) < 0) {
        abort();
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t w = 1; w <= 4; w++) {
            for (size_t u = 0; u < count; u++) {
                *tun_cell_at(&p->costs, k, w, u) =
                    (struct tun_cell){layers[u] * (double)percent[k][w - 1], 0, TUN_MEASURED};
            }
        }
    }
}

static const char *shape(const struct tun_problem *p, const struct pl_plan *plan)
{
    static char text[PL_PLAN_TEXT_MAX];
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    return pl_plan_format(plan, &eps, text, sizeof(text)) == 0 ? text : "?";
}

/* The paper's example of merging (its section VI-D) with a matrix small enough to follow by hand:
 * eight one-core stages; the flow leaves the last ones empty; big cores merge to one stage of four;
 * two small ones merge, the third is refused, the third and fourth merge. */
TEST(walk_through)
{
    static const int layers[] = {8, 7, 5, 7, 4, 1, 1, 1};
    static const int percent[2][4] = {{100, 53, 38, 31}, {300, 165, 130, 120}};
    static const size_t first_ends[] = {2, 4, 5, 8, 8, 8, 8, 8};
    struct tun_problem p;
    struct pl_plan plan;

    make(&p, layers, 8, percent);
    struct pipeline l = {.p = &p};
    first_stages(&l);
    T_EQ(l.count, 8);
    work_flow(&l);
    for (size_t i = 0; i < 8; i++) {
        T_EQ(l.stages[i].ep, i / 4);
        T_EQ(l.stages[i].width, 1);
        T_EQ(l.stages[i].end, first_ends[i]);
    }
    merge_stage(&p, &plan);
    T_STR(shape(&p, &plan), "0-4@Bx4|5-6@sx2|7-7@sx2");
    tun_problem_deinit(&p);
}

/* One-core stages at the end that get no work merge until they are fast enough for some. */
TEST(idle_stages)
{
    static const int layers[] = {4, 4, 4, 4, 4, 4};
    static const int percent[2][4] = {{100, 53, 38, 31}, {400, 210, 145, 112}};
    struct tun_problem p;
    struct pl_plan plan;

    make(&p, layers, 6, percent);
    struct pipeline l = {.p = &p};
    first_stages(&l);
    work_flow(&l);
    T_EQ(l.stages[1].end, 6); /* two big cores hold it all */
    merge_stage(&p, &plan);   /* 620 and 448; big cores alone 744 */
    T_STR(shape(&p, &plan), "0-4@Bx4|5-5@sx4");
    tun_problem_deinit(&p);
}

/* The other result that the paper prints. */
TEST(two_big_pairs_and_three_small)
{
    static const int layers[] = {4, 10, 12, 4, 1, 4, 5, 6, 3, 1, 6, 1, 2};
    static const int percent[2][4] = {{100, 53, 38, 31}, {250, 130, 90, 75}};
    struct tun_problem p;
    struct pl_plan plan;

    make(&p, layers, 13, percent);
    merge_stage(&p, &plan);
    T_STR(shape(&p, &plan), "0-2@Bx2|3-7@Bx2|8-10@sx3|11-12@s");
    tun_problem_deinit(&p);
}

TEST(find_split_moves_while_it_helps)
{
    static const int layers[] = {4, 3, 2, 1};
    static const int percent[2][4] = {{100, 60, 50, 45}, {200, 120, 100, 90}};
    struct tun_problem p;

    make(&p, layers, 4, percent);
    struct pipeline l = {.p = &p, .count = 2, .stages = {{0, 1, 4}, {1, 1, 4}}};
    find_split(&l, 0); /* 9 > 2; 7 > 6; 4 > 12 no */
    T_EQ(l.stages[0].end, 2);
    T_EQ(l.stages[1].end, 4);
    find_split(&l, 0);
    T_EQ(l.stages[0].end, 2);
    /* A stage that has one unit, or none, keeps what it has. */
    l.stages[0].end = l.stages[1].end = 1;
    find_split(&l, 0);
    T_EQ(l.stages[0].end, 1);
    l.stages[0].end = l.stages[1].end = 0;
    find_split(&l, 0);
    T_EQ(l.stages[0].end, 0);
    tun_problem_deinit(&p);
}

/* Eq. 12: better than the worse of the two, not merely equal. */
TEST(merging_must_help)
{
    static const int layers[] = {4, 2};
    int percent[2][4] = {{100, 50, 40, 30}, {200, 100, 80, 60}};
    struct tun_problem p;

    make(&p, layers, 2, (const int(*)[4])percent);
    struct pipeline l = {.p = &p, .count = 2, .stages = {{0, 1, 1}, {0, 1, 2}}};
    T_TRUE(merging_helps(&l, 0)); /* 300 < max(400, 200) */
    tun_cell_at(&p.costs, 0, 2, 0)->ns = 300;
    T_TRUE(!merging_helps(&l, 0)); /* 400 = 400 */
    l.stages[0].end = 2;
    tun_cell_at(&p.costs, 0, 2, 0)->ns = 299;
    T_TRUE(merging_helps(&l, 0)); /* with an idle neighbour: 399 < 600 */
    l.stages[0].end = l.stages[1].end = 0;
    T_TRUE(merging_helps(&l, 0)); /* two idle ones */
    tun_problem_deinit(&p);
}

/* Random tables, also such where width does not help: the flow settles, borders are in order, no
 * split can be improved by the move of algorithm 1, the plan is valid and uses no core twice. */
TEST(random_tables)
{
    for (int round = 0; round < 2000; round++) {
        struct tun_ep eps[3] = {
            {.name = "a", .cores = (uint16_t)t_range(1, 5), .speed = 0.3, .bandwidth = 1},
            {.name = "b", .cores = (uint16_t)t_range(1, 5), .speed = 1, .bandwidth = 1},
            {.name = "c", .cores = (uint16_t)t_range(1, 5), .speed = 0.5, .bandwidth = 1}};
        struct tun_problem p;
        struct pl_ep_set set;
        struct pl_plan plan;
        char error[200];

        T_EQ(tun_problem_init(&p, (size_t)t_range(1, 30), eps, (size_t)t_range(1, 3)), 0);
        for (size_t k = 0; k < p.ep_count; k++) {
            for (size_t w = 1; w <= p.eps[k].cores; w++) {
                for (size_t u = 0; u < p.unit_count; u++) {
                    *tun_cell_at(&p.costs, k, w, u) =
                        (struct tun_cell){(double)t_range(1, 1000), 0, TUN_MEASURED};
                }
            }
        }
        struct pipeline l = {.p = &p};
        first_stages(&l);
        work_flow(&l);
        T_EQ(l.stages[l.count - 1].end, p.unit_count);
        for (size_t i = 0; i + 1 < l.count; i++) {
            size_t end = l.stages[i].end;

            T_LE(begin_of(&l, i), end);
            find_split(&l, i);
            T_EQ(l.stages[i].end, end);
        }
        merge_stage(&p, &plan);
        tun_eps(&p, &set);
        T_EQ(pl_plan_check(&plan, &set, p.unit_count, error, sizeof(error)), 0);
        T_TRUE(tun_fits(&p, &plan));
        for (size_t s = 1; s < plan.stage_count; s++) { /* within an EP the wide ones first */
            const struct pl_group *a = plan.stages[s - 1].groups, *b = plan.stages[s].groups;

            T_TRUE(a->ep != b->ep || a->width >= b->width);
        }
        tun_problem_deinit(&p);
    }
}

/* More cores than a plan has stages, and bounds below the number of EPs. */
TEST(many_cores)
{
    struct tun_ep eps[2] = {{.name = "a", .cores = 100, .speed = 1, .bandwidth = 1},
                            {.name = "b", .cores = 61, .speed = 0.5, .bandwidth = 1}};
    struct tun_problem p;
    struct pl_plan plan;

    T_EQ(tun_problem_init(&p, 200, eps, 2), 0);
    T_EQ(tun_fill(&p), 200 * 161);
    merge_stage(&p, &plan);
    T_TRUE(plan.stage_count >= 2 && plan.stage_count <= PL_STAGE_MAX);
    T_TRUE(tun_fits(&p, &plan));
    for (size_t max = 1; max <= 3; max++) {
        p.bounds.stages_max = max;
        merge_stage(&p, &plan);
        T_LE(plan.stage_count, max);
        T_TRUE(tun_fits(&p, &plan));
    }
    tun_problem_deinit(&p);
}

TEST(as_a_search_it_has_one_trial)
{
    struct tun_problem p;
    struct tun_search *s;
    struct pl_plan plan;
    struct tun_trial trial = {0};
    char error[TUN_ERROR_MAX];

    T_EQ(tun_problem_init(&p, 12, EPS, 2), 0); /* all costs unknown: filled by weights */
    T_EQ(tun_search_new("pipe-it", &p, NULL, error, &s), 0);
    T_EQ(tun_search_ask(s, &plan), 0);
    trial.plan = plan;
    T_EQ(tun_eval(&s->problem, &plan, &trial.measured), 0);
    T_EQ(tun_search_tell(s, &trial), 0);
    T_EQ(tun_search_ask(s, &plan), TUN_E_DONE);
    T_TRUE(tun_search_result(s) && pl_plan_equal(&tun_search_result(s)->plan, &trial.plan));
    tun_search_free(s);

    p.units[3].weight = -1;
    T_EQ(tun_search_new("pipe-it", &p, NULL, error, &s), -EINVAL);
    T_CONTAINS(error, "unit 3");
    tun_problem_deinit(&p);
}

TEST_MAIN()
