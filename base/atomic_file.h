/* SPDX-License-Identifier: Apache-2.0 */
/**
 * atomic_file.h - replaces a small file as a whole
 *
 * Whoever reads the file, at any moment and after any crash, sees the previous contents or the new
 * ones. They are first written to a draft beside it, NAME.new, which then takes its name.
 * Allocates and blocks. Threads: any, one at a time for each file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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
