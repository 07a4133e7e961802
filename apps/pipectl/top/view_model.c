/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: a model, its stages and its units. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/top/top.h"

#define LABEL_CELLS 18u /* before the curve */

/* Of a stage: from 95 % on it decides the throughput. */
static enum top_look look_of_share(double share)
{
    return share >= 0.95 ? TOP_BAD : share >= 0.7 ? TOP_WARN : TOP_GOOD;
}

enum top_look top_look_of_off(double off)
{
    return off >= 0.5 ? TOP_BAD : off >= 0.2 ? TOP_WARN : TOP_PLAIN;
}

/* Goes on in the next row where there is no room for it. */
static void put_number(struct top_screen *s, const char *name, const char *format, double value,
                       enum top_look look) __attribute__((format(printf, 3, 0)));
static void put_number(struct top_screen *s, const char *name, const char *format, double value,
                       enum top_look look)
{
    struct ctl_word w = ctl_format(value, format);

    if (s->column + 3 + top_width(s, name) + top_width(s, w.text) > s->columns) {
        top_line(s);
        top_put(s, TOP_PLAIN, "%8s", "");
    }
    top_put(s, TOP_PLAIN, "  %s ", name);
    top_put(s, look, "%s", w.text);
}

static double rate_of(const struct top_model *m, enum top_counter counter)
{
    return m ? m->rate[counter] : NAN;
}

static double fps_of(const struct top_model *m, const json_t *status)
{
    return isnan(rate_of(m, TOP_ANSWERED)) ? ctl_value(status, "fps") : rate_of(m, TOP_ANSWERED);
}

static void draw_speed(const struct top_view *v, struct top_screen *s, const struct top_model *m,
                       const json_t *model)
{
    double series[TOP_SECONDS], most = 0;
    size_t cells = s->columns > LABEL_CELLS ? s->columns - LABEL_CELLS : 0;

    cells = base_min(cells, (size_t)TOP_SECONDS);
    top_series(m, v->now_ns, series);
    for (size_t i = TOP_SECONDS - cells; i < TOP_SECONDS; i++) {
        most = isnan(series[i]) ? most : base_max(most, series[i]);
    }
    top_put(s, TOP_PLAIN, "frames/s ");
    top_put(s, TOP_BOLD, "%8.1f ", fps_of(m, model));
    top_put_curve(s, TOP_GOOD, series + TOP_SECONDS - cells, cells, most);
    top_line(s);
    top_put(s, TOP_PLAIN, "a second");
    put_number(s, "admitted", "%.1f", rate_of(m, TOP_ADMITTED), TOP_BOLD);
    put_number(s, "answered", "%.1f", rate_of(m, TOP_ANSWERED), TOP_BOLD);
    put_number(s, "dropped", "%.1f", rate_of(m, TOP_DROPPED),
               rate_of(m, TOP_DROPPED) > 0 ? TOP_WARN : TOP_BOLD);
    put_number(s, "failed", "%.1f", rate_of(m, TOP_FAILED),
               rate_of(m, TOP_FAILED) > 0 ? TOP_BAD : TOP_BOLD);
    if (most > 0) {
        put_number(s, "most", "%.1f", most, TOP_BOLD);
    }
    top_line(s);
}

static void draw_latency(struct top_screen *s, const json_t *model)
{
    const json_t *ms = json_object_get(model, "latency_ms");
    bool answered = ctl_real(model, "frames.answered") > 0;
    static const char *const keys[] = {"p50", "p95", "p99", "max"};

    top_put(s, TOP_PLAIN, "latency ");
    for (size_t i = 0; i < base_array_count(keys); i++) {
        put_number(s, keys[i], "%.4g", answered ? ctl_value(ms, keys[i]) : NAN, TOP_BOLD);
    }
    top_put(s, TOP_PLAIN, " ms");
    put_number(s, "in flight", "%.0f", ctl_value(model, "in_flight"), TOP_BOLD);
    put_number(s, "waiting", "%.0f", ctl_value(model, "waiting"), TOP_BOLD);
    top_line(s);
}

/* Share of the frames that had a deadline by its wishes; NAN: none had. */
static double late_of(const json_t *model)
{
    double due = ctl_real(model, "frames.due");

    return due > 0 ? ctl_real(model, "frames.late") / due : NAN;
}

/* What the plan for all models says of it; NULL: nothing. */
static const json_t *row_of(const json_t *mix, const json_t *model)
{
    return json_text_same(json_object_get(mix, "models"), "model", json_object_get(model, "name"));
}

