/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl borders: lets what goes between boards go in fewer bytes, or no longer. */

#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

static void print(const char *model, const json_t *v)
{
    shown_printf("%s: borders between boards go as %s, %.1f s\n", model, ctl_text(v, "serves"),
                 ctl_real(v, "took_ms") / 1e3);
    shown_printf("  %s on %.0f example%s: ", ctl_text(v, "encoding"), ctl_real(v, "judged"),
                 base_plural(ctl_real(v, "judged")));
    ctl_print_agreement(v);
    ctl_print_left_out(v);
    ctl_print_note(v);
}

static int show(const struct ctl *ctl, const json_t *reply)
{
    const json_t *v = json_object_get(reply, "verdict");

    if (ctl->json) {
        ctl_print_json(v);
    } else {
        print(ctl_text(reply, "model"), v);
    }
    if (!ctl_is(v, "allowed")) {
        ctl_say("%s: too few examples keep their class with %s", ctl_text(reply, "model"),
                ctl_text(v, "encoding"));
        return CTL_FAILED;
    }
    return CTL_DONE;
}

int ctl_borders(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL;
    const char *calibrate = NULL;
    const struct ctl_take options[] = {{"model", CTL_TEXT, NULL, "model"},
                                       {"calibrate", CTL_TEXT, &calibrate},
                                       {"encoding", CTL_TEXT, NULL, "encoding"},
                                       {"bound", CTL_REAL, NULL, "agreement", 0, 100, 0.01},
                                       {"off", CTL_FLAG, NULL, "off"},
                                       {0}};
    int rc = ctl_take(argc, argv, options, parameters);
    bool off = ctl_is(parameters, "off");
    bool how = json_object_get(parameters, "encoding") || json_object_get(parameters, "agreement");

    rc = rc ? rc : ctl_model_argument(argc, argv, parameters);
    if (rc == CTL_DONE && (off == (calibrate != NULL) || (off && how))) {
        rc = ctl_usage(argv[0], "give either --calibrate DIR or --off alone");
    }
    rc = rc ? rc : ctl_call_examples(ctl, "JudgeBorders", calibrate, parameters, &reply);
    if (rc == CTL_DONE && off) {
        ctl_tell(ctl, reply, "borders of %s go between boards as they are\n",
                 ctl_text(reply, "model"));
    } else if (rc == CTL_DONE) {
        rc = show(ctl, reply);
    }
    return rc;
}
