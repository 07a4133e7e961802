/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/governor/boards.h - trees shaped like known boards
 *
 * Written from the kernel's documented formats (Documentation/ABI/testing/sysfs-devices-system-cpu,
 * admin-guide/pm/cpufreq.rst, driver-api/thermal/sysfs-api.rst, power/powercap/powercap.rst,
 * hwmon/ina*.rst, admin-guide/cgroup-v2.rst) and from published data about the boards' cores and
 * caches; not copied from running boards.
 */
#pragma once

#include "tests/unit/governor/tree.h"

enum board {
    BOARD_TX2,
    BOARD_HIKEY970,
    BOARD_RK3588,
    BOARD_PI5,
    BOARD_HYBRID,
    BOARD_CHIPLETS,
    BOARD_COUNT
};

/* The EPs that the governor must find on each. */
static const char *const board_eps[BOARD_COUNT] = {
    [BOARD_TX2] = "big:0,3,4,5 little:1,2",
    [BOARD_HIKEY970] = "big:4,5,6,7 little:0,1,2,3",
    [BOARD_RK3588] = "big:4,5,6,7 little:0,1,2,3",
    [BOARD_PI5] = "big:0,1,2,3",
    [BOARD_HYBRID] = "big:0,2,4,6 little:8,9,10,11,12,13,14,15",
    [BOARD_CHIPLETS] = "big:0,1,2,3 big1:4,5,6,7 big2:8,9,10,11 big3:12,13,14,15",
};

#define BOARD_LEVEL_2(cpus)                                                                        \
    "[" cpus "] cache/index2/level = 2\n[" cpus "] cache/index2/type = Unified\n"                  \
    "[" cpus "] cache/index2/shared_cpu_list = " cpus "\n"
#define BOARD_LEVEL_3(cpus)                                                                        \
    "[" cpus "] cache/index3/level = 3\n[" cpus "] cache/index3/type = Unified\n"                  \
    "[" cpus "] cache/index3/shared_cpu_list = " cpus "\n"
#define BOARD_POLICY(number, members, governor, min, max, now)                                     \
    "cpufreq/policy" number "/related_cpus = " members "\n"                                        \
    "cpufreq/policy" number "/affected_cpus = " members "\n"                                       \
    "cpufreq/policy" number "/scaling_governor = " governor "\n"                                   \
    "cpufreq/policy" number "/cpuinfo_min_freq = " min "\n"                                        \
    "cpufreq/policy" number "/cpuinfo_max_freq = " max "\n"                                        \
    "cpufreq/policy" number "/scaling_min_freq = " min "\n"                                        \
    "cpufreq/policy" number "/scaling_max_freq = " max "\n"                                        \
    "cpufreq/policy" number "/scaling_cur_freq = " now "\n"
#define BOARD_ZONE(number, kind, temp)                                                             \
    "/sys/class/thermal/thermal_zone" number "/type = " kind "\n"                                  \
    "/sys/class/thermal/thermal_zone" number "/temp = " temp "\n"
#define BOARD_TRIP(number, trip, kind, temp)                                                       \
    "/sys/class/thermal/thermal_zone" number "/trip_point_" trip "_type = " kind "\n"              \
    "/sys/class/thermal/thermal_zone" number "/trip_point_" trip "_temp = " temp "\n"
#define BOARD_COOLING(number, kind, state, max)                                                    \
    "/sys/class/thermal/cooling_device" number "/type = " kind "\n"                                \
    "/sys/class/thermal/cooling_device" number "/cur_state = " state "\n"                          \
    "/sys/class/thermal/cooling_device" number "/max_state = " max "\n"
#define BOARD_RAIL(chip, channel, label, millivolts, milliamperes)                                 \
    "/sys/class/hwmon/hwmon" chip "/in" channel "_label = " label "\n"                             \
    "/sys/class/hwmon/hwmon" chip "/in" channel "_input = " millivolts "\n"                        \
    "/sys/class/hwmon/hwmon" chip "/curr" channel "_input = " milliamperes "\n"
#define BOARD_PSI                                                                                  \
    "/proc/pressure/cpu = some avg10=1.50 avg60=0.75 avg300=0.10 total=123456\n"                   \
    "/proc/pressure/memory = some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
