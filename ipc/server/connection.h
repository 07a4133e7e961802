/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/connection.h - the connections of a frames server: what they receive, what is sent,
 * and their end
 *
 * The server of the frames protocol, which the daemon and piped-link embed. Each has its own loop,
 * accepts clients, waits for their sockets and calls what is below; what becomes of streams and
 * frames, it says in a table of functions.
 *
 * A frame is handled only when its stream has room for it. Until then it stays in the buffer, with
 * everything that follows it. Messages are appended to a buffer, which is written when the
 * connection is settled; so one write carries the answers of a whole turn of the loop. Nothing here
 * closes a connection: a failure sets `ending`, and the connection ends once everything is written.
 *
 * Threads: the one that serves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "ipc/server/bytes.h"
#include "ipc/server/frame_rules.h"
#include "ipc/wire.h"

/* Named outcomes of ipc_conn_answer() and ipc_conn_read(). */
enum {
    IPC_E_ENDED = 1, /* the connection has ended: close it */
    IPC_E_MORE       /* messages that came may be handled now */
};

/* A stream, embedded in that of the server, which writes all but `closing`. */
struct ipc_stream {
    uint32_t id;
    bool closing; /* CLOSE came */
    struct ipc_flow flow;
    struct ipc_memory *memory[IPC_POOLS_MAX]; /* a reference each */
    uint32_t head, tail;                      /* free-running: frames that are not answered yet */
};

static inline bool ipc_stream_empty(const struct ipc_stream *s)
{
    return s->head == s->tail;
}
/** ipc_stream_finished() - Return: it was closed and every frame is answered: it ends. */
static inline bool ipc_stream_finished(const struct ipc_stream *s)
{
    return s->closing && ipc_stream_empty(s);
}

struct ipc_conn {
    struct ipc_server *server;   /* borrowed */
    LIST_ENTRY(ipc_conn) linked; /* in server->conns, until closed */
    LIST_ENTRY(ipc_conn) waits;  /* in server->unsettled */
    int fd;                      /* owned */
    bool unsettled;
    bool greeted;      /* HELLO came */
    bool ending;       /* after an ERROR or out of memory: append nothing, flush and close */
    bool closed;       /* what is left of it lives on until the server frees it */
    bool cut;          /* messages wait because the connection's piece of time is over */
    uint64_t since_ns; /* it connected */
    uint32_t features; /* both sides have; 0 before HELLO */
    char client[IPC_NAME_BYTES]; /* its name from HELLO, or "?" */
    struct ipc_outgoing out;
    size_t stream_count;
    struct ipc_stream *streams[IPC_STREAMS_MAX]; /* the server's; added when they are opened */
    void *reading;                               /* a record, whose inline input is being read */
    struct ipc_intake intake;
};

/* What a server does. Functions close no connection. */
struct ipc_server_ops {
    /* HELLO came: sets features that the server knows, its limits and its name. */
    void (*welcome)(const struct ipc_conn *c, struct ipc_welcome *ret);
    /* WELCOME was appended. May be NULL. */
    void (*greeted)(struct ipc_conn *c);
    /* OPEN and POOL, each of which it answers. @fd: stays the caller's; -1: none came. */
    void (*open)(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload);
    void (*memory)(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload, int fd);
    /* Return: the stream can take a frame now. */
    bool (*room)(const struct ipc_conn *c, const struct ipc_stream *s);
    /* Takes a FRAME or INLINE, or refuses it in its turn. @payload: its fixed part. @ret_to: where
     * the rest goes, if it is not NULL. Return: a record for `frame`; NULL: refused. */
    void *(*take)(struct ipc_stream *s, const struct ipc_header *h, const uint8_t *payload,
                  uint8_t **ret_to);
    /* All bytes of a frame that was taken are here. */
    void (*frame)(void *record);
    /* The client does not want the answer to this frame any more. */
    void (*cancel)(struct ipc_stream *s, uint64_t frame);
    /* Sends the answers that are due, while the client reads. Return: something was sent. */
    bool (*answer)(struct ipc_stream *s);
    /* A stream is over: it is finished; or its connection is closed, while frames may be left. */
    void (*finished)(struct ipc_stream *s);
    void (*orphaned)(struct ipc_stream *s);
    /* Return: so many bytes may be unread; with more, nothing is read or answered. */
    size_t (*backlog_max)(const struct ipc_conn *c);
    /* The connection will end, for the reason that the client is told. @text: NULL: no memory is
     * left for an answer. May be NULL. */
    void (*failed)(struct ipc_conn *c, enum ipc_status status, const char *text);
    /* Return: others have their turn now; the next messages wait. May be NULL: never. */
    bool (*over)(const struct ipc_conn *c);
};

/* Embedded in the daemon's and in piped-link's. */
struct ipc_server {
    const struct ipc_server_ops *ops;
    uint64_t instance; /* random, sent in WELCOME: shows clients a restart */
    size_t conn_count;
    LIST_HEAD(, ipc_conn) conns;     /* that are not closed */
    LIST_HEAD(, ipc_conn) unsettled; /* where something may be due, for the server's loop */
};

