/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the system that would break what the configuration promises. */
#include "daemon/daemon.h"

#include <sys/resource.h>

#include "base/base.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/models/process_memory.h"
#include "daemon/service/log.h"

#define OWN_FILES 64u      /* the loop, timers, sockets, sysfs, files that are read */
#define OWN_THREADS 16u    /* the loop, work threads, those for large images and for the disk */
#define FILES_OF_MODEL 4u  /* a model's files, while it is loaded */
#define CONNECTION_KIB 32u /* without what it has not read */

static unsigned long long key(const struct dmn_config *c, enum dmn_config_id id)
{
    return (unsigned long long)dmn_config_int(c, id);
}

/* Client memory is charged to clients, and models are loaded only where there is room. */
static void check_memory(const struct dmn_config *c)
{
    uint64_t limit = dmn_cgroup_memory_limit("") >> 20;
    uint64_t now = dmn_process_memory().resident_bytes >> 20;
    uint64_t connections = key(c, DMN_KEY_LIMIT_CONNECTIONS);
    uint64_t each = key(c, DMN_KEY_LIMIT_BACKLOG_KIB) + CONNECTION_KIB;
    uint64_t need = now + key(c, DMN_KEY_LIMIT_INLINE_TOTAL_MIB) + (connections * each >> 10);

    if (need > limit) {
        dmn_log(
            LOG_WARNING,
            "the control group's memory limit is %llu MiB, but clients may make piped take %llu "
            "MiB: %llu MiB now, limits.inline_total_mib %llu, limits.connections %llu x "
            "limits.backlog_kib %llu; lower these, or raise MemoryMax=",
            (unsigned long long)limit, (unsigned long long)need, (unsigned long long)now,
            key(c, DMN_KEY_LIMIT_INLINE_TOTAL_MIB), (unsigned long long)connections,
            key(c, DMN_KEY_LIMIT_BACKLOG_KIB));
    }
}

/* A model has at most one thread a core, and twice as many while its plan changes. */
static void check_tasks(const struct dmn_config *c, size_t cores)
{
    uint64_t limit = dmn_cgroup_task_limit(""), models = key(c, DMN_KEY_LIMIT_MODELS);
    uint64_t need = OWN_THREADS + (models + 1) * cores;

    if (need > limit) {
        dmn_log(LOG_WARNING,
                "the control group's limit is %llu tasks, but piped may need %llu: limits.models "
                "%llu on %llu cores; lower it, or raise TasksMax=",
                (unsigned long long)limit, (unsigned long long)need, (unsigned long long)models,
                (unsigned long long)cores);
    }
}

/* A team keeps a file open for each of its threads but one. */
static void check_files(const struct dmn_config *c, size_t cores)
{
    uint64_t frames = key(c, DMN_KEY_LIMIT_CONNECTIONS), control = key(c, DMN_KEY_LIMIT_CONTROL);
    uint64_t models = key(c, DMN_KEY_LIMIT_MODELS);
    uint64_t need =
        OWN_FILES + frames + control + FILES_OF_MODEL * models + (models + 1) * (cores - 1);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && need > limit.rlim_cur) {
        dmn_log(
            LOG_WARNING,
            "the limit of open files is %llu, but piped may need %llu: limits.connections %llu, "
            "limits.control_connections %llu, limits.models %llu; lower these, or raise "
            "LimitNOFILE=",
            (unsigned long long)limit.rlim_cur, (unsigned long long)need,
            (unsigned long long)frames, (unsigned long long)control, (unsigned long long)models);
    }
}

void dmn_promises_check(const struct dmn_config *c, size_t cores)
{
    check_memory(c);
    check_tasks(c, cores);
    check_files(c, cores);
}
