/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says about plans, on tables made by hand. */
#include <string.h>

#include "base/base.h"
#include "daemon/control/json.h"
#include "tests/harness.h"

/* Four equal units; big takes 10 us each, little 40 us; wider teams gain nothing. */
static void make(struct tun_problem *p, uint16_t big, uint16_t little)
{
    const struct tun_ep eps[] = {
        {.name = "big", .cores = big, .speed = 1, .bandwidth = 1, .watts = 2},
        {.name = "little", .cores = little, .speed = 0.25, .bandwidth = 1, .watts = 0.5}};

    T_EQ(tun_problem_init(p, 4, eps, 2), 0);
    for (size_t k = 0; k < 2; k++) {
        for (size_t w = 1; w <= eps[k].cores; w++) {
            for (size_t u = 0; u < 4; u++) {
                *tun_cell_at(&p->costs, k, w, u) = (struct tun_cell){
                    .ns = k ? 40000 : 10000, .source = w == 1 ? TUN_MEASURED : TUN_PREDICTED};
            }
        }
    }
}

static void set_plan(struct dmn_explain *e, const char *text)
{
    struct pl_ep_set *eps = calloc(1, sizeof(*eps));
    char error[256] = "";

    T_TRUE(eps != NULL);
    tun_eps(&e->problem, eps);
    T_EQ(pl_plan_parse(text, eps, e->problem.unit_count, error, sizeof(error), &e->trial.plan), 0);
    free(eps);
}

static double number(json_t *j, const char *key)
{
    return json_number_value(json_object_get(j, key));
}

static const char *why(json_t *explanation, size_t ep)
{
    json_t *cores = json_object_get(explanation, "cores");

    return json_string_value(json_object_get(json_array_get(cores, ep), "why"));
}

static bool close_to(double a, double b)
{
    return a > b * (1 - 1e-9) && a < b * (1 + 1e-9);
}

TEST(objectives_have_names)
{
    enum tun_objective o;

    for (int i = 0; i <= TUN_POWER; i++) {
        T_EQ(tun_objective_find(tun_objective_names[i], &o), 0);
        T_EQ(o, i);
    }
    T_EQ(tun_objective_find("speed", &o), -EINVAL);
    T_EQ(tun_objective_find("", &o), -EINVAL);
}

/* Costs have grown since it was chosen: the prediction of then is above the bound, that of now is
 * not. */
TEST(costs_that_grew)
{
    struct dmn_explain *e = calloc(1, sizeof(*e));
    json_t *j;

    T_TRUE(e != NULL);
    make(&e->problem, 2, 1);
    set_plan(e, "0-1@big|2-3@big");
    e->algorithm = "manual";
    T_EQ(tun_eval(&e->problem, &e->trial.plan, &e->expected), 0);
    e->expected.bottleneck_ns /= 2;
    e->expects = true;
    e->trial.measured = e->expected;
    j = dmn_explain_json(e);
    T_TRUE(close_to(number(json_object_get(j, "predicted"), "fps"), 100000));
    T_TRUE(close_to(number(json_object_get(j, "now"), "fps"), 50000));
    T_TRUE(number(json_object_get(j, "now"), "fps") < number(j, "bound_fps"));
    json_decref(j);
    tun_problem_deinit(&e->problem);
    free(e);
}

TEST(predicted_and_measured_side_by_side)
{
    struct dmn_explain *e = calloc(1, sizeof(*e));
    json_t *j, *stage;

    T_TRUE(e != NULL);
    make(&e->problem, 2, 1);
    set_plan(e, "0-1@big|2-3@big");
    e->algorithm = "manual";
    T_EQ(tun_eval(&e->problem, &e->trial.plan, &e->expected), 0);
    e->expects = true;
    e->trial.measured = e->expected;
    e->trial.measured.stage_ns[1] = e->trial.measured.bottleneck_ns = 25000;
    e->trial.measured.latency_ns = 45000;
    j = dmn_explain_json(e);
    T_TRUE(j != NULL);
    T_STR(json_string_value(json_object_get(j, "plan")), "0-1@big|2-3@big");
    T_STR(json_string_value(json_object_get(j, "algorithm")), "manual");
    T_TRUE(close_to(number(json_object_get(j, "predicted"), "fps"), 50000));
    T_TRUE(close_to(number(json_object_get(j, "measured"), "fps"), 40000));
    stage = json_array_get(json_object_get(j, "stages"), 1);
    T_STR(json_string_value(json_object_get(stage, "units")), "2-3");
    T_TRUE(close_to(number(stage, "ratio"), 1.25));
    T_TRUE(json_is_true(json_object_get(stage, "bottleneck")));
    stage = json_array_get(json_object_get(j, "stages"), 0);
    T_TRUE(!json_is_true(json_object_get(stage, "bottleneck")));
    /* two big cores and a little one share four units: 1 / (2/40 + 1/160) of 1000 ns */
    T_TRUE(close_to(number(j, "bound_fps"), 56250));
    /* of 9/160 frames a 1000 ns two big cores do 8/160, the little one 1/160 */
    T_NEAR(number(json_array_get(json_object_get(j, "cores"), 0), "limits"), 8.0 / 9, 1e-9);
    T_NEAR(number(json_array_get(json_object_get(j, "cores"), 1), "limits"), 1.0 / 9, 1e-9);
    T_EQ(json_integer_value(json_object_get(json_object_get(j, "table"), "measured")), 8);
    T_EQ(json_integer_value(json_object_get(json_object_get(j, "table"), "predicted")), 4);
    json_decref(j);
    tun_problem_deinit(&e->problem);
    free(e);
}

