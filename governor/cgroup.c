/* SPDX-License-Identifier: Apache-2.0 */
/* CPU quotas and their throttling, of cgroups v1 and v2. */
#include <math.h>

#include "base/base.h"
#include "governor/sampler.h"

#define MOUNT "sys/fs/cgroup"
#define GROUP_MAX 240u /* bytes of a group's path with its mount: file names fit behind it */

static bool has_word(const char *list, size_t length, const char *word)
{
    size_t size = strlen(word);

    for (const char *at = list; at <= list + length - base_min(size, length); at++) {
        if ((size_t)(list + length - at) >= size && memcmp(at, word, size) == 0 &&
            (at == list || at[-1] == ',') && (at + size == list + length || at[size] == ',')) {
            return true;
        }
    }
    return false;
}

/* The line "ID:CONTROLLERS:PATH" of proc/self/cgroup that names @controller; NULL: the line "0::"
 * of version 2. @ret_path, @ret_list: GROUP_MAX. Return: false if there is none. */
static bool find_line(const char *text, const char *controller, char *ret_list, char *ret_path)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *list = line + strspn(line, "0123456789");
        size_t length, whole = strcspn(line, "\n");

        if (list == line || *list++ != ':') {
            continue;
        }
        length = strcspn(list, ":\n");
        const char *path = list + length;
        size_t bytes = (size_t)(line + whole - path);
        if (*path != ':' || bytes < 2 || path[1] != '/' || bytes - 1 >= GROUP_MAX ||
            length >= GROUP_MAX ||
            (controller ? !has_word(list, length, controller) : length > 0)) {
            continue;
        }
        memcpy(ret_list, list, length);
        ret_list[length] = '\0';
        memcpy(ret_path, path + 1, bytes - 1);
        ret_path[bytes - 1] = '\0';
        return true;
    }
    return false;
}

/* Where the group's folder is. A path from outside of our view ("/../x", or a host's path in a
 * container) means the mount itself. Return: its length, 0: there is none. */
static size_t group_dir(const struct gov_sensors *s, const char *mount, const char *path,
                        char ret[GROUP_MAX])
{
    int n = snprintf(ret, GROUP_MAX, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);

    if (n < 0 || (size_t)n >= GROUP_MAX || strstr(path, "/..") || !gov_exists(s->root, ret)) {
        snprintf(ret, GROUP_MAX, "%s", mount);
    }
    return gov_exists(s->root, ret) ? strlen(mount) : 0;
}

