/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/planning.h"

#include <jansson.h>

#include "base.h"

struct dmn_planning *dmn_planning_free(struct dmn_planning *p)
{
    if (p) {
        tun_problem_deinit(&p->problem);
        json_decref(p->kept);
        free(p->tried);
        free(p);
    }
    return NULL;
}

bool dmn_plan_changing(const struct dmn_model *m)
{
    return m->planning->retune || m->planning->switched.fn;
}

void dmn_plan_wait(struct dmn_model *m, struct dmn_done done)
{
    m->planning->switched = done;
}
