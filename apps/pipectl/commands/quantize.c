/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl quantize: serves an f32 model on integers, or no longer. */
#include <math.h>

#include "apps/pipectl/common/pipectl.h"

static void print_examples(const json_t *q)
{
    bool held_out = ctl_is(q, "held_out");

    if (held_out) {
        shown_printf("  calibrated on %.0f example%s (%s), judged on %.0f other%s\n",
                     ctl_real(q, "calibrated"), base_plural(ctl_real(q, "calibrated")),
                     ctl_text(q, "method"), ctl_real(q, "judged"),
                     base_plural(ctl_real(q, "judged")));
    } else {
        shown_printf("  calibrated and judged on the same example (%s): give more than one\n",
                     ctl_text(q, "method"));
    }
    if (ctl_real(q, "left_out") > 0) {
        shown_printf("  %.0f left out; %s\n", ctl_real(q, "left_out"),
                     ctl_text(q, "left_out_first"));
    }
    if (ctl_real(q, "zeros") > 0) {
        printf("  %.0f values were 0 in every example\n", ctl_real(q, "zeros"));
    }
}

static void print_kept(const json_t *q)
{
    printf("  %.0f of %.0f operators on integers\n", ctl_real(q, "integers"),
           ctl_real(q, "products"));
    json_text_each(json_object_get(q, "kept"), i, entry) {
        shown_printf("    f32: %s (%s)\n", ctl_text(entry, "op"), ctl_text(entry, "why"));
    }
}

static void print(const json_t *q)
{
    shown_printf("%s: %s, %.1f s\n", ctl_text(q, "model"),
                 ctl_is(q, "serves") ? "quantised" : "left as it was",
                 ctl_real(q, "took_ms") / 1e3);
    print_examples(q);
    shown_printf("  top-1 agreement %.2f %% (required: %.2f), error %s mean, %s maximum\n",
                 100 * ctl_real(q, "agreement"), 100 * ctl_real(q, "bound"),
                 ctl_known(q, "error_mean", "%.4f").text, ctl_known(q, "error_most", "%.4f").text);
    if (ctl_real(q, "int8_ms") > 0) {
        printf("  f32 %.3f ms, int8 %.3f ms on one core: %.2f times as fast\n",
               ctl_real(q, "f32_ms"), ctl_real(q, "int8_ms"),
               ctl_real(q, "f32_ms") / ctl_real(q, "int8_ms"));
    }
    print_kept(q);
    ctl_print_note(q);
}

/* @write: where the ranges go; NULL: nowhere */
static int show(const struct ctl *ctl, const char *write, json_t *q)
{
    json_auto_t *ranges = json_incref(json_object_get(q, "ranges"));

    json_object_del(q, "ranges");
    if (ctl->json) {
        ctl_print_json(q);
    } else {
        print(q);
    }
    if (!ctl_is(q, "serves")) {
        return ctl_fail("%s: %s", ctl_text(q, "model"), ctl_text(q, "why"));
    }
    return write ? ctl_save_json(write, ranges, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : CTL_DONE;
}

int ctl_quantize(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL;
    struct ctl_options o = {.bound = NAN};
    int rc = ctl_take(argc, argv, &o, parameters);
    bool off = ctl_is(parameters, "off");

    if (o.write) {
        json_object_set_new(parameters, "ranges", json_true());
    }
    if (!isnan(o.bound)) {
        json_object_set_new(parameters, "agreement", json_real(o.bound / 100));
    }
    rc = rc ? rc : ctl_model_argument(argc, argv, parameters);
    if (rc == CTL_DONE && off == (o.calibrate != NULL)) {
        rc = ctl_usage(argv[0], "give either --calibrate DIR or --off");
    }
    rc = rc ? rc : ctl_call_examples(ctl, "Quantise", o.calibrate, parameters, &reply);
    if (rc == CTL_DONE && off) {
        ctl_tell(ctl, reply, "%s is served from its file, not quantised\n",
                 ctl_text(reply, "model"));
    } else if (rc == CTL_DONE) {
        rc = show(ctl, o.write, json_object_get(reply, "quantised"));
    }
    return rc;
}
