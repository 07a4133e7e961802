/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/conn.h - a connection: reads when its task has its turn, settles when something
 * became possible, and tells libuv what to wait for
 *
 * Owned by the room's list (dmn_frames.server). Only conn.c and frames.c close it; handlers and
 * answers never do. Closing takes it off the lists at once and orphans its streams, whose frames
 * may still be in a pipeline. The memory stays, with base.closed set, until libuv has released
 * the descriptor.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/peer.h"

/**
 * dmn_conn_start() - adds a connection to the list and serves the client on @fd
 *
 * @fd: owned by the connection from now on, on success     @account: borrowed; counts it
 *
 * Return: 0 or -errno.
 */
int dmn_conn_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid);
/** dmn_conn_settle() - answers DONE frames, writes; closes a connection that has ended. Messages
 * for which there is room now make its task due. */
void dmn_conn_settle(struct dmn_peer *c);
/** dmn_conn_take_in() - handles what has come so far, at once and not in its turn, in a bounded
 * number of rounds, and settles. */
void dmn_conn_take_in(struct dmn_peer *c);
/** dmn_conn_close() - closes it now, even with unwritten answers. A second call does nothing. */
void dmn_conn_close(struct dmn_peer *c);
