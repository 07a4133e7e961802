/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic_file.h"

#include "base/base.h"

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
