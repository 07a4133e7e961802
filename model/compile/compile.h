/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/compile/compile.h - a graph to a model of units
 */
#pragma once

#include "model/common/graph.h"

/**
 * mdl_compile() - compiles a graph to units: sort, shapes, constant folding, lowering, fusion,
 * layout, memory plan
 * @g: borrowed; the model keeps no pointer into the graph except to data in the file mapping.
 * @options as in mdl_load(). Sets every field of the model but hash, preproc, labels and the
 * mapping. Return: as mdl_load().
 */
int mdl_compile(const struct mdl_graph *g, const struct mdl_load_options *options,
                char ret_error[MDL_ERROR_MAX], struct mdl_model **ret);

/** mdl_compile_refused() - the model is refused for @ret_error, before it is compiled: adds to it
 * what else is known, the operators that are not supported. Return: @code, or -errno of what is
 * worse. */
int mdl_compile_refused(const struct mdl_graph *g, const struct mdl_load_options *options, int code,
                        char ret_error[MDL_ERROR_MAX]);
