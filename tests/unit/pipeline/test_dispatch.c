/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "pipeline/dispatch.h"
#include "tests/harness.h"

TEST(dispatch_follows_the_formula)
{
    for (int round = 0; round < 50000; round++) {
        struct pl_dispatch_view v[8];
        size_t n = (size_t)t_range(1, 8), best;
        double finish[8];

        for (size_t i = 0; i < n; i++) {
            v[i] = (struct pl_dispatch_view){
                .pending = (uint32_t)t_range(0, 6),
                .service_ns = (double)t_range(1, 50),
                .rate = 1,
                .held_ns = (double)t_range(0, 100),
            };
            finish[i] = (v[i].pending + 1.0) * base_max(v[i].service_ns, v[i].held_ns);
        }
        best = pl_dispatch_pick(v, n);
        for (size_t i = 0; i < n; i++) {
            T_TRUE(finish[best] <= finish[i]);
            if (finish[i] == finish[best]) {
                T_LE(v[best].pending, v[i].pending);
            }
        }
    }
}

TEST(dispatch_before_anything_was_measured)
{
    struct pl_dispatch_view v[] = {{0, 0, 4, 0}, {0, 0, 1, 0}};
    size_t given[2] = {0};

    /* frames that come at once: four to the fast one for each to the slow one */
    for (int i = 0; i < 50; i++) {
        size_t to = pl_dispatch_pick(v, 2);

        v[to].pending++;
        given[to]++;
    }
    T_EQ(given[0], 40);
    T_EQ(given[1], 10);
    /* one measured: the other is judged by it and by the prior */
    v[0] = (struct pl_dispatch_view){1, 100, 4, 0};
    v[1] = (struct pl_dispatch_view){0, 0, 1, 0};
    T_EQ(pl_dispatch_pick(v, 2), 0); /* 200 against 400 */
    v[0].pending = 4;
    T_EQ(pl_dispatch_pick(v, 2), 1); /* 500 against 400 */
    /* the measure beats the prior */
    v[1].service_ns = 600;
    T_EQ(pl_dispatch_pick(v, 2), 0);
    /* a team that got stuck in a frame is left alone */
    v[0].held_ns = 100000;
    T_EQ(pl_dispatch_pick(v, 2), 1);
}

TEST(dispatch_shares)
{
    struct pl_dispatch_view equal[] = {{0, 100, 1, 0}, {0, 102, 1, 0}, {0, 98, 1, 0}};
    struct pl_dispatch_view mixed[] = {{0, 0, 4, 0}, {0, 0, 4, 0}, {0, 0, 1, 0}};
    struct pl_dispatch_view apart[] = {{0, 1, 1, 0}, {0, 1e9, 1, 0}};

    T_EQ(pl_dispatch_shares(equal, 3), 3);
    T_EQ(pl_dispatch_shares(mixed, 3), 9);
    T_EQ(pl_dispatch_shares(apart, 2), 17);
}

TEST_MAIN()
