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

/* by ONNX's number */
static const struct mdl_onnx_type onnx_types[] = {
    [0] = {"undefined"},
    [1] = {"float32", MDL_FROM_SAME, MDL_F32, 4},
    [2] = {"uint8", MDL_FROM_SAME, MDL_U8, 1},
    [3] = {"int8", MDL_FROM_SAME, MDL_I8, 1},
    [4] = {"uint16", MDL_FROM_U16, MDL_I32, 2, MDL_NARROW_U16},
    [5] = {"int16", MDL_FROM_I16, MDL_I32, 2, MDL_NARROW_I16},
    [6] = {"int32", MDL_FROM_SAME, MDL_I32, 4},
    [7] = {"int64", MDL_FROM_SAME, MDL_I64, 8},
    [8] = {"string"},
    [9] = {"bool", MDL_FROM_SAME, MDL_BOOL, 1},
    [10] = {"float16", MDL_FROM_F16, MDL_F32, 2},
    [11] = {"float64", MDL_FROM_F64, MDL_F32, 8},
    [12] = {"uint32"},
    [13] = {"uint64"},
    [14] = {"complex64"},
    [15] = {"complex128"},
    [16] = {"bfloat16", MDL_FROM_BF16, MDL_F32, 2},
    [17] = {"float8e4m3fn"},
    [18] = {"float8e4m3fnuz"},
    [19] = {"float8e5m2"},
    [20] = {"float8e5m2fnuz"},
    [21] = {"uint4", MDL_FROM_4BIT, MDL_U8, 1, MDL_NARROW_U4},
    [22] = {"int4", MDL_FROM_4BIT, MDL_I8, 1, MDL_NARROW_I4},
    [23] = {"float4e2m1"},
    [24] = {"float8e8m0"},
    [25] = {"uint2"},
    [26] = {"int2"},
};

const struct mdl_onnx_type *mdl_onnx_type(int64_t number)
{
    static const struct mdl_onnx_type unknown = {"unknown"};

    return number >= 0 && number < (int64_t)base_array_count(onnx_types) ? &onnx_types[number]
                                                                         : &unknown;
}

bool mdl_onnx_served(const struct mdl_onnx_type *t)
{
    return t->from != MDL_FROM_NONE && t->from != MDL_FROM_4BIT;
}
