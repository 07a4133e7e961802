/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/topology.h - what cores the machine has, grouped into execution places
 *
 * Cores of one EP are equal: same kind of core, same cache and memory. Kinds of cores come from
 * hwloc, and where it knows none from sysfs (cpu_capacity, cpu_core/cpu_atom, last-level cache,
 * NUMA node), never from frequency alone.
 *
 * EPs are named by rank of speed: "big" for the only or fastest kind, "little" for the slowest,
 * "mid" (mid2, ...) between. There is no "big" while capacities tell that the machine's fastest
 * cores are offline or outside the CPU set. Several clusters or nodes of one kind get a number:
 * "big", "big1", ...; whole NUMA nodes of one kind are "node0", "node1", ...
 *
 * Every path is under @sysfs_root.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "governor/sysfs.h"

#define GOV_EP_MAX 16u
#define GOV_WHY_MAX 96u

struct gov_cpu {
    uint16_t cpu; /* kernel number */
    bool online, used;
    uint16_t ep;           /* index of its EP, if used */
    char why[GOV_WHY_MAX]; /* one sentence: why it is or is not used */
};

struct gov_ep {
    char name[GOV_NAME_MAX];
    char kind[GOV_NAME_MAX]; /* "big", "mid", "little": shared by EPs of equal cores */
    size_t cpu_count;
    uint16_t cpus[GOV_CPU_MAX];
    uint32_t capacity;               /* 1..1024, 1024 = fastest core here; 0: unknown */
    int32_t node;                    /* NUMA node, -1: unknown */
    int32_t policy;                  /* cpufreq policy of its first core, -1: none */
    char governor[GOV_NAME_MAX];     /* "" unknown */
    uint64_t freq_khz, max_freq_khz; /* now, and the hardware's best; 0: unknown */
    double speed; /* relative to the fastest EP, 1 = equal; from capacity until something was
                     measured */
    char why[GOV_WHY_MAX]; /* how the kind was told */
};

struct gov_topology {
    size_t ep_count, cpu_count;
    struct gov_ep eps[GOV_EP_MAX];
    struct gov_cpu cpus[GOV_CPU_MAX];
};

/**
 * gov_topology_read() - find the EPs
 * @sysfs_root: "/" or a test's tree (paths below it: sys/devices/system/cpu/...)
 *
 * With "/" only CPUs in the main thread's affinity are used, whichever thread calls; it is read at
 * each call, so a changed cpuset is seen. With another root the tree alone decides:
 * Cpus_allowed_list of its proc/self/status, or else all CPUs but the isolated ones. Of SMT
 * siblings one thread a core is used, and `why` of the others says so.
 *
 * Blocks on files; any thread. Return: 0 (always at least one EP), -ENOMEM.
 */
int gov_topology_read(const char *sysfs_root, struct gov_topology *ret);

/** gov_topology_update_freq() - refreshes governor, freq_khz and max_freq_khz of every EP; a
 * missing file leaves "unknown". */
void gov_topology_update_freq(const char *sysfs_root, struct gov_topology *t);
