/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl plan explain: why the present plan serves. */
#include <math.h>

#include "apps/pipectl/common/pipectl.h"

/* smaller relative differences are not told */
#define NEARLY 0.005

/* What the costs said when the plan was chosen is past: a sentence, not a row that looks like a
 * rate above the bound. */
static void print_past(const json_t *e)
{
    double then = ctl_real(e, "predicted.fps"), now = ctl_real(e, "now.fps");
    double bound = ctl_real(e, "bound_fps");

    if (then > 0 && now > 0 && fabs(then / now - 1) > NEARLY) {
        ctl_print_under("  ", 2,
                        "When it was chosen, the costs known then promised %.1f frames/s. They "
                        "have been measured again since: the units take %s now.",
                        then, then > now ? "longer" : "less");
    }
    if (ctl_real(e, "measured.fps") > bound * (1 + NEARLY) && bound > 0) {
        ctl_print_under("  ", 2,
                        "Measured is above the bound: the frames that were measured took less "
                        "time than the costs say now.");
    }
}

/* How far the plan is from what the cores could ever do, and which of them are short. */
static void print_reached(const json_t *e)
{
    double now = ctl_real(e, "now.fps"), bound = ctl_real(e, "bound_fps"), most = 0;
    const json_t *cores = json_object_get(e, "cores");
    struct ctl_words limit = {"."};

    json_text_each(cores, i, c) {
        if (json_array_size(cores) > 1 && ctl_real(c, "limits") > most) {
            most = ctl_real(c, "limits");
            snprintf(limit.text, sizeof(limit.text), "; %s limits it most (%.0f %%).",
                     ctl_text(c, "ep"), 100 * most);
        }
    }
    if (now > 0 && bound > 0) {
        ctl_print_under(
            "  ", 2, "By costs now this plan reaches %.1f %% of what these cores could ever do%s",
            100 * now / bound, limit.text);
    }
}

static void print_figures(const json_t *e)
{
    static const struct {
        const char *key, *title;
    } rows[] = {{"now", "by costs now"}, {"measured", "measured"}};
    const char *at = json_string_value(json_object_get(e, "measured_at"));
    struct cli_table t = {.align = "lrrr", .indent = 2};

    cli_table_add(&t, "\tframes/s\tbottleneck ms\tlatency ms");
    for (size_t i = 0; i < base_array_count(rows); i++) {
        const json_t *f = json_object_get(e, rows[i].key);

        cli_table_add(&t, "%s\t%s\t%s\t%s", rows[i].title, ctl_known(f, "fps", "%.1f").text,
                      ctl_known(f, "bottleneck_ms", "%.3f").text,
                      ctl_known(f, "latency_ms", "%.3f").text);
    }
    cli_table_add(&t, "bound\t%s\t-\t-", ctl_known(e, "bound_fps", "%.1f").text);
    cli_table_print(&t);
    if (!json_is_object(json_object_get(e, "mix"))) {
        print_reached(e);
    }
    if (at) {
        shown_printf("  measured at %s by the last retune; no frame came since\n", at);
    }
    print_past(e);
}

/* "97.2%:0-20@big|21-52@little;2.8%:0-52@little" */
static void print_routes(const char *plan)
{
    struct cli_table t = {.align = "rw", .indent = 2};

    if (!strchr(plan, ';')) {
        return;
    }
    cli_table_add(&t, "of frames\troute");
    for (const char *end; *plan; plan = end + (*end == ';')) {
        size_t share = strcspn(plan, ":;");
        const char *stages = plan + share + (plan[share] == ':');

        end = plan + strcspn(plan, ";");
        cli_table_add(&t, "%.*s\t%.*s", (int)share, plan, (int)(end - stages), stages);
    }
    cli_table_print(&t);
}

/* What one plan for all models says of it: which part of the cores it gets, and why no more. */
static void print_mix(const json_t *mix, const char *plan)
{
    const json_t *row =
        json_text_same(json_object_get(mix, "models"), "model", json_object_get(mix, "model"));
    struct cli_table t = {.align = "lrrr", .indent = 2};

    if (!row) {
        return;
    }
    ctl_print_wrapped(ctl_mix_reaches(mix).text, 0);
    ctl_print_wishes_kept(mix);
    ctl_print_under("", 0, "It gives this model %s.", ctl_mix_gives(row).text);
    print_routes(plan);
    printf("\n");
    cli_table_add(&t, "cores\tthis model\tall models\tlimit the plan by");
    json_text_each(json_object_get(mix, "cores"), i, of) {
        const char *ep = ctl_text(of, "ep");

        cli_table_add(&t, "%s\t%.0f %%\t%.0f %%\t%.0f %%", ep,
                      100 * json_number_value(json_object_get(json_object_get(row, "busy"), ep)),
                      100 * ctl_real(of, "busy"), 100 * ctl_real(of, "limits"));
    }
    cli_table_print(&t);
    printf("\nAlone on these cores:\n");
}

