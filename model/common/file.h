/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/file.h - opening and reading files that somebody else wrote
 *
 * Only regular files (a fifo would block, a device may do anything), never past a size cap, always
 * close-on-exec. Messages carry the path.
 */
#pragma once

#include <stddef.h>

#include "model/model.h"

/**
 * mdl_file_open() - opens a regular file for reading
 * @dir_fd, @path: as openat(2). @bytes_max: refuse above
 * Threads: any; blocks on the file. Return: 0, -errno of the call, -EISDIR, -EINVAL (not a regular
 * file), -E2BIG.
 */
int mdl_file_open(int dir_fd, const char *path, size_t bytes_max, char ret_error[MDL_ERROR_MAX],
                  int *ret_fd, size_t *ret_bytes);

/** mdl_file_open_beneath() - the same below @dir_fd only: no absolute path, no "..", no symbolic
 * link that leaves the folder. Return: also -EXDEV where it would. */
int mdl_file_open_beneath(int dir_fd, const char *path, size_t bytes_max,
                          char ret_error[MDL_ERROR_MAX], int *ret_fd, size_t *ret_bytes);

/** mdl_file_text() - the whole open file, NUL appended (not counted); owned by the caller, free().
 * @path: for messages. Return: 0, -errno, -ENOMEM, -EBADMSG where it is shorter than @bytes now. */
int mdl_file_text(int fd, const char *path, size_t bytes, char ret_error[MDL_ERROR_MAX],
                  char **ret);