/* Cuts the last part off, not below @floor bytes. Return: false if there was none. */
static bool go_up(char *dir, size_t floor)
{
    char *slash = strrchr(dir, '/');

    if (strlen(dir) <= floor || !slash || (size_t)(slash - dir) < floor) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* Mount and path of a controller. Return: the version of its hierarchy, 0: none. */
static int find_hierarchy(const struct gov_sensors *s, const char *text, const char *controller,
                          char dir[GROUP_MAX], size_t *ret_floor)
{
    char list[GROUP_MAX], path[GROUP_MAX], mount[GROUP_MAX + sizeof(MOUNT)];

    if (find_line(text, controller, list, path)) {
        snprintf(mount, sizeof(mount), MOUNT "/%s", list);
        if (strlen(mount) >= GROUP_MAX || !gov_exists(s->root, mount)) {
            snprintf(mount, sizeof(mount), MOUNT "/%s", controller);
        }
        *ret_floor = group_dir(s, mount, path, dir);
        return *ret_floor ? 1 : 0;
    }
    if (find_line(text, NULL, list, path)) {
        bool hybrid = !gov_exists(s->root, MOUNT "/cgroup.controllers") &&
                      gov_exists(s->root, MOUNT "/unified");

        *ret_floor = group_dir(s, hybrid ? MOUNT "/unified" : MOUNT, path, dir);
        return *ret_floor ? 2 : 0;
    }
    return 0;
}

static void close_groups(struct gov_sensors *s)
{
    struct gov_cgroup_files *g = &s->cgroup;

    for (size_t i = 0; i < GOV_CGROUP_DEPTH; i++) {
        gov_file_close(&s->files, &g->quota[i]);
        gov_file_close(&s->files, &g->period[i]);
        gov_file_close(&s->files, &g->stat[i]);
        gov_file_close(&s->files, &g->cpus[i]);
    }
    g->level_count = g->cpuset_count = 0;
    g->version = g->cpuset_version = 0;
}

static void set_groups(struct gov_sensors *s)
{
    struct gov_cgroup_files *g = &s->cgroup;
    char dir[GROUP_MAX];
    size_t floor, i = 0;

    close_groups(s);
    g->version = find_hierarchy(s, g->text, "cpu", dir, &floor);
    while (g->version && g->level_count < GOV_CGROUP_DEPTH) {
        i = g->level_count++;
        gov_file_set(&s->files, &g->quota[i], "%s/%s", dir,
                     g->version == 1 ? "cpu.cfs_quota_us" : "cpu.max");
        gov_file_set(&s->files, &g->period[i], "%s/cpu.cfs_period_us", dir);
        gov_file_set(&s->files, &g->stat[i], "%s/cpu.stat", dir);
        if (!go_up(dir, floor)) {
            break;
        }
    }
    g->cpuset_version = find_hierarchy(s, g->text, "cpuset", dir, &floor);
    while (g->cpuset_version && g->cpuset_count < GOV_CGROUP_DEPTH) {
        gov_file_set(&s->files, &g->cpus[g->cpuset_count++], "%s/%s", dir,
                     g->cpuset_version == 1 ? "cpuset.effective_cpus" : "cpuset.cpus.effective");
        if (!go_up(dir, floor)) {
            break;
        }
    }
}

/* Says whether the process is in other groups than before. */
static bool read_self(struct gov_sensors *s)
{
    struct gov_cgroup_files *g = &s->cgroup;
    char text[sizeof(g->text)];

    if (gov_file_read(&s->files, &g->self, text, sizeof(text)) < 0) {
        text[0] = '\0';
    }
    if (strcmp(text, g->text) == 0) {
        return false;
    }
    strcpy(g->text, text);
    return true;
}

void gov_cgroup_scan(struct gov_sensors *s)
{
    if (s->cgroup.self.path[0] == '\0') {
        gov_file_set(&s->files, &s->cgroup.self, "proc/self/cgroup");
    }
    if (s->files.vanished || s->cgroup.level_count == 0) {
        s->cgroup.text[0] = '\0'; /* its folders may have come since */
    }
}

enum limit { LIMIT_UNKNOWN, LIMIT_NONE, LIMIT_SET };

/* Documentation/scheduler/sched-bwc.rst: -1 is no limit */
static enum limit read_v1(struct gov_sensors *s, size_t i, uint64_t *quota, uint64_t *period)
{
    struct gov_cgroup_files *g = &s->cgroup;
    int64_t q;

    if (gov_file_i64(&s->files, &g->quota[i], -1, INT64_MAX, &q) != 0) {
        return LIMIT_UNKNOWN;
    }
    if (q < 0) {
        return LIMIT_NONE;
    }
    *quota = (uint64_t)q;
    return q > 0 && gov_file_u64(&s->files, &g->period[i], 1, UINT32_MAX, period) == 0
               ? LIMIT_SET
               : LIMIT_UNKNOWN;
}

/* Documentation/admin-guide/cgroup-v2.rst: "$MAX $PERIOD"; the root, and groups without the
 * controller, have no such file and no limit of their own. */
static enum limit read_v2(struct gov_sensors *s, size_t i, uint64_t *quota, uint64_t *period)
{
    struct gov_cgroup_files *g = &s->cgroup;
    char text[64];

    if (gov_file_text(&s->files, &g->quota[i], text, sizeof(text)) != 0) {
        return g->quota[i].error == ENOENT ? LIMIT_NONE : LIMIT_UNKNOWN;
    }
    char *space = strchr(text, ' ');
    if (!space || gov_u64_parse(space + 1, 1, UINT32_MAX, period) != 0) {
        return LIMIT_UNKNOWN;
    }
    *space = '\0';
    if (strcmp(text, "max") == 0) {
        return LIMIT_NONE;
    }
    return gov_u64_parse(text, 1, INT64_MAX, quota) == 0 ? LIMIT_SET : LIMIT_UNKNOWN;
}

static void read_stat(struct gov_sensors *s, size_t level, struct gov_cgroup *ret)
{
    const struct {
        const char *name;
        uint64_t *to, unit;
    } keys[] = {{"nr_periods", &ret->nr_periods, 1},
                {"nr_throttled", &ret->nr_throttled, 1},
                {"throttled_usec", &ret->throttled_us, 1},
                {"throttled_time", &ret->throttled_us, BASE_NS_PER_US}};
    char text[2048], *save = NULL;

    if (gov_file_read(&s->files, &s->cgroup.stat[level], text, sizeof(text)) < 0) {
        return;
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(line, ' ');
        uint64_t number;

        if (!value || gov_u64_parse(value + 1, 0, GOV_UNKNOWN - 1, &number) != 0) {
            continue;
        }
        *value = '\0';
        for (size_t i = 0; i < base_array_count(keys); i++) {
            if (strcmp(line, keys[i].name) == 0) {
                *keys[i].to = number / keys[i].unit;
            }
        }
    }
}

static void read_quota(struct gov_sensors *s, struct gov_cgroup *ret)
{
    struct gov_cgroup_files *g = &s->cgroup;
    size_t tightest = 0;
    bool unknown = g->level_count == 0;

    for (size_t i = 0; i < g->level_count; i++) {
        uint64_t quota = 0, period = 1;
        enum limit limit =
            g->version == 1 ? read_v1(s, i, &quota, &period) : read_v2(s, i, &quota, &period);

        unknown |= limit == LIMIT_UNKNOWN;
        if (limit == LIMIT_SET &&
            (!gov_known(ret->quota_cpus) || (double)quota / (double)period < ret->quota_cpus)) {
            ret->quota_cpus = (double)quota / (double)period;
            tightest = i;
        }
    }
    if (!gov_known(ret->quota_cpus) && !unknown) {
        ret->quota_cpus = INFINITY;
    }
    if (g->level_count > 0) {
        read_stat(s, tightest, ret);
    }
}

void gov_cgroup_sample(struct gov_sensors *s)
{
    struct gov_cgroup_files *g = &s->cgroup;
    struct gov_cgroup *c = &s->now.cgroup;

    if (read_self(s)) {
        set_groups(s);
    }
    *c = (struct gov_cgroup){.version = g->version,
                             .quota_cpus = NAN,
                             .nr_periods = GOV_UNKNOWN,
                             .nr_throttled = GOV_UNKNOWN,
                             .throttled_us = GOV_UNKNOWN};
    read_quota(s, c);
    for (size_t i = 0; i < g->cpuset_count && !c->cpus.known; i++) {
        c->cpus.known = gov_file_cpulist(&s->files, &g->cpus[i], &c->cpus.set) == 0 &&
                        gov_cpuset_next(&c->cpus.set, 0) >= 0;
    }
    if (!c->cpus.known) {
        memset(&c->cpus.set, 0, sizeof(c->cpus.set));
    }
}
