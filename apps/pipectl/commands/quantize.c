/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl quantize: serves an f32 model on integers, or no longer. */
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

struct args {
    json_t *parameters; /* owned */
    const char *calibrate, *write;
    bool off;
};

static int take_ms(json_t *parameters)
{
    double ms;

    if (!ctl_number(optarg, 0, 600000, &ms)) {
        return ctl_usage("quantize", "--ms needs a number from 0 to 600000, not '%s'", optarg);
    }
    json_object_set_new(parameters, "ms", json_integer((json_int_t)ms));
    return CTL_DONE;
}

static int take_keep(const char *name, json_t *parameters)
{
    json_t *list = json_object_get(parameters, "keep");

    if (!list) {
        list = json_array();
        json_object_set_new(parameters, "keep", list);
    }
    return json_array_append_new(list, json_string(name)) < 0
               ? ctl_usage("quantize", "the operator's name is not UTF-8")
               : CTL_DONE;
}

static int take_option(int c, struct args *ret)
{
    switch (c) {
    case 'm':
        return ctl_set_text("quantize", "the model's name", ret->parameters, "model", optarg);
    case 'c':
        ret->calibrate = optarg;
        return CTL_DONE;
    case 'k':
        json_object_set_new(ret->parameters, "method", json_string("kl"));
        return CTL_DONE;
    case 'x':
        json_object_set_new(ret->parameters, "method", json_string("min-max"));
        return CTL_DONE;
    case 's':
        json_object_set_new(ret->parameters, "symmetric", json_true());
        return CTL_DONE;
    case 'o':
        return take_keep(optarg, ret->parameters);
    case 'b':
        return ctl_set_bound("quantize", ret->parameters);
    case 't':
        return take_ms(ret->parameters);
    case 'w':
        ret->write = optarg;
        json_object_set_new(ret->parameters, "ranges", json_true());
        return CTL_DONE;
    default:
        ret->off = true;
        json_object_set_new(ret->parameters, "off", json_true());
        return CTL_DONE;
    }
}

static int take_args(int argc, char **argv, struct args *ret)
{
    int c, rc = CTL_DONE;

    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        rc = take_option(c, ret);
    }
    rc = rc ? rc : ctl_model_argument(argc, argv, ret->parameters);
    if (rc == CTL_DONE && ret->off == (ret->calibrate != NULL)) {
        rc = ctl_usage(argv[0], "give either --calibrate DIR or --off");
    }
    return rc;
}

static void print_examples(const json_t *q)
{
    bool held_out = json_is_true(json_object_get(q, "held_out"));

    if (held_out) {
        shown_printf("  calibrated on %.0f example%s (%s), judged on %.0f other%s\n",
                     ctl_real(q, "calibrated"), base_plural(ctl_real(q, "calibrated")),
                     ctl_text(q, "method"), ctl_real(q, "judged"),
                     base_plural(ctl_real(q, "judged")));
    } else {
        shown_printf("  calibrated and judged on the same example (%s): give more than one\n",
                     ctl_text(q, "method"));
    }
    ctl_print_left_out(q);
    if (ctl_real(q, "zeros") > 0) {
        printf("  %.0f values were 0 in every example\n", ctl_real(q, "zeros"));
    }
}

static void print_kept(const json_t *q)
{
    const json_t *entry;
    size_t i;

    printf("  %.0f of %.0f operators on integers\n", ctl_real(q, "integers"),
           ctl_real(q, "products"));
    json_array_foreach(json_object_get(q, "kept"), i, entry)
    {
        shown_printf("    f32: %s (%s)\n", ctl_text(entry, "op"), ctl_text(entry, "why"));
    }
}

static void print(const json_t *q)
{
    shown_printf("%s: %s, %.1f s\n", ctl_text(q, "model"),
                 json_is_true(json_object_get(q, "serves")) ? "quantised" : "left as it was",
                 ctl_real(q, "took_ms") / 1e3);
    print_examples(q);
    fputs("  ", stdout);
    ctl_print_agreement(q);
    if (ctl_real(q, "int8_ms") > 0) {
        printf("  f32 %.3f ms, int8 %.3f ms on one core: %.2f times as fast\n",
               ctl_real(q, "f32_ms"), ctl_real(q, "int8_ms"),
               ctl_real(q, "f32_ms") / ctl_real(q, "int8_ms"));
    }
    print_kept(q);
    if (ctl_text(q, "note")[0]) {
        shown_printf("  %s\n", ctl_text(q, "note"));
    }
}

static int show(const struct ctl *ctl, const struct args *args, json_t *q)
{
    json_t *ranges = json_incref(json_object_get(q, "ranges"));
    int rc = CTL_DONE;

    json_object_del(q, "ranges");
    if (ctl->json) {
        ctl_print_json(q);
    } else {
        print(q);
    }
    if (!json_is_true(json_object_get(q, "serves"))) {
        ctl_say("%s: %s", ctl_text(q, "model"), ctl_text(q, "why"));
        rc = CTL_FAILED;
    } else if (args->write) {
        rc = ctl_save_json(args->write, ranges, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    }
    json_decref(ranges);
    return rc;
}

int ctl_quantize(const struct ctl *ctl, int argc, char **argv)
{
    struct args args = {.parameters = json_object()};
    json_t *reply = NULL;
    int rc = take_args(argc, argv, &args);

    if (rc) {
        json_decref(args.parameters);
        return rc;
    }
    rc = ctl_call_examples(ctl, "Quantise", args.calibrate, args.parameters, &reply);
    if (rc) {
        return rc;
    }
    if (args.off) {
        if (ctl->json) {
            ctl_print_json(reply);
        } else {
            shown_printf("%s is served from its file, not quantised\n", ctl_text(reply, "model"));
        }
    } else {
        rc = show(ctl, &args, json_object_get(reply, "quantised"));
    }
    json_decref(reply);
    return rc;
}
