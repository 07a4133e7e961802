/* SPDX-License-Identifier: Apache-2.0 */
/* Thermal zones, cooling devices and counters of throttling, and which policy they limit. */
#include "tests/harness.h"
#include "tests/unit/governor/boards.h"
#include "tests/unit/governor/probe.h"

TEST(hikey_heat)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.zone_count, 1);
    T_STR(p->s.zones[0].type, "soc_thermal");
    T_EQ(p->s.zones[0].temp_mdegc, 52000);
    T_EQ(p->s.zones[0].trip_count, 3);
    T_EQ(p->s.zones[0].trip_type[1], GOV_TRIP_PASSIVE);
    T_EQ(p->s.zones[0].trip_mdegc[1], 75000);
    T_EQ(p->s.zones[0].trip_type[2], GOV_TRIP_CRITICAL);
    T_EQ(p->s.zones[0].past_passive, GOV_NO);
    T_EQ(p->s.cooling_count, 2);
    T_STR(p->s.cooling[1].type, "thermal-cpufreq-1");
    T_EQ(p->s.cooling[1].max_state, 4);
    T_TRUE(p->s.cooling[1].of_cpu);
    /* the type does not say which policy it limits: every limited one may be it */
    tree_put(&t, THERMAL "cooling_device1/cur_state", "3");
    tree_put(&t, POLICY "4/scaling_max_freq", "1498000");
    probe_sample(p, 1);
    T_EQ(p->s.cooling[1].state, 3);
    T_EQ(probe_policy(p, 4)->by_heat, GOV_YES);
    T_EQ(probe_policy(p, 0)->by_heat, GOV_NO);
    T_EQ(p->s.throttled, GOV_YES);
    tree_put(&t, THERMAL "cooling_device1/cur_state", "0");
    probe_sample(p, 1);
    T_EQ(probe_policy(p, 4)->by_heat, GOV_NO);
    T_EQ(p->s.throttled, GOV_NO);
}

TEST(rk3588_heat_is_of_one_policy)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.policy_count, 3);
    T_EQ(probe_policy(p, 6)->cpu_count, 2);
    T_EQ(p->s.zone_count, 4);
    T_EQ(p->s.zones[3].trip_count, 0);
    T_EQ(p->s.zones[3].past_passive, GOV_NO);
    tree_put(&t, POLICY "0/scaling_max_freq", "1200000");
    tree_put(&t, POLICY "4/scaling_max_freq", "1200000");
    tree_put(&t, THERMAL "cooling_device1/cur_state", "4");
    probe_sample(p, 1);
    T_EQ(probe_policy(p, 4)->by_heat, GOV_YES);
    T_NEAR(probe_policy(p, 4)->pressure, 0.5, 1e-12);
    T_EQ(probe_policy(p, 0)->by_heat, GOV_NO);
    T_EQ(probe_policy(p, 6)->by_heat, GOV_NO);
    T_EQ(p->s.throttled, GOV_YES);
}

TEST(pi5_without_passive_trips)
{
    tree_auto struct tree t = board_new(BOARD_PI5);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.zones[0].past_passive, GOV_NO);
    T_EQ(p->s.zones[0].trip_type[1], GOV_TRIP_OTHER);
    T_TRUE(!p->s.cooling[0].of_cpu);
    T_EQ(p->s.throttled, GOV_MAYBE);
    T_TRUE(!gov_known(p->s.psi_cpu.some_avg10));
    T_TRUE(p->s.psi_cpu.some_total_us == GOV_UNKNOWN);
    T_EQ(p->s.energy_count, 0);
    T_TRUE(!gov_known(p->s.joules));
    T_EQ(p->s.cgroup.version, 0);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus));
    T_TRUE(p->s.cgroup.nr_throttled == GOV_UNKNOWN);
    T_TRUE(p->s.cpus[0].core_throttle == GOV_UNKNOWN);
}

TEST(hybrid_throttle_counters)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.policy_count, 16);
    T_EQ(p->s.cpus[9].core_throttle, 3);
    T_EQ(p->s.cpus[9].package_throttle, 7);
    T_STR(p->s.zones[1].type, "x86_pkg_temp"); /* its trip points are 0 until somebody sets them */
    T_EQ(p->s.zones[1].past_passive, GOV_NO);
    T_EQ(p->s.throttled, GOV_NO);
    T_TRUE(p->s.cooling[1].of_cpu && p->s.cooling[1].number == 16);
    tree_put(&t, "cpu9/thermal_throttle/core_throttle_count", "4");
    probe_sample(p, 1);
    T_EQ(p->s.throttled, GOV_YES);
    probe_sample(p, 1);
    T_EQ(p->s.throttled, GOV_NO);
    tree_put(&t, "cpu9/thermal_throttle/core_throttle_count", "0"); /* a core that came back */
    probe_sample(p, 1);
    T_EQ(p->s.throttled, GOV_NO);
    tree_put(&t, THERMAL "cooling_device16/cur_state", "25");
    probe_sample(p, 1);
    T_EQ(p->s.throttled, GOV_YES);
    tree_put(&t, THERMAL "cooling_device16/cur_state",
             "-1"); /* an idle powerclamp of old kernels */
    probe_sample(p, 1);
    T_TRUE(p->s.cooling[1].state == GOV_UNKNOWN);
    T_EQ(p->s.throttled, GOV_NO);
}

TEST_MAIN()
