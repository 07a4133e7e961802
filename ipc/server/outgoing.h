/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/outgoing.h - messages to a client that its socket has not accepted yet
 *
 * Messages are appended to a buffer, which is written when the caller likes: one write carries
 * several. How much may wait is the caller's business.
 *
 * Shared by the servers of the frames protocol: the daemon and piped-link. All zeros is an empty
 * one. Threads: the one that serves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire.h"

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
