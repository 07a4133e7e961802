/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the history as `pipectl history` prints them. */
#include <math.h>

#include "base/base.h"
#include "base/json_text.h"
#include "daemon/control/json.h"
#include "daemon/plans/history.h"
#include "daemon/plans/planner.h"

static json_t *number_or_null(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

static json_t *ms_or_null(double ns)
{
    return ns > 0 ? json_real(ns / 1e6) : json_null();
}

static json_t *trial_json(const struct dmn_history_trial *t)
{
    json_t *trial = json_pack("{s:s, s:s, s:o, s:I, s:b}", "plan", t->plan ? t->plan : "", "role",
                              dmn_trial_role_name(t->role), "bottleneck_ms",
                              ms_or_null(t->failed ? 0 : t->bottleneck_ns), "frames",
                              (json_int_t)t->frames, "kept", t->kept);
    json_t *search;

    if (t->role == DMN_ROLE_SERVING || t->role == DMN_ROLE_TURNS) {
        return trial;
    }
    search =
        json_pack("{s:o, s:o, s:f, s:b, s:b, s:f}", "predicted_ms", ms_or_null(t->predicted_ns),
                  "latency_ms", ms_or_null(t->failed ? 0 : t->latency_ns), "ci", t->ci, "stopped",
                  t->stopped, "failed", t->failed, "spent_ms", t->spent_ns / 1e6);
    json_object_update(trial, search);
    json_decref(search);
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
        tun_verdict_name(e->verdict), "ratio", t->pairs ? json_real(t->ratio) : json_null(), "low",
        known ? json_real(t->low) : json_null(), "high", known ? json_real(t->high) : json_null());
}

json_t *dmn_event_json(const struct dmn_history_event *e)
{
    json_t *event = json_pack(
        "{s:I, s:s, s:s, s:s, s:o, s:s, s:o, s:s?, s:s, s:o, s:o, s:o, s:f, s:I, s:s}", "id",
        (json_int_t)e->id, "at", e->at, "model", e->model, "cause", dmn_cause_name(e->cause),
        "detail", json_text_shown(e->detail), "algorithm", dmn_origin_name(e->origin), "trials",
        trials_json(e), "plan_before", e->plan_before, "plan_after", e->plan_after, "fps_before",
        number_or_null(e->fps_before), "fps_after", number_or_null(e->fps_after), "predicted_gain",
        isfinite(e->predicted_gain) ? json_real(e->predicted_gain) : json_null(), "duration_ms",
        e->duration_ms, "lost", (json_int_t)e->lost, "outcome", dmn_event_outcome_name(e->outcome));

    if (e->searched) {
        json_object_set_new(event, "objective", json_string(dmn_objective_name(e->objective)));
        json_object_set_new(event, "trial_count", json_integer((json_int_t)e->asked));
        json_object_set_new(event, "fps_during", json_real(e->fps_during));
    }
    if (e->verdict != TUN_TURNS_OPEN) {
        json_object_set_new(event, "turns", turns_json(e));
    }
    if (e->decided) {
        json_object_set_new(event, "decision", dmn_decided_json(e->decided));
    }
    return event;
}

json_t *dmn_history_json(const struct dmn_history *h, const char *model, size_t limit)
{
    const struct dmn_history_event *e;
    json_t *list = json_array();

    for (size_t i = 0; json_array_size(list) < limit && (e = dmn_history_get(h, i)); i++) {
        if (!model || strcmp(e->model, model) == 0) {
            json_array_insert_new(list, 0, dmn_event_json(e));
        }
    }
    return list;
}
