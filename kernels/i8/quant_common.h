/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_common.h - shapes and epilogues of ops on quantised values (struct mdl_quant)
 */
#pragma once

#include "kernels/common/conv_common.h"

/* How a sum becomes a result. */
struct krn_quant_epilogue {
    enum mdl_dtype y_type;
    int32_t y_zero;
    bool clamp;      /* y is u8 or i8 and the activation only bounds it ... */
    float low, high; /* ... to this, before y_zero is added (else: the bounds of y's type) */
    bool plain;      /* clamp, with the bounds of y's type, and no real value reaches 2^31 */
    enum mdl_act act;
    float a, b;
    enum mdl_residual residual;
    const uint8_t *res; /* pixel 0, channel 0 */
    size_t res_pixel;
    bool res_signed;
    int32_t r_zero;
    float r_scale;
};

/** krn_is_byte() - u8 or i8 */
static inline bool krn_is_byte(enum mdl_dtype t)
{
    return t == MDL_U8 || t == MDL_I8;
}

/* What is added to each lane's sums, and their multipliers. */
struct krn_quant_lanes {
    int32_t *bias;
    float *scale;
    uint8_t *end; /* what lies behind them */
};

/** krn_quant_lanes_at() - Return: those of @lanes lanes in packed weights, from @at on */
static inline struct krn_quant_lanes krn_quant_lanes_at(const void *at, size_t lanes)
{
    int32_t *bias = (int32_t *)(uintptr_t)at;
    float *scale = (float *)(bias + lanes);

    return (struct krn_quant_lanes){bias, scale, (uint8_t *)(scale + lanes)};
}

/** krn_quant_bounds() - the bounds of y's type around its zero point, and of the op's activation */
void krn_quant_bounds(const struct mdl_model *m, const struct mdl_op *op,
                      struct krn_quant_epilogue *ret);
/** krn_quant_epilogue_of() - Return: the epilogue of a call whose op krn_quant_conv_of() or
 * krn_quant_product_of() accepts */
struct krn_quant_epilogue krn_quant_epilogue_of(const struct krn_call *c);

/** krn_quant_conv_of() - Return: whether @op is a convolution of NHWC images of bytes with constant
 * row-major weights, a fixed zero point and a flat result; if so, *ret is set. */
bool krn_quant_conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *ret);
/** krn_quant_product_of() - the same for GEMM and MATMUL of rows of bytes by one constant matrix */
bool krn_quant_product_of(const struct mdl_model *m, const struct mdl_op *op,
                          struct krn_product *ret);
/** krn_quant_product_frames() - a frames_at_once(), as krn_product_frames() */
bool krn_quant_product_frames(const struct mdl_model *m, const struct mdl_op *op);
/** krn_quant_weights_fit() - Return: whether the types alone ensure that every w - w_zero fits a
 * signed byte */
bool krn_quant_weights_fit(const struct mdl_model *m, const struct mdl_op *op);
