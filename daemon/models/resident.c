/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/resident.h"

#include <malloc.h>

#include "base/base.h"
#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/memory_room.h"
#include "daemon/models/models.h"

#define SETTLED_NS (10 * BASE_NS_PER_S) /* a plan that serves this long will stay for a while */

void dmn_memory_settle(struct dmn_model *m, uint64_t now_ns)
{
    uint32_t epoch = pl_epoch(m->pipe);

    if (m->settling_epoch != epoch || m->of->planner->changing(m) || pl_switching(m->pipe)) {
        m->settling_epoch = epoch;
        m->settling_ns = now_ns;
    } else if (m->settled_epoch != epoch && now_ns - m->settling_ns >= SETTLED_NS) {
        m->settled_epoch = epoch;
        krn_net_trim(m->net);
        (void)malloc_trim(0);
    }
}

struct dmn_memory dmn_memory_now(const struct dmn_models *models)
{
    struct dmn_process_memory process = dmn_process_memory();
    struct dmn_memory t = {
        .resident_bytes = process.resident_bytes,
        .peak_bytes = process.peak_bytes,
    };

    t.for_models_bytes =
        (uint64_t)dmn_config_int(dmn_machine_config(models->machine), DMN_KEY_BOARDS_MEMORY_MIB)
        << 20;
    if (t.for_models_bytes == 0) {
        t.for_models_bytes = dmn_memory_room("", t.resident_bytes);
    }
    for (const struct dmn_model *m = models->models; m; m = m->next) {
        t.weight_bytes += m->model->weight_bytes;
        t.packed_bytes += krn_net_packed_bytes(m->net);
        t.arena_bytes += pl_arena_bytes(m->pipe);
    }
    return t;
}
