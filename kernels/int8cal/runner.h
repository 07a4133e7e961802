/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/runner.h - a network on one thread with a frame's memory, and how two answers compare
 */
#pragma once

#include "kernels/choice.h"

struct krn_runner {
    const struct mdl_model *m; /* borrowed */
    struct krn_net *net;       /* owned, as is the rest */
    uint8_t *arena, *scratch, **outputs;
};
#define KRN_RUNNER_NULL ((struct krn_runner){.m = NULL})

/**
 * krn_runner_init() - @m by choice @c, or by the static order where @c is NULL
 * Return: 0, -EINVAL (not one input, or no output), or as krn_net_new_chosen(); then @r is to be
 * deinitialised all the same.
 */
int krn_runner_init(struct krn_runner *r, const struct mdl_model *m, const struct krn_choice *c,
                    char ret_error[MDL_ERROR_MAX]);
void krn_runner_deinit(struct krn_runner *r);

/** krn_runner_run() - one frame. @input: m->inputs[0].bytes. Answers are in r->outputs. */
void krn_runner_run(struct krn_runner *r, const void *input);

/**
 * krn_answer_agrees() - do two answers name the same class
 * @a, @b: output 0 of @m. The class is the index of the largest value, the first of equals; NaN is
 * never the largest. An output that is no f32 agrees where its bytes are the same.
 */
bool krn_answer_agrees(const struct mdl_model *m, const void *a, const void *b);

/** krn_answer_error() - max |a - b| / max |a| of output 0; infinite where one has NaN that the
 * other has not; 0 for an output that is no f32. */
double krn_answer_error(const struct mdl_model *m, const void *a, const void *b);
