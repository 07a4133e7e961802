/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/costs_table.h"

#include "base/base.h"
#include "daemon/models/models.h"
#include "daemon/plans/planner.h"
#include "tuner/json/costs_json.h"

void dmn_planner_count(const struct tun_problem *p, size_t ret[DMN_SOURCE_COUNT])
{
    memset(ret, 0, DMN_SOURCE_COUNT * sizeof(*ret));
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                ret[tun_cell_at(&p->costs, k, w, u)->source]++;
            }
        }
    }
}

static const char *unit_name(const void *model, size_t unit)
{
    return ((const struct mdl_model *)model)->units[unit].name;
}

json_t *dmn_planner_problem_json(const struct dmn_model *m)
{
    struct tun_problem p = TUN_PROBLEM_NULL;
    json_t *json;

    if (dmn_planner_problem(m, &(struct dmn_goal){.objective = TUN_THROUGHPUT}, &p) < 0) {
        return json_null();
    }
    json = tun_problem_json(&p, m->name, true, unit_name, m->model);
    tun_problem_deinit(&p);
    return json;
}
