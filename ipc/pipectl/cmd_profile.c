/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl profile: micro-benchmarks of the cores. */
#include <stdio.h>

#include "ipc/pipectl/pipectl.h"

/* @ret: the mean error of a fit in percent; "-" if there is no fit. */
static void percent(const json_t *ep, const char *key, char *ret, size_t bytes)
{
    const json_t *v = json_object_get(ep, key);

    if (json_is_number(v)) {
        snprintf(ret, bytes, "%.1f %%", 100 * json_number_value(v));
    } else {
        snprintf(ret, bytes, "-");
    }
}

static void print_fits(const json_t *reply)
{
    static const char *const headings[] = {
        "ep", "benchmarks", "convolutions", "fully connected", "wider teams", NULL};
    struct ctl_table t;
    json_t *ep;
    size_t i;

    printf("Mean error of the fitted equations on their own benchmarks:\n");
    ctl_table_init(&t, headings, "lrrrr");
    json_array_foreach(json_object_get(reply, "kinds"), i, ep)
    {
        char conv[32], fc[32], multi[32];

        percent(ep, "error_conv", conv, sizeof(conv));
        percent(ep, "error_fc", fc, sizeof(fc));
        percent(ep, "error_multi", multi, sizeof(multi));
        ctl_table_add(&t, "%s\t%.0f\t%s\t%s\t%s", ctl_text(ep, "name"), ctl_real(ep, "benches"),
                      conv, fc, multi);
    }
    ctl_table_print(&t);
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
