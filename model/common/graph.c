/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/graph.h"

#include <string.h>
#include <sys/mman.h>

#include "model/common/pool.h"

const struct mdl_gnode *mdl_graph_maker(const struct mdl_graph *g, const char *value)
{
    for (size_t i = 0; i < g->node_count; i++) {
        for (size_t k = 0; k < g->nodes[i].output_count; k++) {
            if (strcmp(g->nodes[i].outputs[k], value) == 0) {
                return &g->nodes[i];
            }
        }
    }
    return NULL;
}

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
