/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/mapped_memory.h - client memory: checked, mapped once, shared by frames
 *
 * The stream that got it holds one reference, and so does each record with bytes in it. So memory
 * outlives its stream and its connection while a frame in the pipeline reads or writes it. It is
 * sealed against shrinking: no access to the mapping can fault, whatever the client does.
 *
 * Threads: the loop thread. Teams read and write through pointers into the mapping.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/frames/accounts.h"
#include "ipc/protocol.h"

struct dmn_client_memory {
    unsigned refs;
    uint8_t *map;
    size_t bytes;
    struct dmn_account *account; /* borrowed: it lives as long as it counts these bytes */
};

/**
 * dmn_client_memory_map() - checks a client's memfd and maps it, with one reference
 *
 * @fd: stays the caller's     @bytes: the size that the client claims
 * @account, @account_max_bytes: the user's account, and its limit
 *
 * Return: IPC_OK, with *ret set; IPC_INVALID_ARGUMENT or IPC_RESOURCE_EXHAUSTED, with *ret_text set
 * to a static text.
 */
enum ipc_status dmn_client_memory_map(int fd, uint64_t bytes, struct dmn_account *account,
                                      size_t account_max_bytes, const char **ret_text,
                                      struct dmn_client_memory **ret);
/** dmn_client_memory_ref() - adds a reference. Return: @m. */
static inline struct dmn_client_memory *dmn_client_memory_ref(struct dmn_client_memory *m)
{
    m->refs++;
    return m;
}
/** dmn_client_memory_unref() - drops a reference; the last one unmaps. Takes NULL. Return: NULL. */
struct dmn_client_memory *dmn_client_memory_unref(struct dmn_client_memory *m);
