/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/front_open.h - OPEN and POOL of the front's clients
 *
 * Threads: the front's.
 */
#pragma once

#include "ipc/server/connection.h"

/** front_open_stream() - handles OPEN. @payload: IPC_OPEN_BYTES. */
void front_open_stream(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload);
/** front_open_memory() - handles POOL. @payload: IPC_POOL_BYTES; @fd: stays the caller's; -1: none
 * came. */
void front_open_memory(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload,
                       int fd);
