/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a model to the new EPs, and reports it. */

#include "daemon/adapt/cores.h"
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

/* What is told of a change once it is known which plan serves. */
struct proof {
    struct dmn_history_event event;       /* with the texts below; decided: a reference */
    const struct dmn_turns_result *turns; /* that led to it; NULL: none */
    char detail[320], before[PL_PLAN_TEXT_MAX];
    uint64_t began_ns;
    bool split; /* an EP was split for the plan */
    bool keep;  /* the plan may be saved */
};

static struct proof *proof_new(const struct dmn_model *m, const struct dmn_adapt_change *c,
                               struct dmn_change_part *p, const char *before,
                               const struct pl_plan *plan, struct dmn_origin origin)
{
    bool same = p->fits && pl_plan_equal(&p->same, plan);
    bool kept = (origin.algorithm != &tun_exact || (same && p->search)) && !dmn_change_returns(p);
    bool recorded = p->decision.corrected.unit_count > 0;
    struct proof *to = calloc(1, sizeof(*to));

    if (!to) {
        return NULL;
    }
    snprintf(to->before, sizeof(to->before), "%s", before);
    snprintf(to->detail, sizeof(to->detail), "%s%s", c->text,
             p->pinned && p->fits    ? "; the plan is the user's and still fits"
             : p->pinned             ? "; cores of the user's plan are gone, so the daemon plans"
             : dmn_change_returns(p) ? "; the plan kept for these cores returns"
                                     : "");
    to->began_ns = c->began_ns;
    to->split = c->parting && c->split.count > 0;
    to->keep = !p->slowed;
    to->event = (struct dmn_history_event){
        .cause = dmn_cause_of(c->cause),
        .detail = to->detail,
        .origin = origin,
        .outcome = kept ? DMN_OUTCOME_KEPT : DMN_OUTCOME_SWITCHED,
        .plan_before = to->before,
        .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
        .predicted_gain = recorded ? p->decision.gain : 0,
        .decided = recorded ? dmn_decided_new(&p->record, &p->decision) : NULL};
    return to;
}

static void proof_free(struct proof *p)
{
    dmn_decided_unref(p->event.decided);
    free(p);
}

static struct dmn_history_event *tell(struct dmn_model *m, struct proof *p)
{
    p->event.duration_ms = (double)(base_now_ns() - p->began_ns) / 1e6;
    return dmn_adapt_tell(m, p->event, p->turns);
}

static void proved(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r)
{
    struct proof *p = ctx;

    if (m) {
        bool better = !r->left && r->verdict == TUN_TURNS_BETTER;

        p->turns = r;
        p->event.outcome = better ? DMN_OUTCOME_SWITCHED : DMN_OUTCOME_KEPT;
        if (better) {
            m->adapt->state.switches++;
            dmn_plan_adopt(m, &(struct dmn_switch){.origin = p->event.origin, .keep = p->keep});
        } else {
            p->event.origin = m->origin;
            m->adapt->split_lost = p->split && !r->left ? r->verdict : TUN_TURNS_OPEN;
        }
        tell(m, p);
        tun_adapt_changed(m->adapt->watch, base_now_ns());
        dmn_adapt_follow(m->adapt, m, base_now_ns());
    }
    proof_free(p);
}

/* Bottleneck of a plan on the new EPs with their known slowdown; 0: unknown. */
static double predict(const struct tun_problem *problem, const struct dmn_change_part *p,
                      const struct pl_plan *plan)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    struct tun_outcome o;

    return dmn_adapt_slowed(problem, p->slow, &slowed) == 0 && tun_fits(&slowed, plan) &&
                   tun_eval(&slowed, plan, &o) == 0
               ? o.bottleneck_ns
               : 0;
}

void dmn_change_tell_nothing(struct dmn_model *m, const struct dmn_adapt_change *c, const char *why,
                             const struct dmn_turns_result *turns, enum dmn_event_outcome outcome)
{
    char detail[sizeof(c->text) + 128];

    snprintf(detail, sizeof(detail), "%s; %.100s", c->text, why);
    dmn_adapt_tell(
        m,
        (struct dmn_history_event){.cause = dmn_cause_of(c->cause),
                                   .detail = detail,
                                   .origin = m->origin,
                                   .outcome = outcome,
                                   .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
                                   .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6},
        turns);
}

