/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/listen.h"

#include <grp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "base/base.h"

#define BACKLOG 128
#define GROUP_BYTES_MAX (16u << 20) /* of one entry, which has all members in it */

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

int ipc_group_find(const char *name, gid_t *ret)
{
    struct group group, *found = NULL;
    int error = ERANGE;

    if (!name[0]) {
        *ret = IPC_NO_GROUP;
        return 0;
    }
    for (size_t bytes = 1024; error == ERANGE && bytes <= GROUP_BYTES_MAX; bytes *= 4) {
        base_autofree char *members = malloc(bytes);

        if (!members) {
            return -ENOMEM;
        }
        do {
            error = getgrnam_r(name, &group, members, bytes, &found);
        } while (error == EINTR);
    }
    if (!found) { /* what a missing group is differs between name services */
        return error == ENOMEM || error == EMFILE || error == ENFILE || error == EIO ? -error
                                                                                     : -ESRCH;
    }
    *ret = group.gr_gid;
    return 0;
}

int ipc_group_allowed(gid_t group)
{
    base_autoclose int fd = -1;

    if (group == IPC_NO_GROUP) {
        return 0;
    }
    fd = memfd_create("piped-group", MFD_CLOEXEC); /* a file of ours that nobody sees */
    return fd >= 0 && fchown(fd, (uid_t)-1, group) < 0 ? -errno : 0;
}

/* Before listen(), so that nobody connects by other permissions. */
static int set_access(const char *path, mode_t mode, gid_t group, struct ipc_socket_file *ret)
{
    struct stat st;

    if (lstat(path, &st) < 0 || chmod(path, mode) < 0 ||
        (group != IPC_NO_GROUP && lchown(path, (uid_t)-1, group) < 0)) {
        return -errno;
    }
    ret->device = st.st_dev;
    ret->inode = st.st_ino;
    return 0;
}

int ipc_listen(const char *path, mode_t mode, gid_t group, struct ipc_socket_file *ret)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    base_autoclose int fd = -1;
    base_autofree char *copy = NULL;
    int error;

    if (strlen(path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    strcpy(address.sun_path, path);
    copy = strdup(path);
    if (!copy) {
        return -ENOMEM;
    }
    error = remove_stale(&address);
    if (error < 0) {
        return error;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* the mode of the socket limits that of its file */
    if (fd < 0 || fchmod(fd, mode) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        return -errno;
    }
    error = set_access(path, mode, group, ret);
    if (!error && listen(fd, BACKLOG) < 0) {
        error = -errno;
    }
    if (error) {
        (void)unlink(path);
        return error;
    }
    ret->path = base_take(copy);
    return base_take_fd(&fd);
}

bool ipc_socket_file_there(const struct ipc_socket_file *f)
{
    struct stat st;

    return !f->path ||
           (lstat(f->path, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode);
}

void ipc_socket_file_remove(struct ipc_socket_file *f)
{
    if (f->path && ipc_socket_file_there(f)) {
        (void)unlink(f->path);
    }
    free(base_take(f->path));
}

/* Makes @fd the socket @by, and closes @by. Return: 0 or -errno; then nothing has changed. */
static int move(int fd, int by, void (*each)(void *ctx, int client, const struct ucred *peer),
                void *ctx)
{
    struct ucred peer;
    int client, rc;

    while ((rc = ipc_accept(fd, &client, &peer)) == 0) {
        each(ctx, client, &peer);
    }
    if (rc < 0) {
        return rc;
    }
    if (dup3(by, fd, O_CLOEXEC) < 0) {
        return -errno;
    }
    close(by);
    return 0;
}

int ipc_listen_again(int fd, struct ipc_socket_file *file, mode_t mode, gid_t group,
                     void (*each)(void *ctx, int client, const struct ucred *peer), void *ctx)
{
    struct ipc_socket_file made = {0};
    int by = ipc_listen(file->path, mode, group, &made);
    int error = by < 0 ? by : move(fd, by, each, ctx);

    if (error < 0) {
        ipc_socket_file_remove(&made);
        base_close_fd(&by);
        return error;
    }
    ipc_socket_file_remove(file);
    *file = made;
    return 0;
}

static bool is_short(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* accept4() says EMFILE even if nobody has come. */
static bool somebody_waits(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

int ipc_accept(int fd, int *ret_client, struct ucred *ret_peer)
{
    for (;;) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        int error = client < 0 ? errno : 0;
        socklen_t length = sizeof(*ret_peer);

        if (!error && getsockopt(client, SOL_SOCKET, SO_PEERCRED, ret_peer, &length) == 0) {
            *ret_client = client;
            return 0;
        }
        if (!error) {
            close(client);
        } else if (is_short(error) && somebody_waits(fd)) {
            return -error;
        } else if (error != EINTR && error != ECONNABORTED) {
            return IPC_E_NOBODY;
        }
    }
}
