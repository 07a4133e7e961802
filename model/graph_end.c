/* SPDX-License-Identifier: Apache-2.0 */
#include "model/graph_end.h"

#include "base/base.h"
#include "base/tensor_name.h"

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
