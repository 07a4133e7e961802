/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/folders.h"

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
            *fd = base_take_fd(&mine);
            return 0;
        }
    }
    return -EAGAIN;
}

/* ---- which folders ---- */

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
