/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/opening.h - OPEN and POOL: a stream on a model, and client memory for its frames
 *
 * Both are always answered, with OPENED or POOLED and a status.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "ipc/server/connection.h"

/** dmn_open_stream() - handles OPEN. @payload: at least IPC_OPEN_BYTES. */
void dmn_open_stream(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload);
/** dmn_open_memory() - handles POOL. @payload: at least IPC_POOL_BYTES; @fd: stays the caller's, or
 * -1. */
void dmn_open_memory(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload,
                     int fd);
