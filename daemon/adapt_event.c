/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of decisions: history, log, status. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt_private.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

/* Events that keep the inputs of their decision: they are large. */
#define RECORDS_MAX 16u
#define AS_GOOD 0.005 /* a gain below this is told as none */

static void drop_old_records(struct dmn_history *h)
{
    json_t *all = dmn_history_json(h, NULL, h->size);
    size_t records = 0;

    for (size_t i = json_array_size(all); i-- > 0;) {
        json_t *event = json_array_get(all, i);

        if (json_object_get(event, "decision") && ++records > RECORDS_MAX) {
            json_object_del(event, "decision");
        }
    }
    json_decref(all);
}

/* @detail, and how many events were left out before this one. */
static void with_untold(struct dmn_model *m, const char *detail, char *ret, size_t bytes)
{
    unsigned untold = m->adapt ? m->adapt->untold : 0;

    snprintf(ret, bytes, "%s", detail);
    if (untold > 0) {
        size_t used = strlen(ret);

        snprintf(ret + used, bytes - used, "; %u more before it %s not told", untold,
                 untold == 1 ? "was" : "were");
        m->adapt->untold = 0;
    }
}

json_t *dmn_adapt_tell(struct dmn_model *m, const struct dmn_adapt_told *t)
{
    struct dmn_history *h = &m->daemon->history;
    char detail[600];
    json_t *event;

    with_untold(m, t->detail, detail, sizeof(detail));
    event = dmn_history_add(
        h, &(struct dmn_history_event){.model = m->name,
                                       .cause = t->cause,
                                       .detail = detail,
                                       .algorithm = t->algorithm,
                                       .plan_before = t->before,
                                       .plan_after = t->after,
                                       .fps_before = t->fps_before,
                                       .fps_after = -1,
                                       .predicted_gain = isfinite(t->gain) ? t->gain : 0,
                                       .duration_ms = t->duration_ms,
                                       .outcome = t->outcome});

    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_ADAPTED, .model = m->name, .plan = t->after}),
        "model %s: %s: %s (%s)", m->name, t->cause, detail, t->outcome);
    if (!event) {
        json_decref(t->record);
        return NULL;
    }
    if (!isfinite(t->gain)) {
        json_object_set_new(event, "predicted_gain", json_null());
    }
    if (t->record) {
        json_object_set_new(event, "decision", t->record);
        drop_old_records(h);
    }
    return json_incref(event);
}

void dmn_adapt_complete(json_t *event, const char *outcome, double fps, uint64_t frames,
                        uint64_t lost)
{
    json_t *plan = json_object_get(event, "plan_after");

    if (!event) {
        return;
    }
    json_object_set_new(event, "outcome", json_string(outcome));
    json_object_set_new(event, "fps_after", fps >= 0 ? json_real(fps) : json_null());
    json_object_set_new(event, "lost", json_integer((json_int_t)lost));
    json_object_set_new(event, "trials",
                        json_pack("[{s:O, s:s, s:o, s:I, s:b}]", "plan", plan, "role", "serving",
                                  "bottleneck_ms", fps > 0 ? json_real(1e3 / fps) : json_null(),
                                  "frames", (json_int_t)frames, "kept",
                                  strcmp(outcome, "switched") == 0));
    if (strcmp(outcome, "rolled back") == 0) {
        json_object_set(event, "plan_after", json_object_get(event, "plan_before"));
    }
}

/* How many times as long a kind takes as the table says at the present frequency: of the units that
 * the decision corrected, else by what was measured. */
static double times_slower(const struct tun_record *r, const struct tun_decision *d, size_t kind)
{
    size_t units = r->problem.unit_count, changed = 0;
    double sum = 0;

    for (size_t i = kind * units; i < (kind + 1) * units; i++) {
        if (d->slow[i] != r->slow[i]) {
            sum += log(d->slow[i]);
            changed++;
        }
    }
    return changed ? exp(sum / (double)changed) : d->factor[kind];
}

