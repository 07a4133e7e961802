/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl units: what a model is made of, and where its time goes. */
#include "apps/pipectl/common/pipectl.h"

/* The time of a unit in a frame: as it ran; before the first frame, where it was measured fastest;
 * 0: unknown. */
static double unit_ms(const json_t *unit)
{
    const json_t *measured = json_object_get(unit, "measured_ms");
    double least = json_number_value(json_object_get(unit, "ewma_ms"));
    const char *ep;
    json_t *value;

    if (least > 0) {
        return least;
    }
    json_object_foreach((json_t *)(uintptr_t)measured, ep, value)
    {
        double ms = json_number_value(value);

        least = least > 0 ? base_min(least, ms) : ms;
    }
    return least;
}

void ctl_add_shares(json_t *units)
{
    double sum = 0;

    json_text_each(units, i, unit) {
        sum += unit_ms(unit);
    }
    json_text_each(units, i, unit) {
        double ms = unit_ms(unit);

        json_object_set_new(unit, "ms", ms > 0 ? json_real(ms) : json_null());
        json_object_set_new(unit, "share", ms > 0 ? json_real(ms / sum) : json_null());
    }
}

static void print(const json_t *units)
{
    static const struct cli_column columns[] = {{"unit", "unit", 'r'},
                                                {"name", "name", 'l'},
                                                {"ops", "ops", 'r'},
                                                {"ms", "ms", 'r', CLI_DECIMALS, 4},
                                                {"share", "share", 'r', CLI_DECIMALS, 1, 100, " %"},
                                                {"weight", "weight", 'r', CLI_DECIMALS, 0},
                                                {"primitive", "primitive", 'l'},
                                                {0}};

    cli_print_rows(units, columns);
}

int ctl_units(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL, *sorted = NULL;
    struct ctl_options o = {.sort = "unit"};
    int rc = ctl_take_all(argc, argv, &o, parameters);
    json_t *units;

    rc = rc ? rc : ctl_call(ctl, "Units", base_take(parameters), &reply);
    if (rc) {
        return rc;
    }
    units = json_object_get(reply, "units");
    ctl_add_shares(units);
    if (strcmp(o.sort, "unit") != 0) {
        units = sorted = ctl_sorted(units, strcmp(o.sort, "time") == 0 ? "ms" : "weight");
    }
    if (ctl->json) {
        ctl_print_json(units);
    } else {
        print(units);
    }
    return CTL_DONE;
}
