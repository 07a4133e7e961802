/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/intake.h - cuts the bytes from a client into messages
 *
 * Headers and small payloads go through one buffer. The input of an inline frame goes straight to
 * its destination, except what is already in the buffer; other payloads are skipped. It checks what
 * concerns a header alone; the caller interprets the message. Any error ends the peer.
 *
 * Embedded in struct dmn_conn; written only here. Most of it is the buffer.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/frames/peer.h"
#include "ipc/wire.h"

#define DMN_READ_BYTES 16384u

struct dmn_intake {
    struct dmn_peer *peer; /* borrowed: part of the same connection */
    size_t pos, used;      /* in[pos..used) is not handled yet */
    /* the payload in progress, one of the two: */
    uint8_t *to; /* borrowed from the frame; NULL: none */
    size_t to_done, to_bytes;
    size_t skip_bytes;        /* of an unwanted payload */
    int fds[2 * IPC_FDS_MAX]; /* owned: received, not yet claimed by a header */
    size_t fd_count;
    uint8_t in[DMN_READ_BYTES];
};

/** dmn_intake_deinit() - closes descriptors that no message claimed. */
void dmn_intake_deinit(struct dmn_intake *in);

/** dmn_intake_wanted() - Return: read more: the client takes its answers, and the buffer has
 * room. */
bool dmn_intake_wanted(const struct dmn_intake *in);
/**
 * dmn_intake_receive() - one recvmsg() that does not block
 *
 * @ret_full: it filled the space, so there may be more. Return: bytes; 0: nothing available; -1:
 * the client has closed, or the socket is broken.
 */
ssize_t dmn_intake_receive(struct dmn_intake *in, bool *ret_full);

/**
 * dmn_intake_next() - the header of the next message, once its fixed part is in the buffer
 *
 * Changes nothing, so it can be called again. Return: true with @ret_h set; false: more bytes must
 * come, or the header ended the peer.
 */
bool dmn_intake_next(struct dmn_intake *in, struct ipc_header *ret_h);
/**
 * dmn_intake_take() - takes the message that dmn_intake_next() found
 *
 * @ret_payload: its fixed part, borrowed until dmn_intake_compact()
 * @ret_fd: of a POOL, owned by the caller; or -1
 *
 * Return: true; false: its descriptors are missing, which ended the peer.
 */
bool dmn_intake_take(struct dmn_intake *in, const struct ipc_header *h, const uint8_t **ret_payload,
                     int *ret_fd);
/** dmn_intake_compact() - makes room in the buffer. Call when no further message can be taken. */
void dmn_intake_compact(struct dmn_intake *in);

/** dmn_intake_payload_to() - the next @bytes > 0 of payload go to @to, borrowed until the last of
 * them has arrived. */
static inline void dmn_intake_payload_to(struct dmn_intake *in, uint8_t *to, size_t bytes)
{
    in->to = to;
    in->to_done = 0;
    in->to_bytes = bytes;
}
/** dmn_intake_skip() - skips the next @bytes of payload. */
static inline void dmn_intake_skip(struct dmn_intake *in, size_t bytes)
{
    in->skip_bytes = bytes;
}
/** dmn_intake_in_payload() - Return: the next bytes belong to a payload. */
static inline bool dmn_intake_in_payload(const struct dmn_intake *in)
{
    return in->to || in->skip_bytes;
}
/** dmn_intake_payload() - moves payload out of the buffer while dmn_intake_in_payload(). */
void dmn_intake_payload(struct dmn_intake *in);
/** dmn_intake_finish() - Return: true, once, when the last byte for dmn_intake_payload_to() has
 * arrived. */
static inline bool dmn_intake_finish(struct dmn_intake *in)
{
    if (!in->to || in->to_done < in->to_bytes) {
        return false;
    }
    in->to = NULL;
    return true;
}
