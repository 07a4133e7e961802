/* SPDX-License-Identifier: Apache-2.0 */
/* Energy: counters that wrap, power that is integrated, what may not be read. */
#include "tests/harness.h"
#include "tests/unit/governor/boards.h"
#include "tests/unit/governor/probe.h"

TEST(rapl_counts_packages_and_wraps)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.energy_count, 3);
    T_NEAR(p->s.joules, 0, 0);
    T_TRUE(probe_source(p, "package-0")->counted);
    T_TRUE(!probe_source(p, "package-0 core")->counted);
    T_TRUE(!probe_source(p, "psys")->counted);
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "262003000000");
    probe_sample(p, 1);
    T_NEAR(p->s.joules, 3, 1e-9);
    /* 140.328850 J to the end of its range, 1 J from its start */
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1000000");
    probe_sample(p, 1);
    T_NEAR(p->s.joules, 3 + 140.328850 + 1, 1e-9);
    T_NEAR(probe_source(p, "package-0")->joules, p->s.joules, 1e-9);
    /* back by what no wrap explains: a reset counts nothing */
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "500000");
    probe_sample(p, 1);
    T_NEAR(p->s.joules, 144.328850, 1e-9);
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "2500000");
    probe_sample(p, 1);
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
    T_EQ(probe_source(p, "package-1")->state, GOV_ENERGY_DENIED);
    T_TRUE(!probe_source(p, "package-1")->counted);
    T_TRUE(!gov_known(probe_source(p, "package-1")->joules));
    T_TRUE(!gov_known(p->s.joules));
}

/* TX2: volts and amperes, and an input that includes the other rails. */
TEST(rails_are_integrated)
{
    tree_auto struct tree t = board_new(BOARD_TX2);
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.energy_count, 4);
    T_TRUE(probe_source(p, "ina3221 VDD_IN")->counted);
    T_TRUE(!probe_source(p, "ina3221 VDD_SYS_CPU")->counted);
    T_NEAR(p->s.joules, 0, 0);
    probe_sample(p, 5); /* 19 V, 0.2 A, 1 s */
    T_NEAR(p->s.joules, 3.8, 1e-9);
    T_NEAR(probe_source(p, "ina3221 VDD_SYS_CPU")->joules, 1.14, 1e-9);
    tree_put(&t, "/sys/class/hwmon/hwmon1/curr1_input", "400");
    probe_sample(p, 1); /* the mean of 3.8 W and 7.6 W, 0.2 s */
    T_NEAR(p->s.joules, 3.8 + 1.14, 1e-9);
    tree_put(&t, "/sys/class/hwmon/hwmon1/curr1_input", "-10");
    probe_sample(p, 2); /* 3.8 W mean, then nothing */
    T_NEAR(p->s.joules, 3.8 + 1.14 + 0.76, 1e-9);
    p->now_ns += 100 * BASE_NS_PER_S; /* a machine that slept */
    probe_sample(p, 1);
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
    probe_sample(p, 1);
    T_NEAR(probe_source(p, "ina226 0")->joules, 1, 1e-9);
    T_NEAR(probe_source(p, "ina228 cpu")->joules, 0.5, 1e-9);
    T_NEAR(p->s.joules, 1.5, 1e-9);
    tree_put(&t, "/sys/class/hwmon/hwmon0/power1_input", "99999999999");
    probe_sample(p, 1);
    T_EQ(probe_source(p, "ina226 0")->state, GOV_ENERGY_GONE);
    T_NEAR(p->s.joules, 1.5, 1e-9);
}

TEST(energy_survives_a_new_chip)
{
    tree_auto struct tree t = board_new(BOARD_TX2);
    probe_auto struct probe *p = probe_new(&t);

    probe_sample(p, 5);
    tree_put(&t, "/sys/class/hwmon/hwmon7/name", "ina219");
    tree_put(&t, "/sys/class/hwmon/hwmon7/power1_input", "1");
    probe_sample(p, 10);
    T_EQ(p->s.energy_count, 5);
    T_TRUE(p->s.joules >= 3.8 + 1.9 && p->s.joules <= 3.8 * 3 + 1e-9);
}

#define BATTERY "/sys/class/power_supply/axp20x-battery/"

