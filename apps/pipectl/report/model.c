/* SPDX-License-Identifier: Apache-2.0 */
/* The stages and units of a model: where they run, how long, and what was expected. */
#include <math.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/report/page.h"

#define EPS_MAX 8u

/* The stages of Status, each with "watched": what doctor_stages() says of it. */
static json_t *stages_of(const struct report *r, const json_t *model)
{
    const json_t *watched =
        json_object_get(json_object_get(r->data, "stages"), ctl_text(model, "name"));
    json_t *list = json_array();

    json_text_each(json_object_get(model, "stages"), i, s) {
        json_t *copy = json_copy(s);

        json_object_set(copy, "watched", json_array_get(watched, i));
        json_array_append_new(list, copy);
    }
    return list;
}

static void draw_stages(const struct report *r, size_t number, const json_t *stages)
{
    json_t *x = json_pack("{s:s, s:[]}", "label", "stage", "names");
    json_t *expected = json_array(), *is = json_array(), *chart;
    char id[32];

    json_text_each(stages, i, s) {
        json_array_append_new(json_object_get(x, "names"), json_sprintf("%zu", i));
        json_array_append_new(expected, json_text_number(ctl_value(s, "expected_ms")));
        json_array_append_new(is, json_text_number(ctl_value(s, "service_ms")));
    }
    snprintf(id, sizeof(id), "stages-%zu", number);
    chart = page_new(id, "Time that a team holds a frame: expected and measured", "bars", x,
                     page_axis("ms", false, 0, NAN));
    page_add(chart, page_bars("expected", expected));
    page_add(chart, page_bars("measured", is));
    page_chart(r->to, chart);
}

static void write_stages(const struct report *r, size_t number, const json_t *model)
{
    static const struct page_column columns[] = {
        {"stage", "stage", PAGE_NUMBER},
        {"units", "units", PAGE_TEXT},
        {"EP", "ep", PAGE_TEXT},
        {"CPUs", "cpus", PAGE_NUMBER},
        {"width", "width", PAGE_NUMBER},
        {"teams", "replicas", PAGE_NUMBER},
        {"service, ms", "service_ms", PAGE_NUMBER, 3},
        {"expected, ms", "expected_ms", PAGE_NUMBER, 3},
        {"CPU, ms", "watched.cpu_ms", PAGE_NUMBER, 3},
        {"busy now, %", "busy", PAGE_NUMBER, 0, 100},
        {"busy while watched, %", "watched.busy", PAGE_NUMBER, 0, 100},
        {"of that off its core, %", "watched.off_core", PAGE_NUMBER, 0, 100},
        {"queue", "queue", PAGE_NUMBER},
        {0}};
    json_auto_t *stages = stages_of(r, model);

    page_table(r->to, "Stages", columns, stages);
    draw_stages(r, number, stages);
}

/* The names of the EPs that units were measured on. Return: their number. */
static size_t measured_eps(const json_t *units, const char *ret[EPS_MAX])
{
    size_t count = 0;

    json_text_each(units, i, u) {
        json_t *value, *all = json_object_get(u, "measured_ms");
        const char *ep;

        json_object_foreach(all, ep, value)
        {
            size_t k = 0;

            while (k < count && strcmp(ret[k], ep) != 0) {
                k++;
            }
            if (k == count && count < EPS_MAX) {
                ret[count++] = ep;
            }
        }
    }
    return count;
}

/* The units of Units, with what pipectl units adds, and "alone": [time on each EP]. */
static json_t *units_of(const struct report *r, const json_t *model, const char *const *eps,
                        size_t count)
{
    json_t *units = json_deep_copy(
        json_object_get(json_object_get(r->sample, "units"), ctl_text(model, "name")));

    ctl_add_shares(units);
    json_text_each(units, i, u) {
        for (size_t k = 0; k < count; k++) {
            char key[32];

            snprintf(key, sizeof(key), "alone%zu", k);
            json_object_set(u, key, json_object_get(json_object_get(u, "measured_ms"), eps[k]));
        }
    }
    return units;
}

static void write_unit_table(const struct report *r, const json_t *units, const char *const *eps,
                             size_t count)
{
    struct page_column columns[EPS_MAX + 8] = {{"unit", "unit", PAGE_NUMBER},
                                               {"name", "name", PAGE_TEXT},
                                               {"kind", "kind", PAGE_TEXT},
                                               {"ms", "ms", PAGE_NUMBER, 4},
                                               {"share, %", "share", PAGE_NUMBER, 1, 100},
                                               {"primitive", "primitive", PAGE_CODE}};
    char headings[EPS_MAX][96], keys[EPS_MAX][32];

    for (size_t k = 0; k < count; k++) {
        snprintf(headings[k], sizeof(headings[k]), "one core of %.60s, ms", eps[k]);
        snprintf(keys[k], sizeof(keys[k]), "alone%zu", k);
        columns[6 + k] = (struct page_column){headings[k], keys[k], PAGE_NUMBER, 4};
    }
    page_fold_begin(r->to, NULL, false, "the units as a table");
    page_table(r->to,
               "Units: time in a frame as they ran, or before the first frame where they were "
               "measured fastest; and alone on one core, by the cost table",
               columns, units);
    page_fold_end(r->to);
}

static void draw_units(const struct report *r, size_t number, const json_t *units,
                       const char *const *eps, size_t count)
{
    json_t *x = json_pack("{s:s, s:[]}", "label", "unit", "names");
    json_t *is = json_array(), *chart;
    char id[32];

    snprintf(id, sizeof(id), "units-%zu", number);
    chart = page_new(id, "Time of each unit: as it ran, and by the cost table", "bars", x,
                     page_axis("ms", false, 0, NAN));
    page_add(chart, page_bars("in the plan", is));
    for (size_t k = 0; k < count; k++) {
        json_t *alone = json_array();
        char name[96], key[32];

        snprintf(name, sizeof(name), "one core of %.60s", eps[k]);
        snprintf(key, sizeof(key), "alone%zu", k);
        json_text_each(units, i, u) {
            json_array_append_new(alone, json_text_number(ctl_value(u, key)));
        }
        page_add(chart, page_bars(name, alone));
    }
    json_text_each(units, i, u) {
        json_array_append_new(json_object_get(x, "names"), json_sprintf("%zu", i));
        json_array_append_new(is, json_text_number(ctl_value(u, "ewma_ms")));
    }
    page_chart(r->to, chart);
}

void report_model(const struct report *r, size_t i, const json_t *model)
{
    const char *eps[EPS_MAX];
    const json_t *raw =
        json_object_get(json_object_get(r->sample, "units"), ctl_text(model, "name"));
    size_t count = measured_eps(raw, eps);
    json_auto_t *units = units_of(r, model, eps, count);

    page_heading(r->to, 3, "Stages and units");
    write_stages(r, i, model);
    draw_units(r, i, units, eps, count);
    write_unit_table(r, units, eps, count);
}
