/* SPDX-License-Identifier: Apache-2.0 */
/* What a link costs: exact answers, noise, outliers, queues, links that change. */
#include "apps/link/wire/measure.h"
#include "base/base.h"
#include "tests/harness.h"

#define LARGE 65536u

static double normal(void)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        sum += (double)t_float() / 2; /* variance 1/12 each */
    }
    return sum;
}

static void add(struct lnk_measure *m, double a, double b)
{
    lnk_measure_trip(m, (uint64_t)(2 * a));
    lnk_measure_pair(m, LARGE, (uint64_t)(2 * a), (uint64_t)(2 * a + b * LARGE));
}

TEST(unknown_until_both_kinds)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (int i = 0; i < 100; i++) {
        T_EQ(lnk_measure_get(&m, &c), LNK_MEASURE_E_UNKNOWN);
        lnk_measure_trip(&m, 100000);
    }
    lnk_measure_pair(&m, LARGE, 100000, 600000);
    lnk_measure_pair(&m, LARGE, 100000, 600000);
    lnk_measure_pair(&m, 0, 100000, 600000);
    T_EQ(lnk_measure_get(&m, &c), LNK_MEASURE_E_UNKNOWN);
    lnk_measure_pair(&m, LARGE, 100000, 600000);
    T_EQ(lnk_measure_get(&m, &c), 0);
}

TEST(exact_answers)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (int i = 0; i < 12; i++) {
        add(&m, 50000, 8);
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.a_ns, 50000, 1);
    T_NEAR(c.b_ns, 8, 1e-4);
    T_TRUE(c.a_err_ns < 2 && c.b_err_ns < 1e-4);
}

/* 1 Gbit/s, 0.1 ms, noise of 10 us: mostly within the errors that it names. Quartiles are off the
 * middle of the noise by 0.67 of it; both ways together, in a. */
TEST(noise_is_within_the_stated_errors)
{
    int near_a = 0, near_b = 0, runs = t_times(400);

    for (int r = 0; r < runs; r++) {
        struct lnk_link_cost c;
        struct lnk_measure m;

        m = (struct lnk_measure){0};
        for (unsigned i = 0; i < LNK_MEASURE_RING; i++) {
            lnk_measure_trip(&m, (uint64_t)(200000 + 10000 * normal()));
            lnk_measure_pair(&m, LARGE, (uint64_t)(200000 + 10000 * normal()),
                             (uint64_t)(200000 + 8 * LARGE + 10000 * normal()));
        }
        T_EQ(lnk_measure_get(&m, &c), 0);
        near_a += fabs(c.a_ns - 100000 + 0.674 * 10000 / 2) < 3 * c.a_err_ns;
        near_b += fabs(c.b_ns - 8) < 3 * c.b_err_ns;
        T_TRUE(c.a_err_ns < 5000 && c.b_err_ns < 0.3);
    }
    T_LE(runs * 93 / 100, near_a);
    T_LE(runs * 88 / 100, near_b); /* of two bounds the lower one counts */
}

static void add_pair_behind(struct lnk_measure *m, uint64_t queue_ns, uint64_t b)
{
    lnk_measure_pair(m, LARGE, 200000 + queue_ns, 200000 + queue_ns + b * LARGE);
}

/* A board of 0.4 core stands still for 60 ms of 100: most pairs come in while it does, and it reads
 * both when it goes on. */
TEST(a_board_that_reads_late_does_not_make_the_link_fast)
{
    for (int r = 0; r < t_times(200); r++) {
        struct lnk_link_cost c;
        struct lnk_measure m;

        m = (struct lnk_measure){0};
        for (unsigned i = 0; i < LNK_MEASURE_RING; i++) {
            uint64_t asleep_ns = i % 5 < 3 ? (uint64_t)t_range(1000000, 60000000) : 0;

            lnk_measure_trip(&m, 200000 + asleep_ns);
            lnk_measure_pair(&m, LARGE, 200000 + asleep_ns,
                             base_max(210000 + asleep_ns, 200000ul + 8 * LARGE));
        }
        T_EQ(lnk_measure_get(&m, &c), 0);
        T_NEAR(c.b_ns, 8, 0.2);
    }
}

