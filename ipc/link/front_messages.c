/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/front_messages.h"

#include <stdio.h>

#include "ipc/link/front_conn.h"
#include "ipc/link/front_open.h"

#define BACKLOG_MAX ((size_t)1 << 20)

static void welcome(const struct ipc_conn *c, struct ipc_welcome *ret)
{
    ret->streams_max = FRONT_STREAMS_MAX;
    ret->pool_bytes_max = FRONT_MEMORY_MAX;
    snprintf(ret->server, sizeof(ret->server), "piped-link " PIPED_VERSION);
}

static bool room(const struct ipc_conn *c, const struct ipc_stream *stream)
{
    const struct front_stream *s = front_stream_of(stream);

    return front_stream_room(s) && front_conn_share(front_conn_of(c), s);
}

static void frame(void *record)
{
    struct front_record *r = record;
    struct front_conn *c = front_conn_of(&r->stream->peer->base);

    front_stream_deliver(r);
    if (r->state == FRONT_DONE) { /* it may have counted while it was read */
        front_conns_let_go(c->room);
    }
}

static void finished(struct ipc_stream *s)
{
    front_stream_free(front_stream_of(s));
}

static size_t backlog_max(const struct ipc_conn *c)
{
    return BACKLOG_MAX;
}

const struct ipc_server_ops *front_messages(void)
{
    static const struct ipc_server_ops ops = {.welcome = welcome,
                                              .open = front_open_stream,
                                              .memory = front_open_memory,
                                              .room = room,
                                              .take = front_stream_take,
                                              .frame = frame,
                                              .cancel = front_stream_cancel,
                                              .answer = front_stream_answer,
                                              .finished = finished,
                                              .orphaned = front_conn_orphan,
                                              .backlog_max = backlog_max};

    return &ops;
}
