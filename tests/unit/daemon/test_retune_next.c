/* SPDX-License-Identifier: Apache-2.0 */
/* What a retune does next: its decisions, on measurements made by hand. */
#include <string.h>

#include "base/base.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune_private.h"
#include "tests/harness.h"
#include "tests/unit/daemon/plan_text.h"

#define UNITS 4u

struct fixture {
    struct dmn_config *config;
    struct dmn_machine machine;
    struct dmn_plans plans;
    struct dmn_planning planning;
    struct dmn_model m;
    struct pl_ep_set eps;
};

/* A retune by @algorithm has begun; every cost is known and every shape of team. */
static void set_up(struct fixture *f, const char *algorithm)
{
    struct tun_ep ep = {.name = "big", .cores = 4, .speed = 1, .bandwidth = 1, .watts = 1};
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_retune *r = calloc(1, sizeof(*r));

    *f = (struct fixture){0};
    T_TRUE(r != NULL);
    T_EQ(dmn_config_load(NULL, false, error, &f->config), 0);
    f->machine.config = &f->config;
    f->plans.machine = &f->machine;
    f->planning.of = &f->plans;
    f->planning.retune = r;
    f->m.planning = &f->planning;
    T_EQ(tun_problem_init(&f->planning.problem, UNITS, &ep, 1), 0);
    for (size_t w = 1; w <= ep.cores; w++) {
        for (size_t u = 0; u < UNITS; u++) {
            *tun_cell_at(&f->planning.problem.costs, 0, w, u) =
                (struct tun_cell){.ns = 1e6, .source = TUN_MEASURED};
        }
    }
    tun_eps(&f->planning.problem, &f->eps);
    r->q.algorithm = tun_algorithm_find(algorithm);
    r->before = r->first.plan = plan_of(&f->eps, UNITS, "0-3@big");
}

static void take_down(struct fixture *f)
{
    dmn_retune_job_leave(f->planning.retune->job);
    free(f->planning.retune->notes);
    free(f->planning.retune);
    tun_problem_deinit(&f->planning.problem);
    dmn_config_free(f->config);
}

/* @plan was measured to its end: @ns for each frame. */
static struct dmn_retune_next measured(struct fixture *f, const char *plan, double ns)
{
    f->planning.retune->last = (struct tun_trial){
        .plan = plan_of(&f->eps, UNITS, plan), .frames = 100, .measured = {.bottleneck_ns = ns}};
    f->planning.retune->last_ci = 0.01;
    return dmn_retune_measured(&f->m);
}

static struct dmn_retune_next search_ends(struct fixture *f)
{
    f->planning.retune->job->result = TUN_E_DONE;
    return dmn_retune_thought(&f->m);
}

static bool is_plan(const struct fixture *f, const struct dmn_retune_next *n, const char *plan)
{
    struct pl_plan wanted = plan_of(&f->eps, UNITS, plan);

    return n->what == DMN_NEXT_MEASURE && pl_plan_equal(&n->plan, &wanted);
}

/* What a team of one core takes is a prediction. */
static void forget_one_core(struct fixture *f)
{
    for (size_t u = 0; u < UNITS; u++) {
        tun_cell_at(&f->planning.problem.costs, 0, 1, u)->source = TUN_PREDICTED;
    }
}

TEST(a_search_that_reads_no_costs_begins_at_once)
{
    struct dmn_retune_next n;
    struct fixture f;

    set_up(&f, "shisha");
    forget_one_core(&f);
    n = measured(&f, "0-3@big", 4e6);
    T_EQ(n.what, DMN_NEXT_THINK);
    T_TRUE(!n.tell);
    T_EQ(f.planning.retune->phase, DMN_RETUNE_SEARCH);
    T_TRUE(f.planning.retune->job != NULL);
    n = measured(&f, "0-1@big|2-3@big", 2e6);
    T_EQ(n.what, DMN_NEXT_THINK);
    T_TRUE(n.tell);
    T_EQ(f.planning.retune->trials, 1);
    take_down(&f);
}

