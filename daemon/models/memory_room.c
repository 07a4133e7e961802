/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/memory_room.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

#define STEP_BYTES (16ull << 20)

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

/* Return: the limit of a control group; UINT64_MAX: none ("max"), or none can be read. */
static uint64_t limit_of(const char *root, const char *group)
{
    char path[PATH_MAX];
    base_cleanup(close_file) FILE *f = NULL;
    unsigned long long n;

    snprintf(path, sizeof(path), "%s/memory.max", group);
    f = open_in(root, "/sys/fs/cgroup", path);
    return f && fscanf(f, "%llu", &n) == 1 ? n : UINT64_MAX;
}

/* The least limit of our control groups, up to the root, which has one inside a container. */
static uint64_t least_limit(const char *root)
{
    base_cleanup(close_file) FILE *f = open_in(root, "/proc/self/cgroup", "");
    char line[1100], group[1024] = "";
    uint64_t least = UINT64_MAX;

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "0::%1023[^\n]", group) == 1) {
            break;
        }
    }
    if (strcmp(group, "/") == 0) {
        group[0] = '\0';
    }
    while (f) {
        char *end = strrchr(group, '/');

        least = base_min(least, limit_of(root, group));
        if (!end) {
            break;
        }
        *end = '\0';
    }
    return least;
}

uint64_t dmn_memory_room(const char *root, uint64_t resident_bytes)
{
    uint64_t free_bytes = available(root), limit = least_limit(root);
    uint64_t bytes = free_bytes ? base_min(free_bytes + resident_bytes, limit) : limit;

    return bytes == UINT64_MAX ? 0 : bytes / STEP_BYTES * STEP_BYTES;
}
