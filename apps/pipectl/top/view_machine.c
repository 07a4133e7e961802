/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: clocks, heat, pressure, and what was decided last. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/top/top.h"

#define INDENT 9u /* behind the time of a decision */

void top_draw_clocks(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    static const struct top_column columns[] = {
        {"ep", 'l', 0},      {"cpus", 'l', 3}, {"kind", 'l', 5},      {"governor", 'l', 4},
        {"clock", 'b', 2},   {"MHz", 'r', 0},  {"limit MHz", 'r', 0}, {"max MHz", 'r', 0},
        {"limited", 'l', 0}, {"used", 'l', 1},
    };
    const json_t *policies = json_text_at(v->top->status, "sensors.policies");
    struct top_table t = {columns, base_array_count(columns)};

    json_text_each(json_object_get(v->top->status, "eps"), i, e) {
        const json_t *p = json_text_same(policies, "policy", json_object_get(e, "policy"));
        const json_t *governor = json_object_get(e, "governor");
        double now = ctl_value(e, "freq_khz") / 1000, most = ctl_value(e, "max_freq_khz") / 1000;
        double limit = ctl_value(p, "limit_khz") / 1000;
        bool hot = ctl_is(p, "by_heat");

        top_table_text(&t, TOP_BOLD, "%s", ctl_text(e, "name"));
        top_table_text(&t, TOP_PLAIN, "%s", ctl_any(e, "cpus").text);
        top_table_text(&t, TOP_PLAIN, "%s", ctl_text(e, "kind"));
        top_table_text(&t, TOP_PLAIN, "%s",
                       json_is_string(governor) ? json_string_value(governor) : "-");
        top_table_bar(&t, limit < most ? TOP_WARN : TOP_GOOD, most > 0 ? now / most : NAN);
        top_table_value(&t, TOP_BOLD, "%.0f", now);
        top_table_value(&t, limit < most ? TOP_WARN : TOP_PLAIN, "%.0f", limit);
        top_table_value(&t, TOP_PLAIN, "%.0f", most);
        top_table_text(&t, hot ? TOP_BAD : TOP_WARN, "%s",
                       hot            ? "by heat"
                       : limit < most ? "yes"
                                      : "-");
        top_table_text(&t, TOP_PLAIN, "%s", ctl_is(e, "used") ? "yes" : "no");
    }
    top_table_draw(&t, s);
}

/* Puts a fact after the others, or into the next row if there is no room. */
static void put_fact(struct top_screen *s, enum top_look look, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_fact(struct top_screen *s, enum top_look look, const char *format, ...)
{
    char text[TOP_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (s->column > 0) {
        top_put(s, TOP_PLAIN, ",");
    }
    if (s->column > 0 && s->column + 2 + top_width(s, text) > s->columns) {
        top_line(s);
    }
    top_put(s, look, "%s%s", s->column > 0 ? " " : "", text);
}

static void draw_heat(struct top_screen *s, const json_t *sensors)
{
    json_text_each(json_object_get(sensors, "thermal"), i, z) {
        bool past = ctl_is(z, "past_trip");

        if (!isnan(ctl_value(z, "temp_c"))) {
            put_fact(s, past ? TOP_BAD : TOP_PLAIN, "%s %.1f C%s", ctl_text(z, "type"),
                     ctl_value(z, "temp_c"), past ? " (above its trip point)" : "");
        }
    }
    if (ctl_is(sensors, "throttled")) {
        put_fact(s, TOP_BAD, "heat or firmware holds the CPUs back");
    }
}

static void draw_load(struct top_screen *s, const json_t *status)
{
    const json_t *sensors = json_object_get(status, "sensors");
    const json_t *group = json_object_get(sensors, "cgroup");
    const json_t *energy = json_object_get(sensors, "energy");
    double waited = ctl_value(sensors, "psi.cpu_some_avg10");
    double quota = ctl_value(group, "quota_cpus"), joules = ctl_value(energy, "joules_per_frame");
    double bytes = ctl_value(status, "memory.resident_bytes");

    if (!isnan(waited)) {
        put_fact(s, waited >= 10 ? TOP_WARN : TOP_PLAIN, "tasks waited %.1f %% for a CPU", waited);
    }
    if (!isnan(quota)) {
        put_fact(s, TOP_PLAIN, "quota %.2f CPUs, throttled for %.1f s", quota,
                 ctl_real(group, "throttled_us") / 1e6);
    }
    if (bytes > 0) {
        put_fact(s, TOP_PLAIN, "memory %.0f MiB", bytes / (1 << 20));
    }
    if (!isnan(joules)) {
        put_fact(s, TOP_PLAIN, "%.3g J a frame", joules);
    }
    if (s->column > 0) {
        top_line(s);
    }
}

void top_draw_machine(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    const json_t *failed = json_object_get(v->top->status, "failed_models");

    draw_heat(s, json_object_get(v->top->status, "sensors"));
    draw_load(s, v->top->status);
    json_text_each(failed, i, m) {
        top_put(s, TOP_BAD, "model %s FAILED: %s", ctl_text(m, "name"), ctl_text(m, "error"));
        top_line(s);
    }
}

/* Puts @text, and goes on in the next row, INDENT cells in, where a word does not fit. */
static void put_wrapped(struct top_screen *s, enum top_look look, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, " ");
        char word[TOP_TEXT_MAX];

        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        if (s->column > INDENT && s->column + 1 + top_width(s, word) > s->columns) {
            top_line(s);
        }
        top_put(s, look, "%*s%s", (int)(s->column == 0 ? INDENT : s->column > INDENT), "", word);
        text += n + strspn(text + n, " ");
    }
    top_line(s);
}

void top_draw_decisions(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    bool any = false;

    for (size_t i = json_array_size(v->events); i-- > 0;) {
        const json_t *e = json_array_get(v->events, i);
        const char *at = ctl_text(e, "at"), *detail = ctl_text(e, "detail");
        double before = ctl_value(e, "fps_before"), after = ctl_value(e, "fps_after");

        if (!top_status_of(v->top, ctl_text(e, "model"))) {
            continue; /* of a segment, or of what serves no more */
        }
        if (!any) {
            top_put(s, TOP_TITLE, "last decisions, newest first (times in UTC)");
            top_line(s);
            any = true;
        }
        top_put(s, TOP_PLAIN, "%.8s ", strlen(at) >= 19 ? at + 11 : at);
        top_put(s, TOP_BOLD, "%s", ctl_text(e, "model"));
        top_put(s, TOP_PLAIN, " %s: %s by %s", ctl_text(e, "cause"), ctl_text(e, "outcome"),
                ctl_text(e, "algorithm"));
        if (before > 0 && after > 0) {
            top_put(s, after >= before ? TOP_GOOD : TOP_WARN, ", %.1f to %.1f frames/s", before,
                    after);
        }
        top_put(s, TOP_PLAIN, ":");
        put_wrapped(s, TOP_PLAIN, ctl_text(e, "plan_after"));
        if (*detail && strcmp(detail, "-") != 0) {
            put_wrapped(s, TOP_FAINT, detail);
        }
    }
}
