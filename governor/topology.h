/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/topology.h - what cores the machine has, grouped into execution places
 *
 * Cores of one EP are equal: same kind, same cache and memory. Kinds come from hwloc's CPU kinds,
 * with sysfs (cpu_capacity, cpu_core/cpu_atom, last-level cache, NUMA node) behind it; never from
 * frequency alone. EPs are named by rank of speed: "big" for the only or fastest kind, "little" for
 * the slowest, "mid" (mid2, ...) between; several clusters or nodes of one kind get a number
 * ("big", "big1", ...; whole NUMA nodes of one kind: "node0", "node1", ...). Every path is under
 * @sysfs_root.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOV_EP_MAX 16u
#define GOV_CPU_MAX 256u
#define GOV_NAME_MAX 24u
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
 * @sysfs_root: "/" or a test's tree (paths below it: sys/devices/system/cpu/...). For another root
 * than "/" the tree alone decides and the affinity of this process does not: Cpus_allowed_list of
 * proc/self/status below it, or, without that, all CPUs but the isolated ones. "/" is restricted to
 * the affinity that the main thread has at the time of the call, whichever thread calls (so a
 * changed cpuset is seen; the kernel keeps it inside the cpuset of the control group). Return: 0
 * (always at least one EP), -ENOMEM. Blocks on files; any thread. SMT siblings: one thread a core
 * is used, the others say so.
 */
int gov_topology_read(const char *sysfs_root, struct gov_topology *ret);

/** gov_topology_update_freq() - refresh governor, freq_khz and max_freq_khz of every EP; missing
 * files leave "unknown". */
void gov_topology_update_freq(const char *sysfs_root, struct gov_topology *t);
