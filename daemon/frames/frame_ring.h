/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/frame_ring.h - a stream's ring: frames enter at its tail and are answered at its
 * head
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/stream.h"

/** dmn_stream_room() - Return: the stream can take one more frame, with or without credit. */
static inline bool dmn_stream_room(const struct dmn_stream *s)
{
    return s->free != NULL && s->tail - s->head < DMN_RING_SIZE;
}
/**
 * dmn_stream_take() - takes a FRAME or INLINE whose header and fixed part have arrived
 *
 * @s: has room and a peer     @payload: the fixed part
 * @ret_inline: bytes of input to read to the record's buffer; 0: none, or not wanted
 *
 * Allocates only when an inline frame is larger than those before it. Return: a record at the
 * ring's end, borrowed from @s: READING, to be passed to dmn_submit_frame() once all its bytes have
 * arrived; or DONE, if it is refused.
 */
struct dmn_record *dmn_stream_take(struct dmn_stream *s, const struct ipc_header *h,
                                   const uint8_t *payload, size_t *ret_inline);
/** dmn_stream_cancel() - cancels the frame of this number if it is not answered yet: a waiting one
 * becomes DONE, a running one ends before its next stage. */
void dmn_stream_cancel(struct dmn_stream *s, uint64_t frame);
/**
 * dmn_stream_answer() - answers DONE records at the ring's head, until the client has too much to
 * read
 *
 * @s: has a peer that is not closed. Records go back to the free list. Return: something was
 * answered.
 */
bool dmn_stream_answer(struct dmn_stream *s);
