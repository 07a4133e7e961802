/* SPDX-License-Identifier: Apache-2.0 */

#include "governor/cpu_facts.h"
#include "base/base.h"
#include "governor/kernel_file.h"

#define CPU_DIR "sys/devices/system/cpu/"
#define NODE_MAX 1024
#define CACHE_INDEX_MAX 10u
#define THREADS_MAX 16u /* POWER has 8 a core, the most there is */

static void fill(struct gov_cpuset *set)
{
    memset(set, 0xff, sizeof(*set));
}

static void keep_common(struct gov_cpuset *set, const struct gov_cpuset *other)
{
    for (size_t i = 0; i < base_array_count(set->bits); i++) {
        set->bits[i] &= other->bits[i];
    }
}

struct machine_sets {
    struct gov_cpuset present, usable, online, isolated, performance, efficient;
    bool by_hwloc;
};

static void read_sets(const char *root, bool live, struct machine_sets *ret)
{
    struct gov_cpuset allowed;
    bool listed = true; /* the tree says which CPUs there are */

    if (gov_sysfs_cpulist(root, &ret->present, CPU_DIR "present") != 0 ||
        gov_cpuset_next(&ret->present, 0) < 0) {
        listed = gov_sysfs_cpulist(root, &ret->present, CPU_DIR "possible") == 0 &&
                 gov_cpuset_next(&ret->present, 0) >= 0;
    }
    if (gov_sysfs_cpulist(root, &ret->online, CPU_DIR "online") != 0) {
        fill(&ret->online);
    } else if (!listed && gov_cpuset_next(&ret->online, 0) >= 0) {
        ret->present = ret->online;
        listed = true;
    }
    if (gov_sysfs_cpulist(root, &ret->isolated, CPU_DIR "isolated") != 0) {
        memset(&ret->isolated, 0, sizeof(ret->isolated));
    }
    if (gov_allowed_cpus(root, &allowed) != 0) {
        /* a process is given all CPUs but the isolated ones, unless it is told otherwise */
        fill(&allowed);
        for (size_t i = 0; i < base_array_count(allowed.bits); i++) {
            allowed.bits[i] &= ~ret->isolated.bits[i];
        }
    }
    if (!listed) {
        memset(&ret->present, 0, sizeof(ret->present));
        if (live && gov_cpuset_next(&allowed, 0) >= 0) {
            ret->present = allowed;
        } else {
            gov_cpuset_add(&ret->present, 0);
        }
    }
    ret->usable = ret->present;
    keep_common(&ret->usable, &ret->online);
    keep_common(&ret->usable, &allowed);
    if (gov_cpuset_next(&ret->usable, 0) < 0) {
        /* A tree that contradicts itself: something has to run us. */
        gov_cpuset_add(&ret->usable, (size_t)base_max(gov_cpuset_next(&ret->present, 0), 0));
    }

    memset(&ret->performance, 0, sizeof(ret->performance));
    memset(&ret->efficient, 0, sizeof(ret->efficient));
    ret->by_hwloc = live &&
                    gov_hwloc_core_types(&ret->online, &ret->performance, &ret->efficient) == 0 &&
                    gov_cpuset_next(&ret->performance, 0) >= 0;
    if (!ret->by_hwloc) {
        if (gov_sysfs_cpulist(root, &ret->performance, "sys/devices/cpu_core/cpus") != 0 ||
            gov_sysfs_cpulist(root, &ret->efficient, "sys/devices/cpu_atom/cpus") != 0) {
            memset(&ret->performance, 0, sizeof(ret->performance));
            memset(&ret->efficient, 0, sizeof(ret->efficient));
        }
    }
}

static bool read_siblings(const char *root, unsigned cpu, struct gov_cpuset *ret)
{
    return gov_sysfs_cpulist(root, ret, CPU_DIR "cpu%u/topology/core_cpus_list", cpu) == 0 ||
           gov_sysfs_cpulist(root, ret, CPU_DIR "cpu%u/topology/thread_siblings_list", cpu) == 0;
}

