/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/planner.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/plans/planning.h"

int dmn_planner_first(struct dmn_load *l)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    int error = -ENOMEM;

    if (l->first) {
        return 0;
    }
    if (best && plan) {
        error = tun_solve(&l->planning->problem, best);
    }
    if (error < 0) {
        snprintf(l->error, sizeof(l->error), "no plan found for %zu units: %s",
                 l->planning->problem.unit_count, strerror(-error));
        return error;
    }
    *plan = best->plan; /* for TUN_E_IMPOSSIBLE, too: then it is the fastest */
    l->origin = DMN_ORIGIN_EXACT;
    l->first = base_take(plan);
    return 0;
}

void dmn_planner_deinit(struct dmn_model *m)
{
    dmn_refuse(&m->planning->switched, DMN_REFUSED_BUSY, "the daemon is stopping");
    dmn_planner_clocks_free(m);
    m->planning = dmn_planning_free(m->planning);
}

/* A figure made of the weight alone can rank plans; it cannot predict a time. */
static bool trusted(const struct tun_problem *p, const struct pl_stage_plan *stage,
                    const struct pl_group *group)
{
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        if (dmn_planner_guessed(tun_cell_at(&p->costs, group->ep, group->width, u))) {
            return false;
        }
    }
    return true;
}

bool dmn_planner_expect(const struct dmn_model *m, const struct pl_plan *plan,
                        struct tun_outcome *ret)
{
    bool all = true;

    if (tun_eval(&m->planning->problem, plan, ret) != 0) {
        *ret = (struct tun_outcome){0};
        return false;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            if (!trusted(&m->planning->problem, &plan->stages[s], &plan->stages[s].groups[g])) {
                ret->team_ns[s][g] = ret->stage_ns[s] = 0;
                all = false;
            }
        }
    }
    return all;
}
