/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/memory.h - what the process takes, and giving back what loading leaves behind
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dmn_daemon;
struct dmn_model;

/** dmn_memory_setup() - how the allocator keeps memory. Called once, before threads. */
void dmn_memory_setup(void);

/** dmn_memory_trim() - free memory of the heap, and code and tables that only loading read, go back
 * to the system. Threads: any; blocks some milliseconds. */
void dmn_memory_trim(void);

/** dmn_memory_settle() - packs nothing that the present plan does not run, once it has served for
 * some time and no other is tried. Threads: loop; called once a second. */
void dmn_memory_settle(struct dmn_model *m, uint64_t now_ns);

/** dmn_memory_json() - of Status: of the process, and of all models. Every figure in bytes. */
json_t *dmn_memory_json(const struct dmn_daemon *d);
void dmn_memory_metrics(FILE *to, const struct dmn_daemon *d);
