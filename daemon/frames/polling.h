/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/polling.h - drives a connection: reads when the socket has data, settles when
 * something became possible, and tells libuv what to wait for
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/conn.h"

/** dmn_polling_start() - serves the client on @fd, see dmn_conn_new(). Return: 0 or -errno. */
int dmn_polling_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid);
/** dmn_polling_read() - reads and handles what was sent, in a bounded number of rounds; closes a
 * connection that has ended. */
void dmn_polling_read(struct dmn_conn *c);
/**
 * dmn_polling_settle() - handles buffered messages, answers DONE frames, writes; closes a
 * connection that has ended
 *
 * Return: another round may get further.
 */
bool dmn_polling_settle(struct dmn_conn *c);
