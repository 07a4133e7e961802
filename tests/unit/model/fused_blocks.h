/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/model/fused_blocks.h - what several operators of a graph become */
#pragma once

#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

/** fused() - compiles with and without fusion and compares the answers. Return: the fused model,
 * owned by the caller; NULL: they differ by more than @bound. */
struct mdl_model *fused(struct gb *g, double bound);
/** becomes() - as fused(), and frees both. Return: whether @kind is there @count times, with @ops
 * operators in all. */
bool becomes(struct gb *g, enum mdl_op_kind kind, size_t count, size_t ops);
/** refused() - frees the graph. Return: whether it is refused with a message that contains @why. */
bool refused(struct gb *g, const char *why);
/** answer() - runs the graph by the reference. @r, @m: what it made, for the caller to free.
 * Return: the only output; NULL: there is none. */
const float *answer(struct gb *g, struct run_model *r, struct mdl_model **m);
