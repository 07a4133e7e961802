/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <sys/resource.h>

#include "governor/sensors.h"
#include "tests/harness.h"
#include "tests/unit/governor/boards.h"

#define S 1000000000ull
#define STEP (S / 5)

/* A sampler with its newest snapshot; its clock is in the hand of the test. */
struct probe {
    struct gov_sensors *sensors;
    uint64_t now_ns;
    struct gov_snapshot s;
};

static struct probe *probe_new(const struct tree *t)
{
    struct probe *p = calloc(1, sizeof(*p));

    if (!p || gov_sensors_new(t->root, &p->sensors) != 0) {
        abort();
    }
    p->now_ns = 100 * S;
    gov_sensors_sample(p->sensors, p->now_ns, &p->s);
    return p;
}

static void probe_free(struct probe **p)
{
    gov_sensors_free((*p)->sensors);
    free(*p);
}
#define probe_auto base_cleanup(probe_free)

static void sample(struct probe *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        p->now_ns += STEP;
        gov_sensors_sample(p->sensors, p->now_ns, &p->s);
    }
}

static const struct gov_policy *policy(const struct probe *p, uint32_t number)
{
    static const struct gov_policy none;

    for (size_t i = 0; i < p->s.policy_count; i++) {
        if (p->s.policies[i].number == number) {
            return &p->s.policies[i];
        }
    }
    return &none;
}

static const struct gov_energy_source *source(const struct probe *p, const char *name)
{
    static const struct gov_energy_source none = {.name = "none"};

    for (size_t i = 0; i < p->s.energy_count; i++) {
        if (strcmp(p->s.energy[i].name, name) == 0) {
            return &p->s.energy[i];
        }
    }
    return &none;
}

static void put_lines(const struct tree *t, const char *file, const char *lines)
{
    tree_put_bytes(t, file, lines, strlen(lines));
}

#define POLICY "cpufreq/policy"
#define THERMAL "/sys/class/thermal/"

TEST(hikey_policies)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.sequence, 1);
    T_EQ(p->s.cpu_count, 8);
    T_EQ(p->s.policy_count, 2);
    T_STR(policy(p, 0)->governor, "performance");
    T_STR(policy(p, 4)->governor, "powersave");
    T_EQ(policy(p, 4)->cpu_count, 4);
    T_EQ(policy(p, 4)->min_khz, 682000);
    T_EQ(policy(p, 4)->max_khz, 2362000);
    T_EQ(policy(p, 4)->hardware_khz, 2362000);
    T_EQ(policy(p, 4)->now_khz, 682000);
    T_TRUE(policy(p, 4)->firmware_khz == GOV_UNKNOWN);
    T_NEAR(policy(p, 4)->pressure, 0, 0);
    T_TRUE(gov_snapshot_policy(&p->s, 5) == policy(p, 4));
    T_TRUE(gov_snapshot_policy(&p->s, 99) == NULL);
    T_EQ(p->s.throttled, GOV_NO);
    T_TRUE(p->s.online.known && gov_cpuset_has(&p->s.online.set, 7) &&
           !gov_cpuset_has(&p->s.online.set, 8));
    T_TRUE(!p->s.isolated.known);
    T_TRUE(!p->s.allowed.known);
}

TEST(changes_are_seen_in_the_next_sample)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);

    tree_put(&t, POLICY "4/scaling_governor", "performance");
    tree_put(&t, POLICY "4/scaling_cur_freq", "2362000");
    tree_put(&t, POLICY "0/scaling_max_freq", "922000");
    tree_put(&t, THERMAL "thermal_zone0/temp", "66000");
    tree_put(&t, "online", "0-6");
    tree_put(&t, "/proc/pressure/cpu", "some avg10=33.25 avg60=1.00 avg300=0.00 total=999");
    sample(p, 1);
    T_STR(policy(p, 4)->governor, "performance");
    T_EQ(policy(p, 4)->now_khz, 2362000);
    T_NEAR(policy(p, 0)->pressure, 0.5, 1e-12);
    T_EQ(policy(p, 0)->by_heat, GOV_NO);
    T_EQ(p->s.zones[0].past_passive, GOV_YES);
    T_TRUE(!gov_cpuset_has(&p->s.online.set, 7));
    T_NEAR(p->s.psi_cpu.some_avg10, 33.25, 1e-9);
    T_EQ(p->s.psi_cpu.some_total_us, 999);
    T_EQ(p->s.throttled, GOV_NO);
}

