/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/planner.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "tuner/learn.h"

/* Cells that tun_fill() made of weights have at least this sigma. */
#define DOUBT_MAX 0.45

int dmn_planner_plan(const struct dmn_model *m, struct pl_plan *ret)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    struct tun_problem p;
    int error;

    if (!best) {
        return -ENOMEM;
    }
    error = dmn_planner_problem(m, NULL, &p);
    if (error) {
        return error;
    }
    error = tun_solve(&p, best);
    tun_problem_deinit(&p);
    if (error < 0) {
        return error;
    }
    *ret = best->plan; /* TUN_E_IMPOSSIBLE too: it is the fastest then */
    return 0;
}

/* What a figure is good for that is made of the weight alone: it ranks, it predicts no time. */
static bool trusted(const struct tun_problem *p, const struct pl_stage_plan *stage,
                    const struct pl_group *group)
{
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        const struct tun_cell *c = tun_cell_at(&p->costs, group->ep, group->width, u);

        if (c->source < TUN_SAVED && c->sigma >= DOUBT_MAX) {
            return false;
        }
    }
    return true;
}

bool dmn_planner_expect(const struct dmn_model *m, const struct pl_plan *plan,
                        struct tun_outcome *ret)
{
    bool all = true;

    if (tun_eval(&m->problem, plan, ret) != 0) {
        *ret = (struct tun_outcome){0};
        return false;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            if (!trusted(&m->problem, &plan->stages[s], &plan->stages[s].groups[g])) {
                ret->team_ns[s][g] = ret->stage_ns[s] = 0;
                all = false;
            }
        }
    }
    return all;
}
