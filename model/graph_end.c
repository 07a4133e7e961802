/* SPDX-License-Identifier: Apache-2.0 */
#include "model/graph_end.h"

#include <string.h>

#include "base.h"
#include "tensor_name.h"

#define STEPS_MAX 16 /* nodes between the activation and the output */

/* What a network may end in, of any domain. */
static const struct {
    const char *op_type;
    bool makes; /* probabilities; else it only moves or rounds values */
} ends[] = {
    {"Softmax", true},        {"Sigmoid", true},         {"HardSigmoid", true},
    {"QLinearSoftmax", true}, {"QLinearSigmoid", true},  {"Identity", false},
    {"Reshape", false},       {"Flatten", false},        {"Squeeze", false},
    {"Unsqueeze", false},     {"Transpose", false},      {"Cast", false},
    {"Dropout", false},       {"QuantizeLinear", false}, {"DequantizeLinear", false},
};

static const struct mdl_gnode *maker_of(const struct mdl_graph *g, const char *value)
{
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->nodes[i].output_count > 0 && strcmp(g->nodes[i].outputs[0], value) == 0) {
            return &g->nodes[i];
        }
    }
    return NULL;
}

bool mdl_ends_in_probabilities(const struct mdl_graph *g, const char *output)
{
    char is[TENSOR_NAME_BYTES], wanted[TENSOR_NAME_BYTES];

    tensor_name(output, wanted);
    for (size_t i = 0; i < g->output_count; i++) {
        if (strcmp(tensor_name(g->outputs[i].name, is), wanted) == 0) {
            output = g->outputs[i].name;
        }
    }
    for (size_t step = 0; step < STEPS_MAX; step++) {
        const struct mdl_gnode *n = maker_of(g, output);
        size_t i = 0;

        while (n && i < base_array_count(ends) && strcmp(n->op_type, ends[i].op_type) != 0) {
            i++;
        }
        if (!n || i == base_array_count(ends) || ends[i].makes || n->input_count == 0) {
            return n && i < base_array_count(ends) && ends[i].makes;
        }
        output = n->inputs[0];
    }
    return false;
}
