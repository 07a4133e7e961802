/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/switch.h"

#include "daemon/plans/kept.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/planning.h"
#include "daemon/service/log.h"

void dmn_plans_listen(struct dmn_plans *plans, struct dmn_plans_listener *l)
{
    struct dmn_plans_listener **at = &plans->listeners;

    while (*at) {
        at = &(*at)->next;
    }
    *at = l;
}

void dmn_plans_tell_retune(struct dmn_model *m, const struct tun_algorithm *a)
{
    for (struct dmn_plans_listener *l = m->planning->of->listeners; l; l = l->next) {
        if (l->retune_begun) {
            l->retune_begun(l->ctx, m, a);
        }
    }
}

void dmn_plans_tell_profile(struct dmn_plans *plans)
{
    for (struct dmn_plans_listener *l = plans->listeners; l; l = l->next) {
        if (l->profile_begun) {
            l->profile_begun(l->ctx);
        }
    }
}

void dmn_plans_tell_trial(struct dmn_model *m, const struct dmn_history_trial *t)
{
    for (struct dmn_plans_listener *l = m->planning->of->listeners; l; l = l->next) {
        if (l->trial_ended) {
            l->trial_ended(l->ctx, m, t);
        }
    }
}

/* Updates the expected figures, then tells listeners. */
static void plan_changed(struct dmn_model *m)
{
    m->planning->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &m->planning->expected);
    m->period_ns = 0;
    for (struct dmn_plans_listener *l = m->planning->of->listeners; l; l = l->next) {
        if (l->plan_changed) {
            l->plan_changed(l->ctx, m);
        }
    }
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
        dmn_state_save(m);
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
