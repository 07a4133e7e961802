/* SPDX-License-Identifier: Apache-2.0 */
/* A model moves to the new places, and that is told. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt_eps_private.h"
#include "daemon/service/log.h"

static void keep_home(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem copy;

    if (a && (a->home.unit_count == 0 || tun_core_count(&m->problem) >= tun_core_count(&a->home)) &&
        tun_problem_copy(&m->problem, &copy) == 0) {
        tun_problem_deinit(&a->home);
        a->home = copy;
        a->home_eps = *pl_current_eps(m->pipe);
    }
}

static void tell(struct dmn_model *m, const struct dmn_adapt_change *c,
                 const struct dmn_change_part *p, const char *before, const char *algorithm)
{
    bool kept = strcmp(algorithm, "exact") != 0 && !dmn_change_returns(p);
    bool recorded = p->decision.corrected.unit_count > 0;
    char after[PL_PLAN_TEXT_MAX], detail[320];
    json_t *event;

    dmn_model_plan_text(m, after);
    snprintf(detail, sizeof(detail), "%s%s", c->text,
             p->pinned && p->fits ? "; the plan is the user's and still fits"
             : p->pinned          ? "; the user's plan has not its cores any more, so it is planned"
             : dmn_change_returns(p) ? "; the plan kept for these cores returns"
                                     : "");
    event = dmn_adapt_tell(
        m, &(struct dmn_adapt_told){
               .cause = c->cause,
               .detail = detail,
               .algorithm = algorithm,
               .outcome = kept ? "kept" : "switched",
               .before = before,
               .after = after,
               .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
               .gain = recorded ? p->decision.gain : 0,
               .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6,
               .record = recorded ? dmn_adapt_record_json(&p->record, &p->decision) : NULL});
    if (m->adapt && !kept) {
        dmn_adapt_await(m, event);
    } else {
        json_decref(event);
    }
}

/* Bottleneck of a plan on the new places with what is known of them; 0: not known. */
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
                             const char *outcome)
{
    char plan[PL_PLAN_TEXT_MAX], detail[sizeof(c->text) + 128];

    dmn_model_plan_text(m, plan);
    snprintf(detail, sizeof(detail), "%s; %.100s", c->text, why);
    json_decref(dmn_adapt_tell(
        m, &(struct dmn_adapt_told){.cause = c->cause,
                                    .detail = detail,
                                    .algorithm = m->algorithm,
                                    .outcome = outcome,
                                    .before = plan,
                                    .after = plan,
                                    .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
                                    .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6}));
}

/* The watch goes on with what is known, and takes the plan back where the one before would do
 * better. */
static void hand_over(struct dmn_model *m, struct dmn_change_part *p)
{
    struct dmn_adapt_model *a = m->adapt;

    dmn_adapt_forget(m);
    memset(a->known, 0, sizeof(a->known)); /* plans on other places */
    a->state_id = 0;
    a->epoch = pl_epoch(m->pipe);
    a->epoch_ns = base_now_ns();
    a->window_ns = 0;
    if (p->slowed) {
        a->carried = base_take(p->slow);
        a->carried_count = m->problem.kind_count * m->problem.unit_count;
        memcpy(a->carried_contended, p->contended, sizeof(a->carried_contended));
    }
    if (p->doubted) {
        a->doubted = true;
        a->before = p->same;
        a->before_ns = p->before_ns;
        a->after_ns = p->after_ns;
    }
}

static void doubt(const struct dmn_model *m, struct dmn_change_part *p, const struct pl_plan *plan)
{
    if (p->fits && !p->pinned && !pl_plan_equal(&p->same, plan)) {
        p->before_ns = predict(&m->problem, p, &p->same);
        p->after_ns = predict(&m->problem, p, plan);
        p->doubted = p->before_ns > 0 && p->after_ns > 0;
    }
}

void dmn_change_apply(struct dmn_adapt_change *c, struct dmn_change_part *p, struct dmn_model *m)
{
    base_autofree struct pl_plan *plan = malloc(sizeof(*plan));
    struct pl_ep_set before_eps = *pl_current_eps(m->pipe);
    const char *algorithm = plan ? dmn_change_choose(m, c, p, plan) : NULL;
    char before[PL_PLAN_TEXT_MAX];
    struct tun_problem old = m->problem;
    int error;

    dmn_model_plan_text(m, before);
    if (!algorithm) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: no plan for the cores that are left; its threads share them",
                     m->name);
        dmn_change_tell_nothing(m, c, "no plan was found for them", "failed");
        return;
    }
    keep_home(m);
    m->problem = p->problem;
    dmn_planner_clocks_free(m);
    pl_set_eps(m->pipe, &c->eps);
    error = dmn_adapt_switch(m, plan, algorithm, !p->slowed);
    if (error) {
        m->problem = old;
        pl_set_eps(m->pipe, &before_eps);
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: its plan could not be moved to other cores: %s", m->name,
                     strerror(error < 0 ? -error : EBUSY));
        dmn_change_tell_nothing(m, c, "the plan could not be moved", "failed");
        return;
    }
    p->problem = old; /* freed with the part */
    doubt(m, p, plan);
    if (m->adapt) {
        hand_over(m, p);
    }
    tell(m, c, p, before, algorithm);
}
