/* SPDX-License-Identifier: Apache-2.0 */
/**
 * whole_file.h - reads a small regular file as a whole
 *
 * What has the name may be a fifo or a device, which would wait or not end; the file may be larger
 * than anybody wants, and change while it is read. Allocates and blocks. Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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