/** ipc_server_init() - @s is all zeros. */
void ipc_server_init(struct ipc_server *s, const struct ipc_server_ops *ops);

/** ipc_server_refuse() - tells a client that has no place why, as far as the socket @fd has room,
 * and closes it. Return: it was told. */
bool ipc_server_refuse(int fd, enum ipc_status status, const char *text);

/** ipc_conn_init() - adds a connection, all zeros. @fd: owned by @c from now on. */
void ipc_conn_init(struct ipc_conn *c, struct ipc_server *s, int fd);
/** ipc_conn_leave() - takes an open connection off its server: it is closed. Its streams become
 * orphans. */
void ipc_conn_leave(struct ipc_conn *c);
/** ipc_conn_deinit() - closes the socket of a connection that has left; frees what was not
 * written. */
void ipc_conn_deinit(struct ipc_conn *c);

/** ipc_conn_stream() - the open stream of this number, or NULL. */
static inline struct ipc_stream *ipc_conn_stream(const struct ipc_conn *c, uint32_t id)
{
    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i]->id == id) {
            return c->streams[i];
        }
    }
    return NULL;
}
/** ipc_conn_backlogged() - Return: too much is unread: read and answer nothing until it shrinks. */
static inline bool ipc_conn_backlogged(const struct ipc_conn *c)
{
    size_t waiting = ipc_outgoing_waiting(&c->out);

    return waiting && waiting > c->server->ops->backlog_max(c);
}
/** ipc_conn_takes() - Return: it may send more: it reads its answers, and nothing ends it. */
static inline bool ipc_conn_takes(const struct ipc_conn *c)
{
    return !c->ending && !c->closed && !ipc_conn_backlogged(c);
}
/** ipc_conn_wants() - Return: as ipc_conn_takes(), and there is room for it. */
static inline bool ipc_conn_wants(const struct ipc_conn *c)
{
    return ipc_conn_takes(c) && ipc_intake_room(&c->intake);
}
/** ipc_conn_silent() - Return: it has said no HELLO for @limit_ns, and is not told so yet. */
static inline bool ipc_conn_silent(const struct ipc_conn *c, uint64_t now_ns, uint64_t limit_ns)
{
    return !c->greeted && !c->ending && now_ns >= c->since_ns + limit_ns;
}
/** ipc_conn_stuck() - Return: it has read nothing for more than @limit_ns, though it has to. */
static inline bool ipc_conn_stuck(const struct ipc_conn *c, uint64_t now_ns, uint64_t limit_ns)
{
    uint64_t since_ns = c->out.stuck_ns;

    return since_ns && now_ns > since_ns && now_ns - since_ns > limit_ns;
}

/** ipc_conn_mark() - something may be due: the connection is to be settled, unless it is closed. */
static inline void ipc_conn_mark(struct ipc_conn *c)
{
    if (!c->unsettled && !c->closed) {
        c->unsettled = true;
        LIST_INSERT_HEAD(&c->server->unsettled, c, waits);
    }
}

/**
 * ipc_conn_send() - appends a message and marks the connection
 *
 * @h: version and length are filled in here     @tail: follows @payload; either may be empty
 *
 * Copies everything. Does nothing if the connection is closed or ending. If out of memory, it is
 * ending afterwards.
 */
void ipc_conn_send(struct ipc_conn *c, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes);
/** ipc_conn_reply() - sends what ipc/server/frame_rules.h made. */
static inline void ipc_conn_reply(struct ipc_conn *c, const struct ipc_reply *r)
{
    ipc_conn_send(c, r->h, r->payload, r->bytes, r->tail, r->tail_bytes);
}
/** ipc_conn_event() - sends an EVENT of @stream; 0: of the connection. */
void ipc_conn_event(struct ipc_conn *c, uint32_t stream, enum ipc_event event, uint32_t epoch);
/** ipc_conn_fail() - appends an ERROR, and ends the connection, unless it is ending already. */
__attribute__((format(printf, 3, 4))) void ipc_conn_fail(struct ipc_conn *c, enum ipc_status status,
                                                         const char *format, ...);

/** ipc_conn_answer() - sends the answers that are due, and writes; then the connection is settled.
 * Return: 0; IPC_E_MORE; IPC_E_ENDED. */
int ipc_conn_answer(struct ipc_conn *c);

/** ipc_conn_handle() - handles the received messages while there is room for them, and until
 * the connection's piece of time is over: then @c is `cut`. Never closes @c, but may end it. */
void ipc_conn_handle(struct ipc_conn *c);
/** ipc_conn_read() - handles what has come, and reads on, in a bounded number of rounds.
 * Return: 0; IPC_E_MORE: another call is due soon; IPC_E_ENDED: the client is gone. */
int ipc_conn_read(struct ipc_conn *c);