/* 100 Mbit/s, busy with frames: half of the pairs were read at once, others late. */
TEST(a_busy_wire_shows_its_rate)
{
    struct lnk_wire_use use = {.busy_ns = 1012000000, .bytes = 12050000};
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (unsigned i = 0; i < LNK_MEASURE_RING; i++) {
        lnk_measure_trip(&m, 40000000);
        add_pair_behind(&m, (uint64_t)t_range(0, 2000000000), i % 2 ? 0 : 150);
    }
    T_TRUE(lnk_measure_wire(&m, &use, 1012000000));
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.b_ns, 84, 0.1);
    use.busy_ns /= 5;
    T_TRUE(lnk_measure_wire(&m, &use, 1012000000)); /* busy for a fifth: at most so slow */
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.b_ns, 84 / 5., 0.1);
    use = (struct lnk_wire_use){.busy_ns = 1000000, .bytes = 1000};
    T_TRUE(!lnk_measure_wire(&m, &use, 1000000000)); /* too little to tell, */
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.b_ns, 84 / 5., 0.1);
    T_TRUE(lnk_measure_wire(&m, &use, 10000000000)); /* and for too long */
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_TRUE(c.b_ns > 100);
}

/* A fifth waited for something: a busy core, a packet sent again. */
TEST(outliers_do_not_matter)
{
    for (int r = 0; r < t_times(200); r++) {
        struct lnk_link_cost c;
        struct lnk_measure m;

        m = (struct lnk_measure){0};
        for (unsigned i = 0; i < LNK_MEASURE_RING; i++) {
            double late = i % 5 == 0 ? 2e8 * (1 + fabs((double)t_float())) : 0;

            lnk_measure_trip(&m, (uint64_t)(200000 + 5000 * normal() + late));
            lnk_measure_pair(&m, LARGE, 200000 + (i % 5 == 2 ? 8 * LARGE : 0),
                             (uint64_t)(200000 + 8 * LARGE + late));
        }
        T_EQ(lnk_measure_get(&m, &c), 0);
        T_NEAR(c.a_ns, 100000, 10000);
        T_NEAR(c.b_ns, 8, 0.3);
    }
}

/* Frames in queues make two of three round trips longer. Pairs keep their distance. */
TEST(queues_do_not_count)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (int i = 0; i < 60; i++) {
        lnk_measure_trip(&m, (uint64_t)(200000 + (i % 3 ? t_range(0, 40000000) : 0)));
        add_pair_behind(&m, (uint64_t)t_range(0, 2000000000), 800);
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.a_ns, 100000, 1000);
    T_NEAR(c.b_ns, 800, 0.1);
}

/* Trips become long when a link fills up; pairs from before, when it was idle, still count. */
TEST(long_trips_do_not_make_the_link_fast)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (unsigned i = 0; i < LNK_MEASURE_RING; i++) {
        add(&m, 100000, 800);
    }
    for (unsigned i = 0; i < 2 * LNK_MEASURE_RING; i++) {
        lnk_measure_trip(&m, (uint64_t)t_range(40000000, 50000000));
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.b_ns, 800, 0.1);
}

TEST(a_link_that_changes_is_followed)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (unsigned i = 0; i < 3 * LNK_MEASURE_RING; i++) { /* 1 Gbit/s, then 100 Mbit/s */
        add(&m, 100000, i < LNK_MEASURE_RING ? 8 : 80);
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.b_ns, 80, 0.1);
}

TEST(nonsense_gives_numbers)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    m = (struct lnk_measure){0};
    for (int i = 0; i < 50; i++) {
        lnk_measure_pair(&m, (uint64_t)t_range(0, 1 << 20), t_random() >> 20, t_random() >> 20);
        lnk_measure_trip(&m, 0);
    }
    lnk_measure_pair(&m, UINT64_MAX, UINT64_MAX, 0);
    lnk_measure_pair(&m, 1, 0, UINT64_MAX);
    lnk_measure_trip(&m, UINT64_MAX);
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_TRUE(isfinite(c.a_ns) && isfinite(c.b_ns) && isfinite(c.a_err_ns) && isfinite(c.b_err_ns));
    T_TRUE(c.a_ns >= 0 && c.b_ns >= 0);
}

TEST_MAIN()
