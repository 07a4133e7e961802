/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/quant.h - what the passes over quantised graphs share; for model/ only
 */
#pragma once

#include "model/compile.h"

/* one scale and zero point for a whole tensor: x = (q - zero) * scale */
struct mdl_qparam {
    float scale;
    int32_t zero;
    enum mdl_dtype dtype; /* of q */
};

/** mdl_quant_producer() - the live op that makes @v, or NULL. */
struct mdl_ir_op *mdl_quant_producer(const struct mdl_ir *ir, size_t v);
/** mdl_quant_param() - the parameters of a QUANTIZE or DEQUANTIZE of u8 or i8 with one constant
 * scale and zero point. Return: whether @op is one. */
bool mdl_quant_param(const struct mdl_ir *ir, const struct mdl_ir_op *op, struct mdl_qparam *ret);
/** mdl_quant_source() - is @v dequantised as a whole? Then what it was, and how. */
bool mdl_quant_source(const struct mdl_ir *ir, size_t v, size_t *ret_q, struct mdl_qparam *ret);
/** mdl_quant_add() - appends a QUANTIZE (to @p->dtype) or DEQUANTIZE (@v of that type) of @v; the
 * result is *@y, made if it is MDL_NONE. */
int mdl_quant_add(struct mdl_ir *ir, enum mdl_op_kind kind, size_t v, const struct mdl_qparam *p,
                  size_t *y);
