/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/bytes.h - the bytes of a connection: from a client, cut into messages; and to it,
 * which its socket has not accepted yet
 *
 * Headers and small payloads go through one buffer. The input of an inline frame goes straight to
 * its destination, except what is already in the buffer; other payloads are skipped. It checks what
 * concerns a header alone; the caller interprets the message. An error stays in `failed` and `why`:
 * the caller sends it as ERROR and takes nothing more.
 *
 * Messages to the client are appended to a buffer, which is written when the caller likes: one
 * write carries several. How much may wait is the caller's business.
 *
 * Both are embedded in struct ipc_conn, and written only here. All zeros are empty ones.
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

/** ipc_intake_in_payload() - Return: the payload of a message that was taken is still to come, or
 * to be taken by ipc_intake_payload(). */
static inline bool ipc_intake_in_payload(const struct ipc_intake *in)
{
    return in->to || in->skip_bytes;
}
/** ipc_intake_payload() - takes what has come of it. Return: the last byte for
 * ipc_intake_payload_to() has come. */
bool ipc_intake_payload(struct ipc_intake *in);
/**
 * ipc_intake_next() - the next message, once its fixed part has come; changes nothing
 *
 * Return: true with @ret_h; false: more bytes must come, or it failed.
 */
bool ipc_intake_next(struct ipc_intake *in, struct ipc_header *ret_h);
/**
 * ipc_intake_take() - takes the message of ipc_intake_next(), with its descriptors
 *
 * What follows the fixed part of an INLINE is skipped, unless ipc_intake_payload_to() is called.
 * @ret_fd: of a POOL, owned by the caller; else unchanged.
 *
 * Return: its fixed part, borrowed until the next call; NULL: it failed.
 */
const uint8_t *ipc_intake_take(struct ipc_intake *in, const struct ipc_header *h, int *ret_fd);
void ipc_intake_compact_rest(struct ipc_intake *in);
/** ipc_intake_compact() - makes room in the buffer, when no further message can be taken. */
static inline void ipc_intake_compact(struct ipc_intake *in)
{
    if (in->pos == in->used && in->fd_count == 0) {
        in->pos = in->used = 0;
    } else {
        ipc_intake_compact_rest(in);
    }
}

/** ipc_intake_payload_to() - what follows the INLINE just taken goes to @to, borrowed until the
 * last byte has arrived. */
static inline void ipc_intake_payload_to(struct ipc_intake *in, uint8_t *to)
{
    in->to = to;
    in->to_done = 0;
    in->to_bytes = in->skip_bytes;
    in->skip_bytes = 0;
}

struct ipc_outgoing {
    uint8_t *bytes; /* owned; [pos, used) are not written yet */
    size_t pos, used, size;
    uint64_t stuck_ns; /* since when the socket accepts nothing; 0: it does */
};

/** ipc_outgoing_deinit() - frees what was not written. */
void ipc_outgoing_deinit(struct ipc_outgoing *o);
/** ipc_outgoing_waiting() - Return: bytes that are not written yet. */
static inline size_t ipc_outgoing_waiting(const struct ipc_outgoing *o)
{
    return o->used - o->pos;
}
/**
 * ipc_outgoing_add() - appends a message
 *
 * @h: version and length are filled in here     @tail: follows @payload; either may be empty
 *
 * Copies everything. Return: true; false: out of memory.
 */
bool ipc_outgoing_add(struct ipc_outgoing *o, struct ipc_header h, const void *payload,
                      size_t bytes, const void *tail, size_t tail_bytes);
/** ipc_outgoing_flush() - writes what the socket @fd accepts; never waits. Return: true; false:
 * the connection is broken. */
bool ipc_outgoing_flush(struct ipc_outgoing *o, int fd);
