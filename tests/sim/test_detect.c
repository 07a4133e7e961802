/* SPDX-License-Identifier: Apache-2.0 */
/* The detector by itself: shifts, spikes, drift, spread, and figures that are none. */
#include "base/base.h"
#include "tests/harness.h"
#include "tuner/adapt/detect.h"
#include "tuner/search/random.h"

#define CV 0.03

static struct tun_detect quiet(struct tun_random *r, size_t windows)
{
    struct tun_detect_options o = TUN_DETECT_DEFAULTS;
    struct tun_detect d;

    tun_detect_init(&d, &o);
    for (size_t i = 0; i < windows; i++) {
        tun_detect_add(&d, CV * tun_random_normal(r), i);
    }
    return d;
}

TEST(shift_is_noticed_in_three_windows_and_firm_in_five)
{
    struct tun_random r = {t_seed};
    unsigned late = 0, later = 0;

    for (int run = 0; run < 400; run++) {
        struct tun_detect d = quiet(&r, 300);
        unsigned windows = 0, firm = 0;

        tun_detect_rebase(&d, 0);
        while (windows < 50 && !tun_detect_firm(&d)) {
            windows++;
            if (tun_detect_add(&d, log(1.15) + CV * tun_random_normal(&r), 300 + windows) !=
                    TUN_SAME &&
                firm == 0) {
                firm = windows;
            }
        }
        T_TRUE(tun_detect_state(&d) == TUN_SLOWER);
        late += firm > 3;
        later += windows > 6;
        T_NEAR(tun_detect_level(&d, tun_detect_change(&d, NULL)), log(1.15), 0.09);
    }
    T_LE(late, 400 * 5 / 100);
    T_LE(later, 400 * 5 / 100);
}

TEST(faster_is_the_other_direction)
{
    struct tun_random r = {t_seed};
    struct tun_detect d = quiet(&r, 300);
    uint64_t since = 0;

    tun_detect_rebase(&d, 0);
    for (unsigned i = 0; i < 6; i++) {
        tun_detect_add(&d, -0.3 + CV * tun_random_normal(&r), 1000 + i);
    }
    T_TRUE(tun_detect_state(&d) == TUN_FASTER);
    T_TRUE(tun_detect_firm(&d));
    T_LE(tun_detect_change(&d, &since), 6);
    T_EQ(since, 1000);
}

TEST(one_spike_is_no_alarm_nor_are_two_apart)
{
    struct tun_random r = {t_seed};
    struct tun_detect d = quiet(&r, 300);

    tun_detect_rebase(&d, 0);
    for (unsigned i = 0; i < 200; i++) {
        double x = i % 20 < 1 ? 5 : 0;

        T_TRUE(tun_detect_add(&d, x, i) == TUN_SAME);
    }
}

TEST(spread_has_a_floor_and_follows_noise_not_spikes)
{
    struct tun_detect_options o = TUN_DETECT_DEFAULTS;
    struct tun_random r = {t_seed};
    struct tun_detect d;

    tun_detect_init(&d, &o);
    for (unsigned i = 0; i < 300; i++) {
        tun_detect_add(&d, 0, i);
    }
    T_NEAR(d.sigma, o.sigma_floor, 1e-9);
    tun_detect_init(&d, &o);
    for (unsigned i = 0; i < 1000; i++) {
        tun_detect_add(&d, 0.1 * tun_random_normal(&r) + (i % 50 == 0 ? 3 : 0), i);
    }
    T_NEAR(d.sigma, 0.1, 0.04);
}

TEST(a_change_inside_an_old_alarm_has_its_own_size)
{
    struct tun_random r = {t_seed};
    struct tun_detect d = quiet(&r, 300);

    tun_detect_rebase(&d, 0);
    for (unsigned i = 0; i < 14 && tun_detect_state(&d) == TUN_SAME; i++) {
        tun_detect_add(&d, 1.8 * d.sigma, i);
    }
    T_TRUE(tun_detect_state(&d) == TUN_SLOWER);
    T_TRUE(!tun_detect_firm(&d));
    for (unsigned i = 0; i < 5; i++) {
        tun_detect_add(&d, log(2), 100 + i);
    }
    T_TRUE(tun_detect_firm(&d));
    T_NEAR(tun_detect_level(&d, tun_detect_change(&d, NULL)), log(2), 0.05);
}

TEST(rebase_keeps_the_spread_and_forgets_the_alarm)
{
    struct tun_random r = {t_seed};
    struct tun_detect d = quiet(&r, 300);
    double sigma = d.sigma;

    for (unsigned i = 0; i < 10; i++) {
        tun_detect_add(&d, 0.5, i);
    }
    tun_detect_rebase(&d, 0.5);
    T_TRUE(tun_detect_state(&d) == TUN_SAME);
    T_NEAR(d.sigma, sigma, 0.02);
    T_NEAR(tun_detect_level(&d, 5), 0.5, 1e-6);
}

TEST(figures_that_are_none_are_left_out)
{
    struct tun_detect_options o = TUN_DETECT_DEFAULTS;
    struct tun_detect d;

    tun_detect_init(&d, &o);
    tun_detect_add(&d, NAN, 0);
    tun_detect_add(&d, INFINITY, 0);
    tun_detect_add(&d, -INFINITY, 0);
    T_EQ(d.count, 0);
    T_NEAR(tun_detect_level(&d, 10), 0, 0);
    tun_detect_rebase(&d, NAN);
    T_NEAR(d.base, 0, 0);
    T_TRUE(tun_detect_check(&o));
    o.k = o.clip;
    T_TRUE(!tun_detect_check(&o));
    o = TUN_DETECT_DEFAULTS;
    o.h = o.clip - o.k;
    T_TRUE(!tun_detect_check(&o));
    o = TUN_DETECT_DEFAULTS;
    o.sigma_floor = 0;
    T_TRUE(!tun_detect_check(&o));
}

TEST_MAIN()
