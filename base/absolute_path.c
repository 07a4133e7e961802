/* SPDX-License-Identifier: Apache-2.0 */
#include "base/absolute_path.h"

#include "base/base.h"

char *absolute_path(const char *file)
{
    base_autofree char *here = file[0] == '/' ? NULL : getcwd(NULL, 0);
    char *path;

    if (file[0] == '/') {
        return strdup(file);
    }
    return here && asprintf(&path, "%s/%s", here, file) >= 0 ? path : NULL;
}
