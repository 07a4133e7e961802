/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/file_in.h - opens small files of /proc and /sys, under another root in tests
 *
 * Threads: any.
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

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
