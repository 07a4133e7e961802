/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/check_values.h - random values and epilogues for cases against the reference
 *
 * All draw from one stream of a program, seeded as tests/harness.h says.
 */
#pragma once

#include "tests/kernels/one_op.h"

/** check_fill() - fills a tensor with uniform random values in [-scale, scale) */
void check_fill(struct one_op *o, size_t tensor, float scale);

/** check_epilogue() - adds an epilogue: random per-channel scale and shift (sometimes), an act, a
 * residual */
void check_epilogue(struct one_op *o, size_t channels, enum mdl_act act,
                    enum mdl_residual residual);

/** check_act_lipschitz() - largest slope of an element function */
double check_act_lipschitz(const struct mdl_op *op);
