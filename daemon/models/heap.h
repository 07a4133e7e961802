/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/models/heap.h - tunes the allocator, and returns memory to the system after loading */
#pragma once

/** dmn_memory_setup() - sets the allocator's limits. Call once, before there are threads. */
void dmn_memory_setup(void);

/** dmn_memory_trim() - returns free heap memory to the system, and drops pages of code and tables
 * that only loading used. Threads: any; blocks for some milliseconds. */
void dmn_memory_trim(void);
