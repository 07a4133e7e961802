/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/front_conn.h - the front's connections: their parts, and their end
 *
 * When a connection ends while the listener has frames of it, its struct, which counts their
 * memory, lives until its last orphan is gone (ipc/link/front_stream.h).
 *
 * Threads: the front's.
 */
#pragma once

#include <sys/types.h>

#include "ipc/link/front_models.h"
#include "ipc/link/front_peer.h"
#include "ipc/link/front_stream.h"
#include "ipc/server/intake.h"

#define FRONT_STREAMS_MAX 16u               /* of a connection */
#define FRONT_MEMORY_MAX IPC_POOL_BYTES_MAX /* the same */

/* What the connections share. Embedded in struct front. */
struct front_room {
    struct front_listener listener;
    int epoll_fd;
    uint64_t instance;
    struct front_list models;
    size_t conn_count;
    bool held; /* a frame was left in its socket, since its user has its share */
    LIST_HEAD(, front_conn) conns;
    LIST_HEAD(, front_stream) orphans;
};

struct front_conn {
    struct front_peer peer;
    struct front_room *room;
    LIST_ENTRY(front_conn) linked; /* in room->conns, until closed */
    int fd;
    uid_t uid; /* of the client's process */
    uint64_t since_ns;
    uint32_t events; /* that epoll waits for */
    bool greeted;
    bool broken; /* the client is gone: close at the next chance */
    bool closed; /* it lives on for its orphans */
    size_t orphans, stream_count;
    struct front_stream *streams[FRONT_STREAMS_MAX]; /* owned */
    struct front_record *reading;                    /* whose inline input is being read */
    struct ipc_intake intake;
};

static inline struct front_stream *front_conn_stream(const struct front_conn *c, uint32_t id)
{
    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i]->id == id) {
            return c->streams[i];
        }
    }
    return NULL;
}

/** front_conn_takes() - Return: it may send more: it reads its answers, and nothing ends it. */
static inline bool front_conn_takes(const struct front_conn *c)
{
    return !c->peer.ending && !c->broken && !front_backlogged(&c->peer);
}
static inline bool front_conn_wants(const struct front_conn *c)
{
    return front_conn_takes(c) && ipc_intake_room(&c->intake);
}

/** front_conn_new() - @fd: its own, on success. @uid: of the client. Return: 0 or -errno. */
int front_conn_new(struct front_room *room, int fd, uid_t uid);
/** front_conns_of() - Return: how many connections the user has. */
size_t front_conns_of(const struct front_room *room, uid_t uid);
/** front_conn_share() - Return: the listener has not all the frames of the stream's model yet that
 * this user may have there; else they are held until one is answered. */
bool front_conn_share(const struct front_conn *c, const struct front_stream *s);
/** front_conn_close() - now, even with unwritten answers. */
void front_conn_close(struct front_conn *c);
/** front_conn_end_orphan() - frees an orphan, and its connection with the last one. */
void front_conn_end_orphan(struct front_stream *s);
/** front_conn_end_stream() - ends a finished stream: appends CLOSED and frees it. The last stream
 * takes its place in the array. */
void front_conn_end_stream(struct front_conn *c, struct front_stream *s);
/** front_conn_flush() - writes, and waits for what is left; never closes. Return: it was backlogged
 * and is no longer, so front_messages_settle() has something to do. */
bool front_conn_flush(struct front_conn *c);
