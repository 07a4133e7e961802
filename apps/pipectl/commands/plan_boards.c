/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl plan front --boards, and what plan explain says of a model's route over boards. */
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

void ctl_print_front_boards(const json_t *reply)
{
    bool watts = json_is_true(json_object_get(reply, "watts_known"));
    const struct ctl_column columns[] = {
        {"frames/s", "fps", 'r', CTL_DECIMALS, 1},
        {"latency ms", "latency_ms", 'r', CTL_DECIMALS, 3},
        {"MiB", "most_memory_bytes", 'r', CTL_DECIMALS, 1, 1.0 / (1 << 20)},
        {watts ? "mJ/frame" : "core ms", "most_energy_mj", 'r', CTL_SIGNIFICANT, 3},
        {"plan", "plan", 'w'},
        {0}};

    ctl_print_rows(json_object_get(reply, "front"), columns, 0);
    printf("\n");
    ctl_print_wrapped(watts ? "MiB and mJ/frame: of the board that has most of it."
                            : "MiB and core ms: of the board that has most of it. Core ms a frame "
                              "stand for energy, because the watts of cores are not known.",
                      0);
    if (!json_is_true(json_object_get(reply, "exact"))) {
        ctl_print_wrapped("There are more such plans than these; --max shows more.", 0);
    }
}

/* ---- explain ---- */

static void print_figures(const json_t *route)
{
    static const char *const headings[] = {"", "frames/s", "latency ms", "what decides", NULL};
    static const struct {
        const char *key, *name;
    } rows[] = {{"predicted", "this route"}, {"best", "best route"}, {"alone", "this board alone"}};
    struct ctl_table t;

    ctl_table_init(&t, headings, "lrrw");
    t.indent = 2;
    for (size_t i = 0; i < base_array_count(rows); i++) {
        const json_t *f = json_object_get(route, rows[i].key);
        char fps[32], latency[32];

        ctl_table_add(
            &t, "%s\t%s\t%s\t%s", rows[i].name, ctl_known(f, "fps", "%.1f", fps, sizeof(fps)),
            ctl_known(f, "latency_ms", "%.3f", latency, sizeof(latency)), ctl_text(f, "limit"));
    }
    ctl_table_print(&t);
}

/* "b2, b3 (1 of 3)": shares only where there are several boards. */
static void boards_text(const json_t *boards, char *ret, size_t bytes)
{
    double all = 0;
    size_t i, at = 0;
    json_t *b;

    json_array_foreach(boards, i, b)
    {
        all += ctl_real(b, "share");
    }
    ret[0] = '\0';
    json_array_foreach(boards, i, b)
    {
        if (at < bytes) {
            at +=
                (size_t)snprintf(ret + at, bytes - at, "%s%s%s", i ? ", " : "", ctl_text(b, "name"),
                                 json_is_true(json_object_get(b, "up")) ? "" : " (away)");
        }
        if (at < bytes && json_array_size(boards) > 1 && all > 0) {
            at += (size_t)snprintf(ret + at, bytes - at, " %.0f %%",
                                   100 * ctl_real(b, "share") / all);
        }
    }
}

static void print_hops(const json_t *route)
{
    static const char *const headings[] = {"units", "predicted ms", "measured ms", "boards", NULL};
    const json_t *hops = json_object_get(route, "hops");
    struct ctl_table t;
    size_t i;
    json_t *hop;

    if (json_array_size(hops) == 0) {
        return;
    }
    ctl_table_init(&t, headings, "lrrw");
    t.indent = 2;
    json_array_foreach(hops, i, hop)
    {
        char boards[256], predicted[32], measured[32];

        boards_text(json_object_get(hop, "boards"), boards, sizeof(boards));
        ctl_table_add(&t, "%s\t%s\t%s\t%s", ctl_text(hop, "units"),
                      ctl_known(hop, "predicted_ms", "%.3f", predicted, sizeof(predicted)),
                      ctl_known(hop, "service_ms", "%.3f", measured, sizeof(measured)), boards);
    }
    ctl_table_print(&t);
    printf("\n");
}

static void print_measured(const json_t *route)
{
    const json_t *predicted = json_object_get(route, "predicted");
    double is = ctl_real(route, "measured_fps"), table = ctl_real(predicted, "fps");

    if (json_is_number(json_object_get(route, "measured_fps")) && table > 0) {
        printf("  measured: %.1f frames/s of %.1f; clients may send fewer\n\n", is, table);
    }
}

static void print_best(const json_t *route)
{
    const json_t *best = json_object_get(route, "best");

    if (json_is_object(best)) {
        printf("  best route: ");
        ctl_print_wrapped(ctl_text(best, "route"), 14);
        printf("  as a plan:  ");
        ctl_print_wrapped(ctl_text(best, "plan"), 14);
    }
    if (json_is_string(json_object_get(route, "verdict"))) {
        printf("  ");
        ctl_print_wrapped(ctl_text(route, "verdict"), 2);
    }
    if (ctl_real(route, "input_bytes") > 0) {
        printf("  the input of a frame is planned with %.0f bytes on the wire\n",
               ctl_real(route, "input_bytes"));
    }
    if (ctl_real(route, "guessed_links") > 0) {
        shown_printf("  not measured yet, so guessed: %.0f link%s\n",
                     ctl_real(route, "guessed_links"),
                     base_plural(ctl_real(route, "guessed_links")));
    }
}

static void print_left_out(const json_t *route)
{
    const json_t *list = json_object_get(route, "left_out");
    size_t i;
    json_t *b;

    if (json_array_size(list) > 0) {
        printf("\nBoards without a part in the best route:\n");
    }
    json_array_foreach(list, i, b)
    {
        base_autofree char *line = NULL;

        if (asprintf(&line, "%s: %s", ctl_text(b, "name"), ctl_text(b, "why")) < 0) {
            line = NULL;
            return;
        }
        printf("  ");
        ctl_print_wrapped(line, 4);
    }
}

void ctl_print_route(const json_t *route)
{
    const char *text = ctl_text(route, "route"), *why = ctl_text(route, "why");
    bool serves = json_is_true(json_object_get(route, "serving"));

    printf("Route ");
    ctl_print_wrapped(*text ? text : "none: this board alone", 6);
    if (json_is_true(json_object_get(route, "set"))) {
        printf("Set by a user; pipectl plan auto gives planning back.\n");
    } else {
        shown_printf("By the key boards, \"%s\".\n", ctl_text(route, "boards"));
    }
    if (*text && !serves) {
        shown_printf("Its state is %s.\n", ctl_text(route, "phase"));
    }
    if (!serves && *why) {
        printf("This board alone serves:\n  ");
        ctl_print_wrapped(why, 2);
    }
    printf("\n");
    print_hops(route);
    if (!json_object_get(route, "verdict")) {
        return;
    }
    print_figures(route);
    printf("\n");
    print_measured(route);
    print_best(route);
    print_left_out(route);
}