/* Replaced as a whole instead of written into: the open file is then another one. */
TEST(replaced_files_are_seen)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);
    char from[512];

    tree_put(&t, "new", "userspace");
    snprintf(from, sizeof(from), "%s", tree_path(&t, "new"));
    T_EQ(rename(from, tree_path(&t, POLICY "0/scaling_governor")), 0);
    sample(p, 1);
    T_STR(policy(p, 0)->governor, "userspace");
}

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
    sample(p, 1);
    T_EQ(p->s.cooling[1].state, 3);
    T_EQ(policy(p, 4)->by_heat, GOV_YES);
    T_EQ(policy(p, 0)->by_heat, GOV_NO);
    T_EQ(p->s.throttled, GOV_YES);
    tree_put(&t, THERMAL "cooling_device1/cur_state", "0");
    sample(p, 1);
    T_EQ(policy(p, 4)->by_heat, GOV_NO);
    T_EQ(p->s.throttled, GOV_NO);
}

TEST(rk3588_heat_is_of_one_policy)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.policy_count, 3);
    T_EQ(policy(p, 6)->cpu_count, 2);
    T_EQ(p->s.zone_count, 4);
    T_EQ(p->s.zones[3].trip_count, 0);
    T_EQ(p->s.zones[3].past_passive, GOV_NO);
    tree_put(&t, POLICY "0/scaling_max_freq", "1200000");
    tree_put(&t, POLICY "4/scaling_max_freq", "1200000");
    tree_put(&t, THERMAL "cooling_device1/cur_state", "4");
    sample(p, 1);
    T_EQ(policy(p, 4)->by_heat, GOV_YES);
    T_NEAR(policy(p, 4)->pressure, 0.5, 1e-12);
    T_EQ(policy(p, 0)->by_heat, GOV_NO);
    T_EQ(policy(p, 6)->by_heat, GOV_NO);
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
    T_EQ(p->s.throttled, GOV_NO);
    T_TRUE(p->s.cooling[1].of_cpu && p->s.cooling[1].number == 16);
    tree_put(&t, "cpu9/thermal_throttle/core_throttle_count", "4");
    sample(p, 1);
    T_EQ(p->s.throttled, GOV_YES);
    sample(p, 1);
    T_EQ(p->s.throttled, GOV_NO);
    tree_put(&t, "cpu9/thermal_throttle/core_throttle_count", "0"); /* a core that came back */
    sample(p, 1);
    T_EQ(p->s.throttled, GOV_NO);
    tree_put(&t, THERMAL "cooling_device16/cur_state", "25");
    sample(p, 1);
    T_EQ(p->s.throttled, GOV_YES);
    tree_put(&t, THERMAL "cooling_device16/cur_state",
             "-1"); /* an idle powerclamp of old kernels */
    sample(p, 1);
    T_TRUE(p->s.cooling[1].state == GOV_UNKNOWN);
    T_EQ(p->s.throttled, GOV_NO);
}

TEST(firmware_limits)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);

    tree_put(&t, POLICY "3/bios_limit", "2300000");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(policy(p, 3)->firmware_khz, 2300000);
    T_NEAR(policy(p, 3)->pressure, 0.5, 1e-12);
    T_EQ(p->s.throttled, GOV_YES);
}

TEST(rapl_counts_packages_and_wraps)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.energy_count, 3);
    T_NEAR(p->s.joules, 0, 0);
    T_TRUE(source(p, "package-0")->counted);
    T_TRUE(!source(p, "package-0 core")->counted);
    T_TRUE(!source(p, "psys")->counted);
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "262003000000");
    sample(p, 1);
    T_NEAR(p->s.joules, 3, 1e-9);
    /* 140.328850 J to the end of its range, 1 J from its start */
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1000000");
    sample(p, 1);
    T_NEAR(p->s.joules, 3 + 140.328850 + 1, 1e-9);
    T_NEAR(source(p, "package-0")->joules, p->s.joules, 1e-9);
    /* back by what no wrap explains: a reset counts nothing */
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "500000");
    sample(p, 1);
    T_NEAR(p->s.joules, 144.328850, 1e-9);
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "2500000");
    sample(p, 1);
    T_NEAR(p->s.joules, 146.328850, 1e-9);
}

