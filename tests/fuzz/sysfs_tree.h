/* SPDX-License-Identifier: Apache-2.0 */
/** tests/fuzz/sysfs_tree.h - the tree of a board in memory that a fuzz target changes file by file,
 * and that is put back at little cost */
#pragma once

#include <stddef.h>

/** sysfs_start() - makes the tree at the first call. Return: its root. */
const char *sysfs_start(void);
/** sysfs_paths() - Return: the number of the files that can be changed. Those that have a text at
 * the start come first. */
size_t sysfs_paths(void);
/** sysfs_put() - the file gets these bytes. */
void sysfs_put(size_t path, const void *bytes, size_t count);
/** sysfs_remove() - the file vanishes. */
void sysfs_remove(size_t path);
/** sysfs_folder() - a folder takes the file's place. */
void sysfs_folder(size_t path);
/** sysfs_link() - a link to another file takes its place. */
void sysfs_link(size_t path, size_t to);
/** sysfs_restore() - every file is as at the start. */
void sysfs_restore(void);
