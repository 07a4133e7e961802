/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/planner.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "tuner/balance.h"

int dmn_planner_problem(const struct dmn_model *m, const struct dmn_goal *goal,
                        struct tun_problem *ret)
{
    struct dmn_goal configured = dmn_goal_config(m->daemon->config);
    int error;

    goal = goal ? goal : &configured;
    if (goal->objective == TUN_POWER && goal->fps <= 0) {
        return -EINVAL;
    }
    error = tun_problem_copy(&m->problem, ret);
    if (error) {
        return error;
    }
    ret->objective = goal->objective;
    ret->bounds.period_max_ns = goal->fps > 0 ? 1e9 / goal->fps : 0;
    ret->bounds.latency_max_ns = base_max(goal->latency_ms, 0.0) * 1e6;
    ret->bounds.stages_max = (size_t)dmn_config_int(m->daemon->config, DMN_KEY_PLANNER_STAGES_MAX);
    return 0;
}

int dmn_planner_plan(const struct dmn_model *m, struct pl_plan *ret)
{
    const struct tun_problem *p = &m->problem;
    base_autofree double *cost = calloc(p->unit_count, sizeof(*cost));
    double bottleneck;

    if (!cost) {
        return -ENOMEM;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        cost[u] = tun_cell_at(&p->costs, 0, 1, u)->ns * p->kinds[0].speed;
    }
    return tun_balance(cost, NULL, p->unit_count, &m->daemon->eps,
                       (size_t)dmn_config_int(m->daemon->config, DMN_KEY_PLANNER_STAGES_MAX), ret,
                       &bottleneck);
}

/* Something was measured or saved for every unit on this shape of team. */
static bool seen(const struct tun_problem *p, const struct pl_stage_plan *stage,
                 const struct pl_group *group)
{
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        if (tun_cell_at(&p->costs, group->ep, group->width, u)->source < TUN_SAVED) {
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
            if (!seen(&m->problem, &plan->stages[s], &plan->stages[s].groups[g])) {
                ret->team_ns[s][g] = 0;
                all = false;
            }
        }
    }
    return all;
}