TEST(forbidden_energy_is_unavailable)
{
    tree_auto struct tree t = board_new(BOARD_CHIPLETS);
    uid_t me = geteuid();

    T_EQ(chmod(t.root, 0755), 0);
    for (unsigned i = 0; i < 2; i++) {
        char file[64];

        snprintf(file, sizeof(file), "/sys/class/powercap/intel-rapl:%u/energy_uj", i);
        T_EQ(chmod(tree_path(&t, file), 0), 0);
    }
    if (me == 0 && seteuid(65534) != 0) {
        T_SKIP("root may read everything here");
    }
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(seteuid(me), 0);
    T_EQ(p->s.energy_count, 2);
    T_EQ(source(p, "package-1")->state, GOV_ENERGY_DENIED);
    T_TRUE(!source(p, "package-1")->counted);
    T_TRUE(!gov_known(source(p, "package-1")->joules));
    T_TRUE(!gov_known(p->s.joules));
}

/* TX2: volts and amperes, and an input that includes the other rails. */
TEST(rails_are_integrated)
{
    tree_auto struct tree t = board_new(BOARD_TX2);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.energy_count, 4);
    T_TRUE(source(p, "ina3221 VDD_IN")->counted);
    T_TRUE(!source(p, "ina3221 VDD_SYS_CPU")->counted);
    T_NEAR(p->s.joules, 0, 0);
    sample(p, 5); /* 19 V, 0.2 A, 1 s */
    T_NEAR(p->s.joules, 3.8, 1e-9);
    T_NEAR(source(p, "ina3221 VDD_SYS_CPU")->joules, 1.14, 1e-9);
    tree_put(&t, "/sys/class/hwmon/hwmon1/curr1_input", "400");
    sample(p, 1); /* the mean of 3.8 W and 7.6 W, 0.2 s */
    T_NEAR(p->s.joules, 3.8 + 1.14, 1e-9);
    tree_put(&t, "/sys/class/hwmon/hwmon1/curr1_input", "-10");
    sample(p, 2); /* 3.8 W mean, then nothing */
    T_NEAR(p->s.joules, 3.8 + 1.14 + 0.76, 1e-9);
    p->now_ns += 100 * S; /* a machine that slept */
    sample(p, 1);
    T_NEAR(p->s.joules, 3.8 + 1.14 + 0.76, 1e-9);
}

TEST(power_and_energy_of_single_chips)
{
    tree_auto struct tree t = tree_new("/sys/class/hwmon/hwmon0/name = ina226\n"
                                       "/sys/class/hwmon/hwmon0/power1_input = 5000000\n"
                                       "/sys/class/hwmon/hwmon2/name = ina228\n"
                                       "/sys/class/hwmon/hwmon2/label = cpu\n"
                                       "/sys/class/hwmon/hwmon2/energy1_input = 1000000\n"
                                       "/sys/class/hwmon/hwmon3/name = nvme\n"
                                       "/sys/class/hwmon/hwmon3/power1_input = 7\n");
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.energy_count, 2);
    tree_put(&t, "/sys/class/hwmon/hwmon2/energy1_input", "1500000");
    sample(p, 1);
    T_NEAR(source(p, "ina226 0")->joules, 1, 1e-9);
    T_NEAR(source(p, "ina228 cpu")->joules, 0.5, 1e-9);
    T_NEAR(p->s.joules, 1.5, 1e-9);
    tree_put(&t, "/sys/class/hwmon/hwmon0/power1_input", "99999999999");
    sample(p, 1);
    T_EQ(source(p, "ina226 0")->state, GOV_ENERGY_GONE);
    T_NEAR(p->s.joules, 1.5, 1e-9);
}

