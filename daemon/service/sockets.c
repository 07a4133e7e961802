/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/sockets.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

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

/* Removes a socket file that nobody listens on: a crash left it. */
static int remove_stale(const struct sockaddr_un *address)
{
    base_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (fd < 0) {
        return -errno;
    }
    if (lstat(address->sun_path, &st) < 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISSOCK(st.st_mode)) {
        return -EEXIST;
    }
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN) {
        return -EADDRINUSE;
    }
    if (errno != ECONNREFUSED) {
        return -errno;
    }
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int set_group(const char *path, const char *name)
{
    const struct group *group;

    if (!name[0]) {
        return 0;
    }
    group = getgrnam(name);
    if (!group) {
        return -ESRCH;
    }
    return lchown(path, (uid_t)-1, group->gr_gid) < 0 ? -errno : 0;
}

int dmn_socket_listen(const char *path, unsigned mode, const char *group)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    base_autoclose int fd = -1;
    mode_t before;
    int error, ret;

    if (strlen(path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    strcpy(address.sun_path, path);
    error = remove_stale(&address);
    if (error < 0) {
        return error;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    before = umask(0777 & ~mode); /* the file must never have more permissions than @mode */
    error = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    umask(before);
    if (!error) {
        error = set_group(path, group);
    }
    if (!error && listen(fd, 128) < 0) {
        error = -errno;
    }
    if (error) {
        return error;
    }
    ret = fd;
    fd = -1;
    return ret;
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
