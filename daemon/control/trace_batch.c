/* SPDX-License-Identifier: Apache-2.0 */
/* What one reply of Trace holds: docs/trace.md describes it. */

#include "base/base.h"
#include "daemon/adapt/adapter.h"
#include "daemon/control/json.h"
#include "daemon/control/tracing.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "governor/snapshot.h"

#define EVENTS_MAX 1000u /* in one batch */

void dmn_trace_describe(struct dmn_tracing *t, struct dmn_model *m, uint32_t pipeline)
{
    json_t *units = json_array();

    for (size_t i = 0; i < m->model->unit_count; i++) {
        json_array_append_new(units, json_string(m->model->units[i].name));
    }
    json_array_append_new(t->news, json_pack("{s:I, s:s, s:o}", "pipeline", (json_int_t)pipeline,
                                             "model", m->name, "units", units));
}

void dmn_trace_add_event(struct dmn_tracing *t, uint64_t at_ns, json_t *event)
{
    json_t *copy = json_array_size(t->events) < EVENTS_MAX ? json_copy(event) : NULL;

    json_decref(event);
    if (!copy || json_object_set_new(copy, "at_ns", json_integer((json_int_t)at_ns)) < 0 ||
        json_array_append(t->events, copy) < 0) {
        t->events_lost++;
    }
    json_decref(copy);
}

/* ---- what nobody reports ---- */

static void look_at_history(struct dmn_tracing *t)
{
    const struct dmn_history *h = &t->control->plans->history;
    const struct dmn_history_event *e;
    size_t back = 0;

    while ((e = dmn_history_get(h, back)) != NULL && e->id > t->history) {
        back++;
    }
    while (back-- > 0) {
        e = dmn_history_get(h, back);
        t->history = e->id;
        dmn_trace_add_event(t, e->at_ns,
                            json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:s?}", "event", "history",
                                      "model", e->model, "cause", dmn_cause_name(e->cause),
                                      "detail", json_text_shown(e->detail ? e->detail : ""),
                                      "plan_before", e->plan_before ? e->plan_before : "",
                                      "plan_after", e->plan_after, "outcome",
                                      dmn_event_outcome_names[e->outcome]));
    }
}

static void add_counter(json_t *list, uint64_t at_ns, const char *of, const char *name,
                        const char *unit, double value)
{
    json_array_append_new(list, json_pack("{s:I, s:s, s:s, s:s, s:f}", "at_ns", (json_int_t)at_ns,
                                          "of", of, "name", name, "unit", unit, "value", value));
}

static void count_policies(const struct gov_snapshot *s, json_t *list)
{
    for (size_t i = 0; i < s->policy_count; i++) {
        const struct gov_policy *p = &s->policies[i];
        char name[64];

        if (p->now_khz != GOV_UNKNOWN) {
            snprintf(name, sizeof(name), "clock of policy%u", p->number);
            add_counter(list, s->at_ns, "", name, "MHz", (double)p->now_khz / 1e3);
        }
        if (p->limit_khz != GOV_UNKNOWN) {
            snprintf(name, sizeof(name), "limit of policy%u", p->number);
            add_counter(list, s->at_ns, "", name, "MHz", (double)p->limit_khz / 1e3);
        }
    }
}

static void count_sensors(struct dmn_tracing *t, json_t *list)
{
    const struct gov_snapshot *s = dmn_sensors_now(t->control->machine);

    if (!s || s->sequence == t->sensors) {
        return;
    }
    t->sensors = s->sequence;
    count_policies(s, list);
    for (size_t i = 0; i < s->zone_count; i++) {
        char name[GOV_NAME_MAX + 40];

        if (s->zones[i].temp_mdegc != GOV_UNKNOWN_MDEGC) {
            snprintf(name, sizeof(name), "heat of zone%u (%s)", s->zones[i].number,
                     s->zones[i].type);
            add_counter(list, s->at_ns, "", name, "°C", s->zones[i].temp_mdegc / 1e3);
        }
    }
    if (s->throttled != GOV_MAYBE) {
        add_counter(list, s->at_ns, "", "throttled", "", s->throttled == GOV_YES);
    }
    if (gov_known(s->psi_cpu.some_avg10)) {
        add_counter(list, s->at_ns, "", "tasks waited for a core", "%", s->psi_cpu.some_avg10);
    }
}

/* Return: what was told of @m; NULL: there are too many models. */
static struct dmn_trace_model *known_model(struct dmn_tracing *t, const struct dmn_model *m)
{
    struct dmn_trace_model *free_one = NULL;

    for (size_t i = 0; i < t->model_count; i++) {
        if (t->models[i].model == m) {
            return &t->models[i];
        }
    }
    if (t->model_count < base_array_count(t->models)) {
        struct dmn_adapt_state adapt;

        dmn_adapt_state(m, &adapt);
        free_one = &t->models[t->model_count++];
        *free_one = (struct dmn_trace_model){
            .model = m, .waiting = SIZE_MAX, .in_flight = SIZE_MAX, .decisions = adapt.decisions};
    }
    return free_one;
}

