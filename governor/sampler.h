/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/sensors_private.h - the parts of the sampler, one for each source
 *
 * Each part has scan(): look for what there is, and sample(): read it into s->now. scan() with
 * nothing new keeps files and figures.
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

struct gov_policy_files {
    struct gov_file governor, max, now, firmware;
};

struct gov_zone_files {
    struct gov_file temp;
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
    GOV_ENERGY_VOLTS,   /* millivolts and milliamperes */
};

struct gov_energy_files {
    enum gov_energy_kind kind;
    struct gov_file value, current;
    uint64_t range_uj; /* of a counter; 0: unknown */
    bool has_last;
    uint64_t last_uj, last_ns;
    double last_w;
    bool rapl, found;
};

struct gov_sensors {
    char *root; /* owned */
    struct gov_files files;
    uint64_t last_ns;
    unsigned since_scan;
    struct gov_known_set last_online;
    bool throttle_rose; /* since the sample before */
    bool counters_known;
    /* where the next turn starts */
    size_t next_policy, next_policy_facts, next_cpu, next_zone, next_zone_facts, next_cooling;
    struct gov_file online, isolated, psi_cpu, psi_memory;
    struct gov_cpu_files cpus[GOV_CPU_MAX];
    struct gov_policy_files policies[GOV_POLICY_MAX];
    struct gov_zone_files zones[GOV_ZONE_MAX];
    struct gov_cooling_files cooling[GOV_COOLING_MAX];
    struct gov_cgroup_files cgroup;
    struct gov_energy_files energy[GOV_ENERGY_MAX];
    struct gov_snapshot now;
};

/* The next of @count table rows in turn. */
static inline size_t gov_turn(size_t *next, size_t count)
{
    size_t at = *next < count ? *next : 0;

    *next = at + 1;
    return at;
}

/* cpus.c: which there are and are online, throttle counters */
void gov_cpus_scan(struct gov_sensors *s);
void gov_cpus_sample(struct gov_sensors *s);
void gov_cpus_close(struct gov_sensors *s);

/* cpufreq.c; its scan needs the table of CPUs, gov_cpufreq_heat() the cooling devices */
void gov_cpufreq_scan(struct gov_sensors *s);
void gov_cpufreq_sample(struct gov_sensors *s);
void gov_cpufreq_heat(struct gov_sensors *s);
void gov_cpufreq_close(struct gov_sensors *s);

/* thermal.c */
void gov_thermal_scan(struct gov_sensors *s);
void gov_thermal_sample(struct gov_sensors *s);
void gov_thermal_close(struct gov_sensors *s);

/* pressure.c */
void gov_pressure_scan(struct gov_sensors *s);
void gov_pressure_sample(struct gov_sensors *s);
void gov_pressure_close(struct gov_sensors *s);

/* cgroup.c */
void gov_cgroup_scan(struct gov_sensors *s);
void gov_cgroup_sample(struct gov_sensors *s);
void gov_cgroup_close(struct gov_sensors *s);

/* energy.c; joules survive a scan by the name of their source */
void gov_energy_scan(struct gov_sensors *s);
void gov_energy_sample(struct gov_sensors *s, uint64_t now_ns);
void gov_energy_close(struct gov_sensors *s);
