/* SPDX-License-Identifier: Apache-2.0 */
/* What a start demands of a configuration, besides what reading it demands. A start, a reload and
 * `piped --check-config` judge by these functions, and each loads the models: so a check or a
 * reload succeeds if and only if a restart would serve all of the configuration. A start differs in
 * one thing: where a model cannot be served, it serves the others and is degraded. */
#include <sys/resource.h>

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/models/process_memory.h"
#include "daemon/service/log.h"
#include "ipc/listen.h"

static int check_group(const struct dmn_config *c, bool binds, char *ret_error, gid_t *ret)
{
    const struct dmn_config_value *v = &c->values[DMN_KEY_SOCKET_GROUP];
    const char *name = dmn_config_string(c, DMN_KEY_SOCKET_GROUP), *why;
    int error = ipc_group_find(name, ret);
    char at[DMN_CONFIG_WHERE_MAX];

    if (!error && binds) {
        error = ipc_group_allowed(*ret);
    }
    if (error) {
        why = error == -ESRCH    ? "no such group; make it, or name another"
              : error == -EPERM  ? "the daemon may not give its sockets to this group; make its "
                                   "user a member"
              : error == -EINVAL ? "this user namespace does not have the group"
                                 : strerror(-error);
        dmn_config_where(c, v->origin, v->line, at);
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%s: socket_group: \"%s\": %s", at, name, why);
    }
    return error;
}

int dmn_validate(struct dmn_machine *on, bool binds, char *ret_error, gid_t *ret_group)
{
    int error = dmn_machine_read(on, ret_error);

    return error ? error : check_group(dmn_machine_config(on), binds, ret_error, ret_group);
}

void dmn_validate_fault(const struct dmn_config *c, const struct dmn_config_model *m,
                        const char *key, const char *why, char *ret_error)
{
    const char *value = strcmp(key, "path") == 0   ? m->path
                        : strcmp(key, "plan") == 0 ? m->plan
                                                   : m->calibration;
    bool named = strncmp(why, value, strlen(value)) == 0; /* the loader names the file */
    char at[DMN_CONFIG_WHERE_MAX];

    if (m->saved) { /* its list is nothing to edit */
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                 "saved model %s: %.300s%s%.400s; %spipectl models unload %s --save", m->name,
                 named ? "" : value, named ? "" : ": ", why,
                 strcmp(key, "path") == 0 ? "put the file back, or forget it by " : "forget it by ",
                 m->name);
        return;
    }
    dmn_config_where(c, m->origin, m->line, at);
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.200s: models[%s].%s: %.300s%s%.400s", at, m->name,
             key, named ? "" : value, named ? "" : ": ", why);
}

int dmn_validate_load(const struct dmn_config_model *m, const struct pl_ep_set *eps,
                      struct dmn_load *l, const char **ret_key)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    int error = dmn_load_run(l);

    *ret_key = l->bad_calibration ? "calibration" : "path";
    if (!error && m->plan[0]) {
        *ret_key = "plan";
        snprintf(l->error, sizeof(l->error), "out of memory");
        error = plan ? pl_plan_parse(m->plan, eps, l->model->unit_count, l->error, sizeof(l->error),
                                     plan)
                     : -ENOMEM;
    }
    return error;
}

int dmn_validate_plan(const struct dmn_config *c, const struct dmn_config_model *m,
                      const struct pl_ep_set *eps, size_t units, char *ret_error,
                      struct pl_plan *ret)
{
    char why[256];

    if (pl_plan_parse(m->plan, eps, units, why, sizeof(why), ret) == 0) {
        return 0;
    }
    dmn_validate_fault(c, m, "plan", why, ret_error);
    return -EINVAL;
}

void dmn_validate_doubt(const struct dmn_config *c, char *ret_text)
{
    const struct dmn_config_value *v = &c->values[DMN_KEY_DEFAULT_MODEL];
    const char *name = dmn_config_string(c, DMN_KEY_DEFAULT_MODEL);
    char at[DMN_CONFIG_WHERE_MAX];

    ret_text[0] = '\0';
    if (name[0] && !dmn_config_find_model(c, name)) {
        dmn_config_where(c, v->origin, v->line, at);
        snprintf(ret_text, DMN_CONFIG_ERROR_MAX,
                 "%s: default_model: \"%s\": no model of this name is configured or saved; until "
                 "one is loaded, clients that name no model get %s",
                 at, name, c->model_count > 0 ? c->models[0].name : "the first one");
    }
}

/* ---- do the limits that surround the daemon hold what its own limits promise ---- */

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
    uint64_t limit = dmn_cgroup_limit("", DMN_CGROUP_MEMORY) >> 20;
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
    uint64_t limit = dmn_cgroup_limit("", DMN_CGROUP_TASKS), models = key(c, DMN_KEY_LIMIT_MODELS);
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
