/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/snapshot.h - what the machine is doing at one moment: plain data, no pointers
 *
 * Invariant: what is not known is never 0. Numbers are then GOV_UNKNOWN, temperatures
 * GOV_UNKNOWN_MDEGC, fractions NAN (gov_known() tells), texts "", answers GOV_MAYBE, and sets have
 * `known` false. Tables hold the lowest numbers first and at most their _MAX; what is above is left
 * out. A snapshot may be copied by assignment and compared field by field.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "governor/sysfs.h"
#include "governor/topology.h"

#define GOV_UNKNOWN UINT64_MAX
#define GOV_UNKNOWN_MDEGC INT32_MIN
#define GOV_POLICY_MAX GOV_CPU_MAX /* servers have a policy for every CPU */
#define GOV_ZONE_MAX 32u
#define GOV_TRIP_MAX 8u /* of one zone */
#define GOV_COOLING_MAX 64u
#define GOV_ENERGY_MAX 24u

enum gov_answer { GOV_MAYBE = -1, GOV_NO = 0, GOV_YES = 1 };

struct gov_known_set {
    bool known;
    struct gov_cpuset set;
};

/* One cpufreq policy. */
struct gov_policy {
    uint32_t number;             /* of policyN */
    uint32_t cpu_count;          /* CPUs of the snapshot's table that belong to it */
    char governor[GOV_NAME_MAX]; /* "" unknown */
    /* Limits in force (the lowest of all that asked: user, thermal, firmware), the hardware's best,
     * and the frequency now. The kernel gives a mean or a request as "now", by driver. The least
     * and the best are read anew every tenth sample. */
    uint64_t min_khz, max_khz, hardware_khz, now_khz;
    uint64_t firmware_khz; /* bios_limit; GOV_UNKNOWN: no such file, the usual case */
    uint64_t limit_khz;    /* the limit that holds: min(max_khz, firmware_khz) */
    /* Part of the best frequency that may not be used, 0..1:
     *     1 - limit_khz / hardware_khz
     * The kernel's own figure (hw_pressure) is in no file; frequency limits are what thermal
     * governors act by. A user's limit counts as well: by_heat tells which it is. */
    double pressure;
    /* GOV_YES: below its best, and a cooling device of its CPUs (type "cpufreq-cpuN") or one that
     * cannot be told from its type (thermal-cpufreq-N, Processor) is at work. */
    enum gov_answer by_heat;
    /* What decisions go by: by_heat is GOV_YES, or it is below its best while a zone is past its
     * passive trip. */
    bool heated;
};

/* One CPU that the machine has. */
struct gov_cpu_now {
    uint16_t cpu;           /* kernel number */
    int16_t policy;         /* index into policies, -1: none */
    uint64_t core_throttle; /* thermal_throttle counters, rising; GOV_UNKNOWN: not kept here */
    uint64_t package_throttle;
    uint64_t busy_ns; /* since the start; GOV_UNKNOWN: offline, or no energy is known */
};

enum gov_trip { GOV_TRIP_OTHER, GOV_TRIP_PASSIVE, GOV_TRIP_HOT, GOV_TRIP_CRITICAL };

struct gov_zone {
    uint32_t number; /* of thermal_zoneN */
    char type[GOV_NAME_MAX];
    int32_t temp_mdegc;
    uint32_t trip_count;
    enum gov_trip trip_type[GOV_TRIP_MAX];
    int32_t trip_mdegc[GOV_TRIP_MAX];
    enum gov_answer past_passive; /* at or above the lowest passive trip; GOV_NO if it has none */
};

struct gov_cooling {
    uint32_t number; /* of cooling_deviceN */
    char type[GOV_NAME_MAX];
    uint64_t state, max_state;
    bool of_cpu; /* by its type: slows CPUs, unlike a fan */
};

/* Pressure stall information: part of the time in which somebody waited, in percent. */
struct gov_psi {
    double some_avg10;      /* 0..100 */
    uint64_t some_total_us; /* rising */
};

struct gov_cgroup {
    int version;       /* of the hierarchy that limits CPU time: 1, 2; 0: unknown */
    double quota_cpus; /* CPUs' worth of time allowed, the least of the group and those above it;
                          INFINITY: no limit */
    /* Of the group with that quota (its own where there is none); rising. */
    uint64_t nr_periods, nr_throttled, throttled_us;
    struct gov_known_set cpus; /* effective cpuset */
};

enum gov_energy_state {
    GOV_ENERGY_OK,
    GOV_ENERGY_DENIED, /* there, and not for us to read */
    GOV_ENERGY_GONE,   /* gave figures before, or gives nonsense; joules stay as they were */
};

struct gov_energy_source {
    char name[GOV_NAME_MAX * 2]; /* "package-0", "ina3221 VDD_IN" */
    enum gov_energy_state state;
    bool counted;  /* is part of the sum: RAPL packages and their DRAM; else the input of a board;
                      else all rails; else batteries, while they discharge */
    double joules; /* since the first sample that had it; NAN: not yet */
};

struct gov_snapshot {
    uint64_t at_ns;    /* as given to the sampler; may go backwards when its clock does */
    uint64_t sequence; /* 1 for the first */
    struct gov_known_set online, isolated;
    struct gov_known_set allowed; /* affinity of the main thread; another root than "/":
                                     proc/self/status below it */
    size_t cpu_count, policy_count, zone_count, cooling_count, energy_count;
    struct gov_cpu_now cpus[GOV_CPU_MAX];
    struct gov_policy policies[GOV_POLICY_MAX];
    struct gov_zone zones[GOV_ZONE_MAX];
    struct gov_cooling cooling[GOV_COOLING_MAX];
    /* GOV_YES: a policy is limited by heat or firmware, CPUs are cooled by idling, or a throttle
     * counter rose since the sample before. GOV_MAYBE: nothing here would tell. */
    enum gov_answer throttled;
    struct gov_psi psi_cpu, psi_memory;
    struct gov_cgroup cgroup;
    struct gov_energy_source energy[GOV_ENERGY_MAX];
    double joules; /* sum of the counted sources since the first sample; NAN: unavailable */
};

static inline bool gov_known(double value)
{
    return value == value;
}

/** gov_snapshot_policy() - the policy of a CPU by its kernel number, NULL: none known. */
static inline const struct gov_policy *gov_snapshot_policy(const struct gov_snapshot *s,
                                                           unsigned cpu)
{
    for (size_t i = 0; i < s->cpu_count; i++) {
        if (s->cpus[i].cpu == cpu) {
            return s->cpus[i].policy >= 0 ? &s->policies[s->cpus[i].policy] : NULL;
        }
    }
    return NULL;
}
