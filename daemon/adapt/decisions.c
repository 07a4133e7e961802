/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions: solved as queued work, acted on, verified, taken back. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base.h"
#include "daemon/adapt_private.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

/* Solving gives way to serving. */
#define JOB_NICE 10
/* Windows of the throughput before a change: those since the onset, not those before it. */
#define PACE_BEFORE 3u

static void job_free(struct dmn_adapt_job *j)
{
    json_decref(j->told);
    tun_decision_deinit(&j->decision);
    tun_record_deinit(&j->record);
    free(j);
}

struct dmn_adapt_job *dmn_adapt_job_leave(struct dmn_adapt_job *j)
{
    if (j) {
        j->model = NULL;
        uv_cancel((uv_req_t *)&j->work);
    }
    return NULL;
}

int dmn_adapt_switch(struct dmn_model *m, const struct pl_plan *plan, const char *algorithm,
                     bool keep)
{
    char before[PL_PLAN_TEXT_MAX], after[PL_PLAN_TEXT_MAX];
    int error;

    dmn_model_plan_text(m, before);
    error = pl_switch(m->pipe, plan);
    if (error) {
        return error;
    }
    m->algorithm = algorithm;
    dmn_model_plan_text(m, after);
    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_PLAN_CHANGED, .model = m->name, .plan = after}),
        "model %s: plan %s instead of %s", m->name, after, before);
    dmn_model_plan_changed(m);
    if (keep) {
        dmn_state_save(m);
    }
    return 0;
}

static bool foreign(enum tun_cause cause)
{
    return cause == TUN_CAUSE_CONTENTION || cause == TUN_CAUSE_THROUGHPUT;
}

static bool any_factor(const struct tun_problem *p, const double *slow)
{
    for (size_t i = 0; i < p->kind_count * p->unit_count; i++) {
        if (slow[i] != 1) {
            return true;
        }
    }
    return false;
}

/* What was learned after something foreign had begun is no cost of these cores. */
static void unlearn(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem *good = a->good[1].unit_count ? &a->good[1] : &a->good[0];

    if (good->unit_count == m->problem.unit_count && good->kind_count == m->problem.kind_count) {
        tun_problem_deinit(&m->problem);
        m->problem = *good;
        *good = TUN_PROBLEM_NULL;
        dmn_planner_clocks_free(m);
    }
}

/* A search instead of the solution at hand, where the configuration wants one. Return: did one
 * begin. */
static bool search(struct dmn_model *m, const struct dmn_adapt_job *j)
{
    const struct dmn_config *c = m->daemon->config;
    const char *name = dmn_config_string(c, DMN_KEY_PLANNER_ALGORITHM);
    struct dmn_retune_request q = {
        .algorithm = tun_algorithm_find(name),
        .goal = dmn_goal_config(c),
        .options = {.seed = 1, .alpha = (unsigned)dmn_config_int(c, DMN_KEY_PLANNER_ALPHA)},
        .cause = tun_cause_name(j->decision.cause),
    };
    struct dmn_adapt_model *a = m->adapt;

    if (!q.algorithm || strcmp(name, "exact") == 0 || j->decision.must ||
        dmn_retune_begin(m, &q) != 0) {
        return false;
    }
    a->tuning = true;
    dmn_adapt_machine_told(a, q.cause);
    json_decref(a->record);
    a->record = json_incref(j->told);
    a->last_outcome = "tuning";
    return true;
}

static json_t *tell(struct dmn_model *m, const struct dmn_adapt_job *j, const char *outcome,
                    const char *before)
{
    char after[PL_PLAN_TEXT_MAX], detail[512];

    dmn_model_plan_text(m, after);
    dmn_adapt_detail(&j->record, &j->decision, detail, sizeof(detail));
    if (j->known) {
        size_t used = strlen(detail);

        snprintf(detail + used, sizeof(detail) - used,
                 "; the plan kept for this state of the machine returns");
    }
    return dmn_adapt_tell(
        m, &(struct dmn_adapt_told){.cause = tun_cause_name(j->decision.cause),
                                    .detail = detail,
                                    .algorithm = j->known ? "saved" : "exact",
                                    .outcome = outcome,
                                    .before = before,
                                    .after = after,
                                    .fps_before = dmn_adapt_fps(m->adapt, PACE_BEFORE),
                                    .gain = j->decision.gain,
                                    .duration_ms = (double)(base_now_ns() - j->began_ns) / 1e6,
                                    .record = json_incref(j->told)});
}

void dmn_adapt_await(struct dmn_model *m, json_t *event)
{
    struct dmn_adapt_model *a = m->adapt;

    a->epoch = pl_epoch(m->pipe);
    a->epoch_ns = base_now_ns();
    a->window_ns = 0;
    a->switches++;
    json_decref(a->event);
    a->event = event;
    a->verify_left = (unsigned)dmn_config_int(m->daemon->config, DMN_KEY_ADAPT_SETTLE) + 2;
    a->verify_ns = 0;
}

/* The plan of the decision serves. Return: did it come to that. */
static bool change(struct dmn_model *m, const struct dmn_adapt_job *j)
{
    struct dmn_adapt_model *a = m->adapt;
    char before[PL_PLAN_TEXT_MAX];
    int error;

    dmn_model_plan_text(m, before);
    error = dmn_adapt_switch(m, &j->decision.plan, j->known ? "saved" : "exact",
                             !j->known && !foreign(j->decision.cause));
    if (error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                        "model %s: a better plan could not be built: %s", m->name,
                        strerror(error < 0 ? -error : EBUSY));
        return false;
    }
    a->last_outcome = "switched";
    dmn_adapt_machine_told(a, tun_cause_name(j->decision.cause));
    dmn_adapt_await(m, tell(m, j, "switched", before));
    return true;
}

