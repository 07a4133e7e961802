/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/runner.h - runs a network on one thread with its own frame memory, and compares
 * answers
 */
#pragma once

#include "kernels/choice.h"
#include "kernels/int8cal/examples.h"
#include "kernels/kernels.h"

struct krn_runner {
    const struct mdl_model *m; /* borrowed */
    struct krn_net *net;       /* owned, as is the rest */
    uint8_t *arena, *scratch, **outputs;
};
#define KRN_RUNNER_NULL ((struct krn_runner){.m = NULL})

/**
 * krn_runner_init() - makes a runner of @m by choice @c, or by static preference if @c is NULL
 * Return: 0, -EINVAL (not one input, or no output), or as krn_net_new_chosen(); deinitialise @r in
 * any case.
 */
int krn_runner_init(struct krn_runner *r, const struct mdl_model *m, const struct krn_choice *c,
                    char ret_error[MDL_ERROR_MAX]);
void krn_runner_deinit(struct krn_runner *r);

/** krn_runner_run() - runs one frame. @input: [m->inputs[0].bytes]. Answers are in r->outputs. */
void krn_runner_run(struct krn_runner *r, const void *input);

/**
 * krn_answer_agrees() - Return: whether two answers name the same class
 * @a, @b: output 0 of @m. The class is the index of the largest value, the first among equals; NaN
 * is never the largest. Outputs that are not f32 agree if their bytes are equal.
 */
bool krn_answer_agrees(const struct mdl_model *m, const void *a, const void *b);

/** krn_answer_error() - max |a - b| / max |a| of output 0; infinite if only one of them has a NaN;
 * 0 if the output is not f32. */
double krn_answer_error(const struct mdl_model *m, const void *a, const void *b);

/**
 * krn_answer_lead() - finds by how much the class of answer @a leads the next one, in @a and in @b
 * @a, @b: output 0 of @m, f32, of two values or more. @ret_a: its class's value less the largest
 * other; @ret_b: the same class's value less the largest other in @b, below 0 if @b names another.
 * If @a is a distribution (all of 0 to 1, sum 1), logarithms are compared: what softmax was given,
 * up to a constant. NaN leads to NaN. Return: whether there are leads.
 */
bool krn_answer_lead(const struct mdl_model *m, const void *a, const void *b, double *ret_a,
                     double *ret_b);

/**
 * krn_agreement() - measures top-1 agreement of choice @b with choice @a on a set of examples
 * @e: examples that fit @m (krn_examples_fit()). Classes are those of krn_answer_agrees().
 * @ret: share of the frames that agree, 0..1. Threads: any; blocks for two frames per example on
 * one core. Return: 0, -EINVAL (no example, or one that does not fit), or as krn_runner_init().
 */
int krn_agreement(const struct mdl_model *m, const struct krn_choice *a, const struct krn_choice *b,
                  const struct krn_examples *e, double *ret);
