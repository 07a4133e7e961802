/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions: solves them as queued work, acts on them, verifies them, reverts them. */

#include "daemon/adapt/adapter_private.h"
#include "daemon/service/log.h"

/* Windows of throughput before a change: from the onset on, not earlier. */
#define PACE_BEFORE 3u

struct dmn_adapt_job *dmn_adapt_job_free(struct dmn_adapt_job *j)
{
    if (j) {
        dmn_decided_unref(j->told);
        tun_decision_deinit(&j->decision);
        tun_record_deinit(&j->record);
        free(j);
    }
    return NULL;
}

static bool any_factor(const struct tun_problem *p, const double *slow)
{
    for (size_t i = 0; i < p->ep_count * p->unit_count; i++) {
        if (slow[i] != 1) {
            return true;
        }
    }
    return false;
}

void dmn_adapt_decided(struct dmn_model *m, const struct tun_record *r,
                       const struct tun_decision *d, bool switched)
{
    if (tun_adapt_decided(m->adapt->watch, r, d, switched, base_now_ns()) < 0) {
        dmn_adapt_forget(m);
    }
}

void dmn_adapt_unlearn(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem *good = a->good[1].unit_count ? &a->good[1] : &a->good[0];

    if (good->unit_count == m->planning->problem.unit_count &&
        good->ep_count == m->planning->problem.ep_count) {
        dmn_costs_swap(m, good);
        tun_problem_deinit(good);
    }
}

/* The record of a job: its own, or the event's once it was reported. */
static const struct tun_record *record_of(const struct dmn_adapt_job *j)
{
    return j->told ? &j->told->record : &j->record;
}

/* The origin of a decision's plan. */
static struct dmn_origin origin_of(const struct dmn_adapt_job *j)
{
    return j->known ? (struct dmn_origin){.from = DMN_FROM_SAVED} : DMN_ORIGIN_EXACT;
}

/* @before: NULL: the plan stays. @r: of the turns that led to it; NULL: there were none. */
static struct dmn_history_event *tell(struct dmn_model *m, const struct dmn_adapt_job *j,
                                      enum dmn_event_outcome outcome, const char *before,
                                      const struct dmn_turns_result *r)
{
    char detail[512];

    dmn_adapt_detail(record_of(j), &j->decision, detail, sizeof(detail));
    if (j->known) {
        base_append(detail, sizeof(detail),
                    "; the plan kept for this state of the machine returns");
    }
    return dmn_adapt_tell(
        m,
        (struct dmn_history_event){.cause = dmn_cause_of(j->decision.cause),
                                   .detail = detail,
                                   .origin = j->decision.search ? m->origin : origin_of(j),
                                   .outcome = outcome,
                                   .plan_before = before,
                                   .fps_before = dmn_adapt_fps(m->adapt, PACE_BEFORE),
                                   .predicted_gain = j->decision.gain,
                                   .duration_ms = (double)(base_now_ns() - j->began_ns) / 1e6,
                                   .decided = j->told},
        r);
}

void dmn_adapt_await(struct dmn_model *m, struct dmn_history_event *event)
{
    struct dmn_adapt_model *a = m->adapt;

    dmn_adapt_follow(a, m, base_now_ns());
    a->state.switches++;
    dmn_event_unref(a->event);
    a->event = dmn_event_ref(event);
    a->verify_left =
        (unsigned)dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_ADAPT_SETTLE) + 2;
    a->verify_ns = 0;
}

/* Switches to the decision's plan. Return: it serves. */
static bool change(struct dmn_model *m, const struct dmn_adapt_job *j)
{
    struct dmn_adapt_model *a = m->adapt;
    char before[PL_PLAN_TEXT_MAX];
    int error;

    dmn_model_plan_text(m, before);
    error = dmn_plan_switch(
        m, &(struct dmn_switch){.plan = &j->decision.plan,
                                .origin = origin_of(j),
                                .keep = !j->known && !tun_cause_felt(j->decision.cause)});
    if (error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                        "model %s: cannot build a better plan: %s", m->name, strerror(-error));
        return false;
    }
    a->state.outcome = DMN_OUTCOME_SWITCHED;
    dmn_adapt_machine_told(a, j->decision.cause);
    dmn_adapt_await(m, tell(m, j, DMN_OUTCOME_SWITCHED, before, NULL));
    return true;
}

/* Whether the plan has to show that it is better, see docs/adaptation.md. */
static bool to_prove(const struct dmn_model *m, const struct tun_decision *d)
{
    return !d->must && dmn_adapt_comparable(m, &d->corrected);
}

