/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/open_rules.h - what a server of the frames protocol decides about OPEN and POOL
 *
 * Shared by the servers, the daemon and piped-link. Both messages are always answered, with OPENED
 * or POOLED and a status.
 *
 * Threads: the one that serves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/server/frame_rules.h"
#include "ipc/server/mapped_memory.h"
#include "ipc/wire.h"

/* What OPEN meets on its connection. */
struct ipc_open_place {
    bool in_use;             /* a stream of its number is open */
    const char *unavailable; /* why nothing is opened now; NULL: something is */
    size_t streams, streams_max;
    uint32_t features; /* those both sides have */
};

/**
 * ipc_open_check() - decodes OPEN and checks what does not concern its model
 *
 * input_dtype and output_dtype of @ret are then 0 or IPC_F16.
 *
 * @payload: IPC_OPEN_BYTES     @ret_text: a static text, or @unavailable
 *
 * Return: IPC_OK; else what ipc_open_refusal() says.
 */
enum ipc_status ipc_open_check(const struct ipc_header *h, const uint8_t *payload,
                               const struct ipc_open_place *place, struct ipc_open *ret,
                               const char **ret_text);
/** ipc_open_refusal() - OPENED with @status, not OK. @text: borrowed while @ret is used. */
void ipc_open_refusal(const struct ipc_header *h, enum ipc_status status, const char *text,
                      struct ipc_reply *ret);

/* Where a POOL goes. */
struct ipc_pool_place {
    struct ipc_memory **memory; /* IPC_POOLS_MAX of the stream; NULL: no such stream */
    size_t *total, total_max;   /* see ipc_memory_map() */
    const char *over;           /* what is told beyond total_max; borrowed for the reply */
};

/** ipc_pool_take() - maps the memory of POOL, or refuses it. @payload: IPC_POOL_BYTES; @fd: stays
 * the caller's; -1: none came. @ret: POOLED, with a text that is static or place->over. */
void ipc_pool_take(const struct ipc_header *h, const uint8_t *payload, int fd,
                   const struct ipc_pool_place *place, struct ipc_reply *ret);
