/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/sockets.h"

#include "base/base.h"

/* Makes @path and its missing parents. */
static int make_dirs(const char *path, mode_t mode)
{
    base_autofree char *copy = strdup(path);

    if (!copy) {
        return -ENOMEM;
    }
    for (char *slash = copy + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST) {
            return -errno;
        }
        *slash = '/';
    }
    return mkdir(copy, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* @mode: 0: finds it only. */
static char *usable(const char *path, mode_t mode)
{
    int error = mode ? make_dirs(path, mode) : 0;
    struct stat st;

    if (error == 0 && stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        error = -ENOTDIR;
    }
    if (error == 0 && access(path, W_OK | X_OK) == 0) {
        return realpath(path, NULL);
    }
    if (error) {
        errno = -error;
    }
    return NULL;
}

/* Makes DIR/piped/... for a folder from the environment. */
static char *usable_below(const char *dir, const char *rest, mode_t mode)
{
    base_autofree char *path = NULL;

    if (!dir || dir[0] != '/') {
        errno = ENOENT;
        return NULL;
    }
    if (asprintf(&path, "%s/%s", dir, rest) < 0) {
        path = NULL;
        return NULL;
    }
    return usable(path, mode);
}

char *dmn_runtime_dir(const char *given)
{
    char *dir;

    if (given) {
        return usable(given, 0755);
    }
    dir = usable("/run/piped", 0755);
    return dir ? dir : usable_below(getenv("XDG_RUNTIME_DIR"), "piped", 0700);
}

char *dmn_state_dir(const char *given, bool make)
{
    const mode_t of_system = make ? 0755 : 0, of_user = make ? 0700 : 0;
    const char *home = getenv("STATE_DIRECTORY");
    char *dir;

    if (given) {
        return usable(given, of_system);
    }
    if (home && home[0] == '/') { /* from the service manager: a list; the first is ours */
        base_autofree char *first = strndup(home, strcspn(home, ":"));

        dir = first ? usable(first, of_system) : NULL;
        if (dir) {
            return dir;
        }
    }
    dir = usable("/var/lib/piped", of_system);
    if (!dir) {
        dir = usable_below(getenv("XDG_STATE_HOME"), "piped", of_user);
    }
    return dir ? dir : usable_below(getenv("HOME"), ".local/state/piped", of_user);
}
