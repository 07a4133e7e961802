/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl profile: micro-benchmarks of the cores. */
#include <stdio.h>

#include "apps/pipectl/common/pipectl.h"

static void print_fits(const json_t *reply)
{
    static const struct ctl_column columns[] = {
        {"ep", "name", 'l'},
        {"benchmarks", "benches", 'r'},
        {"convolutions", "error_conv", 'r', CTL_DECIMALS, 1, 100, " %"},
        {"fully connected", "error_fc", 'r', CTL_DECIMALS, 1, 100, " %"},
        {"wider teams", "error_multi", 'r', CTL_DECIMALS, 1, 100, " %"},
        {0}};

    printf("Mean error of the fitted equations on their own benchmarks:\n");
    ctl_print_rows(json_object_get(reply, "kinds"), columns, 0);
}

int ctl_profile(const struct ctl *ctl, int argc, char **argv)
{
    json_t *parameters;
    double ms = 0;
    int rc = CTL_DONE;

    while (ctl_option(argc, argv, &rc, NULL) != -1) {
        if (!ctl_number(optarg, 1, 600000, &ms)) {
            return ctl_usage(argv[0], "--ms needs a number from 1 to 600000, not '%s'", optarg);
        }
    }
    rc = rc ? rc : ctl_no_more(argc, argv);
    if (rc) {
        return rc;
    }
    parameters = json_object();
    if (ms > 0) {
        json_object_set_new(parameters, "ms", json_integer((json_int_t)ms));
    }
    return ctl_show(ctl, "Profile", parameters, "kinds", print_fits);
}
