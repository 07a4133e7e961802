/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/sockets.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base.h"

int dmn_sockets_lock(const char *dir, int *ret_fd)
{
    base_autofree char *path = NULL;
    base_autoclose int fd = -1;

    if (asprintf(&path, "%s/piped.lock", dir) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -errno;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

void dmn_socket_remove(char **path)
{
    if (*path) {
        unlink(*path);
        free(base_take(*path));
    }
}

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

static char *usable(const char *path, mode_t mode)
{
    int error = make_dirs(path, mode);

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

char *dmn_state_dir(const char *given)
{
    const char *home = getenv("STATE_DIRECTORY");
    char *dir;

    if (given) {
        return usable(given, 0755);
    }
    if (home && home[0] == '/') { /* from the service manager: a list; the first is ours */
        base_autofree char *first = strndup(home, strcspn(home, ":"));

        dir = first ? usable(first, 0755) : NULL;
        if (dir) {
            return dir;
        }
    }
    dir = usable("/var/lib/piped", 0755);
    if (!dir) {
        dir = usable_below(getenv("XDG_STATE_HOME"), "piped", 0700);
    }
    return dir ? dir : usable_below(getenv("HOME"), ".local/state/piped", 0700);
}
