/* SPDX-License-Identifier: Apache-2.0 */
/* What a link costs: exact lines, noise, outliers, links that change. */
#include "ipc/link/link_measure.h"
#include "tests/harness.h"

static double normal(void)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        sum += (double)t_float() / 2; /* variance 1/12 each */
    }
    return sum;
}

static void add(struct lnk_measure *m, uint64_t bytes, double a, double b, double more)
{
    lnk_measure_add(m, bytes, 0, (uint64_t)(2 * a + b * (double)bytes + more));
}

TEST(unknown_until_both_sizes)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    lnk_measure_init(&m);
    for (int i = 0; i < 100; i++) {
        T_EQ(lnk_measure_get(&m, &c), LNK_MEASURE_E_UNKNOWN);
        add(&m, 16, 50000, 8, 0);
    }
    add(&m, 65536, 50000, 8, 0);
    add(&m, 65536, 50000, 8, 0);
    T_EQ(lnk_measure_get(&m, &c), LNK_MEASURE_E_UNKNOWN);
    add(&m, 65536, 50000, 8, 0);
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_EQ(c.samples, LNK_MEASURE_RING + 3);
}

TEST(exact_line)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    lnk_measure_init(&m);
    for (uint64_t i = 0; i < 12; i++) {
        add(&m, 16, 50000, 8, 0);
        add(&m, 65536 + 4096 * i, 50000, 8, 0);
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.a_ns, 50000, 1);
    T_NEAR(c.b_ns, 8, 1e-4);
    T_TRUE(c.a_err_ns < 2 && c.b_err_ns < 1e-4);
}

TEST(both_ways_count)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    lnk_measure_init(&m);
    for (int i = 0; i < 5; i++) {
        lnk_measure_add(&m, 100, 100, 2000 + 200 * 3);
        lnk_measure_add(&m, 50000, 30000, 2000 + 80000 * 3);
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.a_ns, 1000, 1);
    T_NEAR(c.b_ns, 3, 1e-3);
}

/* 1 Gbit/s, 0.1 ms, noise of 10 us: within the errors that it names, nearly always. */
TEST(noise_is_within_the_stated_errors)
{
    int near_a = 0, near_b = 0, runs = t_times(400);

    for (int r = 0; r < runs; r++) {
        struct lnk_link_cost c;
        struct lnk_measure m;

        lnk_measure_init(&m);
        for (int i = 0; i < 24; i++) {
            add(&m, 16, 100000, 8, 10000 * normal());
            add(&m, (uint64_t)t_range(60000, 900000), 100000, 8, 10000 * normal());
        }
        T_EQ(lnk_measure_get(&m, &c), 0);
        near_a += fabs(c.a_ns - 100000) < 3 * c.a_err_ns;
        near_b += fabs(c.b_ns - 8) < 3 * c.b_err_ns;
        T_TRUE(c.a_err_ns < 5000 && c.b_err_ns < 0.02);
    }
    T_LE(runs * 95 / 100, near_a);
    T_LE(runs * 95 / 100, near_b);
}

/* A fifth of the round trips waited for something: a busy core, a packet sent again. */
TEST(outliers_do_not_matter)
{
    for (int r = 0; r < t_times(200); r++) {
        struct lnk_link_cost c;
        struct lnk_measure m;

        lnk_measure_init(&m);
        for (int i = 0; i < 24; i++) {
            double late = i % 5 == 0 ? 2e8 * (1 + fabs((double)t_float())) : 0;

            add(&m, 16, 100000, 8, 5000 * normal() + late);
            add(&m, 802816, 100000, 8, 5000 * normal() + (i % 5 == 2 ? 3e8 : 0));
        }
        T_EQ(lnk_measure_get(&m, &c), 0);
        T_NEAR(c.a_ns, 100000, 10000);
        T_NEAR(c.b_ns, 8, 0.1);
        T_TRUE(c.a_err_ns < 20000 && c.b_err_ns < 0.1);
    }
}

TEST(a_link_that_changes_is_followed)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    lnk_measure_init(&m);
    for (int i = 0; i < 60; i++) { /* 1 Gbit/s, then 100 Mbit/s */
        add(&m, 16, 100000, i < 30 ? 8 : 80, 0);
        add(&m, 400000, 100000, i < 30 ? 8 : 80, 0);
    }
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_NEAR(c.b_ns, 80, 0.1);
}

TEST(nonsense_gives_numbers)
{
    struct lnk_link_cost c;
    struct lnk_measure m;

    lnk_measure_init(&m);
    for (int i = 0; i < 50; i++) {
        lnk_measure_add(&m, (uint64_t)t_range(0, 1 << 20), 0, t_random() >> 20);
        lnk_measure_add(&m, 0, 0, 0);
    }
    lnk_measure_add(&m, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    T_EQ(lnk_measure_get(&m, &c), 0);
    T_TRUE(isfinite(c.a_ns) && isfinite(c.b_ns) && isfinite(c.a_err_ns) && isfinite(c.b_err_ns));
    T_TRUE(c.a_ns >= 0 && c.b_ns >= 0);
}

TEST_MAIN()
