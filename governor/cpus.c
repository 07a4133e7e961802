/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs there are, and how busy they were. */
#include "base/base.h"
#include "governor/sampler.h"

#define CPU_DIR "sys/devices/system/cpu/"
#define CPUS_A_SAMPLE 16u

static void read_set(struct gov_sensors *s, struct gov_file *f, struct gov_known_set *ret)
{
    ret->known = gov_file_cpulist(&s->files, f, &ret->set) == 0;
    if (!ret->known) {
        memset(&ret->set, 0, sizeof(ret->set));
    }
}

/* The CPUs of the machine, the lowest GOV_CPU_MAX. Return: false if no file tells. */
static bool list_cpus(struct gov_sensors *s, uint16_t *ret, size_t *ret_count)
{
    struct gov_cpuset present;
    size_t count = 0;

    if (gov_sysfs_cpulist(s->root, &present, CPU_DIR "present") != 0 &&
        gov_sysfs_cpulist(s->root, &present, CPU_DIR "possible") != 0 &&
        gov_sysfs_cpulist(s->root, &present, CPU_DIR "online") != 0) {
        return false;
    }
    gov_cpuset_foreach(cpu, &present)
    {
        if (count < GOV_CPU_MAX) {
            ret[count++] = (uint16_t)cpu;
        }
    }
    *ret_count = count;
    return true;
}

static bool same_cpus(const struct gov_snapshot *n, const uint16_t *cpus, size_t count)
{
    bool same = n->cpu_count == count;

    for (size_t i = 0; same && i < count; i++) {
        same = n->cpus[i].cpu == cpus[i];
    }
    return same;
}

void gov_cpus_scan(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    uint16_t cpus[GOV_CPU_MAX];
    size_t count = 0;

    if (s->online.path[0] == '\0') {
        gov_file_set(&s->files, &s->online, CPU_DIR "online");
        gov_file_set(&s->files, &s->isolated, CPU_DIR "isolated");
    }
    read_set(s, &s->isolated, &n->isolated);
    if (list_cpus(s, cpus, &count) && same_cpus(n, cpus, count)) {
        return;
    }
    for (size_t i = 0; i < n->cpu_count; i++) {
        gov_file_close(&s->files, &s->cpus[i].core);
        gov_file_close(&s->files, &s->cpus[i].package);
    }
    /* their members are told by this table */
    gov_cpufreq_close(s);
    n->policy_count = 0;
    n->cpu_count = count;
    for (size_t i = 0; i < count; i++) {
        n->cpus[i] = (struct gov_cpu_now){.cpu = cpus[i],
                                          .policy = -1,
                                          .core_throttle = GOV_UNKNOWN,
                                          .package_throttle = GOV_UNKNOWN,
                                          .busy_ns = GOV_UNKNOWN};
        gov_file_set(&s->files, &s->cpus[i].core,
                     CPU_DIR "cpu%u/thermal_throttle/core_throttle_count", (unsigned)cpus[i]);
        gov_file_set(&s->files, &s->cpus[i].package,
                     CPU_DIR "cpu%u/thermal_throttle/package_throttle_count", (unsigned)cpus[i]);
        s->cpus[i].core.rare = s->cpus[i].package.rare = true;
    }
}

static void read_counter(struct gov_sensors *s, struct gov_file *f, uint64_t *counter)
{
    uint64_t before = *counter;

    *counter = gov_known_u64(s, f, 0, GOV_UNKNOWN - 1);
    if (*counter != GOV_UNKNOWN) {
        s->counters_known = true;
        s->throttle_rose |= before != GOV_UNKNOWN && *counter > before;
    }
}

void gov_cpus_sample(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;

    read_set(s, &s->online, &n->online);
    s->throttle_rose = s->counters_known = false;
    for (size_t i = 0; i < base_min(n->cpu_count, (size_t)CPUS_A_SAMPLE); i++) {
        size_t at = gov_turn(&s->next_cpu, n->cpu_count);

        read_counter(s, &s->cpus[at].core, &n->cpus[at].core_throttle);
        read_counter(s, &s->cpus[at].package, &n->cpus[at].package_throttle);
    }
}