/* What it is to have, if anything, and how much of its frames is late. */
static void draw_wishes(struct top_screen *s, const json_t *mix, const json_t *model)
{
    const json_t *row = row_of(mix, model);
    double late = late_of(model);
    char text[CTL_WISHES_BYTES];

    if (ctl_wishes_text(json_object_get(model, "wishes"), text)) {
        top_put(s, TOP_PLAIN, "is to have %s", text);
        if (!isnan(late)) {
            top_put(s, late > 0 ? TOP_WARN : TOP_GOOD, "  late %.3g %%", 100 * late);
        }
        top_line(s);
    }
    if (row) {
        top_put(s, TOP_PLAIN, "planned: %s", ctl_mix_gives(row).text);
        top_line(s);
    }
}

void top_draw_model(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    const struct top_model *m = top_find(v->top, ctl_text(model, "name"));

    top_put(s, TOP_BOLD, "%s", ctl_text(model, "name"));
    top_put(s, TOP_PLAIN, "  %.0f unit%s by ", ctl_real(model, "units"),
            base_plural(ctl_real(model, "units")));
    top_put(s, TOP_BOLD, "%s", ctl_text(model, "plan"));
    top_put(s, TOP_PLAIN, " (%s, epoch %.0f)%s", ctl_text(model, "algorithm"),
            ctl_real(model, "epoch"), ctl_is(model, "tuning") ? ", searching" : "");
    top_line(s);
    draw_speed(v, s, m, model);
    draw_latency(s, model);
    draw_wishes(s, json_object_get(v->top->status, "mix"), model);
    json_text_each(json_object_get(model, "warnings"), i, warning) {
        if (json_is_string(warning)) {
            top_put(s, TOP_BAD, "warning: %s", json_string_value(warning));
            top_line(s);
        }
    }
}

static double busiest(const json_t *model)
{
    double most = 0;

    json_text_each(json_object_get(model, "stages"), i, stage) {
        most = base_max(most, ctl_real(stage, "busy"));
    }
    return most;
}

void top_draw_models(const struct top_view *v, struct top_screen *s, const json_t *shown)
{
    static const struct top_column columns[] = {
        {"model", 'l', 0},  {"frames/s", 'r', 0}, {"wished", 'r', 0}, {"late", 'r', 1},
        {"p50 ms", 'r', 5}, {"p99 ms", 'r', 0},   {"waits", 'r', 6},  {"dropped/s", 'r', 7},
        {"cores", 'r', 2},  {"busiest", 'b', 4},  {"", 'r', 3},
    };
    const json_t *mix = json_object_get(v->top->status, "mix");
    json_auto_t *sorted =
        top_sorted(json_object_get(v->top->status, "models"), v->sort, "fps", "latency_ms.p99");
    struct top_table t = {columns, base_array_count(columns)};

    json_text_each(sorted, i, m) {
        const struct top_model *known = top_find(v->top, ctl_text(m, "name"));
        const json_t *latency = json_object_get(m, "latency_ms");
        bool answered = ctl_real(m, "frames.answered") > 0;
        double share = busiest(m);
        enum top_look look = m == shown ? TOP_BOLD : TOP_PLAIN;

        top_table_text(&t, look, "%s%s", m == shown ? "> " : "  ", ctl_text(m, "name"));
        top_table_value(&t, look, "%.1f", fps_of(known, m));
        top_table_value(&t, look, "%.4g",
                        ctl_real(m, "wishes.rate") > 0 ? ctl_real(m, "wishes.rate") : NAN);
        top_table_value(&t, late_of(m) > 0 ? TOP_WARN : look, "%.3g %%", 100 * late_of(m));
        top_table_value(&t, look, "%.4g", answered ? ctl_value(latency, "p50") : NAN);
        top_table_value(&t, look, "%.4g", answered ? ctl_value(latency, "p99") : NAN);
        top_table_value(&t, look, "%.0f", ctl_value(m, "waiting"));
        top_table_value(&t, look, "%.1f", rate_of(known, TOP_DROPPED));
        top_table_value(&t, look, "%.0f %%", 100 * ctl_value(row_of(mix, m), "share"));
        top_table_bar(&t, look_of_share(share), share);
        top_table_value(&t, look, "%.0f %%", share * 100);
    }
    top_table_draw(&t, s);
}