TEST(clocks_that_jump)
{
    tree_auto struct tree t = board_new(BOARD_TX2);
    probe_auto struct probe *p = probe_new(&t);

    p->now_ns = 10 * S; /* 90 s back */
    gov_sensors_sample(p->sensors, p->now_ns, &p->s);
    T_NEAR(p->s.joules, 0, 0);
    T_EQ(p->s.at_ns, 10 * S);
    gov_sensors_sample(p->sensors, p->now_ns, &p->s); /* stands still */
    T_NEAR(p->s.joules, 0, 0);
    sample(p, 5);
    T_NEAR(p->s.joules, 3.8, 1e-9);
    gov_sensors_sample(p->sensors, UINT64_MAX, &p->s);
    T_NEAR(p->s.joules, 3.8, 1e-9);
    gov_sensors_sample(p->sensors, 0, &p->s);
    T_NEAR(p->s.joules, 3.8, 1e-9);
}

#define GROUP "/sys/fs/cgroup/system.slice/piped.service/"

TEST(cgroup_version_2)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);

    put_lines(&t, GROUP "cpu.stat",
              "usage_usec 10\nuser_usec 5\nnr_periods 40\nnr_throttled 7\n"
              "throttled_usec 1234\nnr_bursts 0\n");
    tree_put(&t, GROUP "cpuset.cpus.effective", "2-5");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(p->s.cgroup.version, 2);
    T_TRUE(isinf(p->s.cgroup.quota_cpus));
    T_TRUE(p->s.cgroup.quota_us == GOV_UNKNOWN);
    T_EQ(p->s.cgroup.nr_throttled, 7);
    T_EQ(p->s.cgroup.nr_periods, 40);
    T_EQ(p->s.cgroup.throttled_us, 1234);
    T_TRUE(p->s.cgroup.cpus.known && gov_cpuset_has(&p->s.cgroup.cpus.set, 5) &&
           !gov_cpuset_has(&p->s.cgroup.cpus.set, 6));
    tree_put(&t, GROUP "cpu.max", "150000 100000");
    sample(p, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 1.5, 1e-12);
    T_EQ(p->s.cgroup.quota_us, 150000);
    T_EQ(p->s.cgroup.period_us, 100000);
    /* the slice above allows less */
    tree_put(&t, "/sys/fs/cgroup/system.slice/cpu.max", "50000 100000");
    tree_put(&t, "/sys/fs/cgroup/system.slice/cpu.stat", "nr_throttled 9");
    sample(p, 5);
    T_NEAR(p->s.cgroup.quota_cpus, 0.5, 1e-12);
    T_EQ(p->s.cgroup.nr_throttled, 9);
    tree_put(&t, "/sys/fs/cgroup/system.slice/cpu.max", "none at all");
    tree_put(&t, GROUP "cpu.max", "max 100000");
    sample(p, 1);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus));
}

TEST(cgroup_moves)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);
    probe_auto struct probe *p = probe_new(&t);

    tree_put(&t, "/sys/fs/cgroup/user.slice/cpu.max", "25000 100000");
    tree_put(&t, "/proc/self/cgroup", "0::/user.slice");
    sample(p, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 0.25, 1e-12);
    /* a path that is not in our view: what is mounted is our own */
    tree_put(&t, "/sys/fs/cgroup/cpu.max", "75000 100000");
    tree_put(&t, "/sys/elsewhere/cpu.max", "10000 100000");
    tree_put(&t, "/proc/self/cgroup", "0::/../../elsewhere");
    sample(p, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 0.75, 1e-12);
}

