/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/memory_room.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define STEP_BYTES (16ull << 20)
#define STATUS_BYTES 4096 /* of /proc/self/status, at most */

static void close_file(FILE **f)
{
    if (*f) {
        fclose(*f);
    }
}

static FILE *open_in(const char *root, const char *path, const char *more)
{
    char all[PATH_MAX];
    int n = snprintf(all, sizeof(all), "%s%s%s", root, path, more);

    return n > 0 && (size_t)n < sizeof(all) ? fopen(all, "re") : NULL;
}

/* Return: bytes; 0: unknown. */
static uint64_t available(const char *root)
{
    base_cleanup(close_file) FILE *f = open_in(root, "/proc/meminfo", "");
    unsigned long long kib;
    char line[128];

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            return kib << 10;
        }
    }
    return 0;
}

/* A version of control groups. */
struct hierarchy {
    const char *folder, *file, *line; /* line: of /proc/self/cgroup, behind its number */
};
static const struct hierarchy hierarchies[] = {
    {"/sys/fs/cgroup", "memory.max", "::"},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", ":memory:"},
};

/* Return: the limit of a control group; UINT64_MAX: none ("max"), or none can be read. */
static uint64_t limit_of(const char *root, const struct hierarchy *h, const char *group)
{
    char path[PATH_MAX];
    base_cleanup(close_file) FILE *f = NULL;
    unsigned long long n;

    snprintf(path, sizeof(path), "%s/%s", group, h->file);
    f = open_in(root, h->folder, path);
    return f && fscanf(f, "%llu", &n) == 1 ? n : UINT64_MAX;
}

/* Return: our group in the hierarchy, "" for its root, or if nothing says; false: there are no
 * groups. */
static bool find_group(const char *root, const struct hierarchy *h, char ret[1024])
{
    base_cleanup(close_file) FILE *f = open_in(root, "/proc/self/cgroup", "");
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

/* The least limit of our control groups, up to the root, which has one inside a container. */
static uint64_t least_limit(const char *root)
{
    uint64_t least = UINT64_MAX;
    char group[1024];

    for (size_t i = 0; i < base_array_count(hierarchies); i++) {
        char *end = find_group(root, &hierarchies[i], group) ? group + strlen(group) : NULL;

        while (end) {
            *end = '\0';
            least = base_min(least, limit_of(root, &hierarchies[i], group));
            end = strrchr(group, '/');
        }
    }
    return least;
}

uint64_t dmn_memory_room(const char *root, uint64_t resident_bytes)
{
    uint64_t free_bytes = available(root), limit = least_limit(root);
    uint64_t bytes = free_bytes ? base_min(free_bytes + resident_bytes, limit) : limit;

    return bytes == UINT64_MAX ? 0 : bytes / STEP_BYTES * STEP_BYTES;
}

static uint64_t status_bytes(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

struct dmn_process_memory dmn_process_memory(void)
{
    base_cleanup(close_file) FILE *f = open_in("", "/proc/self/status", "");
    char text[STATUS_BYTES];

    text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
    return (struct dmn_process_memory){
        .resident_bytes = status_bytes(text, "VmRSS:"),
        .peak_bytes = status_bytes(text, "VmHWM:"),
    };
}
