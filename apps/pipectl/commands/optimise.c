/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl optimise: chooses the primitives of a model again, or lists the choices. */
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

int ctl_optimise(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL;
    struct ctl_options o = {0};
    int rc = ctl_take(argc, argv, &o, parameters);
    const json_t *choice;

    if (o.page) {
        json_object_set_new(parameters, "pareto", json_true());
    }
    rc = rc ? rc : ctl_model_argument(argc, argv, parameters);
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