/* Takes over what a search found. @replan: its plan serves, and differs from the previous one. */
static void settle_searched(struct dmn_model *m, struct dmn_adapt_job *j, bool replan,
                            const struct dmn_history_event *event)
{
    struct dmn_adapt_model *a = m->adapt;
    bool measured = event && event->fps_before > 0 && event->fps_after > 0;

    dmn_adapt_follow(a, m, base_now_ns());
    tun_decision_searched(&j->decision, pl_current_plan(m->pipe), replan,
                          measured ? 1e9 / event->fps_before : j->decision.before_ns,
                          measured ? 1e9 / event->fps_after : j->decision.after_ns);
    dmn_adapt_decided(m, record_of(j), &j->decision, replan);
}

/* The plan that a search found and the previous plan have served in turns. */
static void searched_proved(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r)
{
    struct dmn_adapt_job *j = ctx;
    bool better = r->verdict == TUN_TURNS_BETTER;
    double ns = better ? r->shown.challenger_ns : r->shown.incumbent_ns;

    if (m && r->left) {
        dmn_adapt_decided(m, record_of(j), NULL, false);
    } else if (m) {
        struct dmn_history_event *event = base_take(m->adapt->event);

        settle_searched(m, j, better, event);
        tun_adapt_proved(m->adapt->watch, record_of(j), &j->decision, r->verdict);
        if (event) {
            event->verdict = r->verdict;
            event->turns = r->shown;
        }
        dmn_plan_event_measured(m, event, better ? DMN_OUTCOME_SWITCHED : DMN_OUTCOME_ROLLED_BACK,
                                ns > 0 ? 1e9 / ns : -1, r->frames[better], r->failed);
        if (!better) {
            dmn_plan_adopt(m, &(struct dmn_switch){.origin = j->origin, .keep = true});
            m->adapt->state.outcome = DMN_OUTCOME_ROLLED_BACK;
        }
        dmn_event_unref(event);
    }
    dmn_adapt_job_free(j);
}

/* The search of a decision is over: its plan and the previous one take turns, or it is verified as
 * any other that cannot. */
static void on_searched(void *ctx, const struct dmn_outcome *o, struct dmn_history_event *event)
{
    struct dmn_model *m = ctx;
    struct dmn_adapt_model *a = m->adapt;
    struct dmn_adapt_job *j = a ? base_take(a->search) : NULL;
    bool replan, measured = event && event->fps_before > 0 && event->fps_after > 0;

    if (!j) {
        return;
    }
    replan = measured && !pl_plan_equal(pl_current_plan(m->pipe), &record_of(j)->plan);
    a->state.outcome = DMN_OUTCOME_TUNED;
    if (replan && to_prove(m, &j->decision) && !dmn_turns_any(m->of) &&
        dmn_turns_begin(m, &(struct dmn_turns_request){.incumbent = &record_of(j)->plan,
                                                       .challenger = pl_current_plan(m->pipe),
                                                       .over = searched_proved,
                                                       .ctx = j}) == 0) {
        dmn_event_unref(a->event);
        a->event = dmn_event_ref(event);
        return;
    }
    settle_searched(m, j, replan, event);
    if (replan && a->serving) {
        dmn_adapt_await(m, event);
    }
    dmn_adapt_job_free(j);
}

/* Starts the search of a decision, which keeps the job. Return: it began. */
static bool search(struct dmn_model *m, struct dmn_adapt_job *j)
{
    const struct tun_decision *d = &j->decision;
    struct dmn_retune_request q =
        dmn_retune_configured(dmn_machine_config(m->of->machine), dmn_cause_of(d->cause));
    struct dmn_adapt_model *a = m->adapt;
    struct pl_plan known;
    char why[256];

    dmn_adapt_detail(record_of(j), d, why, sizeof(why));
    q.why = why;
    q.decided = j->told;
    q.known = dmn_kept_plan(m, &known) ? &known : NULL;
    q.options.from = pl_current_plan(m->pipe);
    q.problem = d->corrected.ep_count == m->planning->problem.ep_count ? &d->corrected : NULL;
    q.done = on_searched;
    q.done_ctx = m;
    j->origin = m->origin;
    a->search = j;
    if (dmn_retune_begin(m, &q) != 0) {
        a->search = NULL;
        return false;
    }
    a->event = dmn_event_unref(a->event);
    a->verify_left = 0;
    a->searched_id = a->state_id;
    dmn_adapt_machine_told(a, d->cause);
    a->state.outcome = DMN_OUTCOME_TUNING;
    return true;
}

