/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine did: execution places, clocks and limits, heat, contention, energy. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/doctor/facts.h"
#include "apps/pipectl/report/page.h"

static double seconds_of(const struct report *r, size_t i)
{
    return report_number(json_array_get(r->series, i), "s") -
           report_number(json_array_get(r->series, 0), "s");
}

static json_t *time_chart(const struct report *r, const char *id, const char *title,
                          const char *label)
{
    return page_new(id, title, "lines",
                    page_axis("seconds watched", false, 0, report_number(r->data, "seconds")),
                    page_axis(label, false, 0, NAN));
}

/* A curve of the value @path of the list @list's entry number @i, over time. */
static json_t *curve(const struct report *r, const char *list, size_t i, const char *path,
                     double scale)
{
    json_t *points = json_array();

    for (size_t k = 0; k < json_array_size(r->series); k++) {
        const json_t *entries = json_object_get(json_array_get(r->series, k), list);

        page_point(points, seconds_of(r, k),
                   scale * report_number(json_array_get(entries, i), path), NULL);
    }
    return points;
}

/* A limit looks like the clock that it is for, but dashed. */
static void add_limit(json_t *chart, size_t colour, json_t *series)
{
    json_object_set_new(series, "colour", json_integer((json_int_t)colour));
    json_object_set_new(series, "dashed", json_true());
    json_object_set_new(series, "steps", json_true());
    page_add(chart, series);
}

static void draw_clocks(const struct report *r)
{
    const json_t *policies = page_at(r->after, "sensors.policies"), *p;
    json_t *chart = time_chart(r, "clocks", "Clocks of the cores, and the limits in force", "GHz"),
           *s;
    size_t i;

    json_array_foreach(policies, i, p)
    {
        char cpus[96], name[128];

        ctl_cpus("cpu", json_object_get(p, "cpus"), cpus, sizeof(cpus));
        s = page_series(cpus, curve(r, "policies", i, "freq_khz", 1e-6));
        json_object_set_new(s, "colour", json_integer((json_int_t)i));
        page_add(chart, s);
        snprintf(name, sizeof(name), "limit of %s", cpus);
        add_limit(chart, i, page_series(name, curve(r, "policies", i, "limit_khz", 1e-6)));
    }
    report_draw(r, chart);
}

static void draw_heat(const struct report *r)
{
    const json_t *zones = page_at(r->after, "sensors.thermal"), *z;
    json_t *chart = time_chart(r, "heat", "Temperatures", "degrees Celsius");
    size_t i;

    json_array_foreach(zones, i, z)
    {
        page_add(chart, page_series(ctl_text(z, "type"), curve(r, "thermal", i, "temp_c", 1)));
    }
    report_draw(r, chart);
}

static void draw_contention(const struct report *r)
{
    json_t *chart = time_chart(r, "contention", "Contention: time in which a task waited for a CPU",
                               "% of the time");
    json_t *points = json_array();

    for (size_t i = 1; i < json_array_size(r->series); i++) {
        double waited_us = report_number(json_array_get(r->series, i), "cpu_waited_us") -
                           report_number(json_array_get(r->series, i - 1), "cpu_waited_us");
        double passed = seconds_of(r, i) - seconds_of(r, i - 1);

        if (passed > 0 && waited_us >= 0) {
            page_point(points, seconds_of(r, i), fmin(1e-4 * waited_us / passed, 100), NULL);
        }
    }
    page_add(chart, page_series("tasks of all programs", points));
    report_draw(r, chart);
}

static void write_places(const struct report *r)
{
    static const struct page_column eps[] = {{"EP", "name", PAGE_TEXT},
                                             {"CPUs", "cpus", PAGE_NUMBER},
                                             {"kind", "kind", PAGE_TEXT},
                                             {"capacity", "capacity", PAGE_NUMBER},
                                             {"speed", "speed", PAGE_NUMBER, 2},
                                             {"governor", "governor", PAGE_TEXT},
                                             {"GHz", "freq_khz", PAGE_NUMBER, 2, 1e-6},
                                             {"of at most", "max_freq_khz", PAGE_NUMBER, 2, 1e-6},
                                             {"used", "used", PAGE_TEXT},
                                             {"why", "why", PAGE_TEXT},
                                             {0}};
    static const struct page_column cpus[] = {
        {"CPU", "cpu", PAGE_NUMBER}, {"online", "online", PAGE_TEXT}, {"used", "used", PAGE_TEXT},
        {"EP", "ep", PAGE_TEXT},     {"why", "why", PAGE_TEXT},       {0}};

    page_table(r->to, "Execution places", eps, json_object_get(r->after, "eps"));
    page_table(r->to, "Cores", cpus, json_object_get(r->after, "cpus"));
}

