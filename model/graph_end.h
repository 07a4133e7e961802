/* SPDX-License-Identifier: Apache-2.0 */
/** model/graph_end.h - how a network makes its output: are scores probabilities already? */
#pragma once

#include "model/common/graph.h"

/**
 * mdl_ends_in_probabilities() - follows an output back over what moves, rounds, cuts or joins it
 * @output: its name, as in the file or as clients have it
 * Threads: any. Return: whether Softmax or Sigmoid made all of it.
 */
bool mdl_ends_in_probabilities(const struct mdl_graph *g, const char *output);