TEST(a_search_that_reads_costs_sees_unknown_shapes_first)
{
    struct dmn_retune_next n;
    struct fixture f;

    set_up(&f, "exact");
    forget_one_core(&f);
    n = measured(&f, "0-3@bigx4", 4e6);
    T_EQ(n.what, DMN_NEXT_MEASURE);
    T_EQ(f.planning.retune->phase, DMN_RETUNE_SHAPES);
    T_EQ(n.plan.stage_count, 1);
    n = dmn_retune_refused(&f.m, &n.plan); /* it could not be built: the next one, or the search */
    while (n.what == DMN_NEXT_MEASURE) {
        n = dmn_retune_refused(&f.m, &n.plan);
    }
    T_EQ(n.what, DMN_NEXT_THINK);
    T_EQ(f.planning.retune->phase, DMN_RETUNE_SEARCH);
    take_down(&f);
}

/* The plan kept for this state of the machine is measured after the serving one, and may win. */
TEST(the_kept_plan_is_tried_first)
{
    struct dmn_retune_next n;
    struct fixture f;

    for (int refused = 0; refused < 2; refused++) {
        set_up(&f, "shisha");
        f.planning.retune->known = plan_of(&f.eps, UNITS, "0-1@big|2-3@big");
        n = measured(&f, "0-3@big", 4e6);
        T_EQ(f.planning.retune->phase, DMN_RETUNE_KNOWN);
        T_TRUE(is_plan(&f, &n, "0-1@big|2-3@big"));
        n = refused ? dmn_retune_refused(&f.m, &n.plan) : measured(&f, "0-1@big|2-3@big", 2e6);
        T_EQ(n.what, DMN_NEXT_THINK);
        T_EQ(f.planning.retune->phase, DMN_RETUNE_SEARCH);
        measured(&f, "0-0@big|1-3@big", 3e6);
        n = search_ends(&f);
        T_EQ(n.what, DMN_NEXT_CONCLUDE);
        dmn_retune_conclude(f.planning.retune, n.outcome);
        T_EQ(f.planning.retune->outcome, DMN_OUTCOME_SWITCHED);
        T_EQ(f.planning.retune->after.stages[0].last_unit, refused ? 0 : 1);
        take_down(&f);
    }
    set_up(&f, "shisha");
    f.planning.retune->known = plan_of(&f.eps, UNITS, "0-3@big"); /* the serving one */
    n = measured(&f, "0-3@big", 4e6);
    T_EQ(f.planning.retune->phase, DMN_RETUNE_SEARCH);
    take_down(&f);
}

TEST(a_clear_gain_needs_no_second_look)
{
    struct dmn_retune_next n;
    struct fixture f;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    measured(&f, "0-1@big|2-3@big", 2e6);
    n = search_ends(&f);
    T_EQ(n.what, DMN_NEXT_CONCLUDE);
    T_EQ(n.outcome, DMN_OUTCOME_NONE);
    dmn_retune_conclude(f.planning.retune, n.outcome);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_SWITCHED);
    T_EQ(f.planning.retune->phase, DMN_RETUNE_LAST);
    T_EQ(f.planning.retune->after.stage_count, 2);
    take_down(&f);
}

TEST(a_small_gain_is_compared_again_and_may_vanish)
{
    struct dmn_retune_next n;
    struct fixture f;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    measured(&f, "0-1@big|2-3@big", 3.8e6);
    measured(&f, "0-0@big|1-3@big", 6e6);
    n = search_ends(&f);
    T_TRUE(is_plan(&f, &n, "0-3@big"));
    T_EQ(f.planning.retune->phase, DMN_RETUNE_AGAIN);
    n = measured(&f, "0-3@big", 3.5e6);
    T_TRUE(is_plan(&f, &n, "0-1@big|2-3@big"));
    n = measured(&f, "0-1@big|2-3@big", 3.9e6);
    T_EQ(n.what, DMN_NEXT_CONCLUDE);
    dmn_retune_conclude(f.planning.retune, n.outcome);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_REVERTED);
    T_EQ(f.planning.retune->after.stage_count, 1);
    take_down(&f);
}

