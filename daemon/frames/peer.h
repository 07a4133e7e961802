/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/peer.h - the client of a connection, as its streams see it: its identity and the
 * data to write to it
 *
 * Messages are appended to a buffer, which is written when the connection is settled; so one write
 * carries the answers of a whole turn of the loop. Nothing here closes a connection: a failure sets
 * `ending`, and the connection closes once everything is written.
 *
 * Embedded in struct dmn_conn, from dmn_conn_new() until dmn_conn_close(). Streams that outlive
 * their connection lose their pointer then (dmn_stream_orphan()).
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/frames/accounts.h"
#include "daemon/frames/admission.h"
#include "daemon/frames/room.h"
#include "ipc/server/frame_rules.h"
#include "ipc/server/outgoing.h"
#include "ipc/wire.h"

struct dmn_peer {
    struct dmn_frames *frames;   /* borrowed */
    LIST_ENTRY(dmn_peer) linked; /* while unsettled */
    bool unsettled;              /* in the list of connections to settle */
    bool ending; /* after an ERROR or out of memory: append nothing, flush and close */
    bool closed; /* the connection is closed; libuv may still use its memory */
    int fd;      /* borrowed from the connection */
    struct ipc_outgoing out;
    uint64_t answered;           /* frames; written by frame_ring.c */
    size_t inline_bytes;         /* buffers of all its records; written by record.c, stream.c */
    struct dmn_account *account; /* borrowed until closed */
    pid_t pid;
    uint32_t features;           /* both sides have; 0 before HELLO */
    char client[IPC_NAME_BYTES]; /* its name from HELLO, or "?" */
};

/** dmn_peer_deinit() - frees what was not written. */
void dmn_peer_deinit(struct dmn_peer *p);
/** dmn_peer_close() - sets `closed` and takes @p off the list of connections to settle. */
void dmn_peer_close(struct dmn_peer *p);

/** dmn_peer_mark() - makes dmn_frames_settle() look at this connection. */
static inline void dmn_peer_mark(struct dmn_peer *p)
{
    if (!p->unsettled && !p->closed) {
        p->unsettled = true;
        LIST_INSERT_HEAD(&p->frames->unsettled, p, linked);
    }
}

/** dmn_peer_settled() - takes @p off the list of connections to settle, if it is there. */
void dmn_peer_settled(struct dmn_peer *p);

/**
 * dmn_peer_send() - appends a message and marks the connection
 *
 * @h: version and length are filled in here     @tail: follows @payload; either may be empty
 *
 * Copies everything. Does nothing if the peer is closed or ending. If out of memory, the peer is
 * ending afterwards. It never closes, so a caller may go on with its streams.
 */
void dmn_peer_send(struct dmn_peer *p, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes);
/** dmn_peer_reply() - sends what ipc/server/frame_rules.h or ipc/server/open_rules.h made. */
static inline void dmn_peer_reply(struct dmn_peer *p, const struct ipc_reply *r)
{
    dmn_peer_send(p, r->h, r->payload, r->bytes, r->tail, r->tail_bytes);
}
/** dmn_peer_fail() - logs the error, appends an ERROR with the same text, and ends the
 * connection. */
__attribute__((format(printf, 3, 4))) void dmn_peer_fail(struct dmn_peer *p, enum ipc_status status,
                                                         const char *format, ...);
/** dmn_peer_refused() - remembers for Status that the client was refused something. */
void dmn_peer_refused(const struct dmn_peer *p, enum dmn_refused what, enum ipc_status status,
                      const char *why);
/** dmn_peer_join() - @q is a stream of this client's user, by the weight that
 * DMN_KEY_LIMIT_USER_WEIGHTS gives it; see dmn_queue_join(). */
void dmn_peer_join(const struct dmn_peer *p, struct dmn_admission *a, struct dmn_queue *q);
/** dmn_peer_over_limit() - Return: more is unwritten than DMN_KEY_LIMIT_BACKLOG_KIB: read and
 * answer nothing until it shrinks. */
bool dmn_peer_over_limit(const struct dmn_peer *p);

static inline bool dmn_peer_backlogged(const struct dmn_peer *p)
{
    return ipc_outgoing_waiting(&p->out) && dmn_peer_over_limit(p);
}
