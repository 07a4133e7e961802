/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a model: predicted against measured, the front of plans, runners-up. */
#include <math.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/report/page.h"

/* A point of throughput and latency; none where they are unknown. */
static void add_plan(json_t *points, const char *what, const char *plan, const json_t *figures)
{
    double fps = ctl_value(figures, "fps"), ms = ctl_value(figures, "latency_ms");
    char note[700];

    snprintf(note, sizeof(note), "%s %.500s: %.1f frames/s, %.3g ms", what, plan, fps, ms);
    page_point(points, fps, ms, note);
}

static json_t *marks(void)
{
    return json_pack("{s:b}", "marks", 1);
}

static void draw_front(const struct report *r, size_t number, const json_t *model, const json_t *e)
{
    const json_t *front =
        json_object_get(json_object_get(r->data, "fronts"), ctl_text(model, "name"));
    json_t *of_front = json_array(), *others = json_array(), *is = json_array();
    json_t *wanted = json_array(), *chart;
    char id[32];

    snprintf(id, sizeof(id), "front-%zu", number);
    chart =
        page_new(id, "Plans: throughput against latency", "lines",
                 page_axis("frames/s", false, NAN, NAN), page_axis("latency, ms", false, 0, NAN));
    json_text_each(front, i, plan) {
        add_plan(of_front, "", ctl_text(plan, "plan"), plan);
    }
    json_text_each(json_object_get(e, "runners_up"), i, plan) {
        add_plan(others, "runner-up", ctl_text(plan, "plan"), plan);
    }
    add_plan(wanted, "predicted of", ctl_text(e, "plan"), json_object_get(e, "now"));
    add_plan(is, "measured of", ctl_text(e, "plan"), json_object_get(e, "measured"));
    page_lines(chart, "no other plan is better in both, predicted", of_front, marks());
    page_lines(chart, "runners-up, predicted", others, marks());
    page_lines(chart, "present plan, predicted", wanted, marks());
    page_lines(chart, "present plan, measured", is, marks());
    page_chart(r->to, chart);
}

static void write_figures(const struct report *r, const json_t *e)
{
    static const struct page_column columns[] = {
        {"", "what", PAGE_TEXT},
        {"frames/s", "fps", PAGE_NUMBER, 1},
        {"bottleneck, ms", "bottleneck_ms", PAGE_NUMBER, 3},
        {"latency, ms", "latency_ms", PAGE_NUMBER, 3},
        {0}};
    static const struct {
        const char *key, *title;
    } rows[] = {{"predicted", "predicted when it was chosen"},
                {"now", "predicted by the costs now"},
                {"measured", "measured"}};
    const char *at = json_string_value(json_object_get(e, "measured_at"));
    json_auto_t *list = json_array();

    for (size_t i = 0; i < base_array_count(rows); i++) {
        json_t *row = json_object_get(e, rows[i].key);

        row = json_is_object(row) ? json_copy(row) : json_object();
        json_object_set_new(row, "what", json_string(rows[i].title));
        json_array_append_new(list, row);
    }
    page_table(r->to, "The plan, predicted and measured", columns, list);
    if (at) {
        page_paragraph(r->to, "quiet", "Measured at %s by the last retune; no frame came since.",
                       at);
    }
}

void report_plans(const struct report *r, size_t i, const json_t *model)
{
    static const struct page_column stages[] = {
        {"units", "units", PAGE_TEXT},
        {"teams", "teams", PAGE_TEXT},
        {"predicted, ms a frame", "predicted_ms", PAGE_NUMBER, 3},
        {"measured, ms a frame", "measured_ms", PAGE_NUMBER, 3},
        {"measured / predicted", "ratio", PAGE_NUMBER, 2},
        {"bottleneck", "bottleneck", PAGE_TEXT},
        {0}};
    static const struct page_column others[] = {{"plan", "plan", PAGE_CODE},
                                                {"frames/s", "fps", PAGE_NUMBER, 1},
                                                {"latency, ms", "latency_ms", PAGE_NUMBER, 3},
                                                {"why not", "why", PAGE_TEXT},
                                                {0}};
    const json_t *e =
        json_object_get(json_object_get(r->sample, "explanations"), ctl_text(model, "name"));
    double bound = ctl_value(e, "bound_fps");

    page_heading(r->to, 3, "Plans");
    page_paragraph(r->to, NULL, "%s %s", ctl_plan_origin(e).text, ctl_plan_costs(e).text);
    if (!isnan(bound)) {
        page_paragraph(r->to, NULL, "By these costs, no plan reaches more than %.1f frames/s.",
                       bound);
    }
    write_figures(r, e);
    page_table(r->to, "Its stages; teams of a stage share its frames", stages,
               json_object_get(e, "stages"));
    draw_front(r, i, model, e);
    if (json_array_size(json_object_get(e, "runners_up")) > 0) {
        page_table(r->to, "Runners-up, by the same costs", others,
                   json_object_get(e, "runners_up"));
    }
}
