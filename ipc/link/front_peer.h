/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/front_peer.h - the client of a connection, as its streams see it
 *
 * Embedded in struct front_conn. It lives on for streams whose connection is closed, because it
 * counts their memory.
 *
 * Threads: the front's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ipc/link/front_frame.h"
#include "ipc/server/frame_rules.h"
#include "ipc/server/outgoing.h"

#define FRONT_BACKLOG_MAX ((size_t)1 << 20) /* unread bytes: then nothing is read or answered */

struct front_peer {
    const struct front_listener *listener; /* borrowed from the front */
    bool ending; /* ERROR is sent: nothing more, and close when it is written */
    size_t memory_bytes, inline_bytes; /* of its streams: client memory, buffers of records */
    struct ipc_outgoing out;
};

/** front_send() - appends a message, as ipc_outgoing_add(). Nothing after an ERROR. */
static inline void front_send(struct front_peer *p, struct ipc_header h, const void *payload,
                              size_t bytes, const void *tail, size_t tail_bytes)
{
    if (!p->ending && !ipc_outgoing_add(&p->out, h, payload, bytes, tail, tail_bytes)) {
        p->ending = true;
    }
}
/** front_reply() - sends what ipc/server/frame_rules.h or ipc/server/open_rules.h made. */
static inline void front_reply(struct front_peer *p, const struct ipc_reply *r)
{
    front_send(p, r->h, r->payload, r->bytes, r->tail, r->tail_bytes);
}
static inline bool front_backlogged(const struct front_peer *p)
{
    return ipc_outgoing_waiting(&p->out) > FRONT_BACKLOG_MAX;
}
