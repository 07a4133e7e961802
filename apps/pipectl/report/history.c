/* SPDX-License-Identifier: Apache-2.0 */
/* What changed plans: on a time line, as trials, and as a table with the reasons. */
#include <math.h>

#include "apps/pipectl/report/page.h"

#define COLOURS 12u

/* Seconds since 1970 of a time as History writes it; NAN: it is something else. */
static double seconds_at(const json_t *object)
{
    struct tm utc = {0};
    const char *rest = strptime(ctl_text(object, "at"), "%Y-%m-%dT%H:%M:%S", &utc);
    int ms = 0;

    if (!rest) {
        return NAN;
    }
    sscanf(rest, ".%3d", &ms);
    return (double)timegm(&utc) + ms / 1e3;
}

/* The time line: in the unit that its length asks for, up to the report. */
struct line {
    double now_s, unit_s;
    const char *label;
};

static struct line line_of(const struct report *r)
{
    const json_t *events = json_object_get(r->sample, "events");
    struct line l = {.now_s = seconds_at(r->data)};
    double span = l.now_s - seconds_at(json_array_get(events, 0));

    l.unit_s = span < 180 ? 1 : span < 3 * 3600 ? 60 : span < 72 * 3600 ? 3600 : 86400;
    l.label = span < 180         ? "seconds before this report"
              : span < 3 * 3600  ? "minutes before this report"
              : span < 72 * 3600 ? "hours before this report"
                                 : "days before this report";
    return l;
}

static double along(const struct line *l, double at_s)
{
    return base_min((at_s - l->now_s) / l->unit_s, 0.0);
}

/* Where @name is in the list, which it is added to. */
static size_t place_of(json_t *names, const char *name)
{
    json_text_each(names, i, n) {
        if (strcmp(json_string_value(n), name) == 0) {
            return i;
        }
    }
    json_array_append_new(names, json_string(name));
    return json_array_size(names) - 1;
}

static bool is_of(const json_t *event, const char *model)
{
    return strcmp(ctl_text(event, "model"), model) == 0 &&
           json_is_string(json_object_get(event, "plan_after"));
}

/* When the event's plan ended: at the next one of its model that brought another. */
static double end_of(const struct line *l, const json_t *events, size_t i)
{
    const json_t *e = json_array_get(events, i), *next;
    const char *plan = ctl_text(e, "plan_after");

    for (i++; (next = json_array_get(events, i)) != NULL; i++) {
        if (is_of(next, ctl_text(e, "model")) && strcmp(ctl_text(next, "plan_after"), plan) != 0) {
            return seconds_at(next);
        }
    }
    return l->now_s;
}

/* Does the event only confirm the plan that its model has? */
static bool is_same(const json_t *events, size_t i)
{
    const json_t *e = json_array_get(events, i);

    while (i-- > 0) {
        const json_t *was = json_array_get(events, i);

        if (is_of(was, ctl_text(e, "model"))) {
            return strcmp(ctl_text(was, "plan_after"), ctl_text(e, "plan_after")) == 0;
        }
    }
    return false;
}

static void draw_plans(const struct report *r, const struct line *l)
{
    const json_t *events = json_object_get(r->sample, "events");
    json_auto_t *plans = json_array();
    json_t *models = json_array();
    json_t *x = page_axis(l->label, false, NAN, 0), *y, *chart;
    size_t known, place;

    json_object_set_new(x, "from", json_string("from"));
    json_object_set_new(x, "to", json_string("to"));
    y = json_pack("{s:s, s:o}", "label", "model", "names", models);
    chart = page_new("plans", "Which plan served when", "spans", x, y);
    json_text_each(events, i, e) {
        const char *model = ctl_text(e, "model"), *plan = ctl_text(e, "plan_after");
        double from = seconds_at(e);
        char note[900];

        if (!is_of(e, model) || is_same(events, i) || isnan(from)) {
            continue;
        }
        place_of(models, model);
        snprintf(note, sizeof(note), "%.500s from %s on, by %s: %.200s", plan, ctl_text(e, "at"),
                 ctl_text(e, "cause"), ctl_text(e, "detail"));
        known = json_array_size(plans);
        place = place_of(plans, plan);
        page_add(chart,
                 json_pack("{s:s?, s:i, s:[[f, f, s, s]]}", "name", place == known ? plan : NULL,
                           "colour", (int)(place % COLOURS), "points", along(l, from),
                           along(l, end_of(l, events, i)), model, note));
    }
    page_chart(r->to, chart);
}

