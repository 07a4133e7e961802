/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/graph.h"

#include <sys/mman.h>

#include "model/common/pool.h"

struct mdl_graph *mdl_graph_free(struct mdl_graph *g)
{
    if (!g) {
        return NULL;
    }
    if (g->owns_map && g->file_map) {
        munmap((void *)(uintptr_t)g->file_map, g->file_bytes);
    }
    mdl_pool_free(g->pool); /* the graph itself lives in there */
    return NULL;
}
