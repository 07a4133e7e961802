/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a model to the new EPs, and reports it. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt/cores.h"
#include "daemon/adapt/told.h"
#include "daemon/service/log.h"

static void keep_home(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem copy;

    if (a &&
        (a->home.unit_count == 0 ||
         tun_core_count(&m->planning->problem) >= tun_core_count(&a->home)) &&
        tun_problem_copy(&m->planning->problem, &copy) == 0) {
        tun_problem_deinit(&a->home);
        a->home = copy;
        a->home_eps = *pl_current_eps(m->pipe);
    }
}

static void tell(struct dmn_model *m, const struct dmn_adapt_change *c, struct dmn_change_part *p,
                 const char *before, struct dmn_origin origin)
{
    bool same = p->fits && pl_plan_equal(&p->same, pl_current_plan(m->pipe));
    bool kept = (!dmn_origin_exact(origin) || (same && p->search)) && !dmn_change_returns(p);
    bool recorded = p->decision.corrected.unit_count > 0;
    char after[PL_PLAN_TEXT_MAX], detail[320];
    struct dmn_decided *decided = NULL;
    struct dmn_history_event *event;

    dmn_model_plan_text(m, after);
    snprintf(detail, sizeof(detail), "%s%s", c->text,
             p->pinned && p->fits    ? "; the plan is the user's and still fits"
             : p->pinned             ? "; cores of the user's plan are gone, so the daemon plans"
             : dmn_change_returns(p) ? "; the plan kept for these cores returns"
                                     : "");
    if (recorded) {
        decided = dmn_decided_new(&p->record, &p->decision);
    }
    event = dmn_adapt_tell(
        m, &(struct dmn_adapt_told){.cause = c->cause,
                                    .detail = detail,
                                    .origin = origin,
                                    .outcome = kept ? DMN_OUTCOME_KEPT : DMN_OUTCOME_SWITCHED,
                                    .before = before,
                                    .after = after,
                                    .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
                                    .gain = recorded ? p->decision.gain : 0,
                                    .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6,
                                    .decided = decided});
    dmn_decided_unref(decided);
    if (m->adapt && !kept) {
        dmn_adapt_await(m, event);
    }
}

/* Bottleneck of a plan on the new EPs with their known slowdown; 0: unknown. */
static double predict(const struct tun_problem *problem, const struct dmn_change_part *p,
                      const struct pl_plan *plan)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    struct tun_outcome o;

    return dmn_change_slowed(problem, p->slow, &slowed) == 0 && tun_fits(&slowed, plan) &&
                   tun_eval(&slowed, plan, &o) == 0
               ? o.bottleneck_ns
               : 0;
}

void dmn_change_tell_nothing(struct dmn_model *m, const struct dmn_adapt_change *c, const char *why,
                             enum dmn_event_outcome outcome)
{
    char plan[PL_PLAN_TEXT_MAX], detail[sizeof(c->text) + 128];

    dmn_model_plan_text(m, plan);
    snprintf(detail, sizeof(detail), "%s; %.100s", c->text, why);
    dmn_adapt_tell(
        m, &(struct dmn_adapt_told){.cause = c->cause,
                                    .detail = detail,
                                    .origin = m->origin,
                                    .outcome = outcome,
                                    .before = plan,
                                    .after = plan,
                                    .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
                                    .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6});
}

/* Hands what is known to the new watch, which switches back if the previous plan would do
 * better. */
static void hand_over(struct dmn_model *m, struct dmn_change_part *p)
{
    struct dmn_adapt_model *a = m->adapt;

    dmn_adapt_forget(m);
    memset(a->known, 0, sizeof(a->known)); /* those plans are for other EPs */
    a->state_id = 0;
    a->epoch = pl_epoch(m->pipe);
    a->epoch_ns = base_now_ns();
    a->window_ns = 0;
    if (p->slowed) {
        a->carried = base_take(p->slow);
        a->carried_count = m->planning->problem.ep_count * m->planning->problem.unit_count;
        memcpy(a->carried_contended, p->contended, sizeof(a->carried_contended));
    }
    if (p->unverified) {
        a->unverified = true;
        a->before = p->same;
        a->before_ns = p->before_ns;
        a->after_ns = p->after_ns;
    }
    dmn_adapt_publish(m);
}

/* The plan that serves on other cores is where a search begins. */
static void search_later(struct dmn_model *m, const struct dmn_adapt_change *c)
{
    if (m->adapt && dmn_adapt_searches(m)) {
        m->adapt->due |= c->parting                     ? TUN_EVENT_PARTS
                         : c->cause == TUN_CAUSE_CPUSET ? TUN_EVENT_CPUSET
                                                        : TUN_EVENT_HOTPLUG;
    }
}

static void expect_verification(const struct dmn_model *m, struct dmn_change_part *p,
                                const struct pl_plan *plan)
{
    if (p->fits && !p->pinned && !pl_plan_equal(&p->same, plan)) {
        p->before_ns = predict(&m->planning->problem, p, &p->same);
        p->after_ns = predict(&m->planning->problem, p, plan);
        p->unverified = p->before_ns > 0 && p->after_ns > 0;
    }
}

void dmn_change_apply(struct dmn_adapt_change *c, struct dmn_change_part *p, struct dmn_model *m)
{
    base_autofree struct pl_plan *plan = malloc(sizeof(*plan));
    struct pl_ep_set before_eps = *pl_current_eps(m->pipe);
    struct dmn_origin origin;
    char before[PL_PLAN_TEXT_MAX];
    struct tun_problem old = m->planning->problem;
    int error;

    dmn_model_plan_text(m, before);
    if (!plan || !dmn_change_choose(m, c, p, plan, &origin)) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: no plan for the cores that are left; its threads share them",
                     m->name);
        dmn_change_tell_nothing(m, c, "no plan found for them", DMN_OUTCOME_FAILED);
        return;
    }
    keep_home(m);
    m->planning->problem = p->problem;
    dmn_planner_clocks_free(m);
    free(base_take(m->planning->tried)); /* plans of other EPs */
    pl_set_eps(m->pipe, &c->eps);
    error = dmn_adapt_switch(m, plan, origin, !p->slowed);
    if (error) {
        m->planning->problem = old;
        pl_set_eps(m->pipe, &before_eps);
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: cannot move the plan to other cores: %s", m->name,
                     strerror(error < 0 ? -error : EBUSY));
        dmn_change_tell_nothing(m, c, "the plan cannot be moved", DMN_OUTCOME_FAILED);
        return;
    }
    p->problem = old; /* freed with the part */
    expect_verification(m, p, plan);
    if (m->adapt) {
        hand_over(m, p);
    }
    tell(m, c, p, before, origin);
    search_later(m, c);
}
