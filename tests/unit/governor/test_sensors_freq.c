/* SPDX-License-Identifier: Apache-2.0 */
/* Frequency policies, their limits, and what comes and goes with its cores. */
#include "tests/harness.h"
#include "tests/unit/governor/boards.h"
#include "tests/unit/governor/probe.h"

TEST(hikey_policies)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.sequence, 1);
    T_EQ(p->s.cpu_count, 8);
    T_EQ(p->s.policy_count, 2);
    T_STR(probe_policy(p, 0)->governor, "performance");
    T_STR(probe_policy(p, 4)->governor, "powersave");
    T_EQ(probe_policy(p, 4)->cpu_count, 4);
    T_EQ(probe_policy(p, 4)->min_khz, 682000);
    T_EQ(probe_policy(p, 4)->max_khz, 2362000);
    T_EQ(probe_policy(p, 4)->hardware_khz, 2362000);
    T_EQ(probe_policy(p, 4)->now_khz, 682000);
    T_TRUE(probe_policy(p, 4)->firmware_khz == GOV_UNKNOWN);
    T_NEAR(probe_policy(p, 4)->pressure, 0, 0);
    T_TRUE(gov_snapshot_policy(&p->s, 5) == probe_policy(p, 4));
    T_TRUE(gov_snapshot_policy(&p->s, 99) == NULL);
    T_EQ(p->s.throttled, GOV_NO);
    T_TRUE(p->s.online.known && gov_cpuset_has(&p->s.online.set, 7) &&
           !gov_cpuset_has(&p->s.online.set, 8));
    T_TRUE(!p->s.isolated.known);
    T_TRUE(!p->s.allowed.known);
}

TEST(firmware_limits)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);

    tree_put(&t, POLICY "3/bios_limit", "2300000");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(probe_policy(p, 3)->firmware_khz, 2300000);
    T_EQ(probe_policy(p, 3)->limit_khz, 2300000);
    T_NEAR(probe_policy(p, 3)->pressure, 0.5, 1e-12);
    T_EQ(p->s.throttled, GOV_YES);
}

TEST(frequencies_of_zero_are_unknown)
{
    tree_auto struct tree t = board_new(BOARD_PI5);
    probe_auto struct probe *p = probe_new(&t);

    tree_put(&t, POLICY "0/scaling_cur_freq", "0");
    tree_put(&t, POLICY "0/scaling_max_freq", "0");
    probe_sample(p, 1);
    T_TRUE(probe_policy(p, 0)->now_khz == GOV_UNKNOWN);
    T_TRUE(probe_policy(p, 0)->max_khz == GOV_UNKNOWN);
    T_TRUE(!gov_known(probe_policy(p, 0)->pressure));
}

TEST(policies_and_zones_come_and_go)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);
    probe_auto struct probe *p = probe_new(&t);
    static const char *const files[] = {"related_cpus",     "affected_cpus",    "scaling_governor",
                                        "cpuinfo_min_freq", "cpuinfo_max_freq", "scaling_min_freq",
                                        "scaling_max_freq", "scaling_cur_freq", ""};

    for (size_t i = 0; i < base_array_count(files); i++) {
        char file[64];

        snprintf(file, sizeof(file), POLICY "4/%s", files[i]);
        T_EQ(remove(tree_path(&t, file)), 0);
    }
    probe_sample(p, 1);
    T_STR(probe_policy(p, 4)->governor, "");
    T_TRUE(probe_policy(p, 4)->now_khz == GOV_UNKNOWN);
    probe_sample(p, 1);
    T_EQ(p->s.policy_count, 2);
    T_TRUE(gov_snapshot_policy(&p->s, 4) == NULL);
    T_EQ(gov_snapshot_policy(&p->s, 6)->number, 6);
    tree_put(&t, POLICY "4/scaling_governor", "powersave");
    tree_put(&t, POLICY "4/related_cpus", "4 5");
    tree_put(&t, "online", "0-3,6-7"); /* has it look at once */
    probe_sample(p, 2);
    T_EQ(p->s.policy_count, 3);
    T_STR(gov_snapshot_policy(&p->s, 5)->governor, "powersave");
    T_TRUE(probe_policy(p, 4)->hardware_khz == GOV_UNKNOWN);
    T_TRUE(!gov_known(probe_policy(p, 4)->pressure));
    T_EQ(probe_policy(p, 4)->by_heat, GOV_MAYBE);
    tree_put(&t, THERMAL "thermal_zone9/temp", "-5000");
    probe_sample(p, 10);
    T_EQ(p->s.zone_count, 5);
    T_EQ(p->s.zones[4].temp_mdegc, -5000);
    T_STR(p->s.zones[4].type, "");
}

TEST_MAIN()
