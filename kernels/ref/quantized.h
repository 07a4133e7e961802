/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref/quantized.h - the references of ops on quantised values (struct mdl_quant)
 *
 * Exact integer sums, then the steps of struct mdl_quant one by one in f32. The build forbids the
 * compiler to contract them, so that every primitive can give the same bits. The references of the
 * op kinds call these functions.
 */
#pragma once

#include "kernels/ref/ref.h"

/** krn_ref_quant_supports() - Return: whether the reference can run an op with quant */
bool krn_ref_quant_supports(const struct mdl_model *m, const struct mdl_op *op);
/** krn_ref_quant_run() - of an op that krn_ref_quant_supports() */
void krn_ref_quant_run(const struct krn_call *c);