/* Adds an event for a decision that led to nothing, within the rations. A decision that a guard
 * held back will be repeated; until then, changes of the machine are reported separately. */
static void tell_kept(struct dmn_model *m, const struct dmn_adapt_job *j)
{
    enum tun_cause cause = j->decision.cause;
    enum tun_hold hold = j->decision.hold;
    bool later = hold == TUN_HOLD_COOLDOWN || hold == TUN_HOLD_BUDGET;

    m->adapt->state.outcome = DMN_OUTCOME_KEPT;
    if (cause == TUN_CAUSE_NONE || cause == TUN_CAUSE_MEASURED ||
        (later && !tun_cause_felt(cause)) ||
        (!dmn_adapt_machine_told(m->adapt, cause) &&
         !dmn_adapt_may_tell(m->adapt, base_now_ns()))) {
        dmn_log_limited(LOG_INFO, (struct dmn_log_fields){.model = m->name},
                        "model %s: %s noticed, the plan stays (%s)", m->name, tun_cause_name(cause),
                        tun_hold_names[hold]);
        return;
    }
    tell(m, j, DMN_OUTCOME_KEPT, NULL, NULL);
}

/* Takes over what the decision says of the machine. What others take of a core is no cost, so while
 * the plan stays as it is, the table learns on. */
static void correct(struct dmn_model *m, const struct dmn_adapt_job *j)
{
    struct dmn_adapt_model *a = m->adapt;
    const struct tun_decision *d = &j->decision;

    a->state.held = d->hold;
    if (d->cause == TUN_CAUSE_CONTENTION && !d->replan && !a->corrected) {
        return;
    }
    if (!a->corrected && tun_cause_felt(d->cause)) {
        dmn_adapt_unlearn(m);
    }
    a->corrected = any_factor(&record_of(j)->problem, d->slow);
}

/* The same, and what follows. @switched: its plan serves. */
static void settle(struct dmn_model *m, const struct dmn_adapt_job *j, bool switched)
{
    correct(m, j);
    dmn_adapt_decided(m, record_of(j), &j->decision, switched);
}

static void proved(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r)
{
    struct dmn_adapt_job *j = ctx;
    bool better = r->verdict == TUN_TURNS_BETTER;
    char before[PL_PLAN_TEXT_MAX];

    if (m && r->left) {
        dmn_adapt_decided(m, record_of(j), NULL, false);
    } else if (m) {
        if (better) {
            m->adapt->state.switches++;
            dmn_plan_adopt(
                m, &(struct dmn_switch){.origin = origin_of(j),
                                        .keep = !j->known && !tun_cause_felt(j->decision.cause)});
        } else {
            j->decision.replan = false;
            j->decision.hold = TUN_HOLD_LOST;
        }
        m->adapt->state.outcome = better ? DMN_OUTCOME_SWITCHED : DMN_OUTCOME_KEPT;
        dmn_adapt_machine_told(m->adapt, j->decision.cause);
        dmn_adapt_follow(m->adapt, m, base_now_ns());
        pl_plan_format(&r->incumbent, pl_current_eps(m->pipe), before, sizeof(before));
        tell(m, j, m->adapt->state.outcome, before, r);
        settle(m, j, better);
        if (j->decision.cause == TUN_CAUSE_MEASURED && !better && r->verdict != TUN_TURNS_WORSE) {
            m->adapt->solved_epoch = 0; /* nothing was shown: once more, as the guards allow */
        }
        tun_adapt_proved(m->adapt->watch, record_of(j), &j->decision, r->verdict);
    }
    dmn_adapt_job_free(j);
}

static int begin_turns(struct dmn_model *m, struct dmn_adapt_job *j)
{
    const struct tun_decision *d = &j->decision;

    return dmn_turns_begin(
        m, &(struct dmn_turns_request){.incumbent = pl_current_plan(m->pipe),
                                       .challenger = &d->plan,
                                       .expected_ns = d->after_ns,
                                       .returns = j->known || tun_decision_returns(record_of(j), d),
                                       .over = proved,
                                       .ctx = j});
}

/* The models are planned together: the watch takes over what is known now, as after a search that
 * ends where it began, and the plan for all models is made again. */
