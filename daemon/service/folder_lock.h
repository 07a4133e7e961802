/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/folder_lock.h - a file that a process locks to have a folder for itself
 *
 * The lock ends with the process, whatever ends it. The file stays, since removing it would let two
 * processes lock two files of that name. It holds the number of the process that locked it last.
 *
 * Threads: one at a time for each lock; nothing waits for the lock.
 */
#pragma once

#include <sys/types.h>

/**
 * dmn_folder_lock() - locks DIR/NAME, unless *fd holds that lock already
 *
 * @fd: the descriptor that holds the lock, or -1; owned by the caller. It is replaced if the file
 * that it locks is no longer there, as after the folder was removed and made again.
 * @ret_holder: who holds the lock, with -EADDRINUSE; 0: unknown.
 *
 * Return: 0; -EADDRINUSE: another process holds it; -errno. On failure *fd is as it was.
 */
int dmn_folder_lock(const char *dir, const char *name, int *fd, pid_t *ret_holder);
