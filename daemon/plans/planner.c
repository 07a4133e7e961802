/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/planner.h"

#include "daemon/plans/planning.h"

/* The first plan that a search asks for: in the papers, the seed that it goes on from. Return: 0,
 * or it has none for this problem. */
static int seed(const struct dmn_planning *p, struct pl_plan *ret)
{
    static const struct pl_plan none; /* walks begin with Shisha's seed */
    struct tun_options o = {.seed = 1, .from = &none};
    struct tun_search *s = NULL;
    char why[TUN_ERROR_MAX];
    int error = tun_search_new(p->start->name, &p->problem, &o, why, &s);

    error = error ? error : tun_search_ask(s, ret);
    tun_search_free(s);
    return error;
}

int dmn_planner_first(struct dmn_load *l)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    int error = -ENOMEM;

    if (l->first) {
        return 0;
    }
    if (plan && l->planning->start != &tun_exact && seed(l->planning, plan) == 0) {
        l->origin = (struct dmn_origin){.from = DMN_FROM_SEARCH, .algorithm = l->planning->start};
        l->planning->start_due = true;
        l->first = base_take(plan);
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
