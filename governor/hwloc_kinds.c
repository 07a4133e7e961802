/* SPDX-License-Identifier: Apache-2.0 */
/* The core types that hwloc knows of the machine. */
#include <hwloc.h>
#include <pthread.h>

#include "base/base.h"
#include "governor/cpu_facts.h"

static enum gov_core_type type_of(const struct hwloc_info_s *infos, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(infos[i].name, "CoreType") != 0) {
            continue;
        }
        if (strcmp(infos[i].value, "IntelCore") == 0 ||
            strcmp(infos[i].value, "Performance") == 0) {
            return GOV_CORE_TYPE_PERFORMANCE;
        }
        if (strcmp(infos[i].value, "IntelAtom") == 0 || strcmp(infos[i].value, "Efficiency") == 0) {
            return GOV_CORE_TYPE_EFFICIENT;
        }
    }
    return GOV_CORE_TYPE_UNKNOWN;
}

static void collect(hwloc_topology_t topology, hwloc_bitmap_t cpus, struct gov_cpuset *performance,
                    struct gov_cpuset *efficient)
{
    int kinds = hwloc_cpukinds_get_nr(topology, 0);

    for (int kind = 0; kind < kinds; kind++) {
        struct hwloc_info_s *infos = NULL;
        unsigned info_count = 0;

        if (hwloc_cpukinds_get_info(topology, (unsigned)kind, cpus, NULL, &info_count, &infos, 0) <
            0) {
            continue;
        }
        enum gov_core_type type = type_of(infos, info_count);
        struct gov_cpuset *set = type == GOV_CORE_TYPE_PERFORMANCE ? performance
                                 : type == GOV_CORE_TYPE_EFFICIENT ? efficient
                                                                   : NULL;
        for (int cpu = hwloc_bitmap_first(cpus); set && cpu >= 0;
             cpu = hwloc_bitmap_next(cpus, cpu)) {
            if ((unsigned)cpu >= GOV_CPU_NUMBER_MAX) {
                break; /* an unbounded set */
            }
            gov_cpuset_add(set, (size_t)cpu);
        }
    }
}

static int read_types(struct gov_cpuset *ret_performance, struct gov_cpuset *ret_efficient)
{
    struct gov_cpuset performance = {0}, efficient = {0};
    hwloc_topology_t topology;
    int r = -ENOTSUP;

    if (hwloc_topology_init(&topology) < 0) {
        return -ENOTSUP;
    }
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    /* All CPUs of the machine: which of them may be used is decided elsewhere. */
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (cpus && hwloc_topology_load(topology) == 0) {
        collect(topology, cpus, &performance, &efficient);
        *ret_performance = performance;
        *ret_efficient = efficient;
        r = 0;
    }
    hwloc_bitmap_free(cpus);
    hwloc_topology_destroy(topology);
    return r;
}

int gov_hwloc_core_types(const struct gov_cpuset *online, struct gov_cpuset *ret_performance,
                         struct gov_cpuset *ret_efficient)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct gov_cpuset of, performance, efficient;
    static bool known;
    int r = 0;

    pthread_mutex_lock(&lock);
    if (!known || memcmp(&of, online, sizeof(of)) != 0) {
        r = read_types(&performance, &efficient);
        known = r == 0;
        of = *online;
    }
    if (r == 0) {
        *ret_performance = performance;
        *ret_efficient = efficient;
    }
    pthread_mutex_unlock(&lock);
    return r;
}
