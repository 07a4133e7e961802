/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/state_lock.h - one daemon at a time writes in a state directory
 *
 * Files are replaced as a whole, so anybody may read them. But two daemons that keep what they
 * learn in one directory would undo each other's work. The first locks the directory for as long as
 * it runs. A second one serves, reads what is kept, and writes nothing: dmn_state_file_write()
 * gives -EBUSY.
 *
 * There is one state directory in a process, so the lock is the process's. Threads: the loop
 * thread; dmn_state_taken(): any.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/**
 * dmn_state_lock() - locks the directory, or tries again; also notices that the lock's file was
 * removed
 *
 * @ret_holder: the process that keeps it, with -EADDRINUSE; 0: unknown.
 *
 * Return: 0; -EADDRINUSE: another daemon keeps it, so nothing is written from now on; -errno: it
 * cannot be locked, and files are written without a lock.
 */
int dmn_state_lock(const char *folder, pid_t *ret_holder);
/** dmn_state_unlock() - ends the lock, if there is one. */
void dmn_state_unlock(void);
/** dmn_state_taken() - Return: another daemon keeps the directory. */
bool dmn_state_taken(void);
/** dmn_state_untold() - Return: a write failed by @error, and the log does not know why yet: that
 * another daemon keeps the directory was said once. */
bool dmn_state_untold(int error);
/** dmn_state_why() - Return: why a file was not kept, for people; static, or as strerror(). @error:
 * -ENOENT: no state directory; -EBUSY: another daemon keeps it; -EBADMSG: the present file is
 * damaged; -errno. */
const char *dmn_state_why(int error);
