/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/sampler.h - the state of the sampler (governor/sensors.h): open files and the snapshot
 *
 * Each source of figures has a file of its own, such as thermal.c, and a row in GOV_SOURCES. Its
 * scan() looks for what there is; with nothing new it keeps files and figures. sample() reads into
 * s->now.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "governor/kernel_file.h"
#include "governor/snapshot.h"

#define GOV_CGROUP_DEPTH 10u /* the group of the process and so many less one above it */

struct gov_cpu_files {
    struct gov_file core, package;
};

/* Files of a policy. */
enum {
    GOV_POLICY_GOVERNOR,
    GOV_POLICY_LIMIT,
    GOV_POLICY_NOW,
    GOV_POLICY_FIRMWARE,
    GOV_POLICY_FILES
};

struct gov_cooling_files {
    struct gov_file state;
    int32_t cpu; /* the CPU whose policy it limits, -1: its type does not tell */
};

struct gov_cgroup_files {
    char text[GOV_SYSFS_TEXT_MAX]; /* /proc/self/cgroup when the paths below were made */
    struct gov_file self;
    int version, cpuset_version;
    size_t level_count, cpuset_count; /* from the own group upwards */
    struct gov_file quota[GOV_CGROUP_DEPTH], period[GOV_CGROUP_DEPTH], stat[GOV_CGROUP_DEPTH];
    struct gov_file cpus[GOV_CGROUP_DEPTH];
};

enum gov_energy_kind {
    GOV_ENERGY_COUNTER, /* microjoules that wrap */
    GOV_ENERGY_POWER,   /* microwatts */
    GOV_ENERGY_VOLTS,   /* millivolts and milliamperes; of a battery micro */
};

struct gov_energy_files {
    enum gov_energy_kind kind;
    struct gov_file value, current, status; /* status: of a battery */
    uint64_t range_uj;                      /* of a counter; 0: unknown */
    bool has_last;
    uint64_t last_uj, last_ns;
    double last_w;
    bool rapl, battery;
};

struct gov_sensors {
    char *root; /* owned */
    struct gov_files files;
    unsigned since_scan;
    struct gov_known_set last_online;
    bool throttle_rose; /* since the sample before */
    bool counters_known;
    /* where the next turn starts */
    size_t next_policy, next_policy_facts, next_cpu, next_zone, next_zone_facts, next_cooling;
    struct gov_file online, isolated, stat, psi_cpu, psi_memory;
    struct gov_cpu_files cpus[GOV_CPU_MAX];
    struct gov_file policies[GOV_POLICY_MAX][GOV_POLICY_FILES];
    struct gov_file zone_temps[GOV_ZONE_MAX];
    struct gov_cooling_files cooling[GOV_COOLING_MAX];
    struct gov_cgroup_files cgroup;
    struct gov_energy_files energy[GOV_ENERGY_MAX];
    struct gov_snapshot now;
};

/* X(name): name.c has gov_name_scan() and gov_name_sample(). In the order of a scan:
 *  cpus: which CPUs there are and are online, and their throttle counters
 *  cpufreq: policies, their limits and frequencies; needs the table of CPUs
 *  thermal: zones, their trip points, and cooling devices
 *  cgroup: quota and cpuset of the control groups above the process
 *  energy: joules, which survive a scan by the name of their source */
#define GOV_SOURCES(X) X(cpus) X(cpufreq) X(thermal) X(cgroup) X(energy)
#define GOV_SOURCE_DECLARE(name)                                                                   \
    void gov_##name##_scan(struct gov_sensors *s);                                                 \
    void gov_##name##_sample(struct gov_sensors *s);
GOV_SOURCES(GOV_SOURCE_DECLARE)
#undef GOV_SOURCE_DECLARE

/** gov_cpufreq_close() - closes the policies' files. */
void gov_cpufreq_close(struct gov_sensors *s);
/** gov_cpufreq_heat() - tells which policies heat limits; needs zones and cooling devices. */
void gov_cpufreq_heat(struct gov_sensors *s);

/* The next of @count table rows in turn. */
static inline size_t gov_turn(size_t *next, size_t count)
{
    size_t at = *next < count ? *next : 0;

    *next = at + 1;
    return at;
}

/* How many of @count rows a sample reads: the first reads all, so that none has unknowns for want
 * of its turn. */
static inline size_t gov_share(const struct gov_snapshot *n, size_t count, size_t most)
{
    return n->sequence == 1 || count < most ? count : most;
}

/* Are the numbers of a table's rows these? @number: of its first row; @stride: bytes of a row. */
static inline bool gov_same_numbers(const uint32_t *number, size_t stride, size_t rows,
                                    const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count && rows == count; i++) {
        if (*(const uint32_t *)(const void *)((const char *)number + i * stride) != numbers[i]) {
            return false;
        }
    }
    return rows == count;
}

/* What a file says within [@min, @max], or GOV_UNKNOWN. */
static inline uint64_t gov_known_u64(struct gov_sensors *s, struct gov_file *f, uint64_t min,
                                     uint64_t max)
{
    uint64_t value;

    return gov_file_u64(&s->files, f, min, max, &value) == 0 ? value : GOV_UNKNOWN;
}
