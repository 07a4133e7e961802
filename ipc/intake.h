/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/intake.h - cuts the bytes from a client into messages
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
/**
 * ipc_intake_receive() - one recvmsg() that does not block
 *
 * @fd: the connection's socket     @ret_full: it filled the space, so there may be more
 *
 * Return: bytes; 0: nothing available; -1: the client has closed, or the socket is broken.
 */
ssize_t ipc_intake_receive(struct ipc_intake *in, int fd, bool *ret_full);

/**
 * ipc_intake_next() - the header of the next message, once its fixed part is in the buffer
 *
 * Changes nothing, so it can be called again. Return: true with @ret_h set; false: more bytes must
 * come, or it failed.
 */
bool ipc_intake_next(struct ipc_intake *in, struct ipc_header *ret_h);
/**
 * ipc_intake_take() - takes the message that ipc_intake_next() found
 *
 * @ret_payload: its fixed part, borrowed until ipc_intake_compact()
 * @ret_fd: of a POOL, owned by the caller; or -1
 *
 * Return: true; false: its descriptors are missing, it failed.
 */
bool ipc_intake_take(struct ipc_intake *in, const struct ipc_header *h, const uint8_t **ret_payload,
                     int *ret_fd);
/** ipc_intake_compact() - makes room in the buffer. Call when no further message can be taken. */
void ipc_intake_compact(struct ipc_intake *in);

/** ipc_intake_payload_to() - the next @bytes > 0 of payload go to @to, borrowed until the last of
 * them has arrived. */
static inline void ipc_intake_payload_to(struct ipc_intake *in, uint8_t *to, size_t bytes)
{
    in->to = to;
    in->to_done = 0;
    in->to_bytes = bytes;
}
/** ipc_intake_skip() - skips the next @bytes of payload. */
static inline void ipc_intake_skip(struct ipc_intake *in, size_t bytes)
{
    in->skip_bytes = bytes;
}
/** ipc_intake_in_payload() - Return: the next bytes belong to a payload. */
static inline bool ipc_intake_in_payload(const struct ipc_intake *in)
{
    return in->to || in->skip_bytes;
}
/** ipc_intake_payload() - moves payload out of the buffer while ipc_intake_in_payload(). */
void ipc_intake_payload(struct ipc_intake *in);
/** ipc_intake_finish() - Return: true, once, when the last byte for ipc_intake_payload_to() has
 * arrived. */
static inline bool ipc_intake_finish(struct ipc_intake *in)
{
    if (!in->to || in->to_done < in->to_bytes) {
        return false;
    }
    in->to = NULL;
    return true;
}
