/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/models/process_memory.h - memory of the process: how much models may take, and what goes
 * back to the system */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * dmn_memory_room() - what models take and what is free for them
 * @root: in front of /proc and /sys; "": this machine
 * @resident_bytes: of the process
 *
 * What is available on the machine and what the process has, at most the least limit of its
 * control groups, in steps of 16 MiB. Reads a few small files. Return: bytes; 0: unknown.
 */
uint64_t dmn_memory_room(const char *root, uint64_t resident_bytes);

/** dmn_memory_free() - Return: bytes that are still free for models of this process; UINT64_MAX:
 * unknown. Reads a few small files. Threads: any. */
uint64_t dmn_memory_free(void);

/**
 * dmn_memory_batch() - Return: how many frames each of @teams may take at once, at most @most, a
 * power of two, so that the frames that a plan with batches has in flight, two for each of them,
 * fill at most a quarter of what is free
 * @free_bytes: dmn_memory_free(); UINT64_MAX: unknown, then @most
 * @frame_bytes: the arena of a frame
 */
size_t dmn_memory_batch(uint64_t free_bytes, uint64_t frame_bytes, size_t teams, size_t most);

/** dmn_process_memory() - memory of this process; 0: unknown. Reads a small file. Threads: any. */
struct dmn_process_memory {
    uint64_t resident_bytes, peak_bytes;
} dmn_process_memory(void);

/** dmn_memory_setup() - sets the allocator's limits. Call once, before there are threads. */
void dmn_memory_setup(void);

/** dmn_memory_trim() - returns free heap memory to the system, and drops pages of code and tables
 * that only loading used. Threads: any; blocks for some milliseconds. */
void dmn_memory_trim(void);