static void print_stages(const json_t *e)
{
    struct cli_table t = {.align = "rlrrrrw", .indent = 2};

    cli_table_add(&t, "stage\tunits\tpredicted ms\tmeasured ms\tratio\tbusy\tteams");
    json_text_each(json_object_get(e, "stages"), i, s) {
        cli_table_add(&t, "%zu\t%s\t%s\t%s\t%s\t%s\t%s%s", i, ctl_any(s, "units").text,
                      ctl_known(s, "predicted_ms", "%.3f").text,
                      ctl_known(s, "measured_ms", "%.3f").text, ctl_known(s, "ratio", "%.2f").text,
                      ctl_format(100 * ctl_value(s, "busy"), "%.0f %%").text, ctl_text(s, "teams"),
                      ctl_is(s, "bottleneck") ? " (bottleneck)" : "");
    }
    cli_table_print(&t);
}

static void print_cores(const json_t *e)
{
    json_text_each(json_object_get(e, "cores"), i, c) {
        ctl_print_under("  ", 4, "%s: %.0f of %.0f. %s", ctl_text(c, "ep"), ctl_real(c, "used"),
                        ctl_real(c, "total"), json_text_of(c, "why"));
    }
}

static void print_runners_up(const json_t *e)
{
    const json_t *list = json_object_get(e, "runners_up");
    struct cli_table t = {.align = "rrw", .indent = 2};

    if (json_array_size(list) == 0) {
        printf("\nNo other plan comes near.\n");
        return;
    }
    puts(json_is_object(json_object_get(e, "mix"))
             ? "\nRunners-up if it were alone, by the same costs:"
             : "\nRunners-up, by the same costs:");
    cli_table_add(&t, "frames/s\tlatency ms\tplan");
    json_text_each(list, i, p) {
        const char *why = json_text_of(p, "why");

        cli_table_add(&t, "%s\t%s\t%s", ctl_known(p, "fps", "%.1f").text,
                      ctl_known(p, "latency_ms", "%.3f").text, ctl_text(p, "plan"));
        if (*why) {
            cli_table_note(&t, 24, "%s", why);
        }
    }
    cli_table_print(&t);
}

/* "2026-03-01T10:20:30.123Z" as "2026-03-01 10:20:30 UTC" */
static void print_chosen(const json_t *chosen)
{
    static const struct {
        const char *by, *text;
    } choosers[] = {{"start", "when the model was loaded"},
                    {"retune", "when a retune chose it"},
                    {"adaptation", "when the daemon adapted it"},
                    {"hand", "when it was set by hand"},
                    {"config", "when the configuration set it"},
                    {"request", "when a client asked for the best plan"}};
    const char *at = ctl_text(chosen, "at"), *by = ctl_text(chosen, "by"), *text = by;

    for (size_t i = 0; i < base_array_count(choosers); i++) {
        text = strcmp(choosers[i].by, by) == 0 ? choosers[i].text : text;
    }
    if (strlen(at) < 19) {
        printf("The history does not say since when it serves.\n");
        return;
    }
    ctl_print_under("", 0, "It serves since %.10s %.8s UTC, %s (cause %s).", at, at + 11, text,
                    ctl_text(chosen, "cause"));
}

struct ctl_words ctl_plan_origin(const json_t *explanation)
{
    static const char *const origins[][2] = {
        {"saved", "Kept from an earlier run, or from when the machine was as it is now"},
        {"manual", "Set by hand"},
        {"config", "Set by the configuration"}};
    const char *algorithm = ctl_text(explanation, "algorithm");
    const char *objective = ctl_text(explanation, "objective");
    struct ctl_words w;

    snprintf(w.text, sizeof(w.text), "Chosen by %s for %s.", algorithm, objective);
    if (strcmp(algorithm, "mix") == 0) {
        return (struct ctl_words){"Its part of one plan for all models."};
    }
    for (size_t i = 0; i < base_array_count(origins); i++) {
        if (strcmp(algorithm, origins[i][0]) == 0) {
            snprintf(w.text, sizeof(w.text), "%s; the objective is %s.", origins[i][1], objective);
        }
    }
    return w;
}

struct ctl_words ctl_plan_costs(const json_t *explanation)
{
    static const char *const sources[][2] = {{"measured", "measured"},
                                             {"saved", "measured in earlier runs"},
                                             {"predicted", "predicted"}};
    const json_t *table = json_object_get(explanation, "table");
    struct ctl_words w = {"Times of its units, on each EP and width: "};
    bool some = false;

    for (size_t i = 0; i < base_array_count(sources); i++) {
        double count = ctl_real(table, sources[i][0]);

        if (count > 0) {
            base_append(w.text, sizeof(w.text), "%s%.0f %s", some ? ", " : "", count,
                        sources[i][1]);
            some = true;
        }
    }
    base_append(w.text, sizeof(w.text), some ? "." : "none is known.");
    return w;
}

/* ---- the route over boards ---- */

