/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: the route of a model over boards, and the boards. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/top/top.h"

/* What the planner expects of hop @i of the model's route; NAN: it is not known. */
static double expected_ms(const struct top_view *v, const json_t *model, size_t i)
{
    const json_t *route = json_object_get(v->explanation, "boards");
    const json_t *its = json_object_get(model, "route");

    if (strcmp(ctl_text(v->explanation, "model"), ctl_text(model, "name")) != 0 ||
        ctl_value(route, "number") != ctl_value(its, "number")) {
        return NAN;
    }
    return ctl_value(json_array_get(json_object_get(route, "hops"), i), "predicted_ms");
}

static void put_count(struct top_screen *s, const char *name, double all, double rate)
{
    top_put(s, rate > 0 ? TOP_WARN : TOP_PLAIN, ", %.0f %s", all, name);
    if (rate > 0) {
        top_put(s, TOP_WARN, " (%.1f a second)", rate);
    }
}

static void draw_route_line(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    const json_t *route = json_object_get(model, "route");
    const struct top_model *m = top_find(v->top, ctl_text(model, "name"));

    if (!ctl_is(route, "serving")) {
        top_put(s, TOP_WARN, "boards \"%s\": this board alone: %s", ctl_text(route, "boards"),
                ctl_text(route, "why"));
        top_line(s);
    }
    if (!*ctl_text(route, "route")) {
        return;
    }
    top_put(s, TOP_PLAIN, "route ");
    top_put(s, TOP_BOLD, "%s", ctl_text(route, "route"));
    top_put(s, TOP_PLAIN, " (%s)", ctl_text(route, "phase"));
    top_line(s);
    top_put(s, TOP_PLAIN, "  %.0f answered by boards", ctl_real(route, "answered"));
    put_count(s, "sent again", ctl_real(route, "resent"), m ? m->rate[TOP_ROUTE_RESENT] : NAN);
    put_count(s, "wholly here", ctl_real(route, "here"), m ? m->rate[TOP_ROUTE_HERE] : NAN);
    top_line(s);
}

static void add_hop(struct top_table *t, const struct top_view *v, const json_t *model,
                    const json_t *hop, size_t i)
{
    double ms = ctl_value(hop, "service_ms"), expected = expected_ms(v, model, i), all = 0;
    json_t *boards = json_object_get(hop, "boards");

    json_text_each(boards, k, b) {
        all += ctl_real(b, "share");
    }
    json_text_each(boards, k, b) {
        bool up = ctl_is(b, "up");
        double share = all > 0 ? ctl_real(b, "share") / all : NAN, off = top_off(ms, expected);

        top_table_text(t, TOP_PLAIN, "%s", ctl_text(hop, "units"));
        top_table_text(t, TOP_BOLD, "%s", ctl_text(b, "name"));
        top_table_text(t, up ? TOP_GOOD : TOP_BAD, "%s", up ? "there" : "away");
        top_table_bar(t, TOP_GOOD, share);
        top_table_value(t, TOP_PLAIN, "%.0f %%", share * 100);
        top_table_value(t, TOP_BOLD, "%.3f", ms);
        top_table_value(t, TOP_PLAIN, "%.3f", expected);
        top_table_value(t, top_look_of_off(off), "%+.0f %%", off * 100);
    }
}

void top_draw_route(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    static const struct top_column columns[] = {
        {"units", 'l', 0}, {"board", 'l', 0},      {"is", 'l', 0},          {"share", 'b', 3},
        {"", 'r', 1},      {"service ms", 'r', 0}, {"expected ms", 'r', 2}, {"off", 'r', 0},
    };
    const json_t *route = json_object_get(model, "route");
    struct top_table t = {columns, base_array_count(columns)};

    if (!json_is_object(route)) {
        return;
    }
    draw_route_line(v, s, model);
    json_text_each(json_object_get(route, "hops"), i, hop) {
        add_hop(&t, v, model, hop, i);
    }
    top_table_draw(&t, s);
}

static void since(double seconds, char ret[32])
{
    if (isnan(seconds)) {
        snprintf(ret, 32, "-");
    } else if (seconds < 120) {
        snprintf(ret, 32, "%.0f s", seconds);
    } else if (seconds < 7200) {
        snprintf(ret, 32, "%.0f min", floor(seconds / 60));
    } else {
        snprintf(ret, 32, "%.0f h", floor(seconds / 3600));
    }
}

void top_draw_boards(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    static const struct top_column columns[] = {
        {"board", 'l', 0},  {"is", 'l', 0},         {"for", 'r', 1},    {"message us", 'r', 0},
        {"Mbit/s", 'r', 0}, {"memory MiB", 'r', 2}, {"places", 'l', 3},
    };
    struct top_table t = {columns, base_array_count(columns)};

    json_text_each(json_object_get(v->top->status, "boards"), i, b) {
        const json_t *link = json_object_get(b, "link");
        bool up = ctl_is(b, "up");
        double kilobyte_us = ctl_value(link, "kilobyte_us"), bytes = ctl_real(b, "memory_bytes");
        char text[TOP_TEXT_MAX];

        top_table_text(&t, TOP_BOLD, "%s", ctl_text(b, "name"));
        top_table_text(&t, up ? TOP_GOOD : TOP_BAD, "%s", up ? "there" : "away");
        since(ctl_value(b, "for_s"), text);
        top_table_text(&t, TOP_PLAIN, "%s", text);
        top_table_value(&t, TOP_PLAIN, "%.0f", ctl_value(link, "message_us"));
        top_table_value(&t, TOP_PLAIN, "%.0f", kilobyte_us > 0 ? 8000 / kilobyte_us : NAN);
        top_table_value(&t, TOP_PLAIN, "%.0f", bytes > 0 ? bytes / (1 << 20) : NAN);
        top_table_text(&t, TOP_PLAIN, "%s", ctl_places(b).text);
    }
    top_table_draw(&t, s);
}