#define BOARD_GROUP                                                                                \
    "/proc/self/cgroup = 0::/system.slice/piped.service\n"                                         \
    "/sys/fs/cgroup/cgroup.controllers = cpuset cpu io memory pids\n"                              \
    "/sys/fs/cgroup/system.slice/cpu.max = max 100000\n"                                           \
    "/sys/fs/cgroup/system.slice/piped.service/cpu.max = max 100000\n"

/* Two Denver 2 cores between four A57, no capacities, equal best frequencies: the parts differ. */
#define BOARD_TEXT_TX2                                                                             \
    "present = 0-5\nonline = 0-5\npossible = 0-5\n"                                                \
    "[0,3-5] regs/identification/midr_el1 = 0x00000000411fd073\n"                                  \
    "[1-2] regs/identification/midr_el1 = 0x000000004e0f0030\n"                                    \
    "[0,3-5] topology/package_cpus_list = 0,3-5\n[1-2] topology/package_cpus_list = 1-2\n"         \
    "[0,3-5] cache/index2/level = 2\n[0,3-5] cache/index2/type = Unified\n"                        \
    "[0,3-5] cache/index2/shared_cpu_list = 0,3-5\n" BOARD_LEVEL_2("1-2") BOARD_POLICY(            \
        "0", "0 3 4 5", "schedutil", "345600", "2035200",                                          \
        "345600") BOARD_POLICY("1", "1 2", "schedutil", "345600", "2035200", "1267200")            \
        BOARD_ZONE("0", "BCPU-therm", "41500") BOARD_TRIP("0", "0", "critical", "101000")          \
            BOARD_TRIP("0", "1", "passive", "95500") BOARD_ZONE("1", "MCPU-therm", "41500")        \
                BOARD_TRIP("1", "0", "critical", "101000") BOARD_ZONE(                             \
                    "2", "PMIC-Die",                                                               \
                    "100000") "/sys/class/hwmon/hwmon0/name = ina3221\n" BOARD_RAIL("0", "1",      \
                                                                                    "VDD_SYS_GPU", \
                                                                                    "19000", "20") \
                    BOARD_RAIL(                                                                    \
                        "0", "2", "VDD_SYS_SOC", "19000",                                          \
                        "40") "/sys/class/hwmon/hwmon1/name = ina3221\n" BOARD_RAIL("1", "1",      \
                                                                                    "VDD_IN",      \
                                                                                    "19000",       \
                                                                                    "200")         \
                        BOARD_RAIL("1", "2", "VDD_SYS_CPU", "19000", "60")

#define BOARD_TEXT_HIKEY970                                                                        \
    "present = 0-7\nonline = 0-7\npossible = 0-7\n"                                                \
    "[0-3] regs/identification/midr_el1 = 0x00000000410fd034\n"                                    \
    "[4-7] regs/identification/midr_el1 = 0x00000000410fd092\n"                                    \
    "[0-3] topology/cluster_cpus_list = 0-3\n[4-7] topology/cluster_cpus_list = 4-7\n"             \
    "[0-7] topology/package_cpus_list = 0-7\n" BOARD_LEVEL_2("0-3") BOARD_LEVEL_2("4-7")           \
        BOARD_POLICY("0", "0 1 2 3", "performance", "509000", "1844000", "1844000")                \
            BOARD_POLICY("4", "4 5 6 7", "powersave", "682000", "2362000", "682000")               \
                BOARD_ZONE("0", "soc_thermal", "52000") BOARD_TRIP("0", "0", "passive", "65000")   \
                    BOARD_TRIP("0", "1", "passive", "75000")                                       \
                        BOARD_TRIP("0", "2", "critical", "95000")                                  \
                            BOARD_COOLING("0", "thermal-cpufreq-0", "0", "4")                      \
                                BOARD_COOLING("1", "thermal-cpufreq-1", "0", "4") BOARD_PSI

