/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl borders: lets what goes between boards go in fewer bytes, or no longer. */
#include <stdio.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

struct args {
    json_t *parameters; /* owned */
    const char *calibrate;
    bool off, how; /* how: --encoding or --bound was given */
};

static int take_option(int c, struct args *ret)
{
    switch (c) {
    case 'm':
        return ctl_set_text("borders", "the model's name", ret->parameters, "model", optarg);
    case 'c':
        ret->calibrate = optarg;
        return CTL_DONE;
    case 'e':
        ret->how = true;
        return ctl_set_text("borders", "the encoding", ret->parameters, "encoding", optarg);
    case 'b':
        ret->how = true;
        return ctl_set_bound("borders", ret->parameters);
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
    if (rc == CTL_DONE && (ret->off == (ret->calibrate != NULL) || (ret->off && ret->how))) {
        rc = ctl_usage(argv[0], "give either --calibrate DIR or --off alone");
    }
    return rc;
}

static void print(const char *model, const json_t *v)
{
    shown_printf("%s: borders between boards go as %s, %.1f s\n", model, ctl_text(v, "serves"),
                 ctl_real(v, "took_ms") / 1e3);
    shown_printf("  %s on %.0f example%s: ", ctl_text(v, "encoding"), ctl_real(v, "judged"),
                 base_plural(ctl_real(v, "judged")));
    ctl_print_agreement(v);
    ctl_print_left_out(v);
    if (ctl_text(v, "note")[0]) {
        shown_printf("  %s\n", ctl_text(v, "note"));
    }
}

static int show(const struct ctl *ctl, const json_t *reply)
{
    const json_t *v = json_object_get(reply, "verdict");

    if (ctl->json) {
        ctl_print_json(v);
    } else {
        print(ctl_text(reply, "model"), v);
    }
    if (!json_is_true(json_object_get(v, "allowed"))) {
        ctl_say("%s: too few examples keep their class with %s", ctl_text(reply, "model"),
                ctl_text(v, "encoding"));
        return CTL_FAILED;
    }
    return CTL_DONE;
}

int ctl_borders(const struct ctl *ctl, int argc, char **argv)
{
    struct args args = {.parameters = json_object()};
    json_t *reply = NULL;
    int rc = take_args(argc, argv, &args);

    if (rc) {
        json_decref(args.parameters);
        return rc;
    }
    rc = ctl_call_examples(ctl, "JudgeBorders", args.calibrate, args.parameters, &reply);
    if (rc) {
        return rc;
    }
    if (!args.off) {
        rc = show(ctl, reply);
    } else if (ctl->json) {
        ctl_print_json(reply);
    } else {
        shown_printf("borders of %s go between boards as they are\n", ctl_text(reply, "model"));
    }
    json_decref(reply);
    return rc;
}
