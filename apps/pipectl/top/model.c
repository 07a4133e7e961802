/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: rates and series. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/top/top.h"

const struct top_counter_place top_counters[TOP_COUNTERS] = {
    [TOP_ADMITTED] = {"frames", "admitted"},      [TOP_ANSWERED] = {"frames", "answered"},
    [TOP_DROPPED] = {"frames", "dropped"},        [TOP_FAILED] = {"frames", "failed"},
    [TOP_ROUTE_SENT] = {"route", "sent"},         [TOP_ROUTE_RESENT] = {"route", "resent"},
    [TOP_ROUTE_RETURNED] = {"route", "returned"}, [TOP_ROUTE_HERE] = {"route", "here"},
};

double top_off(double measured, double expected)
{
    return measured > 0 && expected > 0 ? measured / expected - 1 : NAN;
}

static void forget(struct top *t, size_t i)
{
    free(t->models[i].name);
    t->model_count--;
    memmove(&t->models[i], &t->models[i + 1], (t->model_count - i) * sizeof(t->models[0]));
}

void top_deinit(struct top *t)
{
    while (t->model_count > 0) {
        forget(t, t->model_count - 1);
    }
    json_decref(t->status);
    *t = TOP_NULL;
}

const struct top_model *top_find(const struct top *t, const char *name)
{
    for (size_t i = 0; i < t->model_count; i++) {
        if (strcmp(t->models[i].name, name) == 0) {
            return &t->models[i];
        }
    }
    return NULL;
}

const json_t *top_status_of(const struct top *t, const char *name)
{
    return json_text_find(json_object_get(t->status, "models"), "name", name);
}

/* The entry of the model; NULL: there are too many. */
static struct top_model *entry_of(struct top *t, const char *name)
{
    struct top_model *m = (struct top_model *)(uintptr_t)top_find(t, name);

    if (m || t->model_count == TOP_MODELS_MAX) {
        return m;
    }
    m = &t->models[t->model_count];
    *m = (struct top_model){.name = strdup(name)};
    for (size_t i = 0; i < TOP_COUNTERS; i++) {
        m->count[i] = m->rate[i] = NAN;
    }
    t->model_count += m->name != NULL;
    return m->name ? m : NULL;
}

/* Spreads @answered evenly over the time from @from_ns to @to_ns, which was @took_ns for the
 * daemon. */
static void add_seconds(struct top_model *m, uint64_t from_ns, uint64_t to_ns, double took_ns,
                        double answered)
{
    double all_ns = (double)(to_ns - from_ns);

    from_ns = base_max(from_ns, to_ns - base_min(to_ns, TOP_SECONDS * BASE_NS_PER_S));
    while (from_ns < to_ns) {
        uint64_t second = from_ns / BASE_NS_PER_S;
        uint64_t end = base_min((second + 1) * BASE_NS_PER_S, to_ns);
        struct top_second *s = &m->seconds[second % TOP_SECONDS];

        if (s->second != second) {
            *s = (struct top_second){.second = second};
        }
        s->seen += (double)(end - from_ns) / all_ns * took_ns / 1e9;
        s->answered += (double)(end - from_ns) / all_ns * answered;
        from_ns = end;
    }
}

void top_series(const struct top_model *m, uint64_t now_ns, double ret[TOP_SECONDS])
{
    uint64_t last = now_ns / BASE_NS_PER_S;

    for (size_t i = 0; i < TOP_SECONDS; i++) {
        uint64_t back = TOP_SECONDS - 1 - i;
        const struct top_second *s = m ? &m->seconds[(last - back) % TOP_SECONDS] : NULL;

        ret[i] = s && last >= back && s->second == last - back && s->seen > 0
                     ? s->answered / s->seen
                     : NAN;
    }
}

/* @took_ns: since the last status, by the daemon's clock; 0: it has been restarted. */
static void take_model(struct top_model *m, const json_t *status, double took_ns, uint64_t from_ns,
                       uint64_t now_ns)
{
    double now[TOP_COUNTERS];
    bool went_on = took_ns > 0;

    for (size_t i = 0; i < TOP_COUNTERS; i++) {
        now[i] = ctl_value(json_object_get(status, top_counters[i].object), top_counters[i].key);
        went_on &= i > TOP_FAILED || now[i] >= m->count[i];
    }
    for (size_t i = 0; i < TOP_COUNTERS; i++) {
        m->rate[i] =
            went_on && now[i] >= m->count[i] ? (now[i] - m->count[i]) * 1e9 / took_ns : NAN;
    }
    if (went_on) {
        add_seconds(m, from_ns, now_ns, took_ns, now[TOP_ANSWERED] - m->count[TOP_ANSWERED]);
    }
    memcpy(m->count, now, sizeof(now));
    m->there = true;
}

static bool seen_lately(const struct top_model *m, uint64_t now_ns)
{
    double series[TOP_SECONDS];
    bool known = false;

    top_series(m, now_ns, series);
    for (size_t i = 0; i < TOP_SECONDS; i++) {
        known |= !isnan(series[i]);
    }
    return known;
}

void top_take(struct top *t, json_t *status, uint64_t now_ns)
{
    bool same =
        t->status && now_ns > t->at_ns && ctl_value(status, "pid") == ctl_value(t->status, "pid");
    double took_ns =
        same ? (ctl_value(status, "uptime_s") - ctl_value(t->status, "uptime_s")) * 1e9 : 0;

    for (size_t i = 0; i < t->model_count; i++) {
        t->models[i].there = false;
    }
    json_text_each(json_object_get(status, "models"), i, m) {
        const char *name = json_string_value(json_object_get(m, "name"));
        struct top_model *entry = name ? entry_of(t, name) : NULL;

        if (entry) {
            take_model(entry, m, took_ns, t->at_ns, now_ns);
        }
    }
    for (size_t i = t->model_count; i-- > 0;) {
        if (!t->models[i].there) {
            for (size_t k = 0; k < TOP_COUNTERS; k++) {
                t->models[i].count[k] = t->models[i].rate[k] = NAN;
            }
            if (!seen_lately(&t->models[i], now_ns)) {
                forget(t, i);
            }
        }
    }
    json_decref(t->status);
    t->status = json_incref(status);
    t->at_ns = now_ns;
}

/* ---- order ---- */

json_t *top_sorted(const json_t *list, enum top_sort by, const char *load, const char *time)
{
    return by != TOP_BY_ORDER ? ctl_sorted(list, by == TOP_BY_LOAD ? load : time)
           : list             ? json_copy((json_t *)(uintptr_t)list)
                              : json_array();
}
