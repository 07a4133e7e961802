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

/** REF_EACH_OR_QUANT() - defines WHAT_run(), which does that, or calls WHAT_body() for the elements
 * of the output of an op without quant */
#define REF_EACH_OR_QUANT(what)                                                                    \
    static void what##_run(const struct krn_call *c)                                               \
    {                                                                                              \
        if (c->op->quant) {                                                                        \
            krn_ref_quant_run(c);                                                                  \
        } else {                                                                                   \
            ref_share(c, mdl_elements(ref_out(c, 0)), what##_body);                                \
        }                                                                                          \
    }
