/* SPDX-License-Identifier: Apache-2.0 */
/* pipesim check: the papers' figures, computed again. */
#include "base/base.h"
#include "base/cli/shown_print.h"
#include "bench/searches/check.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

int psim_cmd_check(int argc, char **argv)
{
    struct psim_checks c = {.seed = 1, .share = 1};
    uint64_t began = base_now_ns();
    int code = psim_options(argc, argv,
                            (struct psim_take[]){{'s', PSIM_WHOLE, &c.seed, 0, PSIM_WHOLE_MAX},
                                                 {'f', PSIM_REAL, &c.share, 1e-6, 1},
                                                 {'t', PSIM_TEXT, &c.table_path}});

    if (code != PSIM_GO) {
        return code;
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
