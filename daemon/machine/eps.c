/* SPDX-License-Identifier: Apache-2.0 */
/* EPs, execution places, from the configuration or the machine. */
#include "daemon/machine/machine.h"

#include "base/base.h"
#include "daemon/config/config.h"
#include "governor/kernel_file.h"
#include "pipeline/plan_move.h"

_Static_assert(GOV_EP_MAX <= PL_EP_MAX && GOV_CPU_MAX <= PL_CPU_MAX &&
                   GOV_NAME_MAX <= PL_EP_NAME_MAX,
               "every place that the governor finds fits the pipeline");

int dmn_cpu_list_parse(const char *text, uint16_t *ret_cpus, size_t max)
{
    bool seen[PL_CPU_MAX] = {false};
    size_t count = 0, first, last;

    while (*text) {
        if (!gov_cpulist_range(&text, &first, &last) || last >= PL_CPU_MAX) {
            return -EINVAL;
        }
        for (; first <= last; first++) {
            if (seen[first] || count >= max) {
                return -EINVAL;
            }
            seen[first] = true;
            ret_cpus[count++] = (uint16_t)first;
        }
    }
    return count ? (int)count : -EINVAL;
}

void dmn_cpuset_text(const struct gov_cpuset *set, char *ret, size_t bytes)
{
    uint16_t cpus[GOV_CPU_NUMBER_MAX];
    size_t count = 0;

    gov_cpuset_foreach(cpu, set)
    {
        cpus[count++] = (uint16_t)cpu;
    }
    gov_cpulist_format(cpus, count, ret, bytes);
}

static int from_config(const struct dmn_config *config, char *ret_error, struct pl_ep_set *ret)
{
    size_t cores = 0;

    for (size_t i = 0; i < config->ep_count && i < PL_EP_MAX; i++) {
        struct pl_ep *e = &ret->eps[i];
        int count = dmn_cpu_list_parse(config->eps[i].cpus, e->cpus, PL_CPU_MAX);

        if (count < 0) {
            snprintf(
                ret_error, DMN_CONFIG_ERROR_MAX,
                "%.400s:%zu: eps[%zu].cpus: \"%.100s\" is not a list of cores such as \"0-3,6\", "
                "each once and below %u",
                config->files[config->eps_origin], config->eps_line, i, config->eps[i].cpus,
                PL_CPU_MAX);
            return -EINVAL;
        }
        cores += (size_t)count;
        if (cores > PL_CPU_MAX) {
            snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                     "%.400s:%zu: eps[%zu].cpus: \"%.100s\" makes %zu cores in all, and plans are "
                     "made for %u at most",
                     config->files[config->eps_origin], config->eps_line, i, config->eps[i].cpus,
                     cores, PL_CPU_MAX);
            return -EINVAL;
        }
        e->cpu_count = (size_t)count;
        e->speed = config->eps[i].speed;
        snprintf(e->name, sizeof(e->name), "%s", config->eps[i].name);
    }
    ret->count = config->ep_count;
    return 0;
}

/* A core that is offline may come back. One that the kernel does not know will not. */
static int check_present(const struct dmn_config *config, const char *sysfs_root,
                         const struct pl_ep_set *eps, char *ret_error)
{
    struct gov_cpuset present;

    if (gov_sysfs_cpulist(sysfs_root, &present, "sys/devices/system/cpu/present") != 0) {
        return 0;
    }
    for (size_t i = 0; i < eps->count; i++) {
        struct gov_cpuset missing = {{0}};
        char missing_text[64], all_text[64];
        size_t count = 0;

        for (size_t k = 0; k < eps->eps[i].cpu_count; k++) {
            if (!gov_cpuset_has(&present, eps->eps[i].cpus[k])) {
                gov_cpuset_add(&missing, eps->eps[i].cpus[k]);
                count++;
            }
        }
        if (count == 0) {
            continue;
        }
        dmn_cpuset_text(&missing, missing_text, sizeof(missing_text));
        dmn_cpuset_text(&present, all_text, sizeof(all_text));
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                 "%.400s:%zu: eps[%zu].cpus: \"%.100s\": this machine has no core%s %s; it has %s",
                 config->files[config->eps_origin], config->eps_line, i, config->eps[i].cpus,
                 base_plural(count), missing_text, all_text);
        return -EINVAL;
    }
    return 0;
}

/* The NUMA nodes of the cores of @e; 0 if one is unknown. */
static uint64_t nodes_of(const struct gov_topology *t, const struct pl_ep *e)
{
    uint64_t nodes = 0;

    for (size_t i = 0; i < e->cpu_count; i++) {
        const struct gov_ep *g = gov_topology_ep(t, e->cpus[i]);

        if (!g || g->node < 0 || g->node >= 64) {
            return 0;
        }
        nodes |= (uint64_t)1 << g->node;
    }
    return nodes;
}

