/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/own_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

#define STEP_BYTES ((double)(16u << 20))
#define GROUPS "/sys/fs/cgroup"

static void close_file(FILE **f)
{
    if (*f) {
        fclose(*f);
    }
}

/* Return: bytes; INFINITY: unknown. */
static double available(void)
{
    base_cleanup(close_file) FILE *f = fopen("/proc/meminfo", "re");
    unsigned long long kib;
    char line[128];

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            return (double)kib * 1024;
        }
    }
    return INFINITY;
}

/* Return: a number in a file; INFINITY: none ("max"). */
static double number_in(const char *path)
{
    base_cleanup(close_file) FILE *f = fopen(path, "re");
    unsigned long long n;

    return f && fscanf(f, "%llu", &n) == 1 ? (double)n : INFINITY;
}

/* The least limit of a process' control groups, up to the root. */
static double limit_of(long long pid)
{
    char path[600], group[400] = "", file[700];
    base_cleanup(close_file) FILE *f = NULL;
    double least = INFINITY;

    snprintf(path, sizeof(path), "/proc/%lld/cgroup", pid);
    f = fopen(path, "re");
    while (f && fgets(path, sizeof(path), f)) {
        if (sscanf(path, "0::%399[^\n]", group) == 1) {
            break;
        }
    }
    while (group[0] && group[1]) {
        snprintf(file, sizeof(file), GROUPS "%s/memory.max", group);
        least = fmin(least, number_in(file));
        *strrchr(group, '/') = 0;
    }
    return least;
}

double own_memory_bytes(const json_t *status)
{
    const json_t *m = json_object_get(status, "memory");
    double taken = json_number_value(json_object_get(m, "resident_bytes"));
    double free_bytes = available(), bytes;

    bytes = fmin(free_bytes + taken,
                 limit_of((long long)json_integer_value(json_object_get(status, "pid"))));
    return isfinite(bytes) ? floor(bytes / STEP_BYTES) * STEP_BYTES : 0;
}
