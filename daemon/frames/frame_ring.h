/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/frame_ring.h - a stream's ring: frames enter at its tail and are answered at its
 * head
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/stream.h"

/* These are for struct ipc_server_ops; what they do, is told there. */

/** dmn_ring_room() - Return: the stream can take one more frame, with or without credit. */
bool dmn_ring_room(const struct ipc_conn *c, const struct ipc_stream *stream);
/**
 * dmn_ring_take() - takes a FRAME or INLINE whose header and fixed part have arrived
 *
 * @stream: has room and a peer     @ret_to: in the record's buffer
 *
 * Allocates only when an inline frame is larger than those before it. The record is at the ring's
 * end. Return: it, borrowed from the stream: READING, to be passed to dmn_prepare_frame() once all
 * its bytes have arrived; NULL: it is DONE, because it is refused.
 */
void *dmn_ring_take(struct ipc_stream *stream, const struct ipc_header *h, const uint8_t *payload,
                    uint8_t **ret_to);
/** dmn_ring_cancel() - cancels the frame of this number if it is not answered yet: a waiting one
 * becomes DONE, a running one ends before its next stage. */
void dmn_ring_cancel(struct ipc_stream *stream, uint64_t frame);
/**
 * dmn_ring_answer() - answers DONE records at the ring's head, until the client has too much to
 * read
 *
 * @stream: has a peer that is not closed. Records go back to the free list. Return: something was
 * answered.
 */
bool dmn_ring_answer(struct ipc_stream *stream);