/* A series for each outcome, a lane for each cause. */
static void draw_events(const struct report *r, const struct line *l)
{
    const json_t *events = json_object_get(r->sample, "events");
    json_t *causes = json_array(), *outcomes = json_array(), *chart;

    chart = page_new("events", "Decisions: cause and outcome", "lines",
                     page_axis(l->label, false, NAN, 0),
                     json_pack("{s:s, s:o}", "label", "cause", "names", causes));
    json_text_each(events, i, e) {
        place_of(outcomes, ctl_text(e, "outcome"));
        place_of(causes, ctl_text(e, "cause"));
    }
    json_text_each(outcomes, k, name) {
        json_t *points = json_array();

        json_text_each(events, i, e) {
            char note[700];

            if (strcmp(ctl_text(e, "outcome"), json_string_value(name)) == 0) {
                snprintf(note, sizeof(note), "%s, %.200s, %s: %.300s", ctl_text(e, "at"),
                         ctl_text(e, "model"), ctl_text(e, "cause"), ctl_text(e, "detail"));
                page_point(points, along(l, seconds_at(e)),
                           (double)place_of(causes, ctl_text(e, "cause")), note);
            }
        }
        page_lines(chart, json_string_value(name), points, json_pack("{s:b}", "marks", 1));
    }
    json_decref(outcomes);
    page_chart(r->to, chart);
}

static double rate_of(const json_t *trial, const char *key)
{
    double ms = ctl_value(trial, key);

    return ms > 0 ? 1e3 / ms : NAN;
}

/* The newest search of a model. */
static void draw_trials(const struct report *r, size_t number, const json_t *model)
{
    const json_t *events = json_object_get(r->sample, "events"), *e = NULL;
    json_t *measured = json_array(), *predicted = json_array(), *chart;
    char id[32], title[400];
    size_t i = json_array_size(events);

    while (i-- > 0 && json_array_size(json_object_get(e, "trials")) == 0) {
        e = json_array_get(events, i);
        e = strcmp(ctl_text(e, "model"), ctl_text(model, "name")) == 0 ? e : NULL;
    }
    json_text_each(json_object_get(e, "trials"), k, t) {
        char note[700];

        snprintf(note, sizeof(note), "trial %zu, %s%s: %.500s", k + 1, ctl_text(t, "role"),
                 ctl_is(t, "kept") ? ", kept" : "", ctl_text(t, "plan"));
        page_point(measured, (double)k + 1, rate_of(t, "bottleneck_ms"), note);
        page_point(predicted, (double)k + 1, rate_of(t, "predicted_ms"), note);
    }
    snprintf(id, sizeof(id), "trials-%zu", number);
    snprintf(title, sizeof(title), "Trials of the last search of %.100s, by %s, %s",
             ctl_text(model, "name"), ctl_text(e, "algorithm"), ctl_text(e, "at"));
    chart = page_new(id, title, "lines", page_axis("trial", false, NAN, NAN),
                     page_axis("frames/s", false, 0, NAN));
    json_object_set_new(json_object_get(chart, "x"), "whole", json_true());
    page_lines(chart, "measured", measured, json_pack("{s:b}", "marks", 1));
    page_lines(chart, "predicted", predicted, json_pack("{s:b}", "marks", 1));
    page_chart(r->to, chart);
}

void report_history(const struct report *r)
{
    static const struct page_column columns[] = {{"at", "at", PAGE_TIME},
                                                 {"model", "model", PAGE_TEXT},
                                                 {"cause", "cause", PAGE_TEXT},
                                                 {"why", "detail", PAGE_TEXT},
                                                 {"by", "algorithm", PAGE_TEXT},
                                                 {"outcome", "outcome", PAGE_TEXT},
                                                 {"plan", "plan_after", PAGE_CODE},
                                                 {"frames/s before", "fps_before", PAGE_NUMBER, 1},
                                                 {"after", "fps_after", PAGE_NUMBER, 1},
                                                 {0}};
    const json_t *events = json_object_get(r->sample, "events");
    struct line l = line_of(r);

    page_fold_begin(r->to, "history", false, "History");
    draw_plans(r, &l);
    draw_events(r, &l);
    REPORT_EACH_MODEL(r, i, m) {
        draw_trials(r, i, m);
    }
    page_table(r->to, "What changed a plan, or was to", columns, events);
    page_fold_end(r->to);
}
