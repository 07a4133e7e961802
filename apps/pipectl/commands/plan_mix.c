/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl plan mix: one plan for all models, and which of their wishes it keeps. */
#include "apps/pipectl/common/pipectl.h"

void ctl_print_wishes_kept(const json_t *mix)
{
    struct ctl_words keeps = ctl_mix_keeps(mix);

    if (*keeps.text) {
        ctl_print_wrapped(keeps.text, 0);
    }
    json_text_each(json_object_get(mix, "cut"), i, cut) {
        ctl_print_wrapped(ctl_text(cut, "text"), 0);
    }
    json_text_each(json_object_get(mix, "wide"), i, wide) {
        ctl_print_wrapped(ctl_text(wide, "text"), 0);
    }
}

static void print_mix(const json_t *mix)
{
    static const struct cli_column models[] = {{"model", "model", 'l'},
                                               {"wished", "wished", 'r', CLI_DECIMALS, 1},
                                               {"frames/s", "rate", 'r', CLI_DECIMALS, 1},
                                               {"within ms", "bound_ms", 'r', CLI_DECIMALS, 1},
                                               {"plan", "plan", 'w'},
                                               {0}};
    static const struct cli_column cores[] = {
        {"ep", "ep", 'l'},
        {"cores", "cores", 'r'},
        {"busy", "busy", 'r', CLI_DECIMALS, 0, 100, " %"},
        {"limit it by", "limits", 'r', CLI_DECIMALS, 0, 100, " %"},
        {0}};

    ctl_print_wishes_kept(mix);
    printf("These plans reach %.1f %% of what these cores could ever do.\n\n",
           100 * ctl_real(mix, "of_bound"));
    cli_print_rows(json_object_get(mix, "models"), models);
    putchar('\n');
    cli_print_rows(json_object_get(mix, "cores"), cores);
}

/* Has each model served by its plan. Return: an exit code. */
static int apply(const struct ctl *ctl, const json_t *mix)
{
    int rc = CTL_DONE;

    json_text_each(json_object_get(mix, "models"), i, m) {
        json_auto_t *reply = NULL;

        if (rc == CTL_DONE && json_is_string(json_object_get(m, "plan"))) {
            rc = ctl_call(ctl, "SetPlan",
                          json_pack("{s:O, s:O}", "model", json_object_get(m, "model"), "plan",
                                    json_object_get(m, "plan")),
                          &reply);
        }
    }
    return rc;
}

int ctl_plan_mix(const struct ctl *ctl, bool applies, bool front)
{
    static const struct cli_column points[] = {
        {"of wishes", "of_wishes", 'r', CLI_DECIMALS, 0, 100, " %"},
        {"energy", "energy", 'r', CLI_DECIMALS, 3},
        {0}};
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, "PlanMix", json_pack("{s:b}", "front", front), &reply);
    json_t *mix = json_object_get(reply, "mix");

    rc = rc == CTL_DONE && applies ? apply(ctl, mix) : rc;
    if (rc == CTL_DONE && ctl->json) {
        json_object_set(mix, "front", json_object_get(reply, "front"));
        ctl_print_json(mix);
    } else if (rc == CTL_DONE) {
        print_mix(mix);
    }
    if (rc == CTL_DONE && !ctl->json && front) {
        putchar('\n');
        cli_print_rows(json_object_get(reply, "front"), points);
    }
    return rc;
}
