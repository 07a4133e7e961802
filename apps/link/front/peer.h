/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/peer.h - the client of a connection, as its streams see it
 *
 * Embedded in struct front_conn. It lives on for streams whose connection is closed, because it
 * counts their memory.
 *
 * Threads: the front's.
 */
#pragma once

#include "apps/link/front/frame.h"
#include "base/base.h"
#include "ipc/server/connection.h"

struct front_peer {
    const struct front_listener *listener; /* borrowed from the front */
    size_t memory_bytes, inline_bytes;     /* of its streams: client memory, buffers of records */
    struct ipc_conn base;
};

static inline struct front_peer *front_peer_of(const struct ipc_conn *c)
{
    return base_container_of(c, struct front_peer, base);
}
