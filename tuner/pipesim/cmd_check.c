/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "tuner/pipesim/check.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

int psim_cmd_check(int argc, char **argv)
{
    struct psim_checks c = {.seed = 1, .share = 1};
    uint64_t began = base_now_ns();
    int option;

    while ((option = psim_option(argc, argv)) != -1) {
        char *end = NULL;

        if (option == 'h') {
            psim_help(stdout, "check");
            return PSIM_DONE;
        } else if (option == 's') {
            c.seed = strtoull(optarg, &end, 10);
        } else if (option == 'f') {
            c.share = strtod(optarg, &end);
        } else if (option == 't') {
            c.table_path = optarg;
        } else {
            return psim_bad_option("check", option, argv);
        }
        if (end && (*end || !(c.share > 0 && c.share <= 1))) {
            return psim_usage("check", "'%s' is not a number, or out of range", optarg);
        }
    }
    if (optind < argc) {
        return psim_usage("check", "unexpected argument '%s'", argv[optind]);
    }
    psim_check_facts(&c);
    psim_check_solver(&c);
    psim_check_uncertainty(&c);
    psim_check_boards(&c);
    psim_check_table(&c);
    printf("cases: %zu passed, %zu failed, 0 skipped\nin %.0f s\n", c.passed, c.failed,
           (double)(base_now_ns() - began) / 1e9);
    return c.failed ? 1 : 0;
}
