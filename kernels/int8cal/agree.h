/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/agree.h - how often two choices of primitives predict the same class
 */
#pragma once

#include "kernels/choice.h"
#include "kernels/int8cal/examples.h"

/**
 * krn_agreement() - measures top-1 agreement of choice @b with choice @a on a set of examples
 * @e: examples that fit @m (krn_examples_fit()). Classes are those of krn_answer_agrees()
 * (runner.h).
 * @ret: share of the frames that agree, 0..1. Threads: any; blocks for two frames per example on
 * one core. Return: 0, -EINVAL (no example, or one that does not fit), or as krn_runner_init().
 */
int krn_agreement(const struct mdl_model *m, const struct krn_choice *a, const struct krn_choice *b,
                  const struct krn_examples *e, double *ret);
