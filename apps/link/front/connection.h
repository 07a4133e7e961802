/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/connection.h - the front's connections: what becomes of them
 *
 * When a connection ends while the listener has frames of it, its struct, which counts their
 * memory, lives until its last orphan is gone (apps/link/front/stream.h).
 *
 * Threads: the front's.
 */
#pragma once

#include "apps/link/front/stream.h"

#define FRONT_STREAMS_MAX 16u               /* of a connection */
#define FRONT_MEMORY_MAX IPC_POOL_BYTES_MAX /* the same */

/** front_conn_new() - @fd: its own, on success. @uid: of the client. Return: 0 or -errno. */
int front_conn_new(struct front_room *room, int fd, uid_t uid);
/** front_conns_of() - Return: how many connections the user has. */
size_t front_conns_of(const struct front_room *room, uid_t uid);
/** front_conns_let_go() - shares may have changed: what is held is looked at again. */
void front_conns_let_go(struct front_room *room);
/** front_conn_close() - now, even with unwritten answers. It lives on for its orphans. */
void front_conn_close(struct front_conn *c);
/** front_conn_end_orphan() - frees an orphan, and its connection with the last one. */
void front_conn_end_orphan(struct front_stream *s);
/** front_conn_read() - epoll's @events came; never closes. */
void front_conn_read(struct front_conn *c, uint32_t events);
/** front_conn_settle() - handles and sends what it can; closes a connection that has ended. */
void front_conn_settle(struct front_conn *c);
/** front_conn_answer() - sends what is due, but handles no messages and never closes. What is left
 * to do is for front_conn_settle(): the connection stays unsettled. */
void front_conn_answer(struct front_conn *c);
/** front_messages() - for the connections of struct front_conn; static. */
const struct ipc_server_ops *front_messages(void);