static void from_topology(const struct gov_topology *topology, struct pl_ep_set *ret)
{
    for (size_t i = 0; i < topology->ep_count; i++) {
        const struct gov_ep *g = &topology->eps[i];
        struct pl_ep *e = &ret->eps[i];

        snprintf(e->name, sizeof(e->name), "%s", g->name);
        e->cpu_count = g->cpu_count;
        memcpy(e->cpus, g->cpus, g->cpu_count * sizeof(e->cpus[0]));
        e->speed = g->speed > 0 ? g->speed : 1.0;
    }
    ret->count = topology->ep_count;
}

int dmn_eps_read(const struct dmn_config *config, const char *sysfs_root,
                 struct gov_topology *topology, char *ret_error, struct pl_ep_set *ret)
{
    int error = gov_topology_read(sysfs_root, topology);

    *ret = (struct pl_ep_set){0};
    if (error < 0) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "cannot find out the cores: %s",
                 strerror(-error));
    } else if (config->ep_count > 0) {
        error = from_config(config, ret_error, ret);
        error = error ? error : check_present(config, sysfs_root, ret, ret_error);
    } else {
        from_topology(topology, ret);
    }
    for (size_t i = 0; i < ret->count; i++) {
        ret->eps[i].nodes = nodes_of(topology, &ret->eps[i]);
    }
    return error;
}

/* Keeps only usable cores; drops EPs without any. */
static void restrict_eps(struct pl_ep_set *eps, const struct gov_cpuset *usable)
{
    size_t kept = 0;

    for (size_t e = 0; e < eps->count; e++) {
        struct pl_ep *from = &eps->eps[e];
        size_t cpus = 0;

        for (size_t c = 0; c < from->cpu_count; c++) {
            if (gov_cpuset_has(usable, from->cpus[c])) {
                from->cpus[cpus++] = from->cpus[c];
            }
        }
        from->cpu_count = cpus;
        if (cpus > 0) {
            eps->eps[kept++] = *from;
        }
    }
    eps->count = kept;
}

int dmn_eps_find(const struct dmn_machine *m, const struct gov_cpuset *usable,
                 struct gov_topology *topology, char *ret_error, struct pl_ep_set *ret)
{
    int error = dmn_eps_read(dmn_machine_config(m), m->sysfs_root, topology, ret_error, ret);

    if (!error) {
        restrict_eps(ret, usable);
    }
    if (!error && ret->count == 0) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "no execution place has a core left");
        error = -ENODEV;
    }
    return error;
}

void dmn_eps_replace(struct dmn_machine *m, const struct pl_ep_set *eps,
                     const struct pl_ep_set *whole, const struct gov_topology *topology)
{
    m->eps = *eps;
    m->whole = *whole;
    *m->topology = *topology;
}

void dmn_eps_state(const struct pl_ep_set *eps, const struct gov_snapshot *s,
                   struct gov_topology *topology, const char *sysfs_root,
                   struct gov_machine_state *ret)
{
    struct gov_cores cores[PL_EP_MAX];

    for (size_t i = 0; i < eps->count; i++) {
        const struct pl_ep *e = &eps->eps[i];

        cores[i] = (struct gov_cores){e->name, e->cpus, e->cpu_count};
    }
    if (!s && sysfs_root) { /* no snapshot: read the files here */
        gov_topology_update_freq(sysfs_root, topology);
    }
    gov_machine_state(s, topology, cores, eps->count, ret);
}

int dmn_eps_plan(const struct dmn_machine *m, const char *text, size_t unit_count, char *ret_error,
                 size_t error_bytes, struct pl_plan *ret)
{
    base_autofree struct pl_plan *whole = malloc(sizeof(*whole));
    char unused[256];

    if (!whole) {
        snprintf(ret_error, error_bytes, "out of memory");
        return -EINVAL;
    }
    if (pl_plan_parse(text, dmn_machine_whole(m), unit_count, ret_error, error_bytes, whole) < 0) {
        return m->whole.count > 0 &&
                       pl_plan_parse(text, &m->eps, unit_count, unused, sizeof(unused), ret) == 0
                   ? 0
                   : -EINVAL;
    }
    if (m->whole.count == 0) {
        *ret = *whole;
        return 0;
    }
    if (!pl_plan_move(whole, &m->whole, &m->eps, unit_count, ret)) {
        snprintf(ret_error, error_bytes,
                 "an execution place that the plan needs whole is split, because one of its cores "
                 "is slowed");
        return -EAGAIN;
    }
    return 0;
}

int dmn_machine_read(struct dmn_machine *m, char *ret_error)
{
    if (!m->topology && !(m->topology = calloc(1, sizeof(*m->topology)))) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    return dmn_eps_read(dmn_machine_config(m), m->sysfs_root, m->topology, ret_error, &m->eps);
}

void dmn_machine_deinit(struct dmn_machine *m)
{
    free(base_take(m->topology));
}