/* Level 2 caches of single cores, one level 3 for all; the big cores have two policies. */
#define BOARD_TEXT_RK3588                                                                          \
    "present = 0-7\nonline = 0-7\npossible = 0-7\n[0-3] cpu_capacity = 530\n"                      \
    "[4-7] cpu_capacity = 1024\n[0-3] regs/identification/midr_el1 = 0x00000000412fd050\n"         \
    "[4-7] regs/identification/midr_el1 = 0x00000000414fd0b0\n"                                    \
    "[0-3] topology/cluster_cpus_list = 0-3\n[4-5] topology/cluster_cpus_list = 4-5\n"             \
    "[6-7] topology/cluster_cpus_list = 6-7\n"                                                     \
    "[0-7] topology/package_cpus_list = 0-7\n" BOARD_LEVEL_3("0-7")                                \
        BOARD_POLICY("0", "0 1 2 3", "ondemand", "408000", "1800000", "1008000")                   \
            BOARD_POLICY("4", "4 5", "ondemand", "408000", "2400000", "2208000")                   \
                BOARD_POLICY("6", "6 7", "ondemand", "408000", "2400000", "408000") BOARD_ZONE(    \
                    "0", "package-thermal", "47153") BOARD_TRIP("0", "0", "critical", "115000")    \
                    BOARD_ZONE("1", "bigcore0-thermal", "48076")                                   \
                        BOARD_TRIP("1", "0", "passive", "85000")                                   \
                            BOARD_TRIP("1", "1", "critical", "115000")                             \
                                BOARD_ZONE("2", "bigcore2-thermal", "48076")                       \
                                    BOARD_TRIP("2", "0", "passive", "85000")                       \
                                        BOARD_ZONE("3", "littlecore-thermal", "47153")             \
                                            BOARD_COOLING("0", "cpufreq-cpu0", "0", "6")           \
                                                BOARD_COOLING("1", "cpufreq-cpu4", "0", "8")       \
                                                    BOARD_COOLING("2", "cpufreq-cpu6", "0", "8")   \
                                                        BOARD_PSI BOARD_GROUP

/* Four equal cores, a fan, a power button's chip without figures; no PSI (off by default). */
#define BOARD_TEXT_PI5                                                                             \
    "present = 0-3\nonline = 0-3\npossible = 0-3\n[0-3] cpu_capacity = 1024\n"                     \
    "[0-3] regs/identification/midr_el1 = 0x00000000414fd0b1\n"                                    \
    "[0-3] topology/package_cpus_list = 0-3\n" BOARD_LEVEL_3("0-3")                                \
        BOARD_POLICY("0", "0 1 2 3", "ondemand", "1500000", "2400000", "1500000")                  \
            BOARD_ZONE("0", "cpu-thermal", "58900") BOARD_TRIP("0", "0", "critical", "110000")     \
                BOARD_TRIP("0", "1", "active", "50000") BOARD_TRIP("0", "2", "active", "60000")    \
                    BOARD_COOLING("0", "pwm-fan", "1",                                             \
                                  "4") "/sys/class/hwmon/hwmon0/name = "                           \
                                       "cpu_thermal\n/sys/class/hwmon/hwmon1/name = rp1_adc\n"

#define BOARD_TEXT_HYBRID                                                                          \
    "present = 0-15\nonline = 0-15\npossible = 0-15\n/sys/devices/cpu_core/cpus = 0-7\n"           \
    "/sys/devices/cpu_atom/cpus = 8-15\n"                                                          \
    "[0-15] topology/package_cpus_list = 0-15\n[0-15] thermal_throttle/core_throttle_count = 3\n"  \
    "[0-15] thermal_throttle/package_throttle_count = 7\n"                                         \
    "[8-11] topology/cluster_cpus_list = 8-11\n[12-15] topology/cluster_cpus_list = "              \
    "12-15\n" BOARD_LEVEL_3("0-15") BOARD_ZONE("0", "acpitz",                                      \
                                               "27800") BOARD_TRIP("0", "0", "critical", "119000") \
        BOARD_ZONE("1", "x86_pkg_temp", "46000") BOARD_TRIP("1", "0", "passive", "0")              \
            BOARD_COOLING("0", "Processor", "0", "10") BOARD_COOLING(                              \
                "16", "intel_powerclamp", "0",                                                     \
                "100") "/sys/class/powercap/intel-rapl/enabled = 1\n"                              \
                       "/sys/class/powercap/intel-rapl:0/name = package-0\n"                       \
                       "/sys/class/powercap/intel-rapl:0/energy_uj = 262000000000\n"               \
                       "/sys/class/powercap/intel-rapl:0/max_energy_range_uj = 262143328850\n"     \
                       "/sys/class/powercap/intel-rapl:0:0/name = core\n"                          \
                       "/sys/class/powercap/intel-rapl:0:0/energy_uj = 5000000\n"                  \
                       "/sys/class/powercap/intel-rapl:0:0/max_energy_range_uj = 262143328850\n"   \
                       "/sys/class/powercap/intel-rapl:1/name = psys\n"                            \
                       "/sys/class/powercap/intel-rapl:1/energy_uj = 9000000\n"                    \
                       "/sys/class/powercap/intel-rapl:1/max_energy_range_uj = "                   \
                       "262143328850\n" BOARD_PSI BOARD_GROUP

