/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref_quant.h - the references of ops on quantised values (struct mdl_quant)
 *
 * Exact integer sums, then the steps of struct mdl_quant one by one in f32: the build keeps the
 * compiler from contracting them, so that every primitive can give the same bits. They stand behind
 * the references of their op kinds.
 */
#pragma once

#include "kernels/ref.h"

/** krn_ref_quant_supports() - for an op with quant; also for what the references do not know */
bool krn_ref_quant_supports(const struct mdl_model *m, const struct mdl_op *op);
/** krn_ref_quant_run() - of an op that krn_ref_quant_supports() */
void krn_ref_quant_run(const struct krn_call *c);
