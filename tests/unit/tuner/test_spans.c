/* SPDX-License-Identifier: Apache-2.0 */
/* Teams over cores of several EPs: what they should take, what is learned of them, and when the
 * planner takes them. */
#include <errno.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/adapt/decision_record.h"
#include "tuner/json/costs_json.h"
#include "tuner/learn.h"
#include "tuner/solve/solve.h"
#include "tuner/span.h"

static struct tun_solution solution;

static void release(struct tun_problem *p)
{
    tun_problem_deinit(p);
}
#define own_problem base_cleanup(release) struct tun_problem

/* Two units on two cores of a, which halve 12 ns, and one of b: 12 and 24 ns. */
static void small(struct tun_problem *ret)
{
    const struct tun_ep eps[] = {
        {.name = "a", .cores = 2, .speed = 1, .bandwidth = 1, .watts = 3},
        {.name = "b", .cores = 1, .speed = 0.5, .bandwidth = 1, .watts = 1},
    };

    if (tun_problem_init(ret, 2, eps, 2) < 0) {
        abort();
    }
    for (size_t u = 0; u < 2; u++) {
        *tun_cell_at(&ret->costs, 0, 1, u) = (struct tun_cell){12, 0, TUN_MEASURED};
        *tun_cell_at(&ret->costs, 0, 2, u) = (struct tun_cell){6, 0, TUN_MEASURED};
        *tun_cell_at(&ret->costs, 1, 1, u) = (struct tun_cell){u ? 24 : 12, 0, TUN_MEASURED};
    }
    ret->bounds.spans = true;
}

static void parse(const struct tun_problem *p, const char *text, struct pl_plan *ret)
{
    struct pl_ep_set eps;
    char error[256];

    tun_eps(p, &eps);
    T_EQ(pl_plan_parse(text, &eps, p->unit_count, error, sizeof(error), ret), 0);
}

static const char *best(const struct tun_problem *p)
{
    static char text[PL_PLAN_TEXT_MAX];

    return tun_solve(p, &solution) == 0 && tun_plan_text(p, &solution.plan, text) == 0 ? text : "?";
}

TEST(each_ep_does_as_much_as_it_is_fast)
{
    struct tun_outcome o;
    struct pl_plan plan;
    own_problem p;

    small(&p);
    parse(&p, "0-1@ax2&b", &plan);
    T_EQ(tun_eval(&p, &plan, &o), 0);
    T_NEAR(o.latency_ns, TUN_SPAN_LOSS * (4 + 4.8), 1e-9); /* 1 / (1/6 + 1/12), 1 / (1/6 + 1/24) */
    T_NEAR(o.bottleneck_ns, o.latency_ns, 1e-9);
    T_NEAR(o.energy_nj, o.latency_ns * (3 + 3 + 1), 1e-9);
    tun_cell_at(&p.costs, 1, 1, 1)->ns = -1;
    T_EQ(tun_eval(&p, &plan, &o), TUN_E_UNKNOWN);
}

static void learn(struct tun_problem *p, const struct pl_plan *plan, uint32_t unit, double ns)
{
    const struct pl_group *g = &plan->stages[0].groups[0];
    struct tun_sample sample = {.ep = g->ep, .width = g->width, .unit = unit, .ns = ns};
    struct tun_trial trial = {.plan = *plan, .samples = &sample, .sample_count = 1};

    memcpy(sample.also, g->also, sizeof(sample.also));
    tun_learn(p, &trial);
}