/* Two nodes of two chiplets of four cores with two threads. */
#define BOARD_TEXT_CHIPLETS                                                                        \
    "present = 0-31\nonline = 0-31\npossible = 0-31\n/sys/devices/system/node/online = 0-1\n"      \
    "/sys/devices/system/node/node0/cpulist = 0-7,16-23\n"                                         \
    "/sys/devices/system/node/node1/cpulist = 8-15,24-31\n"                                        \
    "[0-31] cache/index3/level = 3\n[0-31] cache/index3/type = Unified\n"                          \
    "[0-3,16-19] cache/index3/shared_cpu_list = 0-3,16-19\n"                                       \
    "[4-7,20-23] cache/index3/shared_cpu_list = 4-7,20-23\n"                                       \
    "[8-11,24-27] cache/index3/shared_cpu_list = 8-11,24-27\n"                                     \
    "[12-15,28-31] cache/index3/shared_cpu_list = 12-15,28-31\n"                                   \
    "/sys/class/powercap/intel-rapl:0/name = package-0\n"                                          \
    "/sys/class/powercap/intel-rapl:0/energy_uj = 1000\n"                                          \
    "/sys/class/powercap/intel-rapl:0/max_energy_range_uj = 65532610987\n"                         \
    "/sys/class/powercap/intel-rapl:1/name = package-1\n"                                          \
    "/sys/class/powercap/intel-rapl:1/energy_uj = 2000\n"                                          \
    "/sys/class/powercap/intel-rapl:1/max_energy_range_uj = 65532610987\n" BOARD_PSI BOARD_GROUP

/* A policy and the list of siblings for each CPU. */
static inline void board_x86_cpus(const struct tree *t, unsigned cpus, const char *max_khz,
                                  const char *(*siblings)(unsigned cpu))
{
    static const char *const files[][2] = {{"scaling_governor", "powersave"},
                                           {"scaling_min_freq", "400000"},
                                           {"scaling_cur_freq", "1200000"}};
    char path[96], text[16];

    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        snprintf(path, sizeof(path), "cpu%u/topology/core_cpus_list", cpu);
        tree_put(t, path, siblings(cpu));
        for (size_t i = 0; i < base_array_count(files); i++) {
            snprintf(path, sizeof(path), "cpufreq/policy%u/%s", cpu, files[i][0]);
            tree_put(t, path, files[i][1]);
        }
        snprintf(path, sizeof(path), "cpufreq/policy%u/cpuinfo_max_freq", cpu);
        tree_put(t, path, max_khz);
        snprintf(path, sizeof(path), "cpufreq/policy%u/scaling_max_freq", cpu);
        tree_put(t, path, max_khz);
        snprintf(path, sizeof(path), "cpufreq/policy%u/related_cpus", cpu);
        snprintf(text, sizeof(text), "%u", cpu);
        tree_put(t, path, text);
    }
}

static inline const char *board_hybrid_siblings(unsigned cpu)
{
    static char text[24];

    snprintf(text, sizeof(text), cpu < 8 ? "%u-%u" : "%u", cpu < 8 ? cpu & ~1u : cpu, cpu | 1u);
    return text;
}

static inline const char *board_chiplet_siblings(unsigned cpu)
{
    static char text[24];

    snprintf(text, sizeof(text), "%u,%u", cpu % 16, cpu % 16 + 16);
    return text;
}

static inline struct tree board_new(enum board board)
{
    static const char *const texts[BOARD_COUNT] = {BOARD_TEXT_TX2,    BOARD_TEXT_HIKEY970,
                                                   BOARD_TEXT_RK3588, BOARD_TEXT_PI5,
                                                   BOARD_TEXT_HYBRID, BOARD_TEXT_CHIPLETS};
    struct tree t = tree_new(texts[board]);

    if (board == BOARD_HYBRID) {
        board_x86_cpus(&t, 16, "4600000", board_hybrid_siblings);
    } else if (board == BOARD_CHIPLETS) {
        board_x86_cpus(&t, 32, "3300000", board_chiplet_siblings);
    }
    return t;
}
