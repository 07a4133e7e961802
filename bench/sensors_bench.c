/* SPDX-License-Identifier: Apache-2.0 */
/* What sampling the machine costs: CPU time a sample and the share of one core at five samples a
 * second, for the tree below a root ("/" if none is given), or with --chiplets for a tree of
 * made-up files of 128 CPUs with a policy each, 16 thermal zones, two RAPL packages and a control
 * group. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "governor/sensors.h"
#include "tests/unit/governor/tree.h"

#define SAMPLES 2000u
#define ROUNDS 5u
#define SAMPLES_A_SECOND 5.0

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct tree big_machine(void)
{
    static const char *const policy[][2] = {
        {"scaling_governor", "schedutil"}, {"scaling_min_freq", "1500000"},
        {"scaling_max_freq", "3300000"},   {"scaling_cur_freq", "2100000"},
        {"cpuinfo_max_freq", "3300000"},
    };
    struct tree t = tree_new("present = 0-127\nonline = 0-127\n"
                             "/sys/class/powercap/intel-rapl:0/name = package-0\n"
                             "/sys/class/powercap/intel-rapl:0/energy_uj = 1000\n"
                             "/sys/class/powercap/intel-rapl:1/name = package-1\n"
                             "/sys/class/powercap/intel-rapl:1/energy_uj = 1000\n"
                             "/proc/pressure/cpu = some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
                             "/proc/self/cgroup = 0::/system.slice/piped.service\n"
                             "/sys/fs/cgroup/cgroup.controllers = cpu\n"
                             "/sys/fs/cgroup/system.slice/piped.service/cpu.max = max 100000\n");
    char file[96], text[16];

    for (unsigned cpu = 0; cpu < 128; cpu++) {
        for (size_t i = 0; i < base_array_count(policy); i++) {
            snprintf(file, sizeof(file), "cpufreq/policy%u/%s", cpu, policy[i][0]);
            tree_put(&t, file, policy[i][1]);
        }
        snprintf(text, sizeof(text), "%u", cpu);
        snprintf(file, sizeof(file), "cpufreq/policy%u/related_cpus", cpu);
        tree_put(&t, file, text);
        snprintf(file, sizeof(file), "cpu%u/thermal_throttle/core_throttle_count", cpu);
        tree_put(&t, file, "0");
        snprintf(file, sizeof(file), "cpu%u/thermal_throttle/package_throttle_count", cpu);
        tree_put(&t, file, "0");
    }
    for (unsigned zone = 0; zone < 16; zone++) {
        snprintf(file, sizeof(file), "/sys/class/thermal/thermal_zone%u/temp", zone);
        tree_put(&t, file, "45000");
    }
    return t;
}

static void measure(const char *root)
{
    static struct gov_snapshot snapshot;
    struct gov_sensors *s;
    double ns[ROUNDS];

    if (gov_sensors_new(root, &s) != 0) {
        abort();
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t start = cpu_ns();

        for (unsigned i = 0; i < SAMPLES; i++) {
            gov_sensors_sample(s, base_now_ns(), &snapshot);
        }
        ns[round] = (double)(cpu_ns() - start) / SAMPLES;
    }
    gov_sensors_free(s);
    qsort(ns, ROUNDS, sizeof(ns[0]), compare);
    printf("%s: %zu CPUs, %zu policies, %zu zones, %zu cooling devices, %zu energy sources\n", root,
           snapshot.cpu_count, snapshot.policy_count, snapshot.zone_count, snapshot.cooling_count,
           snapshot.energy_count);
    printf("%.1f us of CPU a sample (median of %u rounds of %u, least %.1f, most %.1f), "
           "%.4f %% of a core at %.0f a second\n",
           ns[ROUNDS / 2] / 1e3, ROUNDS, SAMPLES, ns[0] / 1e3, ns[ROUNDS - 1] / 1e3,
           ns[ROUNDS / 2] * SAMPLES_A_SECOND / 1e9 * 100, SAMPLES_A_SECOND);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--chiplets") == 0) {
        tree_auto struct tree t = big_machine();

        measure(t.root);
    } else {
        measure(argc > 1 ? argv[1] : "/");
    }
    return 0;
}
