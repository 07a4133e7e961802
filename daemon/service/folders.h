/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/folders.h - the runtime and state folders, and the lock by which a process has a
 * folder for itself
 *
 * The lock is on a file and ends with the process, whatever ends it. The file stays, since removing
 * it would let two processes lock two files of that name. It holds the number of the process that
 * locked it last.
 *
 * Threads: any, one at a time for each lock; nothing waits for a lock.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/** dmn_runtime_dir() - finds or makes the folder of the sockets: @given, else /run/piped if
 * writable, else $XDG_RUNTIME_DIR/piped. Return: owned; NULL with errno. */
char *dmn_runtime_dir(const char *given);
/** dmn_state_dir() - finds the state folder, and makes it if @make: @given, else $STATE_DIRECTORY,
 * else /var/lib/piped if writable, else piped/ in $XDG_STATE_HOME or ~/.local/state. Return: owned;
 * NULL with errno: none. */
char *dmn_state_dir(const char *given, bool make);

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
