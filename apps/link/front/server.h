/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/server.h - the front of piped-link: a server of the frames protocol
 * (docs/protocol.md), for models that are spread over boards
 *
 * Its client is the daemon of this board, but any member of the socket's group may connect. It
 * takes tensors, and pictures where the route does (OPEN with another pixel format or policy is
 * answered "unsupported"), in shared memory or inline. Each frame goes to the listener, which
 * answers when it likes, in any order; clients get answers in the order of their frames.
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
 * before it: models.c has models, stream.c streams and records, connection.c what becomes of
 * connections and of each message, server.c the socket.
 */
#pragma once

#include "base/base.h"
#include "ipc/boards/board_state.h"

/* A picture instead of tensors, without gaps between rows. */
struct front_picture {
    uint32_t pixfmt; /* enum pixfmt; 0: tensors */
    uint32_t width, height;
    uint64_t bytes;
};

/* A frame of a client: the front's memory, until front_answer(). */
struct front_frame {
    const char *model;    /* as in the routes */
    const uint8_t *input; /* input tensors back to back, see front_offset(), 64-byte aligned; or a
                             picture, anywhere */
    struct front_picture picture;
    uint8_t *output;      /* the same for outputs: write there before front_answer(..., 0, ...) */
    bool theirs;          /* both are client memory: this thread alone may touch it, and no system
                             call, because pages may vanish (ipc/server/mapped_memory.h) */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
    bool gone;            /* nobody wants the answer any more, but front_answer() is still due */
    void *user;           /* of the listener; NULL at first */
};

struct front_listener {
    void *user;
    /* A frame came; called by front_dispatch() only. It may call front_answer(), for any frame, and
     * front_models(). Return: 0: taken, front_answer() is due; else a status of the protocol (enum
     * ipc_status), which refuses it. */
    int (*frame)(void *user, struct front_frame *f);
    /* A frame that it has is gone: its client left, or cancelled it. May be NULL; calls nothing of
     * the front. */
    void (*gone)(void *user, struct front_frame *f);
    /* How many frames of a model one user may have with the listener; more wait in their sockets.
     * May be NULL: as many as they like. */
    uint32_t (*share)(void *user, const char *model);
    /* The socket's file had vanished; called by front_dispatch(). @why: NULL: it was made again;
     * else why not, said once. May be NULL. */
    void (*vanished)(void *user, const char *path, const char *why);
};

/** front_offset() - where tensor @i of @count begins in a frame's input or output: back to back,
 * each at a multiple of 64. Return: the offset; for @i == @count: all bytes. */
static inline size_t front_offset(const struct brd_tensor *t, size_t count, size_t i)
{
    size_t at = 0;

    for (size_t k = 0; k < count; k++) {
        at = base_align_up(at, 64);
        if (k == i) {
            break;
        }
        at += t[k].bytes;
    }
    return at;
}

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