static void write_sensors(const struct report *r)
{
    static const struct page_column policies[] = {
        {"CPUs", "cpus", PAGE_NUMBER},
        {"governor", "governor", PAGE_TEXT},
        {"GHz", "freq_khz", PAGE_NUMBER, 2, 1e-6},
        {"limit", "limit_khz", PAGE_NUMBER, 2, 1e-6},
        {"hardware's most", "max_freq_khz", PAGE_NUMBER, 2, 1e-6},
        {"limited by heat", "by_heat", PAGE_TEXT},
        {0}};
    static const struct page_column zones[] = {{"zone", "type", PAGE_TEXT},
                                               {"degrees Celsius", "temp_c", PAGE_NUMBER, 1},
                                               {"above its trip point", "past_trip", PAGE_TEXT},
                                               {0}};
    static const struct page_column coolers[] = {{"cooling device", "type", PAGE_TEXT},
                                                 {"state", "state", PAGE_NUMBER},
                                                 {"of at most", "max_state", PAGE_NUMBER},
                                                 {"of the CPUs", "of_cpu", PAGE_TEXT},
                                                 {0}};
    const json_t *sensors = json_object_get(r->after, "sensors");
    static const struct {
        const char *key, *caption;
        const struct page_column *columns;
    } TABLES[] = {{"policies", "Clocks and governors", policies},
                  {"thermal", "Heat", zones},
                  {"cooling", "Cooling", coolers}};

    for (size_t i = 0; i < 3; i++) {
        if (json_array_size(json_object_get(sensors, TABLES[i].key)) > 0) {
            page_table(r->to, TABLES[i].caption, TABLES[i].columns,
                       json_object_get(sensors, TABLES[i].key));
        }
    }
    if (json_array_size(json_object_get(sensors, "policies")) == 0) {
        page_paragraph(r->to, "quiet", "The machine tells nothing of its clocks (no cpufreq).");
    }
}

static void write_sentences(const struct report *r)
{
    const json_t *machine = json_object_get(r->data, "machine");
    double waited = report_number(machine, "cpu_waited"),
           memory = report_number(machine, "memory_waited");
    double quota = report_number(r->after, "sensors.cgroup.quota_cpus");
    double stopped = report_number(machine, "quota_stopped"),
           steal = report_number(r->sample, "steal");
    double joules = report_number(r->after, "sensors.energy.joules");
    double a_frame = report_number(r->after, "sensors.energy.joules_per_frame");

    if (!isnan(waited)) {
        page_paragraph(r->to, NULL,
                       "Tasks of any program waited for a CPU for %.0f %% of the time.",
                       100 * waited);
    }
    if (memory > 0) {
        page_paragraph(r->to, NULL, "Tasks waited for memory for %.0f %% of the time.",
                       100 * memory);
    }
    if (!isnan(quota)) {
        page_paragraph(
            r->to, NULL,
            "A quota allows the daemon %.2f CPUs; it stopped it for %.0f %% of the time.", quota,
            100 * stopped);
    }
    if (steal > 0) {
        page_paragraph(r->to, NULL, "The hypervisor ran somebody else for %.0f %% of the time.",
                       100 * steal);
    }
    if (json_is_true(page_at(r->after, "sensors.throttled"))) {
        page_paragraph(r->to, "warn", "Heat or firmware holds the CPUs back.");
    }
    if (!isnan(joules)) {
        page_paragraph(r->to, NULL, "Energy since the start: %.1f J (%s).", joules,
                       ctl_text(page_at(r->after, "sensors.energy"), "source"));
    }
    if (!isnan(a_frame)) {
        page_paragraph(r->to, NULL, "Energy a frame over the last ten seconds: %.3g J.", a_frame);
    }
}

void report_machine(const struct report *r)
{
    static const struct page_column programs[] = {{"program", "name", PAGE_TEXT},
                                                  {"process", "pid", PAGE_NUMBER},
                                                  {"cores kept busy", "cores", PAGE_NUMBER, 2},
                                                  {0}};
    static const struct page_column boards[] = {
        {"board", "name", PAGE_TEXT},
        {"there", "up", PAGE_TEXT},
        {"for, s", "for_s", PAGE_NUMBER},
        {"message, us", "link.message_us", PAGE_NUMBER, 0},
        {"us a kilobyte", "link.kilobyte_us", PAGE_NUMBER, 1},
        {0}};

    page_fold_begin(r->to, "machine", false, "What the machine did");
    write_sentences(r);
    write_places(r);
    write_sensors(r);
    draw_clocks(r);
    draw_heat(r);
    draw_contention(r);
    if (json_array_size(json_object_get(r->sample, "programs")) > 0) {
        page_table(r->to, "Other programs that took the most CPU time", programs,
                   json_object_get(r->sample, "programs"));
    }
    if (json_array_size(json_object_get(r->after, "boards")) > 0) {
        page_table(r->to, "Other boards", boards, json_object_get(r->after, "boards"));
    }
    page_fold_end(r->to);
}
