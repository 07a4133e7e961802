/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/polling.h - drives a connection: reads when its task has its turn, settles when
 * something became possible, and tells libuv what to wait for
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/conn.h"

/** dmn_polling_start() - serves the client on @fd, see dmn_conn_new(). Return: 0 or -errno. */
int dmn_polling_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid);
/** dmn_polling_settle() - answers DONE frames, writes; closes a connection that has ended. Messages
 * for which there is room now make its task due. */
void dmn_polling_settle(struct dmn_conn *c);
/** dmn_polling_take_in() - handles what has come so far, at once and not in its turn, in a bounded
 * number of rounds, and settles. */
void dmn_polling_take_in(struct dmn_conn *c);