/* Hands what is known to the new watch, which switches back if the previous plan would do
 * better. */
static void hand_over(struct dmn_model *m, struct dmn_change_part *p)
{
    struct dmn_adapt_model *a = m->adapt;

    dmn_adapt_forget(m);
    a->state_id = 0;
    dmn_adapt_follow(a, m, base_now_ns());
    if (p->turns) {
        tun_adapt_changed(a->watch, a->epoch_ns);
    }
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

/* Whether the plan has to show that it is better than the one that serves. */
static bool to_prove(const struct dmn_model *m, const struct dmn_change_part *p,
                     const struct pl_plan *plan)
{
    return !p->turns && p->fits && !p->pinned && !pl_plan_equal(&p->same, plan) &&
           dmn_adapt_comparable(m, &p->problem) && !dmn_turns_any(m->of);
}

bool dmn_change_prove(struct dmn_adapt_change *c, const struct dmn_change_part *p,
                      struct dmn_model *m, dmn_turns_fn *over)
{
    struct pl_plan plan, on_parts;
    struct dmn_origin origin;

    return dmn_change_returns(p) && dmn_change_choose(m, c, p, &plan, &origin) &&
           to_prove(m, p, &plan) &&
           pl_plan_move(&plan, &c->eps, pl_current_eps(m->pipe), m->planning->problem.unit_count,
                        &on_parts) &&
           dmn_turns_begin(m, &(struct dmn_turns_request){.incumbent = pl_current_plan(m->pipe),
                                                          .challenger = &on_parts,
                                                          .returns = true,
                                                          .over = over,
                                                          .ctx = c}) == 0;
}

/* The plan serves. */
static void conclude(struct dmn_model *m, struct proof *proof)
{
    struct dmn_history_event *event = tell(m, proof);

    if (m->adapt && proof->event.outcome == DMN_OUTCOME_SWITCHED && !proof->turns) {
        dmn_adapt_await(m, event);
    }
    proof_free(proof);
}

void dmn_change_apply(struct dmn_adapt_change *c, struct dmn_change_part *p, struct dmn_model *m)
{
    base_autofree struct pl_plan *plan = malloc(sizeof(*plan));
    struct pl_ep_set before_eps = *pl_current_eps(m->pipe);
    struct dmn_origin origin;
    char before[PL_PLAN_TEXT_MAX];
    struct proof *proof;
    bool prove;
    int error;

    dmn_model_plan_text(m, before);
    if (!plan || !dmn_change_choose(m, c, p, plan, &origin)) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: no plan for the cores that are left; its threads share them",
                     m->name);
        dmn_change_tell_nothing(m, c, "no plan found for them", NULL, DMN_OUTCOME_FAILED);
        return;
    }
    keep_home(m);
    prove = to_prove(m, p, plan);
    dmn_costs_swap(m, &p->problem);
    free(base_take(m->planning->tried)); /* on the old EPs */
    pl_set_eps(m->pipe, &c->eps);
    proof = proof_new(m, c, p, before, plan, origin);
    error = proof ? dmn_plan_switch(m, &(struct dmn_switch){.plan = prove ? &p->same : plan,
                                                            .origin = prove ? m->origin : origin,
                                                            .keep = !prove && !p->slowed})
                  : -ENOMEM;
    if (error) {
        dmn_costs_swap(m, &p->problem);
        pl_set_eps(m->pipe, &before_eps);
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: cannot move the plan to other cores: %s", m->name,
                     strerror(-error));
        dmn_change_tell_nothing(m, c, "the plan cannot be moved", NULL, DMN_OUTCOME_FAILED);
        if (proof) {
            proof_free(proof);
        }
        return;
    }
    if (p->turns) { /* told as plans of the new EPs */
        p->turns->incumbent = p->same;
        p->turns->challenger = *plan;
        proof->turns = p->turns;
    } else if (!prove) {
        expect_verification(m, p, plan);
    }
    if (m->adapt) {
        hand_over(m, p);
    }
    if (prove && dmn_turns_begin(m, &(struct dmn_turns_request){.incumbent = &p->same,
                                                                .challenger = plan,
                                                                .returns = dmn_change_returns(p),
                                                                .over = proved,
                                                                .ctx = proof}) == 0) {
        search_later(m, c);
        return;
    }
    conclude(m, proof);
    search_later(m, c);
}
