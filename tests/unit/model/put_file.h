/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/model/put_file.h - small text files in a folder of a test
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* Writes a file anew; what goes wrong ends the program. */
static inline void put_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        abort();
    }
}
