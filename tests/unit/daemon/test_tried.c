/* SPDX-License-Identifier: Apache-2.0 */
/* What a retune measured against what is predicted later. */
#include <string.h>

#include "base/base.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune_private.h"
#include "tests/harness.h"
#include "tests/unit/daemon/plan_text.h"

#define UNITS 4u
#define MS 1e6

static const struct dmn_goal GOAL = {.objective = TUN_THROUGHPUT};

struct fixture {
    struct dmn_planning planning;
    struct dmn_model m;
    struct dmn_retune r;
    struct pl_ep_set eps;
    struct tun_solution predicted;
};

/* Every unit takes 1 ms, on any team. */
static void set_up(struct fixture *f)
{
    struct tun_ep ep = {.name = "big", .cores = 4, .speed = 1, .bandwidth = 1, .watts = 1};

    *f = (struct fixture){.r.q = {.algorithm = tun_algorithm_find("shisha"), .goal = GOAL}};
    f->m.planning = &f->planning;
    f->planning.retune = &f->r;
    T_EQ(tun_problem_init(&f->planning.problem, UNITS, &ep, 1), 0);
    for (size_t w = 1; w <= ep.cores; w++) {
        for (size_t u = 0; u < UNITS; u++) {
            *tun_cell_at(&f->planning.problem.costs, 0, w, u) =
                (struct tun_cell){.ns = MS, .source = TUN_MEASURED};
        }
    }
    tun_eps(&f->planning.problem, &f->eps);
}

static void take_down(struct fixture *f)
{
    free(f->planning.tried);
    free(f->r.notes);
    tun_problem_deinit(&f->planning.problem);
}

/* The retune measured @plan to its end. */
static void tried(struct fixture *f, const char *plan, double ms)
{
    f->r.last =
        (struct tun_trial){.plan = plan_of(&f->eps, UNITS, plan),
                           .frames = 100,
                           .measured = {.bottleneck_ns = ms * MS, .latency_ns = 2 * ms * MS}};
    dmn_retune_note_trial(&f->m, DMN_ROLE_SEARCH, 0.01, 0);
}

/* The retune ends with the last one tried. */
static void chosen(struct fixture *f)
{
    f->r.result = f->r.last;
    f->r.chosen = &f->r.result;
    dmn_retune_keep_tried(&f->m);
}

/* Return: @wanted is what serves if the costs predict @ms for @predicted; its origin is right. */
static bool gives(struct fixture *f, const struct dmn_goal *goal, const char *predicted, double ms,
                  const char *wanted)
{
    struct dmn_origin origin = DMN_ORIGIN_EXACT;
    struct pl_plan plan = plan_of(&f->eps, UNITS, wanted);
    const struct pl_plan *got;

    f->predicted =
        (struct tun_solution){.plan = plan_of(&f->eps, UNITS, predicted),
                              .outcome = {.bottleneck_ns = ms * MS, .latency_ns = 2 * ms * MS}};
    got = dmn_tried_best(f->planning.tried, &f->planning.problem, goal, &f->predicted, &origin);
    return pl_plan_equal(got, &plan) &&
           (origin.algorithm == f->r.q.algorithm) == (got != &f->predicted.plan);
}

TEST(without_a_retune_the_prediction_decides)
{
    struct fixture f;

    set_up(&f);
    T_TRUE(gives(&f, &GOAL, "0-3@big*4", 1, "0-3@big*4"));
    take_down(&f);
}

TEST(what_was_tried_and_found_worse_is_not_taken)
{
    struct fixture f;

    set_up(&f);
    tried(&f, "0-3@big*4", 3);
    tried(&f, "0-3@bigx4", 2);
    chosen(&f);
    T_TRUE(gives(&f, &GOAL, "0-3@big*4", 1, "0-3@bigx4"));
    T_TRUE(gives(&f, &GOAL, "0-3@bigx4", 1, "0-3@bigx4"));
    T_TRUE(gives(&f, &GOAL, "0-3@big", 2, "0-3@bigx4"));    /* no better than what was measured */
    T_TRUE(gives(&f, &GOAL, "0-3@big", 1.97, "0-3@bigx4")); /* nor by more than a trial's error */
    T_TRUE(gives(&f, &GOAL, "0-3@big", 1.9, "0-3@big"));
    take_down(&f);
}

TEST(the_newest_measurement_of_a_plan_counts)
{
    struct fixture f;

    set_up(&f);
    tried(&f, "0-3@big*4", 1);
    tried(&f, "0-3@big*4", 5);
    tried(&f, "0-3@bigx4", 2);
    chosen(&f);
    T_TRUE(gives(&f, &GOAL, "0-3@big", 3, "0-3@bigx4"));
    take_down(&f);
}

TEST(trials_that_ended_early_are_no_measurements)
{
    struct fixture f;

    set_up(&f);
    tried(&f, "0-3@big*4", 1);
    f.r.notes[0].trial.stopped = true;
    tried(&f, "0-3@big*2", 1);
    f.r.notes[1].trial.failed = true;
    tried(&f, "0-3@bigx4", 2);
    chosen(&f);
    T_TRUE(gives(&f, &GOAL, "0-3@big", 3, "0-3@bigx4"));
    T_TRUE(gives(&f, &GOAL, "0-3@big*2", 1, "0-3@big*2"));
    take_down(&f);
}

TEST(costs_that_changed_since_move_what_was_measured)
{
    struct fixture f;

    set_up(&f);
    tried(&f, "0-3@big*4", 3);
    tried(&f, "0-3@bigx4", 2);
    chosen(&f);
    for (size_t u = 0; u < UNITS; u++) { /* teams of four now take twice as long */
        tun_cell_at(&f.planning.problem.costs, 0, 4, u)->ns *= 2;
    }
    T_TRUE(gives(&f, &GOAL, "0-3@big", 9, "0-3@big*4"));
    T_TRUE(gives(&f, &GOAL, "0-3@big", 2.5, "0-3@big"));
    take_down(&f);
}

TEST(another_goal_asks_for_its_own_measurements)
{
    const struct dmn_goal latency = {.objective = TUN_LATENCY}, bound = {.fps = 10};
    struct fixture f;

    set_up(&f);
    tried(&f, "0-3@bigx4", 2);
    chosen(&f);
    T_TRUE(gives(&f, &latency, "0-3@big", 9, "0-3@big"));
    T_TRUE(gives(&f, &bound, "0-3@big", 9, "0-3@big"));
    f.r.q.goal = latency;
    dmn_retune_keep_tried(&f.m);
    T_TRUE(gives(&f, &latency, "0-3@big", 9, "0-3@bigx4"));
    f.r.q.goal.objective = TUN_POWER;
    dmn_retune_keep_tried(&f.m);
    T_TRUE(!f.planning.tried);
    take_down(&f);
}

TEST(a_retune_that_measured_nothing_leaves_nothing)
{
    struct fixture f;

    set_up(&f);
    tried(&f, "0-3@bigx4", 2);
    chosen(&f);
    T_TRUE(f.planning.tried != NULL);
    f.r.result.failed = true;
    dmn_retune_keep_tried(&f.m);
    T_TRUE(!f.planning.tried);
    take_down(&f);
}

TEST_MAIN()
