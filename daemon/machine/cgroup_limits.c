/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/machine/cgroup_limits.h"

#include "base/base.h"

/* Versions 2 and 1 of control groups, for one controller. */
static const struct hierarchy {
    const char *folder, *file, *line; /* line: of /proc/self/cgroup, behind its number */
} hierarchies[][2] = {
    [DMN_CGROUP_MEMORY] = {{"/sys/fs/cgroup", "memory.max", "::"},
                           {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", ":memory:"}},
    [DMN_CGROUP_TASKS] = {{"/sys/fs/cgroup", "pids.max", "::"},
                          {"/sys/fs/cgroup/pids", "pids.max", ":pids:"}},
};

/* Return: the limit of a control group; UINT64_MAX: none ("max"), or none can be read. */
static uint64_t limit_of(const char *root, const struct hierarchy *h, const char *group)
{
    char path[PATH_MAX];
    base_cleanup(dmn_file_close) FILE *f = NULL;
    unsigned long long n;

    snprintf(path, sizeof(path), "%s/%s", group, h->file);
    f = dmn_file_in(root, h->folder, path);
    return f && fscanf(f, "%llu", &n) == 1 ? n : UINT64_MAX;
}

/* Return: our group in the hierarchy, "" for its root, or if nothing says; false: there are no
 * groups. */
static bool find_group(const char *root, const struct hierarchy *h, char ret[1024])
{
    base_cleanup(dmn_file_close) FILE *f = dmn_file_in(root, "/proc/self/cgroup", "");
    char line[1100];

    ret[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        const char *at = line + strspn(line, "0123456789");

        if (strncmp(at, h->line, strlen(h->line)) == 0) {
            at += strlen(h->line);
            snprintf(ret, 1024, "%.*s", (int)strcspn(at, "\n"), at);
            ret[0] = strcmp(ret, "/") == 0 ? '\0' : ret[0];
            break;
        }
    }
    return f != NULL;
}

/* Up to the root, which has a limit inside a container. */
uint64_t dmn_cgroup_limit(const char *root, enum dmn_cgroup_limited what)
{
    uint64_t least = UINT64_MAX;
    char group[1024];

    for (size_t i = 0; i < base_array_count(hierarchies[what]); i++) {
        const struct hierarchy *h = &hierarchies[what][i];
        char *end = find_group(root, h, group) ? group + strlen(group) : NULL;

        while (end) {
            *end = '\0';
            least = base_min(least, limit_of(root, h, group));
            end = strrchr(group, '/');
        }
    }
    return least;
}