static void ask_together(struct dmn_model *m, struct dmn_adapt_job *j)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_decision *d = &j->decision;

    a->asks = d->cause ? d->cause : a->asks;
    d->replan = false;
    d->hold = TUN_HOLD_TOGETHER;
    d->search = true;
    dmn_adapt_detail(record_of(j), d, a->asks_why, sizeof(a->asks_why));
    tun_decision_searched(d, pl_current_plan(m->pipe), false, d->before_ns, d->before_ns);
    a->state.outcome = DMN_OUTCOME_KEPT;
    settle(m, j, false);
}

/* Acts on a decision. Return: turns or a search have begun, which own the job. */
static bool act(struct dmn_model *m, struct dmn_adapt_job *j)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_decision *d = &j->decision;
    bool same = j->epoch == pl_epoch(m->pipe) && dmn_adapt_free_to_act(m), switched = false;

    a->state.decisions++;
    if (j->result != 0) {
        dmn_adapt_decided(m, &j->record, NULL, false);
        return false;
    }
    a->state.decided = true;
    a->state.cause = d->cause;
    j->told = dmn_decided_new(&j->record, &j->decision);
    if (dmn_together(m) && !d->must) {
        ask_together(m, j);
        return false;
    }
    j->known = !d->search && dmn_adapt_prefer_known(m, record_of(j), &j->decision);
    a->quota_decided = a->quota;
    if (same && d->replan && !d->search && tun_adapt_lost(a->watch, record_of(j), d)) {
        d->replan = false;
        d->hold = TUN_HOLD_LOST;
    }
    if (same && d->replan && d->search) {
        if (search(m, j)) {
            correct(m, j);
            return true;
        }
    } else if (same && d->replan && to_prove(m, d)) {
        if (!dmn_turns_any(m->of) && begin_turns(m, j) == 0) {
            return true;
        }
    } else if (same && d->replan) {
        switched = change(m, j);
    } else if (same) {
        tell_kept(m, j);
    }
    settle(m, j, switched);
    return false;
}

static void run(struct dmn_job *work)
{
    struct dmn_adapt_job *j = base_container_of(work, struct dmn_adapt_job, work);

    j->result = tun_decide(&j->record, &j->decision);
}

static void drop(struct dmn_job *work)
{
    dmn_adapt_job_free(base_container_of(work, struct dmn_adapt_job, work));
}

static void done(struct dmn_job *work)
{
    struct dmn_adapt_job *j = base_container_of(work, struct dmn_adapt_job, work);

    j->model->adapt->job = NULL;
    if (!act(j->model, j)) {
        dmn_adapt_job_free(j);
    }
}

void dmn_adapt_decide(struct dmn_model *m, struct tun_record *r)
{
    struct dmn_adapt_job *j = calloc(1, sizeof(*j));

    if (!j) {
        dmn_adapt_decided(m, r, NULL, false);
        tun_record_deinit(r);
        return;
    }
    j->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
    j->model = m;
    j->record = *r;
    *r = TUN_RECORD_NULL;
    j->epoch = pl_epoch(m->pipe);
    j->began_ns = base_now_ns();
    m->adapt->job = j;
    dmn_work_do(m->of->machine->beside, &j->work);
}

void dmn_adapt_back(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    /* the restored plan replaces the reverted one in the saved state, too */
    const struct dmn_switch back = {
        .plan = tun_adapt_before(a->watch), .origin = m->origin, .keep = !a->corrected};
    bool switched = dmn_plan_switch(m, &back) == 0;

    if (switched) {
        dmn_plan_event_measured(
            m, a->event, DMN_OUTCOME_ROLLED_BACK, dmn_adapt_fps(a, a->verify_ns ? 4 : 1),
            m->stats.collected - a->verify_collected, m->stats.failed - a->verify_failed);
        a->event = dmn_event_unref(a->event);
        dmn_adapt_follow(a, m, now_ns);
        a->state.outcome = DMN_OUTCOME_ROLLED_BACK;
    }
    a->verify_left = 0;
    if (tun_adapt_went_back(a->watch, switched, now_ns) < 0) {
        dmn_adapt_forget(m);
    }
}

/* The first window of a plan covers the hand-over. */
void dmn_adapt_verify(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a->verify_ns == 0) {
        a->verify_ns = now_ns;
        a->verify_collected = m->stats.collected;
        a->verify_failed = m->stats.failed;
    } else if (--a->verify_left == 0) {
        uint64_t frames = m->stats.collected - a->verify_collected;

        dmn_plan_event_measured(m, a->event, DMN_OUTCOME_SWITCHED,
                                frames ? (double)frames * 1e9 / (double)(now_ns - a->verify_ns)
                                       : -1,
                                frames, m->stats.failed - a->verify_failed);
    }
}
