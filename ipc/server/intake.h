/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/intake.h - cuts the bytes from a client into messages
 *
 * Headers and small payloads go through one buffer. The input of an inline frame goes straight to
 * its destination, except what is already in the buffer; other payloads are skipped. It checks what
 * concerns a header alone; the caller interprets the message. An error stays in `failed` and `why`:
 * the caller sends it as ERROR and takes nothing more.
 *
 * Shared by the servers of the frames protocol: the daemon and piped-link. Embedded in their
 * connections; written only here. Most of it is the buffer.
 *
 * Threads: the one that serves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/wire.h"

#define IPC_READ_BYTES 16384u

struct ipc_intake {
    enum ipc_status failed; /* not OK: the connection must end, because of `why` */
    char why[160];
    size_t pos, used; /* in[pos..used) is not handled yet */
    /* the payload in progress, one of the two: */
    uint8_t *to; /* borrowed from the frame; NULL: none */
    size_t to_done, to_bytes;
    size_t skip_bytes;        /* of an unwanted payload */
    int fds[2 * IPC_FDS_MAX]; /* owned: received, not yet claimed by a header */
    size_t fd_count;
    uint8_t in[IPC_READ_BYTES];
};

/** ipc_intake_deinit() - closes descriptors that no message claimed. */
void ipc_intake_deinit(struct ipc_intake *in);

/** ipc_intake_room() - Return: read more: the buffer has room, and nothing failed. */
static inline bool ipc_intake_room(const struct ipc_intake *in)
{
    return !in->failed && in->used < sizeof(in->in);
}
/** ipc_intake_waits() - Return: bytes in the buffer are not handled yet. */
static inline bool ipc_intake_waits(const struct ipc_intake *in)
{
    return in->used > in->pos;
}
/**
 * ipc_intake_receive() - one recvmsg() that does not block
 *
 * @fd: the connection's socket     @ret_full: it filled the space, so there may be more
 *
 * Return: bytes; 0: nothing available; -1: the client has closed, or the socket is broken.
 */
ssize_t ipc_intake_receive(struct ipc_intake *in, int fd, bool *ret_full);

/* What a server does with the messages of one connection, @conn. */
struct ipc_intake_ops {
    /* Return: it may send more: it reads its answers, and nothing ends it. */
    bool (*takes)(const void *conn);
    /* Return: a FRAME or INLINE of this stream may be handled now. Until then it stays in the
     * buffer, with everything that follows it. */
    bool (*has_room)(const void *conn, uint32_t stream);
    /* Handles a message. @payload: what is fixed of it, borrowed during the call; @fd: of a POOL,
     * closed afterwards; -1: none. What follows the fixed part of an INLINE is skipped, unless the
     * call says ipc_intake_payload_to(). */
    void (*handle)(void *conn, const struct ipc_header *h, const uint8_t *payload, int fd);
    /* The last byte for ipc_intake_payload_to() has arrived. */
    void (*payload_done)(void *conn);
};

/**
 * ipc_intake_run() - handles the received messages while there is room for them
 *
 * Afterwards the buffer has room again, unless a message in it must wait; and the caller looks at
 * `failed`.
 */
void ipc_intake_run(struct ipc_intake *in, const struct ipc_intake_ops *ops, void *conn);

/** ipc_intake_payload_to() - for a handler of an INLINE: what follows goes to @to, borrowed until
 * the last byte has arrived. */
static inline void ipc_intake_payload_to(struct ipc_intake *in, uint8_t *to)
{
    in->to = to;
    in->to_done = 0;
    in->to_bytes = in->skip_bytes;
    in->skip_bytes = 0;
}
