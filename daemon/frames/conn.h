/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/conn.h - a connection: its parts, and its end
 *
 * Owned by the room's list (dmn_frames.conns). Only polling.c and frames.c close it; handlers and
 * answers never do. Closing takes it off the lists at once and orphans its streams, whose frames
 * may still be in a pipeline. The memory stays, with peer.closed set, until libuv has released the
 * descriptor.
 *
 * About 17 KiB, nearly all of it the buffer of ipc/server/intake.h.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/peer.h"
#include "daemon/frames/room.h"
#include "daemon/frames/stream.h"
#include "ipc/server/intake.h"

struct dmn_conn {
    struct dmn_peer peer;
    LIST_ENTRY(dmn_conn) linked; /* in the room's list */
    uv_poll_t poll;
    struct dmn_loop_task task; /* reads and handles what it sends; run by polling.c */
    int events;                /* that it polls for; written by polling.c, as the next two */
    bool hung_up, broken;      /* as the poll said */
    bool cut;          /* messages wait because the task's piece of time is over; by handlers.c */
    bool greeted;      /* HELLO came; written by handlers.c */
    uint64_t since_ns; /* it connected */
    /* owned; added by opening.c */
    size_t stream_count;
    struct dmn_stream *streams[IPC_STREAMS_MAX];
    struct dmn_record *reading; /* of a stream: its input is being read; written by handlers.c */
    struct ipc_intake intake;
};

/**
 * dmn_conn_new() - adds a connection to the list, without polling it yet
 *
 * @fd: owned by the connection from now on, on success     @account: borrowed; counts it
 *
 * Return: 0 or -errno.
 */
int dmn_conn_new(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid,
                 struct dmn_conn **ret);
/** dmn_conn_close() - closes it now, even with unwritten answers. A second call does nothing. */
void dmn_conn_close(struct dmn_conn *c);

/** dmn_conn_tell_draining() - appends the event that the daemon is stopping. */
void dmn_conn_tell_draining(struct dmn_conn *c);

/** dmn_conn_takes() - Return: it may send more: it reads its answers, and nothing ends it. */
static inline bool dmn_conn_takes(const struct dmn_conn *c)
{
    return !c->peer.ending && !c->peer.closed && !dmn_peer_backlogged(&c->peer);
}
/** dmn_conn_stream() - the open stream of this number, or NULL. */
static inline struct dmn_stream *dmn_conn_stream(const struct dmn_conn *c, uint32_t id)
{
    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i]->id == id) {
            return c->streams[i];
        }
    }
    return NULL;
}
/** dmn_conn_end_stream() - ends a finished stream: appends CLOSED and frees it. The last stream
 * takes its place in the array. */
void dmn_conn_end_stream(struct dmn_conn *c, struct dmn_stream *s);
