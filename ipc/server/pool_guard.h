/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/pool_guard.h - client memory whose pages the client took away costs the client, not us
 *
 * A page of a memfd is charged to the process that touches it first. A client that punches a hole
 * into its pool would let us allocate, and pay for, every page that we then read or write. So the
 * mapping of each pool is registered with userfaultfd(2): touching a page that is not there raises
 * SIGBUS in the thread that touches it. The handler puts 4 MiB of spare memory in place of the
 * whole pool, as often as it takes, and remembers that it was lost. The thread goes on, reads and
 * writes what lost pools share, and its frame is refused afterwards. Pages that are there, in swap
 * or not, raise nothing: a guarded pool is as fast as another.
 *
 * System calls get EFAULT for such a page, and a thread that blocks SIGBUS ends the process. So
 * whoever asks for guards hands clients' memory to neither: piped-link copies it for libzmq, whose
 * threads block every signal.
 *
 * The kernel may lack userfaultfd, or a filter may forbid it (since Linux 5.11 every user may have
 * it for faults of its own). Then pools are not guarded.
 *
 * State of the process: two descriptors, one handler, one list of slots that only grows. Threads:
 * functions, the one that serves; the handler, any thread that does not block SIGBUS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ipc_guarded;

/** ipc_pool_guard_start() - opens the descriptor and installs the handler, once; pools are guarded
 * from now on. Return: 0; -errno: they cannot be guarded here. */
int ipc_pool_guard_start(void);
/**
 * ipc_pool_guard_add() - guards the mapping of a memfd, whole pages
 *
 * Return: 0, with *ret borrowed until ipc_pool_guard_remove(), NULL without a successful
 * ipc_pool_guard_start(); -ENOMEM or another -errno: this one cannot be guarded.
 */
int ipc_pool_guard_add(void *map, size_t bytes, struct ipc_guarded **ret);
/** ipc_pool_guard_remove() - after its mapping is gone. Takes NULL. */
void ipc_pool_guard_remove(struct ipc_guarded *g);
/** ipc_pool_guard_lost() - Return: pages were missing when they were needed; the pool is of no use
 * any more. Takes NULL. Threads: any. */
bool ipc_pool_guard_lost(const struct ipc_guarded *g);
