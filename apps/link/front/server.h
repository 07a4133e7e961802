/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/server.h - the front of piped-link: a server of the frames protocol
 * (docs/protocol.md), for models that are spread over boards
 *
 * Its client is the daemon of this board, but any member of the socket's group may connect. It
 * takes tensors only (OPEN with another pixel format or policy is answered "unsupported"), in
 * shared memory or inline. Each frame goes to the listener, which answers when it likes, in any
 * order; clients get answers in the order of their frames.
 *
 * Foreign bytes are checked as the daemon checks them: messages, memory and the rules of both are
 * in ipc/server/. What a client can grow is bounded: connections, by user too, streams, credits,
 * client memory, inline buffers, unread answers. The listener has no more frames of a model of one
 * user than it asks for; others wait in their sockets. Some places stay for root and for users who
 * have no connection. A bad header ends its connection and no other.
 *
 * A frame's memory stays mapped until front_answer(), also when its client is gone.
 *
 * Threads: one, in which the listener is called; nothing blocks. Files, each of which uses those
 * before it: frame.h has frames, models.h models, stream.h clients with their streams
 * and records, connection.h what becomes of connections and of each message, server.c the socket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/link/front/frame.h"
#include "ipc/boards/board_state.h"

struct front;

/**
 * front_open() - listens at @path; no model may be opened yet
 *
 * @l: copied. The socket has mode 0660 and the group piped-clients, if there is one and the process
 * may give it away.
 *
 * Return: 0; -EADDRINUSE: somebody serves there; -errno.
 */
int front_open(const char *path, const struct front_listener *l, struct front **ret);
/** front_close() - closes everything and removes the socket. Frames that are not answered are over:
 * their memory is gone. @f may be NULL. Return: NULL. */
struct front *front_close(struct front *f);

/** front_fd() - an epoll descriptor for poll(), for reading only: front_dispatch() is due. */
int front_fd(const struct front *f);
/** front_dispatch() - accepts, reads, calls the listener, writes. Never waits. Call it at least
 * once a second, too: it closes clients that have not read for 30 s, or not greeted for 10 s. */
void front_dispatch(struct front *f);

/**
 * front_models() - which models may be opened, with their shapes; @r is copied
 *
 * Routes without hops, or with tensors that make no sense, are not there. Streams of a model that
 * is no longer there, or has other shapes, get EVENT "unloading"; their later frames are answered
 * "unavailable", until it is there again with the same shapes. Frames that the listener has stay
 * due.
 */
void front_models(struct front *f, const struct brd_routes *r);

/**
 * front_answer() - answers a frame, which is the front's again
 *
 * @status: 0: the output is written; else enum ipc_status, with @text for people (copied; NULL: the
 * status' name). @epoch, @queue_ns, @service_ns: for the client's RESULT.
 *
 * May be called at any time, in any order. Writes what is due to the socket, but calls no listener.
 */
void front_answer(struct front *f, struct front_frame *fr, int status, const char *text,
                  uint32_t epoch, uint64_t queue_ns, uint64_t service_ns);
