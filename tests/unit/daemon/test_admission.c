/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: fair among streams, by weight, against a plain model under random use. */
#include "daemon/frames/admission.h"
#include "tests/harness.h"

static struct dmn_queue *take(struct dmn_admission *a)
{
    struct dmn_queue *q = dmn_admission_next(a);

    if (q) {
        dmn_admission_taken(a, q);
    }
    return q;
}

TEST(nobody_waits)
{
    struct dmn_admission a;

    dmn_admission_init(&a);
    T_TRUE(dmn_admission_next(&a) == NULL);
    T_EQ(a.waiting, 0);
}

TEST(streams_take_turns)
{
    struct dmn_admission a;
    struct dmn_queue q[3];

    dmn_admission_init(&a);
    for (int i = 0; i < 3; i++) {
        dmn_queue_init(&q[i], 0);
    }
    for (int i = 0; i < 100; i++) { /* one greedy stream, first in line */
        dmn_admission_add(&a, &q[0]);
    }
    for (int i = 0; i < 5; i++) {
        dmn_admission_add(&a, &q[1]);
        dmn_admission_add(&a, &q[2]);
    }
    for (int round = 0; round < 5; round++) {
        T_TRUE(take(&a) == &q[0]);
        T_TRUE(take(&a) == &q[1]);
        T_TRUE(take(&a) == &q[2]);
    }
    for (int i = 0; i < 95; i++) {
        T_TRUE(take(&a) == &q[0]);
    }
    T_TRUE(take(&a) == NULL);
}

TEST(priority_is_a_share_not_a_right)
{
    struct dmn_admission a;
    struct dmn_queue low, high;
    int lows = 0, highs = 0;

    dmn_admission_init(&a);
    dmn_queue_init(&low, 0);
    dmn_queue_init(&high, 3);
    for (int i = 0; i < 900; i++) {
        dmn_admission_add(&a, &low);
        dmn_admission_add(&a, &high);
    }
    for (int i = 0; i < 90; i++) {
        if (take(&a) == &low) {
            lows++;
        } else {
            highs++;
        }
    }
    T_EQ(lows, 10); /* 1 : 8 */
    T_EQ(highs, 80);
}

TEST(priority_above_the_highest_is_the_highest)
{
    struct dmn_queue q;

    dmn_queue_init(&q, 4000000000u);
    T_EQ(q.weight, 8);
}

TEST(dropped_frames_leave_the_ring_whole)
{
    struct dmn_admission a;
    struct dmn_queue q[4];

    dmn_admission_init(&a);
    for (int i = 0; i < 4; i++) {
        dmn_queue_init(&q[i], 0);
        dmn_admission_add(&a, &q[i]);
    }
    dmn_admission_drop(&a, &q[0]); /* whose turn it is */
    dmn_admission_drop(&a, &q[2]);
    T_EQ(a.waiting, 2);
    T_TRUE(take(&a) == &q[1]);
    T_TRUE(take(&a) == &q[3]);
    T_TRUE(dmn_admission_next(&a) == NULL);
}

/* Nobody who waits is passed over for longer than one turn of each of the others. */
TEST(random_use_starves_nobody)
{
    enum { STREAMS = 8 };
    struct dmn_admission a;
    struct dmn_queue q[STREAMS];
    size_t waiting[STREAMS] = {0}, passed[STREAMS] = {0}, total = 0;

    dmn_admission_init(&a);
    for (unsigned i = 0; i < STREAMS; i++) {
        dmn_queue_init(&q[i], i % 4);
    }
    for (int step = 0; step < 200000; step++) {
        size_t i = (size_t)t_range(0, STREAMS - 1);
        int what = (int)t_range(0, 9);

        if (what < 4) {
            dmn_admission_add(&a, &q[i]);
            passed[i] = waiting[i]++ ? passed[i] : 0;
            total++;
        } else if (what == 4 && waiting[i]) {
            dmn_admission_drop(&a, &q[i]);
            waiting[i]--;
            total--;
        } else {
            struct dmn_queue *next = take(&a);

            T_EQ(next == NULL, total == 0);
            for (size_t k = 0; next && k < STREAMS; k++) {
                if (next == &q[k]) {
                    T_LT(0, waiting[k]);
                    waiting[k]--;
                    total--;
                    passed[k] = 0;
                } else if (waiting[k]) {
                    passed[k]++;
                    T_LE(passed[k], 2 * (1 + 2 + 4 + 8) * 2);
                }
            }
        }
        T_EQ(a.waiting, total);
    }
}

TEST(deadlines_that_cannot_be_met)
{
    T_TRUE(!dmn_admission_misses_deadline(0, 1000, 100, 10, 10)); /* none */
    T_TRUE(dmn_admission_misses_deadline(1000, 1000, 0, 0, 0));   /* over */
    T_TRUE(dmn_admission_misses_deadline(999, 1000, 0, 0, 0));
    T_TRUE(!dmn_admission_misses_deadline(1001, 1000, 0, 9999, 9999)); /* an empty pipeline tries */
    T_TRUE(!dmn_admission_misses_deadline(1001, 1000, 5, 0, 1000));    /* nothing known */
    T_TRUE(!dmn_admission_misses_deadline(1160, 1000, 10, 10, 60));
    T_TRUE(dmn_admission_misses_deadline(1159, 1000, 10, 10, 60));
    /* a time that overflows is never */
    T_TRUE(dmn_admission_misses_deadline(UINT64_MAX, 0, SIZE_MAX, UINT64_MAX, 1));
    T_TRUE(dmn_admission_misses_deadline(UINT64_MAX, 0, 1, UINT64_MAX, 1));
}

TEST_MAIN()
