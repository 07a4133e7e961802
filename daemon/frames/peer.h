/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/peer.h - the client of a connection: its identity, what is counted of it, and the
 * connection of ipc/server/connection.h, which has what is sent
 *
 * It reads when its task has its turn, settles when something became possible, and tells libuv what
 * to wait for. Owned by the room's list (dmn_frames.server). Only peer.c and frames.c close it;
 * handlers and answers never do. Closing takes it off the lists at once and orphans its streams,
 * whose frames may still be in a pipeline. The memory stays, with base.closed set, until libuv has
 * released the descriptor. About 17 KiB, nearly all of it the buffer of ipc/server/bytes.h.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "base/base.h"
#include "daemon/frames/admission.h"
#include "daemon/frames/room.h"
#include "ipc/server/connection.h"

struct dmn_peer {
    /* written by peer.c */
    uv_poll_t poll;
    struct dmn_loop_task task;   /* reads and handles what it sends */
    int events;                  /* that it polls for */
    bool hung_up, broken;        /* as the poll said */
    struct dmn_frames *frames;   /* borrowed */
    struct dmn_account *account; /* borrowed until closed */
    pid_t pid;
    uint64_t answered;   /* frames; written by handlers.c */
    size_t inline_bytes; /* buffers of all its records; written by record.c, stream.c */
    struct ipc_conn base;
};

static inline struct dmn_peer *dmn_peer_of(const struct ipc_conn *c)
{
    return base_container_of(c, struct dmn_peer, base);
}

/**
 * dmn_peer_start() - adds a connection to the list and serves the client on @fd
 *
 * @fd: owned by the connection from now on, on success     @account: borrowed; counts it
 *
 * Return: 0 or -errno.
 */
int dmn_peer_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid);
/** dmn_peer_settle() - answers DONE frames, writes; closes a connection that has ended. Messages
 * for which there is room now make its task due. */
void dmn_peer_settle(struct dmn_peer *c);
/** dmn_peer_take_in() - handles what has come so far, at once and not in its turn, in a bounded
 * number of rounds, and settles. */
void dmn_peer_take_in(struct dmn_peer *c);
/** dmn_peer_close() - closes it now, even with unwritten answers. A second call does nothing. */
void dmn_peer_close(struct dmn_peer *c);

/** dmn_peer_failed() - for struct ipc_server_ops: logs why the connection ends. */
void dmn_peer_failed(struct ipc_conn *c, enum ipc_status status, const char *text);
/** dmn_peer_backlog_max() - the same: DMN_KEY_LIMIT_BACKLOG_KIB in bytes. */
size_t dmn_peer_backlog_max(const struct ipc_conn *c);
/** dmn_peer_refused() - remembers for Status that the client was refused something. */
void dmn_peer_refused(const struct dmn_peer *p, enum dmn_refused what, enum ipc_status status,
                      const char *why);
/** dmn_peer_join() - @q is a stream of this client's user, by the weight that
 * DMN_KEY_LIMIT_USER_WEIGHTS gives it; see dmn_queue_join(). */
void dmn_peer_join(const struct dmn_peer *p, struct dmn_admission *a, struct dmn_queue *q);

/** dmn_account_get() - the account of @uid, added to @list if it is missing. Return: borrowed from
 * the list until a dmn_account_trim() finds it empty; NULL: out of memory. */
struct dmn_account *dmn_account_get(struct dmn_accounts *list, uid_t uid);
/** dmn_account_trim() - frees the accounts that hold nothing. */
void dmn_account_trim(struct dmn_accounts *list);
/** dmn_refusals_add() - a client was refused something. @r: as it shall be shown; its count is
 * ignored. */
void dmn_refusals_add(struct dmn_refused_client all[DMN_REFUSALS],
                      const struct dmn_refused_client *r);
