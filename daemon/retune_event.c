/* SPDX-License-Identifier: Apache-2.0 */
/* What the history and the log say of a retune. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "daemon/retune_private.h"

/* More trials than this are counted and not listed, but for those that were the best so far. */
#define LISTED_MAX 256u

static void plan_text(const struct dmn_daemon *d, const struct pl_plan *plan, char *ret)
{
    if (pl_plan_format(plan, &d->eps, ret, PL_PLAN_TEXT_MAX) < 0) {
        ret[0] = '\0';
    }
}

static json_t *ms_or_null(double ns)
{
    return ns > 0 ? json_real(ns / 1e6) : json_null();
}

void dmn_retune_note_trial(struct dmn_model *m, const char *role, double ci, double predicted_ns)
{
    struct dmn_retune *r = m->retune;
    const struct tun_trial *t = &r->last;
    char plan[PL_PLAN_TEXT_MAX];

    if (json_array_size(r->trials_json) >= LISTED_MAX &&
        (t->failed || t->stopped || !tun_better(&r->rule, &t->measured, &r->best.measured))) {
        return;
    }
    plan_text(m->daemon, &t->plan, plan);
    json_array_append_new(
        r->trials_json,
        json_pack("{s:s, s:s, s:o, s:I, s:b, s:o, s:o, s:f, s:b, s:b, s:f}", "plan", plan, "role",
                  role, "bottleneck_ms",
                  t->failed ? json_null() : ms_or_null(t->measured.bottleneck_ns), "frames",
                  (json_int_t)t->frames, "kept", 0, "predicted_ms", ms_or_null(predicted_ns),
                  "latency_ms", t->failed ? json_null() : ms_or_null(t->measured.latency_ns), "ci",
                  ci, "stopped", t->stopped, "failed", t->failed, "spent_ms", t->spent_ns / 1e6));
}

void dmn_retune_note_predicted(struct dmn_retune *r)
{
    size_t count, listed = json_array_size(r->trials_json);
    const struct tun_trial *log = tun_search_log(r->job->search, &count);

    if (count > 0 && listed > 0 && log[count - 1].predicted_ns > 0) {
        json_object_set_new(json_array_get(r->trials_json, listed - 1), "predicted_ms",
                            json_real(log[count - 1].predicted_ns / 1e6));
    }
}

/* The measurement of the plan that serves now is the one that was kept: the newest of it that ran
 * to its end. */
static void mark_kept(struct dmn_retune *r, const char *plan)
{
    for (size_t i = json_array_size(r->trials_json); i-- > 0;) {
        json_t *trial = json_array_get(r->trials_json, i);

        if (strcmp(json_string_value(json_object_get(trial, "plan")), plan) == 0 &&
            !json_is_true(json_object_get(trial, "stopped")) &&
            !json_is_true(json_object_get(trial, "failed"))) {
            json_object_set_new(trial, "kept", json_true());
            return;
        }
    }
}

static double fps(const struct tun_trial *t)
{
    return t && !t->failed && t->measured.bottleneck_ns > 0 ? 1e9 / t->measured.bottleneck_ns : -1;
}

/* Of the plan after over the plan before, by what is known now; 0: unknown. */
static double predicted_gain(struct dmn_model *m, const struct pl_plan *after)
{
    struct tun_problem p = TUN_PROBLEM_NULL;
    struct tun_outcome a, b;
    double gain = 0;

    if (dmn_planner_problem(m, &m->retune->q.goal, &p) == 0 && tun_eval(&p, after, &a) == 0 &&
        tun_eval(&p, &m->retune->before, &b) == 0 && a.bottleneck_ns > 0) {
        gain = b.bottleneck_ns / a.bottleneck_ns - 1;
    }
    tun_problem_deinit(&p);
    return gain;
}

static void detail_text(const struct dmn_retune *r, char *ret, size_t bytes)
{
    int used =
        snprintf(ret, bytes, "%s for %s: %zu trial%s", r->q.algorithm->name,
                 dmn_objective_name(r->q.goal.objective), r->trials, r->trials == 1 ? "" : "s");

    if (r->shape_trials && used > 0 && (size_t)used < bytes) {
        used += snprintf(ret + used, bytes - (size_t)used, " after %zu of shapes of team",
                         r->shape_trials);
    }
    if (used > 0 && (size_t)used < bytes) {
        used += snprintf(ret + used, bytes - (size_t)used, ", measured %s",
                         r->idle ? "with synthetic frames" : "under traffic");
    }
    if (r->why[0] && used > 0 && (size_t)used < bytes) {
        snprintf(ret + used, bytes - (size_t)used, "; %s", r->why);
    }
}

void dmn_retune_write_event(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    uint64_t answered = m->stats.answered - r->answered;
    uint64_t frames = answered ? answered : m->stats.collected - r->collected;
    double took_ns = (double)(base_now_ns() - r->began_ns);
    const struct pl_plan *plan = r->chosen ? &r->chosen->plan : &r->before;
    char after[PL_PLAN_TEXT_MAX], detail[512];
    json_t *event;

    plan_text(m->daemon, plan, after);
    detail_text(r, detail, sizeof(detail));
    mark_kept(r, after);
    event = dmn_history_add(
        &m->daemon->history,
        &(struct dmn_history_event){.model = m->name,
                                    .cause = r->q.cause,
                                    .detail = detail,
                                    .algorithm = r->q.algorithm->name,
                                    .trials = json_incref(r->trials_json),
                                    .plan_before = r->plan_before,
                                    .plan_after = after,
                                    .fps_before = fps(&r->first),
                                    .fps_after = fps(r->chosen ? r->chosen : &r->first),
                                    .predicted_gain = predicted_gain(m, plan),
                                    .duration_ms = took_ns / 1e6,
                                    .lost = m->stats.failed - r->failed,
                                    .outcome = r->outcome});
    if (event) {
        json_object_set_new(event, "objective",
                            json_string(dmn_objective_name(r->q.goal.objective)));
        json_object_set_new(event, "trial_count", json_integer((json_int_t)r->trials));
        json_object_set_new(event, "fps_during", json_real((double)frames * 1e9 / took_ns));
        r->event = json_incref(event);
    }
    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_RETUNE_END, .model = m->name, .plan = after}),
        "model %s: retune %s (%s): plan %s, %.1f frames/s before, %.1f after, %.0f ms", m->name,
        r->outcome, detail, after, base_max(fps(&r->first), 0.0),
        base_max(fps(r->chosen ? r->chosen : &r->first), 0.0), took_ns / 1e6);
}