TEST(what_was_measured_last_is_not_measured_again)
{
    struct dmn_retune_next n;
    struct fixture f;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    measured(&f, "0-1@big|2-3@big", 3.8e6);
    n = search_ends(&f);
    T_TRUE(is_plan(&f, &n, "0-3@big"));
    n = measured(&f, "0-3@big", 4e6);
    T_EQ(n.what, DMN_NEXT_CONCLUDE); /* the one nominated is fresh */
    dmn_retune_conclude(f.planning.retune, n.outcome);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_SWITCHED);
    take_down(&f);
}

TEST(nothing_better_keeps_the_plan)
{
    struct dmn_retune_next n;
    struct fixture f;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    measured(&f, "0-3@big", 3.9e6); /* the search asked for the plan that serves */
    n = search_ends(&f);
    T_EQ(n.what, DMN_NEXT_CONCLUDE);
    dmn_retune_conclude(f.planning.retune, n.outcome);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_KEPT);
    take_down(&f);
}

TEST(plans_that_cannot_be_built_end_it)
{
    struct dmn_retune_next n;
    struct fixture f;
    struct pl_plan plan;
    size_t told = 0;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    plan = plan_of(&f.eps, UNITS, "0-1@big|2-3@big");
    while ((n = dmn_retune_refused(&f.m, &plan)).what == DMN_NEXT_THINK && n.tell && told < 99) {
        told++;
    }
    T_EQ(told, 8);
    T_EQ(n.what, DMN_NEXT_CONCLUDE);
    T_EQ(n.outcome, DMN_OUTCOME_FAILED);
    T_TRUE(f.planning.retune->why[0] != '\0');
    T_EQ(f.planning.retune->note_count, 9);
    T_TRUE(f.planning.retune->notes[8].trial.failed);
    dmn_retune_conclude(f.planning.retune, n.outcome);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_FAILED);
    T_EQ(f.planning.retune->after.stage_count, 1);
    take_down(&f);
}

TEST(a_cancelled_search_returns_to_the_plan_before)
{
    struct fixture f;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    measured(&f, "0-1@big|2-3@big", 1e6);
    dmn_retune_conclude(f.planning.retune, DMN_OUTCOME_CANCELLED);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_CANCELLED);
    T_EQ(f.planning.retune->after.stage_count, 1);
    T_TRUE(f.planning.retune->job == NULL);
    take_down(&f);
}

TEST(a_deadline_takes_the_best_so_far)
{
    struct fixture f;

    set_up(&f, "shisha");
    measured(&f, "0-3@big", 4e6);
    measured(&f, "0-1@big|2-3@big", 1e6);
    dmn_retune_conclude(f.planning.retune, DMN_OUTCOME_DEADLINE);
    T_EQ(f.planning.retune->outcome, DMN_OUTCOME_DEADLINE);
    T_EQ(f.planning.retune->after.stage_count, 2);
    take_down(&f);
}

TEST(what_is_clearly_worse_is_stopped)
{
    struct fixture f;

    set_up(&f, "shisha");
    T_EQ(dmn_retune_stop_ns(f.planning.retune), 0); /* nothing was measured */
    measured(&f, "0-3@big", 4e6);
    T_EQ(dmn_retune_stop_ns(f.planning.retune), 6e6);
    measured(&f, "0-1@big|2-3@big", 2e6);
    T_EQ(dmn_retune_stop_ns(f.planning.retune), 3e6);
    f.planning.retune->q.goal.objective = TUN_LATENCY;
    T_EQ(dmn_retune_stop_ns(f.planning.retune), 0);
    take_down(&f);
}

TEST_MAIN()