static size_t count_members(const struct gov_cpuset *set)
{
    size_t count = 0;

    for (size_t i = 0; i < base_array_count(set->bits); i++) {
        count += (size_t)__builtin_popcountll(set->bits[i]);
    }
    return count;
}

/* The lowest usable thread of @cpu's core. Both sides have to say so, and no core has more than
 * THREADS_MAX threads: one garbled file must not take cores away. */
static uint16_t first_thread(const char *root, unsigned cpu, const struct gov_cpuset *usable)
{
    struct gov_cpuset mine, theirs;

    if (!read_siblings(root, cpu, &mine) || !gov_cpuset_has(&mine, cpu) ||
        count_members(&mine) > THREADS_MAX) {
        return (uint16_t)cpu;
    }
    keep_common(&mine, usable);
    gov_cpuset_foreach(other, &mine)
    {
        if (other < (int32_t)cpu && read_siblings(root, (unsigned)other, &theirs) &&
            gov_cpuset_has(&theirs, cpu) && count_members(&theirs) <= THREADS_MAX) {
            return (uint16_t)other;
        }
    }
    return (uint16_t)cpu;
}

/* Usable CPUs first, so that a big machine's table is not filled by what cannot be used. */
static void list_cpus(const char *root, const struct machine_sets *sets,
                      struct gov_machine_facts *ret)
{
    for (int pass = 0; pass < 2; pass++) {
        gov_cpuset_foreach(cpu, &sets->present)
        {
            if (ret->cpu_count == GOV_CPU_MAX) {
                break;
            }
            struct gov_cpu_facts f = {.cpu = (uint16_t)cpu,
                                      .cache_id = -1,
                                      .cluster_id = -1,
                                      .package_id = -1,
                                      .node = -1,
                                      .policy = -1};
            bool usable = gov_cpuset_has(&sets->usable, (size_t)cpu);

            f.isolated = gov_cpuset_has(&sets->isolated, (size_t)cpu);

            if (usable) {
                f.sibling_of = first_thread(root, (unsigned)cpu, &sets->usable);
                f.state = f.sibling_of == cpu ? GOV_CPU_USABLE : GOV_CPU_SIBLING;
            } else {
                f.state = gov_cpuset_has(&sets->online, (size_t)cpu) ? GOV_CPU_FORBIDDEN
                                                                     : GOV_CPU_OFFLINE;
            }
            if ((f.state == GOV_CPU_USABLE) == (pass == 0)) {
                ret->usable_count += pass == 0;
                ret->cpus[ret->cpu_count++] = f;
            }
        }
    }
}

/* The lowest CPU of a list that has @cpu; -1: unknown. */
static int32_t lowest(const char *root, unsigned cpu, const char *file)
{
    struct gov_cpuset set;

    if (gov_sysfs_cpulist(root, &set, CPU_DIR "cpu%u/topology/%s", cpu, file) != 0 ||
        !gov_cpuset_has(&set, cpu)) {
        return -1;
    }
    return gov_cpuset_next(&set, 0);
}

static void read_cache(const char *root, struct gov_cpu_facts *f)
{
    for (unsigned index = 0; index < CACHE_INDEX_MAX; index++) {
        uint64_t level;
        char type[16];
        struct gov_cpuset shared;

        if (gov_sysfs_u64(root, 1, 9, &level, CPU_DIR "cpu%u/cache/index%u/level", f->cpu, index) !=
                0 ||
            level <= f->cache_level ||
            (gov_sysfs_text(root, type, sizeof(type), CPU_DIR "cpu%u/cache/index%u/type", f->cpu,
                            index) == 0 &&
             strcmp(type, "Instruction") == 0)) {
            continue;
        }
        f->cache_level = (uint32_t)level;
        f->cache_id = -1;
        if (gov_sysfs_cpulist(root, &shared, CPU_DIR "cpu%u/cache/index%u/shared_cpu_list", f->cpu,
                              index) == 0 &&
            gov_cpuset_has(&shared, f->cpu)) {
            f->cache_id = gov_cpuset_next(&shared, 0);
        }
    }
}