TEST(cgroup_version_1)
{
    tree_auto struct tree t =
        tree_new("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us = 200000\n"
                 "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us = 50000\n"
                 "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.stat = throttled_time 5000000\n"
                 "/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us = -1\n"
                 "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us = -1\n"
                 "/sys/fs/cgroup/cpuset/docker/abc/cpuset.effective_cpus = 1,3\n");

    put_lines(&t, "/proc/self/cgroup",
              "6:cpuset:/docker/abc\n5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(p->s.cgroup.version, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 4, 1e-12);
    T_EQ(p->s.cgroup.throttled_us, 5000);
    T_TRUE(p->s.cgroup.nr_throttled == GOV_UNKNOWN);
    T_TRUE(p->s.cgroup.cpus.known && gov_cpuset_has(&p->s.cgroup.cpus.set, 3));
    tree_put(&t, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1");
    sample(p, 1);
    T_TRUE(isinf(p->s.cgroup.quota_cpus));
    tree_put(&t, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "0");
    sample(p, 1);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus));
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
    sample(p, 1);
    T_STR(policy(p, 4)->governor, "");
    T_TRUE(policy(p, 4)->now_khz == GOV_UNKNOWN);
    sample(p, 1);
    T_EQ(p->s.policy_count, 2);
    T_TRUE(gov_snapshot_policy(&p->s, 4) == NULL);
    T_EQ(gov_snapshot_policy(&p->s, 6)->number, 6);
    tree_put(&t, POLICY "4/scaling_governor", "powersave");
    tree_put(&t, POLICY "4/related_cpus", "4 5");
    tree_put(&t, "online", "0-3,6-7"); /* has it look at once */
    sample(p, 2);
    T_EQ(p->s.policy_count, 3);
    T_STR(gov_snapshot_policy(&p->s, 5)->governor, "powersave");
    T_TRUE(policy(p, 4)->hardware_khz == GOV_UNKNOWN);
    T_TRUE(!gov_known(policy(p, 4)->pressure));
    T_EQ(policy(p, 4)->by_heat, GOV_MAYBE);
    tree_put(&t, THERMAL "thermal_zone9/temp", "-5000");
    sample(p, 10);
    T_EQ(p->s.zone_count, 5);
    T_EQ(p->s.zones[4].temp_mdegc, -5000);
    T_STR(p->s.zones[4].type, "");
}

TEST(energy_survives_a_new_chip)
{
    tree_auto struct tree t = board_new(BOARD_TX2);
    probe_auto struct probe *p = probe_new(&t);

    sample(p, 5);
    tree_put(&t, "/sys/class/hwmon/hwmon7/name", "ina219");
    tree_put(&t, "/sys/class/hwmon/hwmon7/power1_input", "1");
    sample(p, 10);
    T_EQ(p->s.energy_count, 5);
    T_TRUE(p->s.joules >= 3.8 + 1.9 && p->s.joules <= 3.8 * 3 + 1e-9);
}

static void everything_is_unknown(const struct probe *p)
{
    T_EQ(p->s.policy_count, 0);
    T_EQ(p->s.zone_count, 0);
    T_EQ(p->s.cooling_count, 0);
    T_EQ(p->s.energy_count, 0);
    T_EQ(p->s.cpu_count, 0);
    T_TRUE(!p->s.online.known && !p->s.isolated.known && !p->s.allowed.known);
    T_EQ(p->s.throttled, GOV_MAYBE);
    T_TRUE(!gov_known(p->s.psi_cpu.some_avg10) && !gov_known(p->s.psi_memory.some_avg10));
    T_EQ(p->s.cgroup.version, 0);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus) && !p->s.cgroup.cpus.known);
}

TEST(everything_gone_at_once_and_back)
{
    for (enum board b = 0; b < BOARD_COUNT; b++) {
        tree_auto struct tree t = board_new(b);
        probe_auto struct probe *p = probe_new(&t);
        char away[96];

        sample(p, 3);
        size_t policies = p->s.policy_count, zones = p->s.zone_count, sources = p->s.energy_count;
        snprintf(away, sizeof(away), "%s-away", t.root);
        T_EQ(rename(t.root, away), 0); /* the open files stay as they are */
        sample(p, 20);
        T_EQ(rename(away, t.root), 0);
        sample(p, 20);
        T_EQ(p->s.policy_count, policies);
        struct tree copy = t;
        tree_deinit(&copy);
        sample(p, 20);
        everything_is_unknown(p);
        if (t_failed) {
            return;
        }
        T_EQ(mkdir(t.root, 0755), 0);
        struct tree again = board_new(b);
        T_EQ(rmdir(t.root), 0);
        T_EQ(rename(again.root, t.root), 0);
        sample(p, 20);
        T_EQ(p->s.policy_count, policies);
        T_EQ(p->s.zone_count, zones);
        T_EQ(p->s.energy_count, sources);
        T_TRUE(p->s.online.known);
    }
}

