/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/models/memory_room.h - memory of the process, and how much models may take here */
#pragma once

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

/** dmn_process_memory() - memory of this process; 0: unknown. Reads a small file. Threads: any. */
struct dmn_process_memory {
    uint64_t resident_bytes, peak_bytes;
} dmn_process_memory(void);
