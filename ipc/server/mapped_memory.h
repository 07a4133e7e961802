/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/mapped_memory.h - client memory: checked, mapped once, shared by frames
 *
 * The stream that got it holds one reference, and so does each record with bytes in it. So memory
 * outlives its stream and its connection while a frame in the pipeline reads or writes it. It is
 * sealed against shrinking: no access to the mapping can fault, whatever the client does. All its
 * pages exist when it is mapped, at the client's expense.
 *
 * A page of a memfd is charged to the process that touches it first. A client that punches a hole
 * into its pool would let us allocate, and pay for, every page that we then read or write. So the
 * mapping of each pool is guarded, that is registered with userfaultfd(2): touching a page that is
 * not there raises SIGBUS in the thread that touches it. The handler puts 4 MiB of spare memory in
 * place of the whole pool, as often as it takes, and remembers that it was lost. The thread goes
 * on, reads and writes what lost pools share, and its frame is refused afterwards. Pages that are
 * there, in swap or not, raise nothing: a guarded pool is as fast as another.
 *
 * System calls get EFAULT for such a page, and a thread that blocks SIGBUS ends the process. So
 * whoever asks for guards hands clients' memory to neither: piped-link copies it for libzmq, whose
 * threads block every signal. The kernel may lack userfaultfd, or a filter may forbid it (since
 * Linux 5.11 every user may have it for faults of its own). Then pools are not guarded.
 *
 * Shared by the servers of the frames protocol: the daemon and piped-link. Threads: the one that
 * serves; the handler, any that does not block SIGBUS. Others may read and write through pointers
 * into the mapping. State of the process: two descriptors, one handler, one list that only grows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/protocol.h"

/* why a frame in a lost pool is refused, see ipc_memory_lost() */
#define IPC_POOL_LOST "the pool lost pages: a hole was punched into its memfd; send a new POOL"

struct ipc_guarded;
struct ipc_memory {
    unsigned refs;
    uint8_t *map;
    size_t bytes;
    size_t *total;               /* borrowed until the last reference is gone: counts these bytes */
    struct ipc_guarded *guarded; /* borrowed; NULL where pools cannot be guarded */
};

/** ipc_pool_guard_start() - opens the descriptor and installs the handler, once; pools are guarded
 * from now on. Return: 0; -errno: they cannot be guarded here. */
int ipc_pool_guard_start(void);
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
 * use. Takes NULL. Threads: any. */
bool ipc_memory_lost(const struct ipc_memory *m);
/** ipc_memory_ref() - adds a reference. Return: @m. */
static inline struct ipc_memory *ipc_memory_ref(struct ipc_memory *m)
{
    m->refs++;
    return m;
}
/** ipc_memory_unref() - drops a reference; the last one unmaps. Takes NULL. Return: NULL. */
struct ipc_memory *ipc_memory_unref(struct ipc_memory *m);