void top_draw_mix(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    const json_t *mix = json_object_get(v->top->status, "mix");
    const json_t *refused = json_object_get(mix, "refused");

    if (!json_is_object(mix)) {
        return;
    }
    top_put(s, TOP_PLAIN, "one plan: %.1f %% of what these cores could ever do",
            100 * ctl_real(mix, ctl_has(mix, "served_of_bound") ? "served_of_bound" : "of_bound"));
    if (*ctl_mix_limits(mix).text) {
        top_put(s, TOP_PLAIN, ", limited by %s", ctl_mix_limits(mix).text);
    }
    top_line(s);
    if (ctl_is(mix, "rates") && ctl_real(mix, "of_wishes") < CTL_ALL) {
        top_put(s, TOP_WARN, "not all rates can be kept: %.1f %% of each can",
                100 * ctl_real(mix, "of_wishes"));
        top_line(s);
    }
    if (json_is_object(refused)) {
        top_put(s, TOP_WARN, "%s", ctl_text(refused, "text"));
        top_line(s);
    }
}

void top_draw_stages(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    static const struct top_column columns[] = {
        {"stage", 'r', 0},       {"units", 'l', 0}, {"teams", 'l', 0}, {"cpus", 'l', 5},
        {"busy", 'b', 3},        {"", 'r', 0},      {"queue", 'r', 0}, {"service ms", 'r', 0},
        {"expected ms", 'r', 4}, {"off", 'r', 0},
    };
    json_auto_t *sorted =
        top_sorted(json_object_get(model, "stages"), v->sort, "busy", "service_ms");
    struct top_table t = {columns, base_array_count(columns)};

    json_text_each(sorted, i, stage) {
        double busy = ctl_real(stage, "busy"), ms = ctl_value(stage, "service_ms");
        double expected = ctl_value(stage, "expected_ms");
        double off = busy > 0 ? top_off(ms, expected) : NAN; /* it was of frames of long ago */
        double width = ctl_real(stage, "width"), teams = ctl_real(stage, "replicas");
        char wide[24] = "", many[24] = "";

        if (width > 1 && !strchr(ctl_text(stage, "ep"), '&')) { /* else the widths are there */
            snprintf(wide, sizeof(wide), "x%.0f", width);
        }
        if (teams > 1) {
            snprintf(many, sizeof(many), "*%.0f", teams);
        }
        top_table_value(&t, TOP_PLAIN, "%.0f", ctl_value(stage, "stage"));
        top_table_text(&t, TOP_PLAIN, "%s", ctl_text(stage, "units"));
        top_table_text(&t, TOP_PLAIN, "%s%s%s", ctl_text(stage, "ep"), wide, many);
        top_table_text(&t, TOP_PLAIN, "%s", ctl_cpus("", json_object_get(stage, "cpus")).text);
        top_table_bar(&t, look_of_share(busy), busy);
        top_table_value(&t, TOP_PLAIN, "%.0f %%", busy * 100);
        top_table_value(&t, TOP_PLAIN, "%.0f", ctl_value(stage, "queue"));
        top_table_value(&t, TOP_BOLD, "%.3f", ms);
        top_table_value(&t, TOP_PLAIN, "%.3f", expected);
        top_table_value(&t, top_look_of_off(off), "%+.0f %%", off * 100);
    }
    top_table_draw(&t, s);
}

static double unit_ms(const json_t *unit)
{
    double recent = ctl_value(unit, "ewma_ms");

    return isnan(recent) ? ctl_value(unit, "time_ms") : recent;
}

void top_draw_units(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    static const struct top_column columns[] = {
        {"unit", 'r', 0}, {"name", 'l', 0},  {"operator", 'l', 3}, {"primitive", 'l', 2},
        {"ms", 'r', 0},   {"share", 'b', 1}, {"", 'r', 0},
    };
    json_auto_t *sorted = top_sorted(v->units, v->sort, "ewma_ms", "ewma_ms");
    struct top_table t = {columns, base_array_count(columns)};
    double all = 0;

    if (!v->units) { /* they have been asked for */
        return;
    }
    json_text_each(sorted, i, u) {
        all += isnan(unit_ms(u)) ? 0 : unit_ms(u);
    }
    json_text_each(sorted, i, u) {
        double ms = unit_ms(u), share = all > 0 ? ms / all : NAN;

        top_table_value(&t, TOP_PLAIN, "%.0f", ctl_value(u, "unit"));
        top_table_text(&t, TOP_PLAIN, "%s", ctl_text(u, "name"));
        top_table_text(&t, TOP_PLAIN, "%s", ctl_text(u, "kind"));
        top_table_text(&t, TOP_PLAIN, "%s", ctl_text(u, "primitive"));
        top_table_value(&t, TOP_BOLD, "%.3f", ms);
        top_table_bar(&t, TOP_GOOD, share);
        top_table_value(&t, TOP_PLAIN, "%.0f %%", share * 100);
    }
    top_put(s, TOP_PLAIN,
            all > 0 ? "units of %s: %.3f ms a frame together"
                    : "units of %s: no frames were timed yet",
            ctl_text(model, "name"), all);
    top_line(s);
    top_table_draw(&t, s);
}
