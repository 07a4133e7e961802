/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/switch.h"

#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"

void dmn_plans_listen(struct dmn_plans *plans, struct dmn_plans_listener *l)
{
    DMN_LISTEN(plans->listeners, l);
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

/* ---- switching ---- */

/* Updates the expected figures, then tells listeners. */
static void plan_changed(struct dmn_model *m)
{
    m->planning->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &m->planning->expected);
    m->period_ns = 0;
    DMN_TELL(m->planning->of->listeners, plan_changed, m);
}

static void log_switch(const struct dmn_model *m, const struct dmn_switch *s, const char *before,
                       const char *after)
{
    struct dmn_log_fields fields = {.id = DMN_MSG_PLAN_CHANGED, .model = m->name, .plan = after};

    if (s->cause) {
        dmn_log_limited(LOG_NOTICE, fields, "model %s: plan %s instead of %s (%s, %s)", m->name,
                        after, before, dmn_origin_name(s->origin), dmn_cause_name(s->cause));
    } else {
        dmn_log_limited(LOG_NOTICE, fields, "model %s: plan %s instead of %s", m->name, after,
                        before);
    }
}

void dmn_plan_adopt(struct dmn_model *m, const struct dmn_switch *s)
{
    m->origin = s->origin;
    if (m->leaving) { /* nobody is left to tell */
        return;
    }
    plan_changed(m);
    if (s->keep) {
        dmn_kept_save(m);
    }
}

static int set(struct dmn_model *m, const struct pl_plan *plan)
{
    int r = pl_switch(m->pipe, plan);

    return r == PL_E_BUSY ? -EBUSY : r;
}

static int switch_lasting(struct dmn_model *m, const struct dmn_switch *s)
{
    char before[PL_PLAN_TEXT_MAX], after[PL_PLAN_TEXT_MAX];
    double fps = dmn_model_fps(m, base_now_ns());
    uint64_t start = base_now_ns();
    int error;

    if (s->learn) {
        dmn_planner_learn(m); /* the switch restarts the clocks */
    }
    dmn_model_plan_text(m, before);
    error = set(m, s->plan);
    if (error) {
        return error;
    }
    dmn_model_plan_text(m, after);
    if (s->cause) {
        dmn_plan_event(
            m, &(struct dmn_history_event){.cause = s->cause,
                                           .detail = s->detail,
                                           .origin = s->origin,
                                           .plan_before = before,
                                           .plan_after = after,
                                           .fps_before = fps,
                                           .fps_after = -1,
                                           .duration_ms = (double)(base_now_ns() - start) / 1e6,
                                           .outcome = DMN_OUTCOME_SWITCHED});
    }
    log_switch(m, s, before, after);
    dmn_plan_adopt(m, s);
    return 0;
}

int dmn_plan_switch(struct dmn_model *m, const struct dmn_switch *s)
{
    int error;

    if (s->kind == DMN_SWITCH_LASTING) {
        return switch_lasting(m, s);
    }
    error = set(m, s->plan);
    if (!error && s->kind == DMN_SWITCH_TRIAL) {
        plan_changed(m);
    }
    return error;
}
