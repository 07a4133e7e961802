/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/listen.h"

#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base.h"

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

int ipc_listen(const char *path, unsigned mode, const char *group)
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
