/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/folder_lock.h"

#include <sys/file.h>

#include "base/base.h"

#define TRIES 8 /* while others remove the file */

/* Return: @fd is the file at @path. */
static bool is_at(int fd, const char *path)
{
    struct stat mine, there;

    return fd >= 0 && fstat(fd, &mine) == 0 && lstat(path, &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

static pid_t read_holder(int fd)
{
    char text[24] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static void write_holder(int fd)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

    /* only for messages: a full disk must not prevent the lock */
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        return;
    }
}

int dmn_folder_lock(const char *dir, const char *name, int *fd, pid_t *ret_holder)
{
    base_autofree char *path = NULL;

    *ret_holder = 0;
    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    if (is_at(*fd, path)) {
        return 0;
    }
    for (int i = 0; i < TRIES; i++) {
        base_autoclose int mine = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (mine < 0) {
            return -errno;
        }
        if (flock(mine, LOCK_EX | LOCK_NB) < 0) {
            int error = -errno;

            *ret_holder = read_holder(mine);
            return error == -EWOULDBLOCK ? -EADDRINUSE : error;
        }
        if (is_at(mine, path)) {
            write_holder(mine);
            base_close_fd(fd);
            *fd = mine;
            mine = -1;
            return 0;
        }
    }
    return -EAGAIN;
}
