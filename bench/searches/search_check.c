/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of the searches: the papers' figures, computed again; the exact planner against
 * every plan of small random problems, also with a wrong cost table; every search on every network
 * and machine. search_check [SEED [SHARE [TABLE]]]; SHARE: run this share of the random cases and
 * seeds, above 0 to 1; TABLE: a file for every row of the comparison as Markdown. */
#include "base/base.h"
#include "bench/searches/check.h"

int main(int argc, char **argv)
{
    struct checks c = {.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
                       .share = argc > 2 ? strtod(argv[2], NULL) : 1,
                       .table_path = argc > 3 ? argv[3] : NULL};
    uint64_t began = base_now_ns();

    if (argc > 4 || !(c.share > 0 && c.share <= 1)) {
        fprintf(stderr, "usage: search_check [SEED [SHARE [TABLE]]]\n");
        return 2;
    }
    check_facts(&c);
    check_solver(&c);
    check_uncertainty(&c);
    check_papers(&c);
    check_boards(&c);
    check_pipe_it(&c);
    check_table(&c);
    printf("%zu claims of the papers do not hold, as bench/results/searches.md tells\n", c.told);
    printf("cases: %zu passed, %zu failed, 0 skipped\nin %.0f s\n", c.passed, c.failed,
           (double)(base_now_ns() - began) / 1e9);
    return c.failed ? 1 : 0;
}
