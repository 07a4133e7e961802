/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/cgroup_limits.h - the limits that control groups set for this process
 *
 * The least one of its group and all groups above it, of both versions. Reads a few small files.
 * Threads: any.
 */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

enum dmn_cgroup_limited { DMN_CGROUP_MEMORY, DMN_CGROUP_TASKS };
/** dmn_cgroup_limit() - Return: bytes, or processes and threads; UINT64_MAX: none, or unknown.
 * @root: in front of /proc and /sys; "": this machine. */
uint64_t dmn_cgroup_limit(const char *root, enum dmn_cgroup_limited what);

/* ---- small files of /proc and /sys, under another root in tests ---- */

/* For base_cleanup(). */
static inline void dmn_file_close(FILE **f)
{
    if (*f) {
        fclose(*f);
    }
}

/** dmn_file_in() - opens @root, @path and @more, written one after the other, to read. Return:
 * owned; NULL. */
static inline FILE *dmn_file_in(const char *root, const char *path, const char *more)
{
    char all[PATH_MAX];
    int n = snprintf(all, sizeof(all), "%s%s%s", root, path, more);

    return n > 0 && (size_t)n < sizeof(all) ? fopen(all, "re") : NULL;
}
