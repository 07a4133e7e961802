/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/planning.h"

#include <jansson.h>

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

static void count(struct dmn_model *m, enum dmn_cause cause, enum dmn_event_outcome outcome)
{
    m->planning->counts.events[cause][outcome]++;
}

struct dmn_history_event *dmn_plan_event(struct dmn_model *m, const struct dmn_history_event *e)
{
    struct dmn_history_event of_model = *e;

    of_model.model = m->name;
    count(m, e->cause, e->outcome);
    return dmn_history_add(&m->planning->of->history, &of_model);
}

void dmn_plan_event_measured(struct dmn_model *m, struct dmn_history_event *e,
                             enum dmn_event_outcome outcome, double fps, uint64_t frames,
                             uint64_t lost)
{
    if (e && e->outcome != outcome) {
        count(m, e->cause, outcome);
    }
    dmn_event_measured(e, outcome, fps, frames, lost);
}

bool dmn_plan_changing(const struct dmn_model *m)
{
    return m->planning->retune || m->planning->switched.fn;
}

void dmn_plan_wait(struct dmn_model *m, struct dmn_done done)
{
    m->planning->switched = done;
}