static void print_route_figures(const json_t *route)
{
    static const struct {
        const char *key, *name;
    } rows[] = {{"predicted", "this route"}, {"best", "best route"}, {"alone", "this board alone"}};
    struct cli_table t = {.align = "lrrw", .indent = 2};

    cli_table_add(&t, "\tframes/s\tlatency ms\twhat decides");
    for (size_t i = 0; i < base_array_count(rows); i++) {
        const json_t *f = json_object_get(route, rows[i].key);

        cli_table_add(&t, "%s\t%s\t%s\t%s", rows[i].name, ctl_known(f, "fps", "%.1f").text,
                      ctl_known(f, "latency_ms", "%.3f").text, ctl_text(f, "limit"));
    }
    cli_table_print(&t);
}

/* "b2, b3 (1 of 3)": shares only where there are several boards. */
static struct ctl_words boards_text(const json_t *boards)
{
    struct ctl_words w = {""};
    double all = 0;

    json_text_each(boards, i, b) {
        all += ctl_real(b, "share");
    }
    json_text_each(boards, i, b) {
        base_append(w.text, sizeof(w.text), "%s%s%s", i ? ", " : "", ctl_text(b, "name"),
                    ctl_is(b, "up") ? "" : " (away)");
        if (json_array_size(boards) > 1 && all > 0) {
            base_append(w.text, sizeof(w.text), " %.0f %%", 100 * ctl_real(b, "share") / all);
        }
    }
    return w;
}

static void print_hops(const json_t *route)
{
    const json_t *hops = json_object_get(route, "hops");
    struct cli_table t = {.align = "lrrw", .indent = 2};

    if (json_array_size(hops) == 0) {
        return;
    }
    cli_table_add(&t, "units\tpredicted ms\tmeasured ms\tboards");
    json_text_each(hops, i, hop) {
        cli_table_add(&t, "%s\t%s\t%s\t%s", ctl_text(hop, "units"),
                      ctl_known(hop, "predicted_ms", "%.3f").text,
                      ctl_known(hop, "service_ms", "%.3f").text,
                      boards_text(json_object_get(hop, "boards")).text);
    }
    cli_table_print(&t);
    printf("\n");
}

static void print_measured(const json_t *route)
{
    const json_t *predicted = json_object_get(route, "predicted");
    double is = ctl_real(route, "measured_fps"), table = ctl_real(predicted, "fps");

    if (ctl_has(route, "measured_fps") && table > 0) {
        printf("  measured: %.1f frames/s of %.1f; clients may send fewer\n\n", is, table);
    }
}

static void print_best(const json_t *route)
{
    const json_t *best = json_object_get(route, "best");

    if (json_is_object(best)) {
        ctl_print_under("  best route: ", 14, "%s", ctl_text(best, "route"));
        ctl_print_under("  as a plan:  ", 14, "%s", ctl_text(best, "plan"));
    }
    if (json_is_string(json_object_get(route, "verdict"))) {
        ctl_print_under("  ", 2, "%s", ctl_text(route, "verdict"));
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

    if (json_array_size(list) > 0) {
        printf("\nBoards without a part in the best route:\n");
    }
    json_text_each(list, i, b) {
        ctl_print_under("  ", 4, "%s: %s", ctl_text(b, "name"), ctl_text(b, "why"));
    }
}

static void print_route(const json_t *route)
{
    const char *text = ctl_text(route, "route"), *why = ctl_text(route, "why");
    bool serves = ctl_is(route, "serving");

    ctl_print_under("Route ", 6, "%s", *text ? text : "none: this board alone");
    if (ctl_is(route, "set")) {
        printf("Set by a user; pipectl plan auto gives planning back.\n");
    } else {
        shown_printf("By the key boards, \"%s\".\n", ctl_text(route, "boards"));
    }
    if (*text && !serves) {
        shown_printf("Its state is %s.\n", ctl_text(route, "phase"));
    }
    if (!serves && *why) {
        ctl_print_under("This board alone serves:\n  ", 2, "%s", why);
    }
    printf("\n");
    print_hops(route);
    if (!json_object_get(route, "verdict")) {
        return;
    }
    print_route_figures(route);
    printf("\n");
    print_measured(route);
    print_best(route);
    print_left_out(route);
}

/* ---- the command ---- */

void ctl_print_explanation(const json_t *reply)
{
    const json_t *e = json_object_get(reply, "explanation");

    ctl_print_under("Plan  ", 6, "%s", ctl_text(e, "plan"));
    ctl_print_wrapped(ctl_plan_origin(e).text, 0);
    print_chosen(json_object_get(e, "chosen"));
    ctl_print_wrapped(ctl_plan_costs(e).text, 0);
    printf("\n");
    print_mix(json_object_get(e, "mix"), ctl_text(e, "plan"));
    print_figures(e);
    printf("\n");
    print_stages(e);
    if (!json_is_object(json_object_get(e, "mix"))) {
        printf("\nCores:\n");
        print_cores(e);
    }
    print_runners_up(e);
    if (json_is_object(json_object_get(e, "boards"))) {
        printf("\n");
        print_route(json_object_get(e, "boards"));
    }
}
