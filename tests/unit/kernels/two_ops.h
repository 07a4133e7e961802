/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/kernels/two_ops.h - a model of two ops, one after the other, built by hand
 *
 * Tensors are 1 x elements of f32, each on its own storage; the first is the input, the last the
 * output. The tensors between are in the arena, without offsets yet. The caller sets constants,
 * attributes and inputs of the ops.
 */
#pragma once

#include <string.h>

#include "kernels/kernels.h"

#define TINY_TENSORS_MAX 5u

struct tiny {
    struct mdl_model m;
    struct mdl_storage storages[TINY_TENSORS_MAX];
    struct mdl_tensor tensors[TINY_TENSORS_MAX];
    struct mdl_op ops[2];
    struct mdl_io in, out;
    char name[8];
};

/* Do not move @o after this: the model points into it. The ops have no operands yet. */
static inline void tiny_model(struct tiny *o, size_t tensor_count, size_t elements,
                              size_t arena_bytes)
{
    size_t bytes = elements * sizeof(float), last = tensor_count - 1;

    *o = (struct tiny){.name = "tiny"};
    for (size_t i = 0; i < tensor_count; i++) {
        o->storages[i] = (struct mdl_storage){.home = i == 0      ? MDL_HOME_INPUT
                                                      : i == last ? MDL_HOME_OUTPUT
                                                                  : MDL_HOME_ARENA,
                                              .bytes = bytes};
        o->tensors[i] = (struct mdl_tensor){.name = o->name,
                                            .dtype = MDL_F32,
                                            .storage = i,
                                            .rank = 2,
                                            .dim = {1, elements},
                                            .stride = {(ptrdiff_t)elements, 1}};
    }
    for (size_t i = 0; i < 2; i++) {
        o->ops[i] = (struct mdl_op){.name = o->name,
                                    .in = {MDL_NONE, MDL_NONE, MDL_NONE, MDL_NONE},
                                    .out = {MDL_NONE, MDL_NONE},
                                    .residual_in = MDL_NONE};
    }
    o->in = (struct mdl_io){.name = o->name, .tensor = 0, .bytes = bytes, .entry_op = MDL_NONE};
    o->out = (struct mdl_io){.name = o->name, .tensor = last, .bytes = bytes, .entry_op = MDL_NONE};
    o->m = (struct mdl_model){.name = o->name,
                              .storage_count = tensor_count,
                              .tensor_count = tensor_count,
                              .op_count = 2,
                              .input_count = 1,
                              .output_count = 1,
                              .storages = o->storages,
                              .tensors = o->tensors,
                              .ops = o->ops,
                              .inputs = &o->in,
                              .outputs = &o->out,
                              .arena_bytes = arena_bytes};
}
