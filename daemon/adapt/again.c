/* SPDX-License-Identifier: Apache-2.0 */
/* A plan may rest on costs that were wrong: kept, predicted, or taken beside other programs. Once
 * all is calm and frames wait, it is solved again on those that were measured since. */

#include "daemon/adapt/adapter_private.h"

#define LOOK_NS BASE_NS_PER_S

/* The costs of now, by which the plan is known to have been solved. */
static void note_costs(struct dmn_model *m, double period_ns)
{
    const struct tun_problem *p = &m->planning->problem;
    struct dmn_adapt_model *a = m->adapt;

    a->solved_epoch = a->epoch;
    a->solved_period_ns = period_ns;
    for (size_t k = 0; k < p->ep_count; k++) {
        a->solved_level[k] = tun_cost_level(p, k);
    }
}

/* Return: the plan, or an EP, costs clearly otherwise now. */
static bool costs_moved(const struct dmn_model *m, double period_ns)
{
    const struct tun_problem *p = &m->planning->problem;
    const struct dmn_adapt_model *a = m->adapt;
    bool moved =
        a->solved_epoch == 0 || (a->solved_epoch == a->epoch &&
                                 fabs(log(period_ns / a->solved_period_ns)) > TUN_LOST_CLEAR);

    for (size_t k = 0; k < p->ep_count; k++) {
        moved |= fabs(tun_cost_level(p, k) - a->solved_level[k]) > TUN_LOST_CLEAR;
    }
    return moved;
}

/* Return: nothing is slowed or in progress, and frames wait for every team. */
static bool is_calm(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    return !a->corrected && !a->alarmed && a->verify_left == 0 && !a->job &&
           !tun_adapt_verifying(a->watch) && dmn_adapt_pace_ns(m) > 0;
}

/* Return: a retune found the plan. It measured plans, which counts for more than the table. */
static bool is_measured(const struct dmn_model *m)
{
    const struct tun_trial *found = &m->planning->measured;

    return found->frames > 0 && pl_plan_equal(&found->plan, pl_current_plan(m->pipe));
}

void dmn_adapt_solve_again(struct dmn_model *m, uint64_t now_ns)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_adapt_model *a = m->adapt;
    struct tun_outcome now;

    if (now_ns - a->solved_ns < LOOK_NS || !is_calm(m) || is_measured(m) || dmn_adapt_searches(m) ||
        tun_eval(&m->planning->problem, pl_current_plan(m->pipe), &now)) {
        return;
    }
    a->solved_ns = now_ns;
    if (costs_moved(m, now.bottleneck_ns)) {
        if (dmn_planner_problem(m, NULL, &p) < 0 || tun_adapt_learned(a->watch, &p) < 0) {
            return;
        }
        a->events |= TUN_EVENT_COSTS;
    } else if (a->solved_epoch == a->epoch) {
        return;
    }
    note_costs(m, now.bottleneck_ns);
}