TEST(reasons_for_idle_cores)
{
    static const struct {
        const char *plan;
        size_t ep;
        const char *why;
    } cases[] = {
        {"0-1@big|2-3@big", 0, "All cores of big are used."},
        {"0-1@big|2-3@big", 1, "The fastest plan"},
        {"0-3@big", 0, "The fastest plan"},
        {"0-0@big|1-1@big|2-3@big", 0, "Teams share cores"},
        {"0-3@bigx2", 1, "more throughput"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct dmn_explain *e = calloc(1, sizeof(*e));
        json_t *j;

        T_TRUE(e != NULL);
        make(&e->problem, 2, 1);
        set_plan(e, cases[i].plan);
        e->algorithm = "exact";
        e->trial.failed = true;
        j = dmn_explain_json(e);
        T_TRUE(j != NULL);
        T_TRUE(json_is_null(json_object_get(json_object_get(j, "measured"), "fps")));
        T_CONTAINS(why(j, cases[i].ep), cases[i].why);
        json_decref(j);
        tun_problem_deinit(&e->problem);
        free(e);
    }
}

/* A core that takes a thousand seconds a unit. */
TEST(a_core_that_gains_nothing_is_named)
{
    struct dmn_explain *e = calloc(1, sizeof(*e));
    json_t *j;

    T_TRUE(e != NULL);
    make(&e->problem, 1, 1);
    e->problem.bounds.stages_max = 1;
    for (size_t u = 0; u < 4; u++) {
        tun_cell_at(&e->problem.costs, 1, 1, u)->ns = 1e12;
    }
    set_plan(e, "0-3@big");
    e->algorithm = "exact";
    e->trial.failed = true;
    j = dmn_explain_json(e);
    T_TRUE(j != NULL);
    T_CONTAINS(why(j, 1), "would gain less than its hand-off costs");
    json_decref(j);
    tun_problem_deinit(&e->problem);
    free(e);
}

TEST(runners_up_are_other_plans)
{
    struct dmn_explain *e = calloc(1, sizeof(*e));
    size_t i;
    json_t *j, *entry;

    T_TRUE(e != NULL);
    make(&e->problem, 2, 2);
    set_plan(e, "0-3@big*2");
    e->algorithm = "exact";
    e->trial.failed = true;
    j = dmn_explain_json(e);
    T_TRUE(j != NULL);
    T_TRUE(json_array_size(json_object_get(j, "runners_up")) > 0);
    json_array_foreach(json_object_get(j, "runners_up"), i, entry)
    {
        T_TRUE(strcmp(json_string_value(json_object_get(entry, "plan")), "0-3@big*2") != 0);
        T_CONTAINS(json_string_value(json_object_get(entry, "why")), "throughput and");
    }
    json_decref(j);
    tun_problem_deinit(&e->problem);
    free(e);
}

TEST(fronts_rise_and_fall)
{
    struct tun_problem p;
    json_t *front, *a, *b;

    make(&p, 2, 2);
    T_EQ(dmn_front_json(&p, 16, true, &front), 0);
    T_TRUE(json_array_size(front) >= 2);
    for (size_t i = 0; i + 1 < json_array_size(front); i++) {
        a = json_array_get(front, i);
        b = json_array_get(front, i + 1);
        T_TRUE(number(a, "fps") > number(b, "fps"));
        T_TRUE(number(a, "latency_ms") > number(b, "latency_ms"));
        T_TRUE(number(a, "energy_mj") > 0);
    }
    json_decref(front);
    T_EQ(dmn_front_json(&p, 1, false, &front), 0);
    T_EQ(json_array_size(front), 1);
    T_TRUE(json_object_get(json_array_get(front, 0), "energy_mj") == NULL);
    json_decref(front);
    tun_problem_deinit(&p);
}
TEST_MAIN()
