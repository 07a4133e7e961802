/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path_below.h"

#include <linux/openat2.h>
#include <sys/syscall.h>

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

int path_open_below(int folder, const char *name)
{
    struct open_how how = {.flags = PATH_OPEN_FLAGS,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd;

    do {
        fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof(how));
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !strchr(name, '/')) {
        /* before Linux 5.6, or under a system call filter that lacks it */
        fd = openat(folder, name, PATH_OPEN_FLAGS | O_NOFOLLOW);
    }
    return fd;
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
