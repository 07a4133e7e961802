/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/agree.h - how often two choices of rows give the same class
 */
#pragma once

#include "kernels/choice.h"

/**
 * krn_agreement() - top-1 agreement of choice @b with choice @a over a set of inputs
 * @inputs: [@count] frames, each the buffer of the model's only input. The class of a frame is the
 * index of the largest value of output 0, the first of equals; NaN is never the largest. An output
 * that is no f32 agrees where its bytes are the same.
 * @ret: share of the frames that agree, 0..1. Threads: any; blocks for 2 x @count frames on one
 * core. Return: 0, -EINVAL (no frames, more than one input), or as krn_net_new_chosen().
 */
int krn_agreement(const struct mdl_model *m, const struct krn_choice *a, const struct krn_choice *b,
                  const void *const *inputs, size_t count, double *ret);
