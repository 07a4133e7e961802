/* SPDX-License-Identifier: Apache-2.0 */
/**
 * whole_file.h - small regular files, read and replaced as a whole
 *
 * Allocates and blocks. Threads: any, but one at a time replaces a file.
 */
#pragma once

#include "base/base.h"

/* ---- read: what has the name may be a fifo or a device, which would wait or not end; the file may
 * be larger than anybody wants, and change while it is read ---- */

struct whole_file {
    int folder;       /* its descriptor; AT_FDCWD: `path` says where */
    const char *path; /* within the folder; NULL: `folder` is the file, and remains open */
    size_t bytes_max;
    mode_t refused; /* permissions that nobody may have */
    bool no_link;   /* a link is -ELOOP */
};

enum { WHOLE_FILE_E_KIND = 1, WHOLE_FILE_E_LARGE, WHOLE_FILE_E_OPEN, WHOLE_FILE_E_CHANGED };

/**
 * whole_file_read() - reads @f
 * @ret: owned, with a NUL after the last byte
 * Return: 0; WHOLE_FILE_E_KIND: it is no regular file; WHOLE_FILE_E_LARGE: it has more than
 * bytes_max; WHOLE_FILE_E_OPEN: it has a permission that is refused; WHOLE_FILE_E_CHANGED: it
 * became shorter or longer meanwhile; -errno.
 */
int whole_file_read(const struct whole_file *f, char **ret, size_t *ret_bytes);

/** whole_file_why() - Return: what @r of whole_file_read() means, without a full stop. */
const char *whole_file_why(int r);

/** whole_file_part() - reads @bytes from byte @at on, however often it is interrupted; the
 * descriptor's position stays. Return: bytes, fewer only at the end of the file; -errno. */
ssize_t whole_file_part(int fd, size_t at, void *ret, size_t bytes);

/* ---- replaced: whoever reads the file, at any moment and after any crash, sees the previous
 * contents or the new ones; they are first written to a draft beside it, NAME.new, which then takes
 * its name ---- */

struct atomic_file {
    int folder;       /* its descriptor; AT_FDCWD: `path` says where */
    const char *path; /* within the folder */
    mode_t mode;      /* whatever the umask is */
    bool inherited;   /* belongs to the folder's owner, not to who writes it; not with AT_FDCWD */
    bool synced;      /* waits until the new contents would survive a loss of power */
};

/** atomic_file_write_all() - writes all of @data, however often it is interrupted. Return: 0;
 * -errno. */
int atomic_file_write_all(int fd, const char *data, size_t bytes);

/** atomic_file_sync_folder() - makes the name survive a loss of power, too. If that fails, the file
 * is there anyway. */
void atomic_file_sync_folder(const struct atomic_file *f);

/** atomic_file_write() - makes @f consist of @bytes bytes of @data. Return: 0; -errno or -ENOMEM,
 * which leaves the previous file unchanged. */
int atomic_file_write(const struct atomic_file *f, const void *data, size_t bytes);