/* What was noticed and led to nothing has an event as well, as far as the rations go. What a guard
 * held back is decided on again: until then a change of the machine is told by itself. */
static void tell_kept(struct dmn_model *m, const struct dmn_adapt_job *j)
{
    enum tun_cause cause = j->decision.cause;
    enum tun_hold hold = j->decision.hold;
    bool later = hold == TUN_HOLD_COOLDOWN || hold == TUN_HOLD_BUDGET;
    char plan[PL_PLAN_TEXT_MAX];

    m->adapt->last_outcome = "kept";
    if (cause == TUN_CAUSE_NONE || (later && !foreign(cause)) ||
        (!dmn_adapt_machine_told(m->adapt, tun_cause_name(cause)) &&
         !dmn_adapt_may_tell(m->adapt, base_now_ns()))) {
        dmn_log_limited(LOG_INFO, (struct dmn_log_fields){.model = m->name},
                        "model %s: %s noticed, the plan stays (%s)", m->name, tun_cause_name(cause),
                        tun_hold_name(hold));
        return;
    }
    dmn_model_plan_text(m, plan);
    json_decref(tell(m, j, "kept", plan));
}

static void act(struct dmn_model *m, struct dmn_adapt_job *j)
{
    struct dmn_adapt_model *a = m->adapt;
    const struct tun_decision *d = &j->decision;
    bool same = j->epoch == pl_epoch(m->pipe) && dmn_adapt_free_to_act(m), switched = false;

    a->decisions++;
    if (j->result != 0) {
        if (tun_adapt_decided(a->watch, &j->record, NULL, false, base_now_ns()) < 0) {
            dmn_adapt_forget(m);
        }
        return;
    }
    a->last_cause = tun_cause_name(d->cause);
    j->told = dmn_adapt_record_json(&j->record, &j->decision);
    j->known = dmn_adapt_prefer_known(m, &j->record, &j->decision);
    a->held = d->hold == TUN_HOLD_NONE ? NULL : tun_hold_name(d->hold);
    a->quota_decided = a->quota;
    if (same && d->replan && (j->known || !search(m, j))) {
        switched = change(m, j);
    } else if (same && !d->replan) {
        tell_kept(m, j);
    }
    if (!a->corrected && foreign(d->cause)) {
        unlearn(m);
    }
    a->corrected = any_factor(&j->record.problem, d->slow);
    if (tun_adapt_decided(a->watch, &j->record, d, switched, base_now_ns()) < 0) {
        dmn_adapt_forget(m);
    }
}

static void work(uv_work_t *w)
{
    struct dmn_adapt_job *j = w->data;

    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), JOB_NICE);
    j->result = tun_decide(&j->record, &j->decision);
}

static void done(uv_work_t *w, int status)
{
    struct dmn_adapt_job *j = w->data;
    struct dmn_model *m = j->model;
    struct dmn_daemon *d = m ? m->daemon : NULL;

    if (m) {
        m->adapt->job = NULL;
        j->result = status < 0 ? status : j->result;
        act(m, j);
    }
    job_free(j);
    if (d) {
        dmn_daemon_settle(d);
    }
}

void dmn_adapt_decide(struct dmn_model *m, struct tun_record *r)
{
    struct dmn_adapt_job *j = calloc(1, sizeof(*j));

    if (!j) {
        if (tun_adapt_decided(m->adapt->watch, r, NULL, false, base_now_ns()) < 0) {
            dmn_adapt_forget(m);
        }
        tun_record_deinit(r);
        return;
    }
    j->work.data = j;
    j->model = m;
    j->record = *r;
    *r = TUN_RECORD_NULL;
    j->epoch = pl_epoch(m->pipe);
    j->began_ns = base_now_ns();
    m->adapt->job = j;
    if (uv_queue_work(&m->daemon->loop, &j->work, work, done) < 0) {
        j->result = -EAGAIN;
        m->adapt->job = NULL;
        act(m, j);
        job_free(j);
    }
}

void dmn_adapt_back(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    /* what was taken back is kept for this state no longer */
    bool switched =
        dmn_adapt_switch(m, tun_adapt_before(a->watch), m->algorithm, !a->corrected) == 0;

    if (switched) {
        dmn_adapt_complete(a->event, "rolled back", dmn_adapt_fps(a, a->verify_ns ? 4 : 1),
                           m->stats.collected - a->verify_collected,
                           m->stats.failed - a->verify_failed);
        json_decref(base_take(a->event));
        a->epoch = pl_epoch(m->pipe);
        a->epoch_ns = now_ns;
        a->window_ns = 0;
        a->last_outcome = "rolled back";
    }
    a->verify_left = 0;
    if (tun_adapt_went_back(a->watch, switched, now_ns) < 0) {
        dmn_adapt_forget(m);
    }
}

/* The first window of a plan is that of the hand-over. */
void dmn_adapt_verify(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a->verify_ns == 0) {
        a->verify_ns = now_ns;
        a->verify_collected = m->stats.collected;
        a->verify_failed = m->stats.failed;
    } else if (--a->verify_left == 0) {
        uint64_t frames = m->stats.collected - a->verify_collected;

        dmn_adapt_complete(a->event, "switched",
                           frames ? (double)frames * 1e9 / (double)(now_ns - a->verify_ns) : -1,
                           frames, m->stats.failed - a->verify_failed);
    }
}