TEST(what_such_a_team_takes_is_kept_as_a_ratio)
{
    struct pl_plan plan, narrow;
    const struct pl_group *g = &plan.stages[0].groups[0];
    own_problem p, copy;

    small(&p);
    parse(&p, "0-1@ax2&b", &plan);
    parse(&p, "0-1@a&b", &narrow);
    learn(&p, &plan, 0, 5);
    T_NEAR(tun_span_ns(&p, g, 0), 5, 1e-9);
    T_NEAR(tun_span_ns(&p, g, 1), TUN_SPAN_LOSS * 4.8, 1e-9);
    T_NEAR(tun_span_ns(&p, &narrow.stages[0].groups[0], 0), TUN_SPAN_LOSS * 6, 1e-9);
    learn(&p, &plan, 0, 4); /* 5/4, then 1: in the middle */
    T_NEAR(tun_span_ns(&p, g, 0), 4 * sqrt(1.25), 1e-9);
    T_EQ(tun_cell_at(&p.costs, 0, 2, 0)->ns, 6); /* says nothing of single EPs */
    T_EQ(p.handoff_ns, 0);

    tun_cell_at(&p.costs, 1, 1, 0)->ns = 24; /* b becomes slower, and so does the team */
    T_NEAR(tun_span_ns(&p, g, 0), 4.8 * sqrt(1.25), 1e-9);
    T_EQ(tun_problem_copy(&p, &copy), 0);
    T_NEAR(tun_span_ns(&copy, g, 0), 4.8 * sqrt(1.25), 1e-9);
    for (uint16_t i = 0; i < 2 * TUN_SPAN_MAX; i++) { /* more teams than have a place */
        learn(&copy, i % 2 ? &narrow : &plan, 0, 4);
    }
    T_EQ(copy.span_count, 2);
}

TEST(the_lowest_latency_takes_all_cores)
{
    own_problem p;

    small(&p);
    p.objective = TUN_LATENCY;
    T_STR(best(&p), "0-1@ax2&b");
    p.bounds.spans = false;
    T_STR(best(&p), "0-1@ax2");
    p.bounds.spans = true;
    /* a core that is nine times as slow as a team is no help */
    tun_cell_at(&p.costs, 1, 1, 0)->ns = tun_cell_at(&p.costs, 1, 1, 1)->ns = 54;
    T_STR(best(&p), "0-1@ax2");
}

TEST(throughput_takes_such_a_team_where_it_wins)
{
    struct pl_plan plan;
    own_problem p;

    small(&p);
    T_STR(best(&p), "0-1@a*2+b"); /* 9 ns; the team over both 9.68 */
    parse(&p, "0-1@ax2&b", &plan);
    learn(&p, &plan, 0, 4);
    learn(&p, &plan, 1,
          4.8); /* without loss: 8.8 ns, within the slack, and a fourth of the latency */
    T_STR(best(&p), "0-1@ax2&b");
}

TEST(a_deadline_may_need_such_a_team)
{
    own_problem p;

    small(&p);
    p.bounds.latency_max_ns = 10;
    T_STR(best(&p), "0-1@ax2&b");
    p.bounds.spans = false;
    T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
    p.bounds.spans = true;
    p.bounds.latency_max_ns = 9;
    T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
}

/* The record of a decision while the team of @plan serves, @slow times as slow as expected. */
static void record(const struct tun_problem *p, const struct pl_plan *plan, double slow,
                   struct tun_record *ret)
{
    static struct tun_team_now team;

    *ret = (struct tun_record){.plan = *plan, .team_count = 1, .teams = &team};
    T_EQ(tun_problem_copy(p, &ret->problem), 0);
    team = (struct tun_team_now){.level = log(slow), .sigma = 0.01, .waiting = NAN};
    for (size_t k = 0; k < 2; k++) {
        ret->eps[k] = (struct tun_ep_now){.cores = p->eps[k].cores};
    }
    ret->beta = calloc(2, sizeof(double));
    ret->slow = malloc(4 * sizeof(double));
    for (size_t i = 0; i < 4; i++) {
        ret->slow[i] = 1;
    }
}

static void release_record(struct tun_record *r)
{
    r->teams = NULL;
    tun_record_deinit(r);
}

/* A core that others take for moments holds the whole team in them. */
TEST(no_team_has_cores_that_others_take)
{
    base_cleanup(release_record) struct tun_record r = TUN_RECORD_NULL;
    struct pl_plan plan;
    size_t eps[PL_EP_MAX];
    own_problem p, now, later;

    small(&p);
    p.objective = TUN_LATENCY;
    parse(&p, "0-1@ax2&b", &plan);
    learn(&p, &plan, 0, 4);
    record(&p, &plan, 1, &r);
    T_EQ(tun_correct(&r, r.slow, NULL, &now, eps), 0);
    T_STR(best(&now), "0-1@ax2&b");
    T_NEAR(tun_span_ns(&now, &plan.stages[0].groups[0], 0), 4, 1e-9); /* what was learned is kept */
    r.slow[2] = r.slow[3] = 1.1;
    T_EQ(tun_correct(&r, r.slow, NULL, &later, eps), 0);
    T_TRUE(!later.eps[1].held);
    tun_problem_deinit(&later);
    r.slow[2] = r.slow[3] = 1.2;
    T_EQ(tun_correct(&r, r.slow, NULL, &later, eps), 0);
    T_TRUE(later.eps[1].held && !later.eps[0].held);
    T_STR(best(&later), "0-1@ax2");
}

