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

/** dmn_cgroup_memory_limit() - Return: bytes; UINT64_MAX: none, or unknown. @root: in front of
 * /proc and /sys; "": this machine. */
uint64_t dmn_cgroup_memory_limit(const char *root);
/** dmn_cgroup_task_limit() - as dmn_cgroup_memory_limit(), of processes and threads. */
uint64_t dmn_cgroup_task_limit(const char *root);

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
