/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/declared.h - do the outputs have the types and shapes that the file declares?
 *
 * What is served follows from the operators; the declaration is what the exporter took it to be.
 * Where they differ, one of the two is wrong about the file, and people must hear of it. Inputs
 * need no such check: they have the file's sizes, and what it leaves open is said with the size.
 */
#pragma once

#include "model/common/graph.h"

/** mdl_served_output() - Return: output @i as the model serves it. */
struct mdl_gvalue mdl_served_output(const struct mdl_model *m, size_t i);
/**
 * mdl_note_unlike() - compares all outputs with those of @g, the file's graph with settled inputs,
 * and notes which are of another type or shape than it declares
 *
 * What the file leaves open fits, unless an input has a dimension of the same name: then it is that
 * size. A dimension that is counted (model.h: rows_output) is served as its bound.
 * Return: 0, -ENOMEM.
 */
int mdl_note_unlike(struct mdl_model *m, const struct mdl_graph *g);
/** mdl_note() - Return: the @i-th thing that is wrong with the file or its sidecar, though it is
 * served; NULL: there are no more. Borrowed from @m. */
const struct mdl_note *mdl_note(const struct mdl_model *m, size_t i);
/** mdl_declared() - Return: what the file declares of output @i, "[1, 5]" or with another type "i64
 * [1, 5]", where that is not what is served; else NULL. Borrowed from @m. */
const char *mdl_declared(const struct mdl_model *m, size_t i);
