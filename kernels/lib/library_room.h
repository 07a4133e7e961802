/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/library_room.h - asks for memory before a library that cannot be refused any
 *
 * oneDNN crashes where an allocation fails, and OpenBLAS tries for ever. So what calls them asks
 * here first, and fails in their place. Another thread may take the memory in between; who asks
 * asks for far more than the library needs.
 */
#pragma once

#include <stddef.h>

/** krn_library_room() - maps and unmaps @bytes. Threads: any; a few microseconds. Return: 0,
 * -ENOMEM. */
int krn_library_room(size_t bytes);