/* What became of the kind that the cause is about. */
static size_t describe_kind(const struct tun_record *r, const struct tun_decision *d, char *ret,
                            size_t bytes)
{
    const char *name = r->problem.kinds[d->kind].name;
    const struct tun_kind_now *k = &r->kinds[d->kind];
    double factor = times_slower(r, d, d->kind);
    int used;

    if (d->cause == TUN_CAUSE_HOTPLUG || d->cause == TUN_CAUSE_CPUSET) {
        used = snprintf(ret, bytes, "%s has %u of %u cores", name, k->cores,
                        r->problem.kinds[d->kind].cores);
    } else if (k->khz > 0 && k->khz_before > 0 && fabs(log(k->khz / k->khz_before)) > 0.01) {
        used = snprintf(ret, bytes, "%s runs at %.0f MHz instead of %.0f", name, k->khz / 1e3,
                        k->khz_before / 1e3);
    } else if (d->released) {
        used = snprintf(ret, bytes, "%s takes as long as when it is free again", name);
    } else if (factor > 1) {
        used = snprintf(ret, bytes, "%s takes %.2f times as long as when it is free%s", name,
                        factor, d->quota ? ", by the quota of the service" : "");
    } else {
        used =
            snprintf(ret, bytes, "%s takes %.2f times as long as was expected of it", name, factor);
    }
    return base_min((size_t)base_max(used, 0), bytes - 1);
}

void dmn_adapt_detail(const struct tun_record *r, const struct tun_decision *d, char *ret,
                      size_t bytes)
{
    size_t used;

    if (d->kind < r->problem.kind_count) {
        used = describe_kind(r, d, ret, bytes);
    } else {
        used = (size_t)snprintf(ret, bytes, "%s",
                                d->cause == TUN_CAUSE_GPIO ? "a line asks" : "several kinds");
    }
    if (d->must) {
        snprintf(ret + used, bytes - used, "; the plan before does not fit any more");
    } else if (d->hold == TUN_HOLD_NONE && d->gain < AS_GOOD) {
        snprintf(ret + used, bytes - used, "; the plan of before is as good and returns");
    } else if (d->hold == TUN_HOLD_NONE) {
        snprintf(ret + used, bytes - used, "; the new plan should gain %.0f %%", 100 * d->gain);
    } else if (d->hold == TUN_HOLD_GAIN) {
        snprintf(ret + used, bytes - used,
                 "; the best plan would gain %.1f %%, which is too little",
                 base_max(100 * d->gain, 0.0));
    } else if (d->hold == TUN_HOLD_COOLDOWN || d->hold == TUN_HOLD_BUDGET) {
        snprintf(ret + used, bytes - used, "; a plan that gains %.0f %% waits until %s",
                 100 * d->gain,
                 d->hold == TUN_HOLD_COOLDOWN ? "the cool-down is over"
                                              : "the hour allows another change");
    } else if (d->hold == TUN_HOLD_BOUNDS) {
        snprintf(ret + used, bytes - used, "; no plan keeps the bounds");
    } else {
        snprintf(ret + used, bytes - used, "; the plan that serves is the best one");
    }
}

static const char *state_name(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    if (!dmn_config_int(m->daemon->config, DMN_KEY_ADAPT_ENABLED)) {
        return "off";
    }
    if (dmn_adapt_pinned(m)) {
        return "pinned";
    }
    if (!a) {
        return "waiting";
    }
    return a->job                                     ? "deciding"
           : a->tuning                                ? "tuning"
           : !a->serving || !dmn_adapt_free_to_act(m) ? "waiting"
           : a->verify_left > 0                       ? "verifying"
                                                      : "watching";
}

static json_t *watches_json(const struct dmn_model *m)
{
    static const char *const changes[] = {
        [TUN_SAME] = "same", [TUN_SLOWER] = "slower", [TUN_FASTER] = "faster"};
    json_t *list = json_array();
    struct tun_watch_view v;

    for (size_t i = 0; m->adapt->serving && tun_adapt_watch(m->adapt->watch, i, &v); i++) {
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
    const struct dmn_adapt_model *a = m->adapt;

    if (!a) {
        return json_pack("{s:s, s:n}", "state", state_name(m), "last");
    }
    return json_pack(
        "{s:s, s:o, s:s?, s:b, s:f, s:I, s:i, s:i, s:o}", "state", state_name(m), "last",
        a->last_cause ? json_pack("{s:s, s:s?}", "cause", a->last_cause, "outcome", a->last_outcome)
                      : json_null(),
        "held", a->held, "corrected", a->corrected, "cooldown_s",
        (double)tun_adapt_cooldown_ns(a->watch) / 1e9, "windows", (json_int_t)a->windows,
        "decisions", (int)a->decisions, "switches", (int)a->switches, "watches", watches_json(m));
}
