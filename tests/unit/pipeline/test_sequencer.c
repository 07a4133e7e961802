/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/frame_pool.h"
#include "tests/harness.h"

TEST(sequencer_random_orders)
{
    for (int round = 0; round < 300; round++) {
        size_t window = (size_t)t_range(1, 40);
        struct pl_sequencer s;
        uint64_t in_flight[64], admitted = 0, got = 0, total = 2000;
        size_t flying = 0, finished = 0;

        T_EQ(pl_sequencer_init(&s, window), 0);
        while (got < total) {
            if (admitted < total && admitted - got < window && t_range(0, 2) > 0) {
                in_flight[flying++] = admitted++;
            } else if (flying > 0) {
                size_t pick = (size_t)t_range(0, (int64_t)flying - 1);
                uint64_t seq = in_flight[pick];

                in_flight[pick] = in_flight[--flying];
                /* the number itself, off by one so that it is not NULL, stands for the frame */
                pl_sequencer_put(&s, seq, (struct pl_frame *)(uintptr_t)(seq + 1));
                finished++;
            }
            for (struct pl_frame *f; (f = pl_sequencer_take(&s)) != NULL;) {
                T_EQ((uintptr_t)f, got + 1);
                got++;
            }
            T_LE(got, finished);
            /* nothing finished is held back: either all are out or the next one still flies */
            if (got < finished) {
                bool waits = false;

                for (size_t i = 0; i < flying; i++) {
                    waits |= in_flight[i] == got;
                }
                T_TRUE(waits);
            }
        }
        T_EQ(finished, total);
        pl_sequencer_deinit(&s);
    }
}

TEST_MAIN()
