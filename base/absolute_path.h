/* SPDX-License-Identifier: Apache-2.0 */
/**
 * absolute_path.h - a file's path from the root, for another process or another working folder
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/** absolute_path() - Links stay: a sidecar may be beside one. Return: owned by the caller; NULL
 * with errno: the working folder has no path, or out of memory. */
static inline char *absolute_path(const char *file)
{
    base_autofree char *here = file[0] == '/' ? NULL : getcwd(NULL, 0);
    char *path;

    if (file[0] == '/') {
        return strdup(file);
    }
    return here && asprintf(&path, "%s/%s", here, file) >= 0 ? path : NULL;
}
