/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/planner.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "tuner/balance.h"

int dmn_costs_init(struct dmn_costs *c, size_t eps, size_t units)
{
    size_t count;

    *c = DMN_COSTS_NULL;
    if (!base_mul(eps, units, &count) || !(c->ns = calloc(count, sizeof(*c->ns)))) {
        return -ENOMEM;
    }
    c->eps = eps;
    c->units = units;
    for (size_t i = 0; i < count; i++) {
        c->ns[i] = -1;
    }
    return 0;
}

void dmn_costs_deinit(struct dmn_costs *c)
{
    free(c->ns);
    *c = DMN_COSTS_NULL;
}

/* The unit's time on the fastest kind of core, from wherever it was measured; -1: nowhere. */
static double reference_cost(const struct dmn_costs *c, const struct pl_ep_set *eps, size_t unit)
{
    double best = -1;

    for (size_t e = 0; e < c->eps && e < eps->count; e++) {
        double ns = *dmn_costs_at(c, e, unit);

        if (ns >= 0 && (best < 0 || ns * eps->eps[e].speed < best)) {
            best = ns * eps->eps[e].speed;
        }
    }
    return best;
}

int dmn_planner_plan(const struct mdl_model *model, const struct dmn_costs *costs,
                     const struct pl_ep_set *eps, size_t stages_max, struct pl_plan *ret)
{
    base_autofree double *cost = calloc(model->unit_count, sizeof(*cost));
    bool measured = costs->ns != NULL;
    double bottleneck, total = 0;

    if (!cost) {
        return -ENOMEM;
    }
    for (size_t u = 0; u < model->unit_count && measured; u++) {
        cost[u] = reference_cost(costs, eps, u);
        measured = cost[u] >= 0;
    }
    for (size_t u = 0; u < model->unit_count && !measured; u++) {
        cost[u] = model->units[u].weight;
        total += cost[u];
    }
    for (size_t u = 0; u < model->unit_count; u++) { /* light units cost something too */
        double least = measured ? 1 : base_max(total * 1e-6, 1.0);

        cost[u] = base_max(cost[u], least);
    }
    return tun_balance(cost, measured ? costs->ns : NULL, model->unit_count, eps, stages_max, ret,
                       &bottleneck);
}

void dmn_planner_expect(const struct dmn_costs *costs, const struct pl_plan *plan,
                        double ret_ns[PL_STAGE_MAX])
{
    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];

        ret_ns[s] = 0;
        if (stage->group_count != 1 || stage->groups[0].width != 1 ||
            stage->groups[0].ep >= costs->eps) {
            continue; /* costs are those of one core */
        }
        for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
            double ns = *dmn_costs_at(costs, stage->groups[0].ep, u);

            if (ns < 0) {
                ret_ns[s] = 0;
                break;
            }
            ret_ns[s] += ns;
        }
    }
}
