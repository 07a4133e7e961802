/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/quant/quant.h - passes over quantised graphs, and quantisation by a calibration
 *
 * Listed in the order in which the compiler runs them.
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_quant_sink() - moves DequantizeLinear behind ops that only move values. */
void mdl_quant_sink(struct mdl_ir *ir);
/** mdl_quant_plan() - selects the ops that run on integers, by options->calibration, and adds their
 * QUANTIZE and DEQUANTIZE. */
void mdl_quant_plan(struct mdl_ir *ir);
/** mdl_quant_fuse() - DequantizeLinear -> op -> QuantizeLinear becomes one op on integers. */
void mdl_quant_fuse(struct mdl_ir *ir);
