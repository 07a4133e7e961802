/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl optimise: chooses the primitives of a model again, or its data types, or lists the
 * choices. */
#include <math.h>

#include "apps/page/page.h"
#include "apps/pipectl/common/pipectl.h"

static void print_choice(const json_t *choice)
{
    shown_printf("%s: %s, %s, measured in %.1f s\n", ctl_text(choice, "model"),
                 ctl_text(choice, "algorithm"), ctl_text(choice, "objective"),
                 ctl_real(choice, "took_ms") / 1e3);
    if (json_is_real(json_object_get(choice, "agreement"))) {
        printf("  %.2f %% of the examples keep their class\n", 100 * ctl_real(choice, "agreement"));
    }
    ctl_print_note(choice);
    json_text_each(json_object_get(choice, "kinds"), i, entry) {
        shown_printf("  %-16s %9.3f ms on one core, may lose %.1f %%, %8.2f MB packed\n",
                     ctl_text(entry, "ep"), ctl_real(entry, "ms"),
                     100 * ctl_real(entry, "may_lose"), ctl_real(entry, "packed_bytes") / 1e6);
    }
    if (json_array_size(json_object_get(choice, "front"))) {
        printf("best choices (nothing was changed):\n");
    }
    json_text_each(json_object_get(choice, "front"), i, entry) {
        printf("  %9.3f ms  %8.2f MB", ctl_real(entry, "ms"),
               ctl_real(entry, "packed_bytes") / 1e6);
        if (ctl_real(entry, "inexact") > 0) {
            printf("  %.0f ops inexact", ctl_real(entry, "inexact"));
        }
        printf("\n");
    }
}

/* Draws steps: a choice holds until the next smaller one. */
static void write_page(FILE *to, const json_t *choice)
{
    static const char title[] = "Choices of primitives: time against memory";
    json_t *chart =
        page_new("choices", title, "lines", page_axis("ms a frame on one core", false, NAN, NAN),
                 page_axis("MB of packed weights", false, NAN, NAN));
    json_t *points = json_array();
    char note[64];

    json_text_each(json_object_get(choice, "front"), i, entry) {
        double ms = ctl_real(entry, "ms"), mb = ctl_real(entry, "packed_bytes") / 1e6;

        snprintf(note, sizeof(note), "%.3f ms, %.2f MB", ms, mb);
        page_point(points, ms, mb, note);
    }
    page_lines(chart, "choices", points, json_pack("{s:b}", "steps", 1));
    page_begin(to, ctl_text(choice, "model"));
    page_chart(to, chart);
    page_end(to);
}

/* ---- data types ---- */

static double mb(const json_t *entry, const char *key)
{
    return ctl_real(entry, key) / 1e6;
}

static void print_front(const json_t *q)
{
    shown_printf("%s: %.1f s\n", ctl_text(q, "model"), ctl_real(q, "took_ms") / 1e3);
    shown_printf("  %9s %10s %9s %9s %9s %8s %9s %8s\n", "ms", "MB weights", "MB frame", "same",
                 "expected", "error", "integers", "inexact");
    json_text_each(json_object_get(q, "front"), i, entry) {
        bool taken = json_is_integer(json_object_get(q, "taken")) && i == ctl_real(q, "taken");

        shown_printf("%s %9.3f %10.2f %9.2f %7.2f %% %7.2f %% %8s %9.0f %8.0f\n", taken ? "*" : " ",
                     ctl_real(entry, "ms"), mb(entry, "packed_bytes"), mb(entry, "frame_bytes"),
                     100 * ctl_real(entry, "agreement"), 100 * ctl_real(entry, "expected"),
                     ctl_known(entry, "error", "%.4f").text, ctl_real(entry, "integers"),
                     ctl_real(entry, "inexact"));
    }
    shown_printf("  %s\n", ctl_is(q, "serves") ? "* serves now" : "nothing was changed");
}

/* @y: of an entry */
static void write_chart(FILE *to, const json_t *front, const char *id, const char *title,
                        const char *axis, double (*y)(const json_t *entry))
{
    json_t *chart =
        page_new(id, title, "lines", page_axis("ms a frame on one core", false, NAN, NAN),
                 page_axis(axis, false, NAN, NAN));
    json_t *points = json_array();
    char note[96];

    json_text_each(front, i, entry) {
        snprintf(note, sizeof(note), "%.3f ms, %.4g, %.0f on integers", ctl_real(entry, "ms"),
                 y(entry), ctl_real(entry, "integers"));
        page_point(points, ctl_real(entry, "ms"), y(entry), note);
    }
    page_lines(chart, "choices", points, NULL);
    page_chart(to, chart);
}

static double lost(const json_t *entry)
{
    return 100 * (1 - base_min(ctl_real(entry, "agreement"), ctl_real(entry, "expected")));
}

static double memory(const json_t *entry)
{
    return mb(entry, "packed_bytes") + mb(entry, "frame_bytes");
}

static void write_front(FILE *to, const json_t *q)
{
    const json_t *front = json_object_get(q, "front");

    page_begin(to, ctl_text(q, "model"));
    write_chart(to, front, "accuracy", "Data types: time against accuracy",
                "% of the examples that get another class", lost);
    write_chart(to, front, "memory", "Data types: time against memory",
                "MB of packed weights and a frame", memory);
    page_end(to);
}

/* Data types are judged by examples: what Quantise does. */
static int choose_types(const struct ctl *ctl, const struct ctl_options *o, const char *command,
                        json_t *parameters)
{
    json_auto_t *reply = NULL;
    char *end = NULL;
    double percent = o->lost ? strtod(o->lost, &end) : 0;
    const json_t *q;
    int rc;

    if (!o->calibrate) {
        return ctl_usage(command, "accuracy needs examples: give --calibrate DIR");
    }
    if (o->lost && (end == o->lost || strcmp(end, *end == '%' ? "%" : "") != 0 || percent < 0 ||
                    percent > 100)) {
        return ctl_usage(command, "--at-most-lost takes a percentage, 0 to 100");
    }
    json_object_set_new(parameters, "front", json_true());
    if (o->lost) {
        json_object_set_new(parameters, "at_most_lost", json_real(percent / 100));
    }
    rc = ctl_call_examples(ctl, "Quantise", o->calibrate, parameters, &reply);
    if (rc) {
        return rc;
    }
    q = json_object_get(reply, "quantised");
    if (ctl->json) {
        ctl_print_json(q);
    } else {
        print_front(q);
    }
    rc = o->page ? ctl_save_page(o->page, write_front, q) : CTL_DONE;
    if (rc == CTL_DONE && o->lost && !ctl_is(q, "serves")) {
        rc = ctl_fail("%s: %s", ctl_text(q, "model"), ctl_text(q, "why"));
    }
    return rc;
}

int ctl_optimise(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL;
    struct ctl_options o = {0};
    int rc = ctl_take(argc, argv, &o, parameters);
    const json_t *choice;

    rc = rc ? rc : ctl_model_argument(argc, argv, parameters);
    if (rc == CTL_DONE && (o.front || o.lost)) {
        return choose_types(ctl, &o, argv[0], parameters);
    }
    if (o.page) {
        json_object_set_new(parameters, "pareto", json_true());
    }
    rc = rc ? rc : ctl_call_examples(ctl, "Optimise", o.calibrate, parameters, &reply);
    if (rc) {
        return rc;
    }
    choice = json_object_get(reply, "choice");
    if (ctl->json) {
        ctl_print_json(choice);
    } else {
        print_choice(choice);
    }
    return o.page ? ctl_save_page(o.page, write_page, choice) : CTL_DONE;
}