TEST(nothing_at_all)
{
    tree_auto struct tree t = tree_new("other = 1");
    struct tree missing = {"/nonexistent/tree"};
    probe_auto struct probe *p = probe_new(&t);
    probe_auto struct probe *q = probe_new(&missing);

    sample(p, 3);
    everything_is_unknown(p);
    sample(q, 3);
    everything_is_unknown(q);
    T_TRUE(!gov_known(p->s.joules));
}

static int spoil_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    static const char huge[8192] = {[0 ... 8190] = '7'};
    static const struct {
        const char *bytes;
        size_t count;
    } garbage[] = {{"", 0},
                   {"banana\n", 7},
                   {"\0\1\2", 3},
                   {"-999999999999999999999\n", 23},
                   {"0\n", 2},
                   {"18446744073709551615\n", 21},
                   {huge, 8192},
                   {"1 2 3\n", 6},
                   {"some avg10=", 11},
                   {"some avg10=1e9 total=-1\n", 24},
                   {"0::\n", 4},
                   {"0::/x/../../..\n", 15}};
    size_t pick = (size_t)t_range(0, (int64_t)base_array_count(garbage) + 2);

    (void)st;
    (void)where;
    if (type != FTW_F) {
        return 0;
    }
    if (pick < base_array_count(garbage)) {
        FILE *f = fopen(path, "w");

        if (!f || fwrite(garbage[pick].bytes, 1, garbage[pick].count, f) != garbage[pick].count ||
            fclose(f) != 0) {
            abort();
        }
    } else if (pick == base_array_count(garbage)) {
        remove(path);
    } else if (pick == base_array_count(garbage) + 1) {
        remove(path);
        mkdir(path, 0755);
    } else {
        remove(path);
        if (mkfifo(path, 0644) != 0) {
            abort();
        }
    }
    return 0;
}

static void values_are_sane(const struct gov_snapshot *s)
{
    for (size_t i = 0; i < s->policy_count; i++) {
        const struct gov_policy *p = &s->policies[i];

        T_TRUE(p->now_khz > 0 && (p->now_khz == GOV_UNKNOWN || p->now_khz <= 100000000));
        T_TRUE(p->max_khz > 0 && p->hardware_khz > 0);
        T_TRUE(!gov_known(p->pressure) || (p->pressure >= 0 && p->pressure <= 1));
        T_TRUE(memchr(p->governor, '\0', sizeof(p->governor)) != NULL);
    }
    for (size_t i = 0; i < s->zone_count; i++) {
        T_TRUE(s->zones[i].temp_mdegc == GOV_UNKNOWN_MDEGC ||
               (s->zones[i].temp_mdegc >= -273150 && s->zones[i].temp_mdegc <= 1000000));
        T_TRUE(s->zones[i].trip_count <= GOV_TRIP_MAX);
    }
    T_TRUE(!gov_known(s->psi_cpu.some_avg10) ||
           (s->psi_cpu.some_avg10 >= 0 && s->psi_cpu.some_avg10 <= 100));
    T_TRUE(!gov_known(s->cgroup.quota_cpus) || s->cgroup.quota_cpus > 0);
    T_TRUE(!gov_known(s->joules) || (s->joules >= 0 && s->joules < 1e6));
}

/* Any content of any file gives a snapshot with values that can be. */
TEST(garbled_files)
{
    for (int round = 0; round < 2; round++) {
        for (enum board b = 0; b < BOARD_COUNT; b++) {
            tree_auto struct tree t = board_new(b);
            probe_auto struct probe *p = probe_new(&t);

            nftw(t.root, spoil_one, 16, FTW_PHYS);
            sample(p, 12);
            values_are_sane(&p->s);
            if (t_failed) {
                return;
            }
            probe_auto struct probe *fresh = probe_new(&t);
            values_are_sane(&fresh->s);
            if (t_failed) {
                return;
            }
        }
    }
}

