/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/models/resident.h - memory of the process, and freeing packed weights that no longer
 * run */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct dmn_model;
struct dmn_models;

/** dmn_memory_settle() - frees packed weights that the present plan does not run, once it has
 * served for some time and no other plan is on trial. Threads: the loop thread, once a second. */
void dmn_memory_settle(struct dmn_model *m, uint64_t now_ns);

/* Memory of the process and of all its models. */
struct dmn_memory {
    uint64_t resident_bytes, peak_bytes; /* of the process; 0: unknown */
    uint64_t weight_bytes, packed_bytes, arena_bytes;
    uint64_t for_models_bytes; /* what models may take here: boards.memory_mib, or what they have
                                * and what is free; 0: unknown */
};
struct dmn_memory dmn_memory_now(const struct dmn_models *models);
