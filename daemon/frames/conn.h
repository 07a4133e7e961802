/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/conn.h - a connection: its parts, and its end
 *
 * Owned by the room's list (dmn_frames.server). Only polling.c and frames.c close it; handlers and
 * answers never do. Closing takes it off the lists at once and orphans its streams, whose frames
 * may still be in a pipeline. The memory stays, with peer.base.closed set, until libuv has released
 * the descriptor.
 *
 * About 17 KiB, nearly all of it the buffer of ipc/server/intake.h.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/peer.h"
#include "daemon/frames/room.h"

struct dmn_conn {
    uv_poll_t poll;
    struct dmn_loop_task task; /* reads and handles what it sends; run by polling.c */
    int events;                /* that it polls for; written by polling.c, as the next two */
    bool hung_up, broken;      /* as the poll said */
    struct dmn_peer peer;
};

static inline struct dmn_conn *dmn_conn_of(const struct ipc_conn *c)
{
    return base_container_of(c, struct dmn_conn, peer.base);
}

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