static void count_models(struct dmn_tracing *t, json_t *list)
{
    uint64_t now = base_now_ns();

    for (const struct dmn_model *m = t->control->models->models; m; m = m->next) {
        struct dmn_trace_model *known = known_model(t, m);
        size_t waiting = dmn_model_waiting(m), in_flight = pl_in_flight(m->pipe);

        if (known && known->waiting != waiting) {
            known->waiting = waiting;
            add_counter(list, now, m->name, "frames that wait for room", "", (double)waiting);
        }
        if (known && known->in_flight != in_flight) {
            known->in_flight = in_flight;
            add_counter(list, now, m->name, "frames in the pipeline", "", (double)in_flight);
        }
    }
}

static void look_at_decisions(struct dmn_tracing *t)
{
    for (const struct dmn_model *m = t->control->models->models; m; m = m->next) {
        struct dmn_trace_model *known = known_model(t, m);
        struct dmn_adapt_state a;

        dmn_adapt_state(m, &a);
        if (known && a.decided && a.decisions != known->decisions) {
            dmn_trace_add_event(t, base_now_ns(),
                                json_pack("{s:s, s:s, s:s, s:s?, s:s}", "event", "decision",
                                          "model", m->name, "cause", tun_cause_name(a.cause),
                                          "outcome", dmn_event_outcome_names[a.outcome], "held",
                                          tun_hold_names[a.held]));
        }
        if (known) {
            known->decisions = a.decisions;
        }
    }
}

void dmn_trace_look(struct dmn_tracing *t)
{
    look_at_history(t);
    look_at_decisions(t);
}

/* ---- the batch ---- */

static json_t *team_json(const struct pl_trace_team *team)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:s, s:i, s:i, s:o, s:i, s:i}", "track",
                     (int)team->track, "pipeline", (int)team->pipeline, "epoch", (int)team->epoch,
                     "stage", (int)team->stage, "ep", team->ep, "width", (int)team->width,
                     "replica", (int)team->replica, "cpus", dmn_json_cores(team->cpus, team->width),
                     "first_unit", (int)team->first_unit, "last_unit", (int)team->last_unit);
}

static json_t *teams_json(const struct pl_trace *trace)
{
    json_t *list = json_array();

    for (struct pl_trace_entry *e = trace->entries; e; e = e->next) {
        if (!e->announced) {
            e->announced = json_array_append_new(list, team_json(&e->team)) == 0;
        }
    }
    return list;
}

static json_t *counters_json(struct dmn_tracing *t)
{
    json_t *list = json_array();

    if (!t->ended) {
        count_sensors(t, list);
        count_models(t, list);
    }
    return list;
}

/* @list: stolen. */
static void add_list(json_t *batch, const char *key, json_t *list)
{
    if (json_array_size(list) > 0) {
        json_object_set(batch, key, list);
    }
    json_decref(list);
}

static json_t *begin_json(const struct dmn_tracing *t)
{
    struct timespec now;
    uint64_t mono = base_now_ns();

    clock_gettime(CLOCK_REALTIME, &now);
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:i, s:s}", "at_ns", (json_int_t)t->began_ns, "realtime_ns",
        (json_int_t)((uint64_t)now.tv_sec * BASE_NS_PER_S + (uint64_t)now.tv_nsec -
                     (mono - t->began_ns)),
        "ring_bytes", (json_int_t)t->trace->ring_bytes, "limit_bytes",
        (json_int_t)DMN_TRACE_LIMIT_BYTES, "answers_bytes", (json_int_t)DMN_TRACE_ANSWERS_BYTES,
        "pid", (int)getpid(), "version", PIPED_VERSION);
}

static json_t *totals_json(const struct dmn_tracing *t)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "records",
                     (json_int_t)(pl_trace_lost_all(t->trace) + pl_trace_lost(&t->answers)),
                     "events", (json_int_t)t->events_lost, "teams", (json_int_t)t->trace->untraced,
                     "memory_bytes",
                     (json_int_t)(t->trace->most_bytes + DMN_TRACE_ANSWERS_BYTES + sizeof(*t)));
}

json_t *dmn_trace_batch(struct dmn_tracing *t, bool last)
{
    json_t *batch = json_object(), *fresh = json_array();

    if (!t->told_begin) {
        t->told_begin = json_object_set_new(batch, "begin", begin_json(t)) == 0;
    }
    add_list(batch, "pipelines", base_take(t->news));
    t->news = json_array();
    add_list(batch, "teams", teams_json(t->trace));
    add_list(batch, "events", base_take(t->events));
    t->events = fresh;
    add_list(batch, "counters", counters_json(t));
    if (last) {
        json_object_set_new(batch, "lost", totals_json(t));
        json_object_set_new(
            batch, "end", json_pack("{s:I, s:s}", "at_ns", (json_int_t)t->end_ns, "why", t->ended));
    }
    return batch;
}
