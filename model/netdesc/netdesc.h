/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/netdesc/netdesc.h - reads network descriptions; the format is in docs/netdesc.md
 */
#pragma once

#include "model/common/graph.h"

/**
 * mdl_netdesc_read() - reads a network description in JSON into a graph
 * @weights_dir, @no_weights: as in mdl_load_options. Weights come from a seeded generator. Return:
 * as mdl_onnx_read().
 */
int mdl_netdesc_read(const void *text, size_t bytes, const char *weights_dir, bool no_weights,
                     char ret_error[MDL_ERROR_MAX], struct mdl_graph **ret);