/* A battery counts while it discharges, whatever sign its driver gives, and never beside RAPL. */
TEST(batteries_count_while_they_discharge)
{
    tree_auto struct tree t =
        tree_new(BATTERY "type = Battery\n" BATTERY "status = Discharging\n" BATTERY
                         "voltage_now = 4000000\n" BATTERY "current_now = -500000\n"
                         "/sys/class/power_supply/AC/type = Mains\n"
                         "/sys/class/power_supply/mouse/type = Battery\n"
                         "/sys/class/power_supply/mouse/scope = Device\n"
                         "/sys/class/power_supply/mouse/power_now = 5\n");
    probe_auto struct probe *p = probe_new(&t);

    T_EQ(p->s.energy_count, 1);
    T_TRUE(probe_source(p, "battery axp20x-battery")->counted);
    probe_sample(p, 5); /* 4 V, 0.5 A, 1 s */
    T_NEAR(p->s.joules, 2, 1e-9);
    tree_put(&t, BATTERY "status", "Charging");
    probe_sample(p, 5);
    T_TRUE(!probe_source(p, "battery axp20x-battery")->counted);
    T_NEAR(p->s.joules, 2, 1e-9);
    tree_put(&t, BATTERY "status", "Discharging");
    probe_sample(p, 1); /* what was before is not known */
    T_NEAR(p->s.joules, 2, 1e-9);
    probe_sample(p, 5);
    T_NEAR(p->s.joules, 4, 1e-9);
    tree_put(&t, BATTERY "power_now", "3000000"); /* a better figure, once files are looked for */
    probe_sample(p, 30);
    T_NEAR(probe_source(p, "battery axp20x-battery")->joules, p->s.joules, 1e-9);
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/name", "package-0");
    tree_put(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1");
    probe_sample(p, 30);
    T_TRUE(probe_source(p, "package-0")->counted);
    T_TRUE(!probe_source(p, "battery axp20x-battery")->counted);
}

/* user + nice + system + irq + softirq, in ticks of 10 ms; CPU 1 is offline; only beside energy. */
TEST(cpus_tell_how_busy_they_were)
{
    static const char stat[] = "cpu  9 9 9 9 9 9 9 0 0 0\n"
                               "cpu0 100 20 3 5000 7 11 13 17 0 0\n"
                               "cpu2 4 0 0 1 0 0 0 0 0 0\n"
                               "intr 1 2 3\n";
    tree_auto struct tree t = tree_new("present = 0-2\n");
    probe_auto struct probe *p = NULL;

    tree_put_bytes(&t, "/proc/stat", stat, sizeof(stat) - 1);
    p = probe_new(&t);
    T_EQ(p->s.cpus[0].busy_ns, GOV_UNKNOWN);
    tree_put(&t, "/sys/class/hwmon/hwmon0/name", "ina219");
    tree_put(&t, "/sys/class/hwmon/hwmon0/power1_input", "1");
    probe_sample(p, 10);
    T_EQ(p->s.cpus[0].busy_ns, (100 + 20 + 3 + 11 + 13) * (BASE_NS_PER_S / 100));
    T_EQ(p->s.cpus[1].busy_ns, GOV_UNKNOWN);
    T_EQ(p->s.cpus[2].busy_ns, 4 * (BASE_NS_PER_S / 100));
    tree_put(&t, "/proc/stat", "cpu 1\ncpu0 nonsense");
    probe_sample(p, 1);
    T_EQ(p->s.cpus[0].busy_ns, GOV_UNKNOWN);
}

TEST(clocks_that_jump)
{
    tree_auto struct tree t = board_new(BOARD_TX2);
    probe_auto struct probe *p = probe_new(&t);

    p->now_ns = 10 * BASE_NS_PER_S; /* 90 s back */
    gov_sensors_sample(p->sensors, p->now_ns, &p->s);
    T_NEAR(p->s.joules, 0, 0);
    T_EQ(p->s.at_ns, 10 * BASE_NS_PER_S);
    gov_sensors_sample(p->sensors, p->now_ns, &p->s); /* stands still */
    T_NEAR(p->s.joules, 0, 0);
    probe_sample(p, 5);
    T_NEAR(p->s.joules, 3.8, 1e-9);
    gov_sensors_sample(p->sensors, UINT64_MAX, &p->s);
    T_NEAR(p->s.joules, 3.8, 1e-9);
    gov_sensors_sample(p->sensors, 0, &p->s);
    T_NEAR(p->s.joules, 3.8, 1e-9);
}

TEST_MAIN()
