/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/boards/board_files.h - a small JSON file of a folder, read and replaced as a whole */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define BRD_FILE_BYTES_MAX (64u << 10)
#define BRD_VERSION 1

/** brd_file_read() - @ret: new reference. Return: 0; BRD_E_FILE, _VERSION; BRD_E_OPEN: @secret, and
 * others than its owner may read it; -errno. */
int brd_file_read(int folder, const char *name, bool secret, json_t **ret);
/** brd_file_write() - adds the version and writes, owned by the folder's owner; synced. @root:
 * reference taken. Return: 0 or -errno, which leaves the previous file unchanged. */
int brd_file_write(int folder, const char *name, unsigned mode, json_t *root);
