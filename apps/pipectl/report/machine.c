/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine did: execution places, clocks and limits, heat, contention, energy. */
#include <math.h>

#include "apps/pipectl/report/page.h"

/* A limit looks like the clock that it is for, but dashed. */
static void draw_clocks(const struct report *r)
{
    json_t *chart =
        report_time_chart(r, "clocks", "Clocks of the cores, and the limits in force", "GHz");

    json_text_each(json_text_at(r->after, "sensors.policies"), i, p) {
        struct report_value clock = {"policies", NULL, i, "freq_khz", 1e-6};
        struct report_value limit = {"policies", NULL, i, "limit_khz", 1e-6};
        struct ctl_word cpus = ctl_cpus("cpu", json_object_get(p, "cpus"));
        char name[160];

        snprintf(name, sizeof(name), "limit of %s", cpus.text);
        page_lines(chart, cpus.text, report_curve(r, &clock), json_pack("{s:i}", "colour", (int)i));
        page_lines(chart, name, report_curve(r, &limit),
                   json_pack("{s:i, s:b, s:b}", "colour", (int)i, "dashed", 1, "steps", 1));
    }
    page_chart(r->to, chart);
}

static void draw_heat(const struct report *r)
{
    json_t *chart = report_time_chart(r, "heat", "Temperatures", "degrees Celsius");

    json_text_each(json_text_at(r->after, "sensors.thermal"), i, z) {
        struct report_value heat = {"thermal", NULL, i, "temp_c", 1};

        page_lines(chart, ctl_text(z, "type"), report_curve(r, &heat), NULL);
    }
    page_chart(r->to, chart);
}

static void draw_contention(const struct report *r)
{
    struct report_value waited = {.key = "cpu_waited_us", .scale = 1e-4};
    json_t *chart = report_time_chart(
        r, "contention", "Contention: time in which a task waited for a CPU", "% of the time");

    page_lines(chart, "tasks of all programs", report_rate(r, &waited, 100), NULL);
    page_chart(r->to, chart);
}

static void write_sentences(const struct report *r)
{
    double waited = ctl_value(r->data, "machine.cpu_waited");
    double memory = ctl_value(r->data, "machine.memory_waited");
    double quota = ctl_value(r->after, "sensors.cgroup.quota_cpus");
    double steal = ctl_value(r->sample, "steal");
    double joules = ctl_value(r->after, "sensors.energy.joules");
    double a_frame = ctl_value(r->after, "sensors.energy.joules_per_frame");

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
            100 * ctl_value(r->data, "machine.quota_stopped"));
    }
    if (steal > 0) {
        page_paragraph(r->to, NULL, "The hypervisor ran somebody else for %.0f %% of the time.",
                       100 * steal);
    }
    if (ctl_is(r->after, "sensors.throttled")) {
        page_paragraph(r->to, "warn", "Heat or firmware holds the CPUs back.");
    }
    if (!isnan(joules)) {
        page_paragraph(r->to, NULL, "Energy since the start: %.1f J (%s).", joules,
                       ctl_text(r->after, "sensors.energy.source"));
    }
    if (!isnan(a_frame)) {
        page_paragraph(r->to, NULL, "Energy a frame over the last ten seconds: %.3g J.", a_frame);
    }
}

struct table {
    const char *path, *caption; /* path: in the sample */
    const struct page_column *columns;
};

/* Tables without rows are left out. */
static void write_tables(const struct report *r, const struct table *tables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *rows = json_text_at(r->sample, tables[i].path);

        if (json_array_size(rows) > 0) {
            page_table(r->to, tables[i].caption, tables[i].columns, rows);
        }
    }
}

void report_machine(const struct report *r)
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
    static const struct table before[] = {
        {"after.eps", "Execution places", eps},
        {"after.cpus", "Cores", cpus},
        {"after.sensors.policies", "Clocks and governors", policies},
        {"after.sensors.thermal", "Heat", zones},
        {"after.sensors.cooling", "Cooling", coolers}};
    static const struct table behind[] = {
        {"programs", "Other programs that took the most CPU time", programs},
        {"after.boards", "Other boards", boards}};

    page_fold_begin(r->to, "machine", false, "What the machine did");
    write_sentences(r);
    write_tables(r, before, base_array_count(before));
    if (json_array_size(json_text_at(r->after, "sensors.policies")) == 0) {
        page_paragraph(r->to, "quiet", "The machine tells nothing of its clocks (no cpufreq).");
    }
    draw_clocks(r);
    draw_heat(r);
    draw_contention(r);
    write_tables(r, behind, base_array_count(behind));
    page_fold_end(r->to);
}