TEST(a_team_that_became_slower_is_left)
{
    base_cleanup(release_record) struct tun_record r = TUN_RECORD_NULL;
    struct pl_plan plan;
    size_t eps[PL_EP_MAX];
    own_problem p, now;

    small(&p);
    p.objective = TUN_LATENCY;
    parse(&p, "0-1@ax2&b", &plan);
    record(&p, &plan, 2, &r);
    T_EQ(tun_correct(&r, r.slow, NULL, &now, eps), 0);
    T_NEAR(tun_span_ns(&now, &plan.stages[0].groups[0], 0), 2 * TUN_SPAN_LOSS * 4, 1e-9);
    T_STR(best(&now), "0-1@ax2");
    T_EQ(p.span_count, 0);
}

TEST(teams_over_eps_are_recorded)
{
    char error[TUN_READER_ERROR_MAX] = "";
    struct tun_reader reader = {.path = "t", .error = error};
    struct pl_plan plan;
    own_problem p, copy = TUN_PROBLEM_NULL;
    json_t *json;

    small(&p);
    parse(&p, "0-1@ax2&b", &plan);
    learn(&p, &plan, 1, 7);
    p.units[0].weight = p.units[1].weight = 1;
    json = tun_problem_json(&p, "m", false, NULL, NULL);
    tun_problem_read(&reader, json, &copy);
    T_STR(error, "");
    T_NEAR(tun_span_ns(&copy, &plan.stages[0].groups[0], 1), 7, 1e-9);
    T_NEAR(tun_span_ns(&copy, &plan.stages[0].groups[0], 0), TUN_SPAN_LOSS * 4, 1e-9);
    tun_problem_deinit(&copy);
    json_object_set_new(json_object_get(json, "spans"), "0-1@a", json_pack("[f, f]", 1.0, 1.0));
    tun_problem_read(&reader, json, &copy);
    T_TRUE(strstr(error, "spans"));
    json_decref(json);
}

/* No team over the cores of two EPs, in any number, is better than what the planner finds. */
TEST(no_plan_of_one_stage_is_better)
{
    for (int i = 0; i < t_times(100); i++) {
        struct tun_ep eps[] = {{.name = "a", .speed = 1, .bandwidth = 1},
                               {.name = "b", .speed = 1, .bandwidth = 1}};
        struct pl_plan plan = {.stage_count = 1};
        struct pl_group *g = &plan.stages[0].groups[0];
        own_problem p;

        eps[0].cores = (uint16_t)t_range(1, 4);
        eps[1].cores = (uint16_t)t_range(1, 4);
        T_EQ(tun_problem_init(&p, 3, eps, 2), 0);
        for (size_t c = 0; c < tun_cell_count(&p.costs); c++) {
            p.costs.cells[c] = (struct tun_cell){(double)t_range(1, 100), 0, TUN_MEASURED};
        }
        p.objective = TUN_LATENCY;
        p.bounds.spans = true;
        T_EQ(tun_solve(&p, &solution), 0);
        plan.stages[0].last_unit = 2;
        plan.stages[0].group_count = 1;
        for (uint16_t a = 1; a <= eps[0].cores; a++) {
            for (uint8_t b = 1; b <= eps[1].cores; b++) {
                struct tun_outcome o;

                *g = (struct pl_group){.width = a, .count = 1, .also = {{1, b}}};
                T_EQ(tun_eval(&p, &plan, &o), 0);
                T_TRUE(solution.outcome.latency_ns < o.latency_ns * 1.031);
            }
        }
    }
}

TEST_MAIN()
