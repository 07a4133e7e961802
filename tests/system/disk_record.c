/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_record.c - records what a program does to the files of one folder (LD_PRELOAD)
 *
 * DISK_RECORD_FOLDER names the folder, with no symbolic link in it. Each change of a file in it
 * becomes a record in DISK_RECORD_LOG, in the order in which they returned: a line of an operation
 * with its arguments, and the bytes of a write behind it. tests/system/power_cut.py reads that.
 * Files are known by their inode.
 *
 * While the file DISK_RECORD_HOLD exists, fsync() and fdatasync() of such files wait: a very slow
 * disk. What a program writes by stdio or maps is not seen.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name, type) ((type)real(#name))
#define FILES_MAX 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ino_t files[FILES_MAX]; /* beneath the folder */
static size_t file_count;
static dev_t device;

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

typedef int (*open_fn)(int, const char *, int, ...);
typedef ssize_t (*write_fn)(int, const void *, size_t);
typedef ssize_t (*pwrite_fn)(int, const void *, size_t, off_t);
typedef int (*fd_fn)(int);
typedef int (*size_fn)(int, off_t);
typedef int (*rename_fn)(int, const char *, int, const char *);
typedef int (*unlink_fn)(int, const char *, int);

/* ---- which files ---- */

/* Return: the path within the folder, in @ret; NULL: it is elsewhere. */
static const char *within(int at, const char *path, char ret[PATH_MAX])
{
    const char *folder = getenv("DISK_RECORD_FOLDER");
    char link[64], base[PATH_MAX] = "";
    ssize_t n;

    if (!folder || !path) {
        return NULL;
    }
    if (path[0] != '/') {
        snprintf(link, sizeof(link), at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        n = readlink(link, base, sizeof(base) - 1);
        base[n > 0 ? n : 0] = '\0';
    }
    if (snprintf(ret, PATH_MAX, "%s%s%s", base, base[0] ? "/" : "", path) >= PATH_MAX ||
        strncmp(ret, folder, strlen(folder)) != 0 || ret[strlen(folder)] != '/') {
        return NULL;
    }
    return ret + strlen(folder) + 1;
}

static size_t place(ino_t file)
{
    size_t i = 0;

    while (i < file_count && files[i] != file) {
        i++;
    }
    return i;
}

static void forget(const struct stat *st)
{
    size_t i = place(st->st_ino);

    if (i < file_count && st->st_nlink <= 1 && S_ISREG(st->st_mode)) {
        files[i] = files[--file_count];
    }
}

static void know(const struct stat *st)
{
    if (place(st->st_ino) == file_count && file_count < FILES_MAX) {
        files[file_count++] = st->st_ino;
    }
    device = st->st_dev;
}

static bool known(int fd, struct stat *ret)
{
    bool is;

    if (fstat(fd, ret) < 0 || !(S_ISREG(ret->st_mode) || S_ISDIR(ret->st_mode))) {
        return false;
    }
    pthread_mutex_lock(&lock);
    is = ret->st_dev == device && place(ret->st_ino) < file_count;
    pthread_mutex_unlock(&lock);
    return is;
}

/* ---- the log; with the lock ---- */

static void record(const void *data, size_t bytes, const char *format, ...)
{
    static int to = -1;
    char line[2 * PATH_MAX + 64];
    va_list args;
    int n;

    if (to < 0) {
        to = REAL(openat64, open_fn)(AT_FDCWD, getenv("DISK_RECORD_LOG"),
                                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    va_start(args, format);
    n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (REAL(write, write_fn)(to, line, (size_t)n) != n ||
        (bytes && REAL(write, write_fn)(to, data, bytes) != (ssize_t)bytes)) {
        abort();
    }
}

/* ---- files ---- */

static int record_open(int at, const char *path, int flags, mode_t mode)
{
    char whole[PATH_MAX];
    const char *name = within(at, path, whole);
    struct stat st;
    bool there;
    int fd, error;

    if (!name || (flags & O_TMPFILE) == O_TMPFILE) {
        return REAL(openat64, open_fn)(at, path, flags, mode);
    }
    pthread_mutex_lock(&lock);
    there = fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    fd = REAL(openat64, open_fn)(at, path, flags, mode);
    error = errno;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        know(&st);
        if (!there) {
            record(NULL, 0, "create %llu %s\n", (unsigned long long)st.st_ino, name);
        } else if (flags & O_TRUNC) {
            record(NULL, 0, "truncate %llu 0\n", (unsigned long long)st.st_ino);
        }
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define OPEN_MODE()                                                                                \
    mode_t mode = 0;                                                                               \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                                     \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, mode_t);                                                               \
        va_end(args);                                                                              \
    }

EXPORT int open64(const char *path, int flags, ...)
{
    OPEN_MODE();
    /* a folder may be the one that is watched, which is then synced */
    int fd = record_open(AT_FDCWD, path, flags, mode);
    const char *folder = getenv("DISK_RECORD_FOLDER");
    struct stat st, of;

    if (fd >= 0 && folder && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && stat(folder, &of) == 0 &&
        st.st_ino == of.st_ino && st.st_dev == of.st_dev) {
        pthread_mutex_lock(&lock);
        know(&st);
        pthread_mutex_unlock(&lock);
    }
    return fd;
}

EXPORT int openat64(int at, const char *path, int flags, ...)
{
    OPEN_MODE();
    if (path[0] == '/' || at == AT_FDCWD) {
        return open64(path, flags, mode);
    }
    return record_open(at, path, flags, mode);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
    struct stat st;
    ssize_t n;
    int error;

    if (!known(fd, &st)) {
        return REAL(pwrite64, pwrite_fn)(fd, data, bytes, at);
    }
    pthread_mutex_lock(&lock);
    n = REAL(pwrite64, pwrite_fn)(fd, data, bytes, at);
    error = errno;
    if (n > 0) {
        record(data, (size_t)n, "write %llu %lld %zd\n", (unsigned long long)st.st_ino,
               (long long)at, n);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return n;
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    struct stat st;
    off_t at;
    ssize_t n;
    int error;

    if (!known(fd, &st)) {
        return REAL(write, write_fn)(fd, data, bytes);
    }
    pthread_mutex_lock(&lock);
    at = lseek(fd, 0, SEEK_CUR);
    n = REAL(write, write_fn)(fd, data, bytes);
    error = errno;
    if (n > 0) {
        record(data, (size_t)n, "write %llu %lld %zd\n", (unsigned long long)st.st_ino,
               (long long)at, n);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return n;
}

EXPORT int ftruncate64(int fd, off_t bytes)
{
    struct stat st;
    bool ours = known(fd, &st);
    int r = REAL(ftruncate64, size_fn)(fd, bytes), error = errno;

    if (r == 0 && ours) {
        pthread_mutex_lock(&lock);
        record(NULL, 0, "truncate %llu %lld\n", (unsigned long long)st.st_ino, (long long)bytes);
        pthread_mutex_unlock(&lock);
    }
    errno = error;
    return r;
}

static int sync_by(fd_fn fn, int fd)
{
    const char *hold = getenv("DISK_RECORD_HOLD");
    struct stat st;
    bool ours = known(fd, &st);
    int r, error;

    while (ours && hold && access(hold, F_OK) == 0) {
        poll(NULL, 0, 5);
    }
    r = fn(fd);
    error = errno;
    if (r == 0 && ours) {
        pthread_mutex_lock(&lock);
        record(NULL, 0, S_ISDIR(st.st_mode) ? "sync-folder\n" : "sync %llu\n",
               (unsigned long long)st.st_ino);
        pthread_mutex_unlock(&lock);
    }
    errno = error;
    return r;
}

EXPORT int fsync(int fd)
{
    return sync_by(REAL(fsync, fd_fn), fd);
}

EXPORT int fdatasync(int fd)
{
    return sync_by(REAL(fdatasync, fd_fn), fd);
}

/* ---- names ---- */

EXPORT int renameat(int from_at, const char *from, int to_at, const char *to)
{
    char from_whole[PATH_MAX], to_whole[PATH_MAX];
    const char *from_name = within(from_at, from, from_whole);
    const char *to_name = within(to_at, to, to_whole);
    struct stat st;
    int r, error;

    if (!from_name || !to_name) {
        return REAL(renameat, rename_fn)(from_at, from, to_at, to);
    }
    pthread_mutex_lock(&lock);
    if (fstatat(to_at, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        forget(&st);
    }
    r = REAL(renameat, rename_fn)(from_at, from, to_at, to);
    error = errno;
    if (r == 0) {
        record(NULL, 0, "rename %s\t%s\n", from_name, to_name);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}

EXPORT int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

EXPORT int unlinkat(int at, const char *path, int flags)
{
    char whole[PATH_MAX];
    const char *name = within(at, path, whole);
    struct stat st;
    int r, error;

    if (!name) {
        return REAL(unlinkat, unlink_fn)(at, path, flags);
    }
    pthread_mutex_lock(&lock);
    if (fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        forget(&st);
    }
    r = REAL(unlinkat, unlink_fn)(at, path, flags);
    error = errno;
    if (r == 0) {
        record(NULL, 0, "unlink %s\n", name);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}

EXPORT int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}
