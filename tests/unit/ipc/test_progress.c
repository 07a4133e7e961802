/* SPDX-License-Identifier: Apache-2.0 */
/* Whether answers still come. */
#include "apps/link/common/progress.h"

#include "tests/harness.h"

#define MS BASE_NS_PER_MS
#define LEAST (1000 * MS)

TEST(nothing_is_due)
{
    struct lnk_progress p = {0};

    T_TRUE(!lnk_progress_stuck(&p, 1000000 * MS, LEAST));
    lnk_progress_due(&p, 5 * MS);
    lnk_progress_came(&p, 15 * MS);
    T_TRUE(!lnk_progress_stuck(&p, 1000000 * MS, LEAST));
    lnk_progress_came(&p, 20 * MS); /* of nothing that was due */
    T_TRUE(p.due == 0 && p.usual_ns == 10 * MS);
}

TEST(it_begins_with_what_is_due)
{
    struct lnk_progress p = {0};

    lnk_progress_due(&p, 100 * MS);
    lnk_progress_due(&p, 5000 * MS); /* more is due, but since the first nothing has come */
    T_TRUE(!lnk_progress_stuck(&p, 100 * MS + LEAST + 9000 * MS, LEAST));
    T_TRUE(lnk_progress_stuck(&p, 100 * MS + LEAST + 9001 * MS, LEAST));
}

TEST(the_usual_wait)
{
    struct lnk_progress p = {0};

    for (uint64_t i = 1; i <= 4; i++) {
        lnk_progress_due(&p, 0);
    }
    lnk_progress_came(&p, 10 * MS);
    lnk_progress_came(&p, 60 * MS); /* the longest: 50 ms */
    lnk_progress_came(&p, 70 * MS);
    T_TRUE(p.usual_ns < 50 * MS && p.usual_ns > 40 * MS);
    T_TRUE(!lnk_progress_stuck(&p, 70 * MS + LEAST + 4 * 40 * MS, LEAST));
    T_TRUE(lnk_progress_stuck(&p, 70 * MS + LEAST + 4 * 50 * MS + 1, LEAST));
    for (uint64_t i = 1; i <= 100; i++) { /* it is faster now */
        lnk_progress_due(&p, 70 * MS);
        lnk_progress_came(&p, (70 + i) * MS);
    }
    T_TRUE(lnk_progress_stuck(&p, 170 * MS + LEAST + 5 * MS, LEAST));
}

TEST(nobody_looked)
{
    struct lnk_progress p = {0};

    lnk_progress_due(&p, 0);
    lnk_progress_excuse(&p, 60000 * MS);
    T_TRUE(!lnk_progress_stuck(&p, 60000 * MS + LEAST, LEAST));
    lnk_progress_excuse(&p, 1 * MS); /* not backwards */
    T_TRUE(!lnk_progress_stuck(&p, 60000 * MS + LEAST, LEAST));
    T_TRUE(lnk_progress_stuck(&p, 80000 * MS, LEAST));
}

TEST_MAIN()
