/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/mapped_memory.h - client memory: checked, mapped once, shared by frames
 *
 * The stream that got it holds one reference, and so does each record with bytes in it. So memory
 * outlives its stream and its connection while a frame in the pipeline reads or writes it. It is
 * sealed against shrinking: no access to the mapping can fault, whatever the client does. All its
 * pages exist when it is mapped, at the client's expense, and pool_guard.h sees to it that pages
 * which the client takes away later are not ours to pay for.
 *
 * Shared by the servers of the frames protocol: the daemon and piped-link. Threads: the one that
 * serves. Others may read and write through pointers into the mapping.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ipc/protocol.h"
#include "ipc/server/pool_guard.h"

/* why a frame in a lost pool is refused, see ipc_memory_lost() */
#define IPC_POOL_LOST "the pool lost pages: a hole was punched into its memfd; send a new POOL"

struct ipc_memory {
    unsigned refs;
    uint8_t *map;
    size_t bytes;
    size_t *total;               /* borrowed until the last reference is gone: counts these bytes */
    struct ipc_guarded *guarded; /* borrowed; NULL where pools cannot be guarded */
};

/**
 * ipc_memory_map() - checks a client's memfd and maps it, with one reference
 *
 * @fd: stays the caller's     @bytes: the size that the client claims
 * @total, @total_max: the bytes that its owner has mapped, and the limit; borrowed until unmapped
 *
 * Return: IPC_OK, with *ret set; IPC_INVALID_ARGUMENT or IPC_RESOURCE_EXHAUSTED, with *ret_text set
 * to a static text.
 */
enum ipc_status ipc_memory_map(int fd, uint64_t bytes, size_t *total, size_t total_max,
                               const char **ret_text, struct ipc_memory **ret);
/** ipc_memory_lost() - Return: the client took pages away that were needed, so its frames are of no
 * use. Takes NULL. */
static inline bool ipc_memory_lost(const struct ipc_memory *m)
{
    return m && ipc_pool_guard_lost(m->guarded);
}
/** ipc_memory_ref() - adds a reference. Return: @m. */
static inline struct ipc_memory *ipc_memory_ref(struct ipc_memory *m)
{
    m->refs++;
    return m;
}
/** ipc_memory_unref() - drops a reference; the last one unmaps. Takes NULL. Return: NULL. */
struct ipc_memory *ipc_memory_unref(struct ipc_memory *m);
