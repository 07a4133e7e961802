/* SPDX-License-Identifier: Apache-2.0 */
#include "base/whole_file.h"

ssize_t whole_file_part(int fd, size_t at, void *ret, size_t bytes)
{
    size_t have = 0;
    ssize_t n = 1;

    while (have < bytes && n != 0) {
        n = pread(fd, (char *)ret + have, bytes - have, (off_t)(at + have));
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

/* One byte more than the file has is asked for, so that a longer one is noticed. */
static int read_open(int fd, const struct whole_file *f, char **ret, size_t *ret_bytes)
{
    base_autofree char *text = NULL;
    struct stat st;
    ssize_t have;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return WHOLE_FILE_E_KIND;
    }
    if (st.st_mode & f->refused) {
        return WHOLE_FILE_E_OPEN;
    }
    if ((uintmax_t)st.st_size > f->bytes_max) {
        return WHOLE_FILE_E_LARGE;
    }
    text = malloc((size_t)st.st_size + 1);
    have = text ? whole_file_part(fd, 0, text, (size_t)st.st_size + 1) : -ENOMEM;
    if (have != st.st_size) {
        return have < 0 ? (int)have : WHOLE_FILE_E_CHANGED;
    }
    text[have] = '\0';
    *ret = base_take(text);
    *ret_bytes = (size_t)have;
    return 0;
}

int whole_file_read(const struct whole_file *f, char **ret, size_t *ret_bytes)
{
    /* O_NONBLOCK: opening a fifo must not wait for its writer */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (f->no_link ? O_NOFOLLOW : 0);
    base_autoclose int fd = f->path ? openat(f->folder, f->path, flags) : -1;

    return read_open(f->path ? fd : f->folder, f, ret, ret_bytes);
}

const char *whole_file_why(int r)
{
    switch (r) {
    case WHOLE_FILE_E_KIND:
        return "not a regular file";
    case WHOLE_FILE_E_LARGE:
        return "File too large";
    case WHOLE_FILE_E_OPEN:
        return "others may read it";
    case WHOLE_FILE_E_CHANGED:
        return "it changed while it was read";
    default:
        return strerror(-r);
    }
}

int atomic_file_write_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes);

        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int atomic_file_write_draft(const struct atomic_file *f, const char *draft, const void *data,
                                   size_t bytes)
{
    base_autoclose int fd = -1;
    struct stat st;
    int r;

    /* A writer that was killed may have left one. */
    if (unlinkat(f->folder, draft, 0) < 0 && errno != ENOENT) {
        return -errno;
    }
    fd = openat(f->folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -errno;
    }
    if (f->inherited && (fstat(f->folder, &st) < 0 ||
                         (st.st_uid != geteuid() && fchown(fd, st.st_uid, st.st_gid) < 0))) {
        return -errno;
    }
    r = atomic_file_write_all(fd, data, bytes);
    return r < 0 ? r : fchmod(fd, f->mode) < 0 || (f->synced && fsync(fd) < 0) ? -errno : 0;
}

void atomic_file_sync_folder(const struct atomic_file *f)
{
    base_autofree char *parent = NULL;
    base_autoclose int fd = -1;
    const char *slash = strrchr(f->path, '/');

    if (!slash) {
        parent = strdup(".");
    } else if (asprintf(&parent, "%.*s", (int)base_max(slash - f->path, (ptrdiff_t)1), f->path) <
               0) {
        parent = NULL;
    }
    fd = parent ? openat(f->folder, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
    }
}

int atomic_file_write(const struct atomic_file *f, const void *data, size_t bytes)
{
    base_autofree char *draft = NULL;
    int r;

    if (asprintf(&draft, "%s.new", f->path) < 0) {
        draft = NULL;
        return -ENOMEM;
    }
    r = atomic_file_write_draft(f, draft, data, bytes);
    if (r == 0 && renameat(f->folder, draft, f->folder, f->path) < 0) {
        r = -errno;
    }
    if (r < 0) {
        (void)unlinkat(f->folder, draft, 0);
    } else if (f->synced) {
        atomic_file_sync_folder(f);
    }
    return r;
}