static void read_cpu(const char *root, const struct machine_sets *sets, struct gov_cpu_facts *f)
{
    uint64_t value;

    if (gov_cpuset_has(&sets->performance, f->cpu) != gov_cpuset_has(&sets->efficient, f->cpu)) {
        f->type = gov_cpuset_has(&sets->performance, f->cpu) ? GOV_CORE_TYPE_PERFORMANCE
                                                             : GOV_CORE_TYPE_EFFICIENT;
        f->type_by_hwloc = sets->by_hwloc;
    }
    if (gov_sysfs_u64(root, 1, 1024, &value, CPU_DIR "cpu%u/cpu_capacity", f->cpu) == 0) {
        f->capacity = (uint32_t)value;
    }
    if (gov_sysfs_u64(root, 0, UINT64_MAX, &value, CPU_DIR "cpu%u/regs/identification/midr_el1",
                      f->cpu) == 0) {
        /* Implementer [31:24] and part [15:4]; variant and revision do not make another kind. */
        f->part = (uint32_t)value & 0xff00fff0u;
    }
    f->cluster_id = lowest(root, f->cpu, "cluster_cpus_list");
    f->package_id = lowest(root, f->cpu, "package_cpus_list");
    if (f->package_id < 0) {
        f->package_id = lowest(root, f->cpu, "core_siblings_list");
    }
    read_cache(root, f);
}

static void read_nodes(const char *root, struct gov_machine_facts *m)
{
    struct gov_cpuset nodes, cpus;

    if (gov_sysfs_cpulist(root, &nodes, "sys/devices/system/node/online") != 0) {
        return;
    }
    gov_cpuset_foreach(node, &nodes)
    {
        if (node >= NODE_MAX ||
            gov_sysfs_cpulist(root, &cpus, "sys/devices/system/node/node%d/cpulist", (int)node) !=
                0) {
            continue;
        }
        for (size_t i = 0; i < m->cpu_count; i++) {
            if (m->cpus[i].node < 0 && gov_cpuset_has(&cpus, m->cpus[i].cpu)) {
                m->cpus[i].node = node;
            }
        }
    }
}

static bool policy_exists(const char *root, unsigned policy, uint64_t *ret_max_khz)
{
    char text[GOV_NAME_MAX];

    *ret_max_khz = 0;
    return gov_sysfs_u64(root, 1, 1000000000, ret_max_khz,
                         CPU_DIR "cpufreq/policy%u/cpuinfo_max_freq", policy) == 0 ||
           gov_sysfs_text(root, text, sizeof(text), CPU_DIR "cpufreq/policy%u/scaling_governor",
                          policy) == 0;
}

static void read_policies(const char *root, const struct machine_sets *sets,
                          struct gov_machine_facts *m)
{
    gov_cpuset_foreach(policy, &sets->present)
    {
        struct gov_cpuset covered;
        uint64_t max_khz;

        if (!policy_exists(root, (unsigned)policy, &max_khz)) {
            continue;
        }
        gov_policy_cpus(root, (unsigned)policy, &covered);
        for (size_t i = 0; i < m->cpu_count; i++) {
            struct gov_cpu_facts *f = &m->cpus[i];

            if (f->policy < 0 && f->state == GOV_CPU_USABLE && gov_cpuset_has(&covered, f->cpu)) {
                f->policy = policy;
                f->max_freq_khz = max_khz;
            }
        }
    }
}

void gov_cpu_facts_read(const char *root, struct gov_machine_facts *ret)
{
    struct machine_sets sets;
    bool live = gov_root_is_live(root);

    memset(ret, 0, sizeof(*ret));
    read_sets(root, live, &sets);
    list_cpus(root, &sets, ret);
    for (size_t i = 0; i < ret->cpu_count; i++) {
        if (ret->cpus[i].state == GOV_CPU_USABLE) {
            read_cpu(root, &sets, &ret->cpus[i]);
        }
    }
    read_nodes(root, ret);
    read_policies(root, &sets, ret);
}
