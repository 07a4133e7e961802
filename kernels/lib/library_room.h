/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/library_room.h - asks for memory before a library that cannot be refused any
 *
 * oneDNN crashes where an allocation fails, and OpenBLAS tries for ever. So what calls them asks
 * here first, and fails in their place. Another thread may take the memory in between; who asks
 * asks for far more than the library needs.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/** krn_library_room() - maps and unmaps @bytes. Threads: any; a few microseconds. Return: 0,
 * -ENOMEM. */
static inline int krn_library_room(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? -ENOMEM : munmap(p, bytes);
}
