/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/sockets.h - the runtime and state folders, and the files of sockets
 *
 * Threads: the main thread, before the loop runs; dmn_socket_remove() also while it runs.
 */
#pragma once

/** dmn_sockets_lock() - locks the runtime folder. @ret_fd: holds the lock, owned by the caller.
 * Return: 0; -EADDRINUSE: another daemon serves there; -errno. */
int dmn_sockets_lock(const char *dir, int *ret_fd);
/** dmn_socket_remove() - removes the file of a listening socket and frees its path. Does nothing if
 * @path is NULL: the socket was passed in. */
void dmn_socket_remove(char **path);
/** dmn_runtime_dir() - finds or makes the folder of the sockets: @given, else /run/piped if
 * writable, else $XDG_RUNTIME_DIR/piped. Return: owned; NULL with errno. */
char *dmn_runtime_dir(const char *given);
/** dmn_state_dir() - finds or makes the state folder: @given, else $STATE_DIRECTORY, else
 * /var/lib/piped if writable, else piped/ in $XDG_STATE_HOME or ~/.local/state. Return: owned;
 * NULL: none. */
char *dmn_state_dir(const char *given);
