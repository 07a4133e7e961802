/* SPDX-License-Identifier: Apache-2.0 */
/* What became of plans: events of the history as `pipectl history` prints them, and the state of a
 * model's adaptation. */
#include "base/base.h"
#include "daemon/adapt/adapter.h"
#include "daemon/control/json.h"
#include "daemon/plans/history.h"
#include "daemon/plans/planner.h"
#include "tuner/json/record_json.h"

static json_t *trial_json(const struct dmn_history_trial *t)
{
    json_t *trial = json_pack("{s:s, s:s, s:o, s:I, s:b}", "plan", t->plan ? t->plan : "", "role",
                              dmn_trial_role_names[t->role], "bottleneck_ms",
                              dmn_json_positive(t->failed ? 0 : t->bottleneck_ns / 1e6), "frames",
                              (json_int_t)t->frames, "kept", t->kept);

    if (t->role == DMN_ROLE_SERVING || t->role == DMN_ROLE_TURNS) {
        return trial;
    }
    json_object_update_new(trial, json_pack("{s:o, s:o, s:f, s:b, s:b, s:f}", "predicted_ms",
                                            dmn_json_positive(t->predicted_ns / 1e6), "latency_ms",
                                            dmn_json_positive(t->failed ? 0 : t->latency_ns / 1e6),
                                            "ci", t->ci, "stopped", t->stopped, "failed", t->failed,
                                            "spent_ms", t->spent_ns / 1e6));
    return trial;
}

static json_t *trials_json(const struct dmn_history_event *e)
{
    json_t *list = json_array();

    for (size_t i = 0; i < e->trial_count; i++) {
        json_array_append_new(list, trial_json(&e->trials[i]));
    }
    return list;
}

/* An end of the interval that is not known is null. */
static json_t *turns_json(const struct dmn_history_event *e)
{
    const struct tun_turns_shown *t = &e->turns;
    bool known = isfinite(t->high);

    return json_pack(
        "{s:I, s:s, s:o, s:o, s:o}", "pairs", (json_int_t)t->pairs, "verdict",
        tun_verdict_names[e->verdict], "ratio", t->pairs ? json_real(t->ratio) : json_null(), "low",
        known ? json_real(t->low) : json_null(), "high", known ? json_real(t->high) : json_null());
}

/* The record and the decision, in the form that `pipesim replay` reads: enough to make it again
 * without hardware. */
static json_t *decided_json(const struct dmn_decided *d)
{
    struct tun_decision v = TUN_DECISION_NULL;

    v.replan = d->replan;
    v.cause = d->cause;
    v.hold = d->hold;
    v.plan = d->plan;
    v.gain = d->gain;
    return tun_record_json(&d->record, &v, "decision", true);
}

json_t *dmn_event_json(const struct dmn_history_event *e)
{
    json_t *event = json_pack(
        "{s:I, s:s, s:s, s:s, s:o, s:s, s:o, s:s?, s:s, s:o?, s:o?, s:o, s:f, s:I, s:s}", "id",
        (json_int_t)e->id, "at", e->at, "model", e->model, "cause", dmn_cause_name(e->cause),
        "detail", json_text_shown(e->detail), "algorithm", dmn_origin_name(e->origin), "trials",
        trials_json(e), "plan_before", e->plan_before, "plan_after", e->plan_after, "fps_before",
        e->fps_before >= 0 ? json_real(e->fps_before) : NULL, "fps_after",
        e->fps_after >= 0 ? json_real(e->fps_after) : NULL, "predicted_gain",
        json_text_number(e->predicted_gain), "duration_ms", e->duration_ms, "lost",
        (json_int_t)e->lost, "outcome", dmn_event_outcome_names[e->outcome]);

    if (e->searched) {
        json_object_update_new(event, json_pack("{s:s, s:I, s:f}", "objective",
                                                tun_objective_names[e->objective], "trial_count",
                                                (json_int_t)e->asked, "fps_during", e->fps_during));
    }
    if (e->verdict != TUN_TURNS_OPEN) {
        json_object_set_new(event, "turns", turns_json(e));
    }
    if (e->decided) {
        json_object_set_new(event, "decision", decided_json(e->decided));
    }
    return event;
}

json_t *dmn_history_json(const struct dmn_history *h, const char *model, size_t limit)
{
    const struct dmn_history_event *e;
    json_t *list = json_array();

    for (size_t i = 0; json_array_size(list) < limit && (e = dmn_history_get(h, i)); i++) {
        if (!*model || strcmp(e->model, model) == 0) {
            json_array_insert_new(list, 0, dmn_event_json(e));
        }
    }
    return list;
}

/* ---- adaptation ---- */

static json_t *watches_json(const struct dmn_model *m)
{
    static const char *const changes[] = {
        [TUN_SAME] = "same", [TUN_SLOWER] = "slower", [TUN_FASTER] = "faster"};
    json_t *list = json_array();
    struct tun_watch_view v;

    for (size_t i = 0; dmn_adapt_watched(m, i, &v); i++) {
        json_array_append_new(list, json_pack("{s:i, s:i, s:f, s:f, s:f, s:s, s:b}", "stage",
                                              (int)v.stage, "group", (int)v.group, "expected_ms",
                                              v.expected_ns / 1e6, "factor",
                                              isfinite(v.level) ? exp(v.level) : 1.0, "sigma",
                                              isfinite(v.sigma) ? v.sigma : 0.0, "change",
                                              changes[v.change], "firm", v.firm));
    }
    return list;
}

json_t *dmn_adapt_json(const struct dmn_model *m)
{
    struct dmn_adapt_state a;

    dmn_adapt_state(m, &a);
    if (!a.known) {
        return json_pack("{s:s, s:n}", "state", dmn_adapt_phase_names[a.phase], "last");
    }
    return json_pack("{s:s, s:o, s:s?, s:b, s:f, s:I, s:i, s:i, s:o}", "state",
                     dmn_adapt_phase_names[a.phase], "last",
                     a.decided ? json_pack("{s:s, s:s?}", "cause", tun_cause_name(a.cause),
                                           "outcome", dmn_event_outcome_names[a.outcome])
                               : json_null(),
                     "held", a.held == TUN_HOLD_NONE ? NULL : tun_hold_names[a.held], "corrected",
                     a.corrected, "cooldown_s", (double)a.cooldown_ns / 1e9, "windows",
                     (json_int_t)a.windows, "decisions", (int)a.decisions, "switches",
                     (int)a.switches, "watches", watches_json(m));
}
