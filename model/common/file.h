/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/file.h - opens and reads untrusted files
 *
 * Only regular files (a fifo would block, a device may do anything), with a size limit, always
 * close-on-exec. Messages contain the path.
 */
#pragma once

#include <stddef.h>

#include "model/model.h"

/**
 * mdl_file_open() - opens a regular file for reading
 * @dir_fd, @path: as openat(2). @bytes_max: larger files are refused
 * Threads: any; blocks on the file. Return: 0 (*ret_fd is the caller's), -errno of the call,
 * -EISDIR, -EINVAL (not a regular file), -E2BIG.
 */
int mdl_file_open(int dir_fd, const char *path, size_t bytes_max, char ret_error[MDL_ERROR_MAX],
                  int *ret_fd, size_t *ret_bytes);

/** mdl_file_open_beneath() - the same, only below @dir_fd: no absolute path, no "..", no symbolic
 * link that leaves the folder. Return: also -EXDEV if the path leaves it. */
int mdl_file_open_beneath(int dir_fd, const char *path, size_t bytes_max,
                          char ret_error[MDL_ERROR_MAX], int *ret_fd, size_t *ret_bytes);

/** mdl_file_stamp() - what shows later that the open file @fd has changed; the path is NULL. @path:
 * for messages. @bytes: as it was opened; it may grow. Return: 0, -errno. */
int mdl_file_stamp(int fd, const char *path, size_t bytes, char ret_error[MDL_ERROR_MAX],
                   struct mdl_data_file *ret);

/** mdl_file_text() - reads the whole open file and appends a NUL (not counted); owned by the
 * caller, free().
 * @path: for messages. Return: 0, -errno, -ENOMEM, -EBADMSG if it is now shorter than @bytes. */
int mdl_file_text(int fd, const char *path, size_t bytes, char ret_error[MDL_ERROR_MAX],
                  char **ret);

/** mdl_file_text_beneath() - opens and reads as above. *ret_file: as of mdl_file_stamp(). */
int mdl_file_text_beneath(int dir_fd, const char *path, size_t bytes_max,
                          char ret_error[MDL_ERROR_MAX], struct mdl_data_file *ret_file,
                          char **ret);
