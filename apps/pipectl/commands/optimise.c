/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl optimise: chooses the primitives of a model again, or lists the choices. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/page/page.h"
#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

static const struct ctl_setting settings[] = {
    {"objective", "objective", CTL_TEXT, 0, 0},    {"algorithm", "algorithm", CTL_TEXT, 0, 0},
    {"memory", "packed_mib", CTL_REAL, 1e-3, 1e6}, {"inexact", "inexact", CTL_FLAG, 0, 0},
    {"agreement", "agreement", CTL_REAL, 0, 1},    {"episodes", "episodes", CTL_WHOLE, 1, 1e6},
    {"seed", "seed", CTL_WHOLE, 1, 9e15},          {"ms", "ms", CTL_WHOLE, 1, 600000},
    {"pareto", "pareto", CTL_FLAG, 0, 0},
};

#define OPTION_PAGE 'p'
#define OPTION_CALIBRATE 'c'

struct args {
    json_t *parameters; /* owned */
    const char *page, *calibrate;
};

static int take_args(int argc, char **argv, struct args *ret)
{
    const struct cli_option *row;
    int c, rc = CTL_DONE;

    while ((c = ctl_option(argc, argv, &rc, &row)) != -1) {
        if (c == OPTION_PAGE) {
            ret->page = optarg;
            json_object_set_new(ret->parameters, "pareto", json_true());
        } else if (c == OPTION_CALIBRATE) {
            ret->calibrate = optarg;
        } else if (c == 'm') {
            rc = ctl_set_text(argv[0], "the model's name", ret->parameters, "model", optarg);
        } else {
            rc = ctl_set(argv[0], settings, row->name, optarg, ret->parameters);
        }
    }
    return rc ? rc : ctl_model_argument(argc, argv, ret->parameters);
}

static void print_choice(const json_t *choice)
{
    const json_t *entry;
    size_t i;

    shown_printf(
        "%s: %s, %s, measured in %.1f s\n", json_string_value(json_object_get(choice, "model")),
        json_string_value(json_object_get(choice, "algorithm")),
        json_string_value(json_object_get(choice, "objective")), ctl_real(choice, "took_ms") / 1e3);
    if (json_is_real(json_object_get(choice, "agreement"))) {
        printf("  %.2f %% of the examples keep their class\n", 100 * ctl_real(choice, "agreement"));
    }
    if (ctl_text(choice, "note")[0]) {
        shown_printf("  %s\n", ctl_text(choice, "note"));
    }
    json_array_foreach(json_object_get(choice, "kinds"), i, entry)
    {
        shown_printf("  %-16s %9.3f ms on one core, may lose %.1f %%, %8.2f MB packed\n",
                     json_string_value(json_object_get(entry, "ep")), ctl_real(entry, "ms"),
                     100 * ctl_real(entry, "may_lose"), ctl_real(entry, "packed_bytes") / 1e6);
    }
    if (json_array_size(json_object_get(choice, "front"))) {
        printf("best choices (nothing was changed):\n");
    }
    json_array_foreach(json_object_get(choice, "front"), i, entry)
    {
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
    json_t *points = json_array(), *series = page_series("choices", points);
    const json_t *entry;
    char note[64];
    size_t i;

    json_array_foreach(json_object_get(choice, "front"), i, entry)
    {
        double ms = ctl_real(entry, "ms"), mb = ctl_real(entry, "packed_bytes") / 1e6;

        snprintf(note, sizeof(note), "%.3f ms, %.2f MB", ms, mb);
        page_point(points, ms, mb, note);
    }
    json_object_set_new(series, "steps", json_true());
    page_add(chart, series);
    page_begin(to, ctl_text(choice, "model"));
    page_chart(to, chart);
    page_end(to);
}

int ctl_optimise(const struct ctl *ctl, int argc, char **argv)
{
    struct args args = {.parameters = json_object()};
    json_t *reply, *choice;
    int rc = take_args(argc, argv, &args);

    if (rc) {
        json_decref(args.parameters);
        return rc;
    }
    rc = ctl_call_examples(ctl, "Optimise", args.calibrate, args.parameters, &reply);
    if (rc) {
        return rc;
    }
    choice = json_object_get(reply, "choice");
    if (ctl->json) {
        ctl_print_json(choice);
    } else {
        print_choice(choice);
    }
    if (args.page) {
        rc = ctl_save_page(args.page, write_page, choice);
    }
    json_decref(reply);
    return rc;
}