TEST(frequencies_of_zero_are_unknown)
{
    tree_auto struct tree t = board_new(BOARD_PI5);
    probe_auto struct probe *p = probe_new(&t);

    tree_put(&t, POLICY "0/scaling_cur_freq", "0");
    tree_put(&t, POLICY "0/scaling_max_freq", "0");
    sample(p, 1);
    T_TRUE(policy(p, 0)->now_khz == GOV_UNKNOWN);
    T_TRUE(policy(p, 0)->max_khz == GOV_UNKNOWN);
    T_TRUE(!gov_known(policy(p, 0)->pressure));
}

TEST(tables_are_bounded)
{
    tree_auto struct tree t = tree_new("present = 0-8191\nonline = 0-8191\n");
    char file[96];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(file, sizeof(file), POLICY "%u/scaling_governor", 3 * i);
        tree_put(&t, file, "powersave");
        snprintf(file, sizeof(file), THERMAL "thermal_zone%u/temp", 299 - i);
        tree_put(&t, file, "1000");
        snprintf(file, sizeof(file), THERMAL "cooling_device%u/cur_state", i);
        tree_put(&t, file, "0");
        snprintf(file, sizeof(file), "/sys/class/hwmon/hwmon%u/name", i);
        tree_put(&t, file, "ina219");
        snprintf(file, sizeof(file), "/sys/class/hwmon/hwmon%u/power1_input", i);
        tree_put(&t, file, "1000000");
    }
    tree_put(&t, POLICY "99999999999999999999/scaling_governor", "x");
    tree_put(&t, POLICY "7x/scaling_governor", "x");
    tree_put(&t, POLICY "03/scaling_governor", "x");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(p->s.policy_count, GOV_POLICY_MAX);
    T_EQ(p->s.cpu_count, GOV_CPU_MAX);
    T_EQ(p->s.zone_count, GOV_ZONE_MAX);
    T_EQ(p->s.cooling_count, GOV_COOLING_MAX);
    T_EQ(p->s.energy_count, GOV_ENERGY_MAX);
    T_EQ(p->s.policies[255].number, 765);
    T_EQ(p->s.zones[31].number, 31);
    T_STR(p->s.policies[255].governor, "powersave");
    tree_put(&t, POLICY "765/scaling_governor", "performance");
    sample(p, 11); /* in turns */
    T_STR(p->s.policies[255].governor, "performance");
}

TEST(few_descriptors)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);
    struct rlimit before, few;
    probe_auto struct probe *p = NULL;

    T_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 20;
    T_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    p = probe_new(&t);
    sample(p, 12);
    T_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    T_TRUE(p->s.online.known);
    sample(p, 12);
    T_STR(policy(p, 15)->governor, "powersave");
}

TEST(affinity_of_a_tree)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);

    tree_put(&t, "isolated", "6-7");
    put_lines(&t, "/proc/self/status",
              "Name:\tpiped\nCpus_allowed:\t3f\nCpus_allowed_list:\t0-5\nMems_allowed:\t1\n");
    probe_auto struct probe *p = probe_new(&t);
    T_TRUE(p->s.allowed.known && gov_cpuset_has(&p->s.allowed.set, 5) &&
           !gov_cpuset_has(&p->s.allowed.set, 6));
    T_TRUE(p->s.isolated.known && gov_cpuset_has(&p->s.isolated.set, 6));
    tree_put(&t, "/proc/self/status", "Name:\tpiped");
    sample(p, 1);
    T_TRUE(!p->s.allowed.known);
}

/* Whatever this machine has, it is read, and the CPU that runs this is online and allowed. */
TEST(this_machine)
{
    struct tree root = {"/"};
    probe_auto struct probe *p = probe_new(&root);
    cpu_set_t set;

    sample(p, 3);
    T_EQ(p->s.sequence, 4);
    T_TRUE(p->s.allowed.known);
    T_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        T_EQ(CPU_ISSET(cpu, &set) != 0, gov_cpuset_has(&p->s.allowed.set, cpu));
    }
    values_are_sane(&p->s);
}

TEST_MAIN()
