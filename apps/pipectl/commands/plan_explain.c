/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl plan explain: why the present plan serves. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

/* smaller relative differences are not told */
#define NEARLY 0.005

/* What the costs said when the plan was chosen is past: a sentence, not a row that looks like a
 * rate above the bound. */
static void print_past(const json_t *e)
{
    double then = ctl_real(json_object_get(e, "predicted"), "fps");
    double now = ctl_real(json_object_get(e, "now"), "fps"), bound = ctl_real(e, "bound_fps");
    double measured = ctl_real(json_object_get(e, "measured"), "fps");
    char line[320];

    if (then > 0 && now > 0 && fabs(then / now - 1) > NEARLY) {
        snprintf(line, sizeof(line),
                 "When it was chosen, the costs known then promised %.1f frames/s. They have been "
                 "measured again since: the units take %s now.",
                 then, then > now ? "longer" : "less");
        printf("  ");
        ctl_print_wrapped(line, 2);
    }
    if (measured > bound * (1 + NEARLY) && bound > 0) {
        printf("  ");
        ctl_print_wrapped("Measured is above the bound: the frames that were measured took less "
                          "time than the costs say now.",
                          2);
    }
}

static void print_figures(const json_t *e)
{
    static const char *const headings[] = {"", "frames/s", "bottleneck ms", "latency ms", NULL};
    static const struct {
        const char *key, *title;
    } rows[] = {{"now", "by costs now"}, {"measured", "measured"}};
    const char *at = json_string_value(json_object_get(e, "measured_at"));
    struct ctl_table t;
    char bound[32];

    ctl_table_init(&t, headings, "lrrr");
    t.indent = 2;
    for (size_t i = 0; i < base_array_count(rows); i++) {
        const json_t *f = json_object_get(e, rows[i].key);
        char fps[32], bottleneck[32], latency[32];

        ctl_table_add(&t, "%s\t%s\t%s\t%s", rows[i].title,
                      ctl_known(f, "fps", "%.1f", fps, sizeof(fps)),
                      ctl_known(f, "bottleneck_ms", "%.3f", bottleneck, sizeof(bottleneck)),
                      ctl_known(f, "latency_ms", "%.3f", latency, sizeof(latency)));
    }
    ctl_table_add(&t, "bound\t%s\t-\t-", ctl_known(e, "bound_fps", "%.1f", bound, sizeof(bound)));
    ctl_table_print(&t);
    if (at) {
        shown_printf("  measured at %s by the last retune; no frame came since\n", at);
    }
    print_past(e);
}

static void print_stages(const json_t *e)
{
    static const char *const headings[] = {"stage", "units", "predicted ms", "measured ms",
                                           "ratio", "busy",  "teams",        NULL};
    struct ctl_table t;
    size_t i;
    json_t *s;

    ctl_table_init(&t, headings, "rlrrrrw");
    t.indent = 2;
    json_array_foreach(json_object_get(e, "stages"), i, s)
    {
        char units[64], predicted[32], measured[32], ratio[32], busy[32];

        ctl_table_add(&t, "%zu\t%s\t%s\t%s\t%s\t%s\t%s%s", i,
                      ctl_any(s, "units", units, sizeof(units)),
                      ctl_known(s, "predicted_ms", "%.3f", predicted, sizeof(predicted)),
                      ctl_known(s, "measured_ms", "%.3f", measured, sizeof(measured)),
                      ctl_known(s, "ratio", "%.2f", ratio, sizeof(ratio)),
                      ctl_format(100 * ctl_value(s, "busy"), "%.0f %%", busy, sizeof(busy)),
                      ctl_text(s, "teams"),
                      json_is_true(json_object_get(s, "bottleneck")) ? " (bottleneck)" : "");
    }
    ctl_table_print(&t);
}

static void print_cores(const json_t *e)
{
    size_t i;
    json_t *c;

    json_array_foreach(json_object_get(e, "cores"), i, c)
    {
        const char *why = json_string_value(json_object_get(c, "why"));
        base_autofree char *line = NULL;

        if (asprintf(&line, "%s: %.0f of %.0f. %s", ctl_text(c, "ep"), ctl_real(c, "used"),
                     ctl_real(c, "total"), why ? why : "") < 0) {
            line = NULL;
            return;
        }
        printf("  ");
        ctl_print_wrapped(line, 4);
    }
}

