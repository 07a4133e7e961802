/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/cpu_facts.h - what the kernel says of each CPU, before anything is concluded from it
 *
 * Every fact may be unknown. Facts are only read of CPUs that may be used (online, in the CPU set
 * of this process, first thread of their core).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "governor/sysfs.h"

enum gov_core_type {
    GOV_CORE_TYPE_UNKNOWN = 0,
    GOV_CORE_TYPE_PERFORMANCE = 1,
    GOV_CORE_TYPE_EFFICIENT = 2,
};

enum gov_cpu_state {
    GOV_CPU_USABLE,
    GOV_CPU_OFFLINE,
    GOV_CPU_FORBIDDEN, /* outside the CPU set of this process */
    GOV_CPU_SIBLING,   /* another thread of its core is usable */
};

struct gov_cpu_facts {
    uint16_t cpu;
    enum gov_cpu_state state;
    bool isolated;           /* by the kernel's parameter isolcpus or a cpuset partition */
    uint16_t sibling_of;     /* GOV_CPU_SIBLING: the CPU used in its place */
    enum gov_core_type type; /* by hwloc, cpu_core/cpu_atom */
    bool type_by_hwloc;
    uint32_t part;         /* implementer and part number of MIDR_EL1 (arm64); 0: unknown */
    uint32_t capacity;     /* cpu_capacity, 1..1024; 0: unknown */
    uint32_t cache_level;  /* deepest cache it has; 0: unknown */
    int32_t cache_id;      /* lowest CPU that shares its deepest cache; -1: unknown */
    int32_t cluster_id;    /* lowest CPU of its cluster; -1: unknown */
    int32_t package_id;    /* lowest CPU of its package; -1: unknown */
    int32_t node;          /* NUMA node; -1: unknown */
    int32_t policy;        /* cpufreq policy; -1: none */
    uint64_t max_freq_khz; /* 0: unknown */
};

struct gov_machine_facts {
    size_t cpu_count, usable_count;
    struct gov_cpu_facts cpus[GOV_CPU_MAX];
};

/**
 * gov_cpu_facts_read() - fills *ret from the tree below @root; never fails
 * At least one CPU is usable in the result. More than GOV_CPU_MAX CPUs: usable ones come first into
 * the table, the rest is left out. Blocks on files.
 */
void gov_cpu_facts_read(const char *root, struct gov_machine_facts *ret);

/**
 * gov_hwloc_core_types() - sets of performance and efficient cores of this machine (hwloc_kinds.c)
 * Only the core type is taken from hwloc, which has it from CPUID or the operating system. hwloc
 * also tells kinds apart by frequency, which alone does not make a kind, and by capacity, which we
 * read from sysfs ourselves.
 * @online: the CPUs that are online. hwloc reads the machine again only if they have changed, so a
 * reload of the configuration does not stand or fall with what hwloc does when memory is short.
 * Blocks on files; any thread. Return: 0 (both sets are empty where hwloc knows no types),
 * -ENOTSUP (built without hwloc, or hwloc failed).
 */
int gov_hwloc_core_types(const struct gov_cpuset *online, struct gov_cpuset *ret_performance,
                         struct gov_cpuset *ret_efficient);
