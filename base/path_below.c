/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path_below.h"

#include "base/base.h"

int path_below(const char *name, char *ret)
{
    size_t used = 0;

    if (name[0] == '/') {
        return PATH_BELOW_E_OUT;
    }
    for (size_t n; *name; name += n + (name[n] == '/')) {
        n = strcspn(name, "/");
        if (n == 0 || (n == 1 && name[0] == '.')) {
            continue;
        }
        if (n == 2 && name[0] == '.' && name[1] == '.') {
            if (used == 0) {
                return PATH_BELOW_E_OUT;
            }
            while (used > 0 && ret[--used] != '/') {
            }
            continue;
        }
        if (n > NAME_MAX || used + n + 2 > PATH_BELOW_MAX) {
            return PATH_BELOW_E_LONG;
        }
        if (used > 0) {
            ret[used++] = '/';
        }
        memcpy(ret + used, name, n);
        used += n;
    }
    ret[used] = '\0';
    return used > 0 ? 0 : PATH_BELOW_E_OUT;
}

char *absolute_path(const char *file)
{
    base_autofree char *here = file[0] == '/' ? NULL : getcwd(NULL, 0);
    char *path;

    if (file[0] == '/') {
        return strdup(file);
    }
    return here && asprintf(&path, "%s/%s", here, file) >= 0 ? path : NULL;
}
