/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/graph.h"

#include <sys/mman.h>

#include "base/tensor_name.h"

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

/* ---- what a network ends in ---- */

#define STEPS_MAX 256u /* nodes that are looked at */

enum how {
    MAKES, /* probabilities */
    MOVES, /* or cuts or rounds the first input */
    JOINS, /* all inputs */
};

/* What a network may end in, of any domain. */
static const struct {
    const char *op_type;
    enum how how;
} ends[] = {
    {"Softmax", MAKES},        {"Sigmoid", MAKES},        {"HardSigmoid", MAKES},
    {"QLinearSoftmax", MAKES}, {"QLinearSigmoid", MAKES}, {"Identity", MOVES},
    {"Reshape", MOVES},        {"Flatten", MOVES},        {"Squeeze", MOVES},
    {"Unsqueeze", MOVES},      {"Transpose", MOVES},      {"Cast", MOVES},
    {"Dropout", MOVES},        {"QuantizeLinear", MOVES}, {"DequantizeLinear", MOVES},
    {"Slice", MOVES},          {"Gather", MOVES},         {"Split", MOVES},
    {"Clip", MOVES},           {"Concat", JOINS},
};

static bool is_probabilities(const struct mdl_graph *g, const char *value, size_t *steps)
{
    while (*steps > 0) {
        const struct mdl_gnode *n = mdl_graph_maker(g, value);
        size_t i = 0;

        --*steps;
        while (n && i < base_array_count(ends) && strcmp(n->op_type, ends[i].op_type) != 0) {
            i++;
        }
        if (!n || i == base_array_count(ends) || n->input_count == 0) {
            return false;
        }
        if (ends[i].how == MAKES) {
            return true;
        }
        for (size_t k = 1; ends[i].how == JOINS && k < n->input_count; k++) {
            if (!is_probabilities(g, n->inputs[k], steps)) {
                return false;
            }
        }
        value = n->inputs[0];
    }
    return false;
}

bool mdl_ends_in_probabilities(const struct mdl_graph *g, const char *output)
{
    size_t steps = STEPS_MAX;

    for (size_t i = 0; i < g->output_count; i++) {
        if (tensor_same(g->outputs[i].name, output)) {
            output = g->outputs[i].name;
        }
    }
    return is_probabilities(g, output, &steps);
}
