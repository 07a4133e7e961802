/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/receiving.h - reads what clients send and handles each message
 *
 * A frame is handled only when its stream has room for it. Until then it stays in the buffer, with
 * everything that follows it.
 *
 * Threads: the one that serves.
 */
#pragma once

#include "ipc/server/connection.h"

/** ipc_conn_handle() - handles the received messages while there is room for them, and until
 * the connection's piece of time is over: then @c is `cut`. Never closes @c, but may end it. */
void ipc_conn_handle(struct ipc_conn *c);
/** ipc_conn_read() - handles what has come, and reads on, in a bounded number of rounds.
 * Return: 0; IPC_E_MORE: another call is due soon; IPC_E_ENDED: the client is gone. */
int ipc_conn_read(struct ipc_conn *c);