static void print_runners_up(const json_t *e)
{
    static const char *const headings[] = {"frames/s", "latency ms", "plan", NULL};
    const json_t *list = json_object_get(e, "runners_up");
    struct ctl_table t;
    size_t i;
    json_t *p;

    if (json_array_size(list) == 0) {
        printf("\nNo other plan comes near.\n");
        return;
    }
    printf("\nRunners-up, by the same costs:\n");
    ctl_table_init(&t, headings, "rrw");
    t.indent = 2;
    json_array_foreach(list, i, p)
    {
        const char *why = json_string_value(json_object_get(p, "why"));
        char fps[32], latency[32];

        ctl_table_add(&t, "%s\t%s\t%s", ctl_known(p, "fps", "%.1f", fps, sizeof(fps)),
                      ctl_known(p, "latency_ms", "%.3f", latency, sizeof(latency)),
                      ctl_text(p, "plan"));
        if (why && *why) {
            ctl_table_note(&t, 24, "%s", why);
        }
    }
    ctl_table_print(&t);
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
    char line[256];

    for (size_t i = 0; i < base_array_count(choosers); i++) {
        text = strcmp(choosers[i].by, by) == 0 ? choosers[i].text : text;
    }
    if (strlen(at) < 19) {
        printf("The history does not say since when it serves.\n");
        return;
    }
    snprintf(line, sizeof(line), "It serves since %.10s %.8s UTC, %s (cause %s).", at, at + 11,
             text, ctl_text(chosen, "cause"));
    ctl_print_wrapped(line, 0);
}

const char *ctl_plan_origin(const json_t *explanation, char *ret, size_t bytes)
{
    static const struct {
        const char *algorithm, *text;
    } origins[] = {{"saved", "Kept from an earlier run, or from when the machine was as it is now"},
                   {"manual", "Set by hand"},
                   {"config", "Set by the configuration"}};
    const char *algorithm = ctl_text(explanation, "algorithm");
    const char *objective = ctl_text(explanation, "objective");

    snprintf(ret, bytes, "Chosen by %s for %s.", algorithm, objective);
    for (size_t i = 0; i < base_array_count(origins); i++) {
        if (strcmp(algorithm, origins[i].algorithm) == 0) {
            snprintf(ret, bytes, "%s; the objective is %s.", origins[i].text, objective);
        }
    }
    return ret;
}

const char *ctl_plan_costs(const json_t *explanation, char *ret, size_t bytes)
{
    static const struct {
        const char *key, *text;
    } sources[] = {{"measured", "measured"},
                   {"saved", "measured in earlier runs"},
                   {"predicted", "predicted"}};
    const json_t *table = json_object_get(explanation, "table");
    size_t used = (size_t)snprintf(ret, bytes, "Times of its units, on each EP and width: ");
    bool some = false;

    for (size_t i = 0; i < base_array_count(sources) && used < bytes; i++) {
        double count = ctl_real(table, sources[i].key);

        if (count > 0) {
            used += (size_t)snprintf(ret + used, bytes - used, "%s%.0f %s", some ? ", " : "", count,
                                     sources[i].text);
            some = true;
        }
    }
    snprintf(ret + base_min(used, bytes), bytes - base_min(used, bytes), "%s.",
             some ? "" : "none is known");
    return ret;
}

void ctl_print_explanation(const json_t *reply)
{
    const json_t *e = json_object_get(reply, "explanation");
    char line[256];

    printf("Plan  ");
    ctl_print_wrapped(ctl_text(e, "plan"), 6);
    ctl_print_wrapped(ctl_plan_origin(e, line, sizeof(line)), 0);
    print_chosen(json_object_get(e, "chosen"));
    ctl_print_wrapped(ctl_plan_costs(e, line, sizeof(line)), 0);
    printf("\n");
    print_figures(e);
    printf("\n");
    print_stages(e);
    printf("\nCores:\n");
    print_cores(e);
    print_runners_up(e);
    if (json_is_object(json_object_get(e, "boards"))) {
        printf("\n");
        ctl_print_route(json_object_get(e, "boards"));
    }
}
