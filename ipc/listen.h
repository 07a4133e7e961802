/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/listen.h - listening sockets of the daemon and of piped-link
 *
 * Threads: the main thread, at the start: the process's umask changes for a moment.
 */
#pragma once

/** ipc_listen() - opens a listening Unix socket at @path; replaces a stale socket file. @group: its
 * group; "": the process's. Return: an owned descriptor that does not block; -ESRCH: no such group;
 * -EADDRINUSE: somebody serves there; -errno. */
int ipc_listen(const char *path, unsigned mode, const char *group);
