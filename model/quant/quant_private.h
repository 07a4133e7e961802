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

/* ---- quant_weights.c: constant f32 weights of a product, and what rounding does to them ---- */

/* Weight i of output channel c lies at c * first + i * step and multiplies input channel
 * mdl_quant_first_channel(c) + i / taps. */
struct mdl_qweights {
    const void *data; /* f32, unaligned */
    size_t outputs, count, first, step, taps;
    size_t outputs_of_group;
};

/* What lies around a product; [channels] each, NULL: 1, or no mean is known. */
struct mdl_qsides {
    const float *scale;  /* of output channels: a batch norm */
    const float *x, *y;  /* the value read is x times as large as in the file, the result y times */
    const float *x_mean; /* of the value read, as in the file */
};

struct mdl_qrounded {
    int8_t *q;            /* as the weights lie */
    float *scale, *shift; /* [outputs] */
};

/** mdl_quant_is_product() - CONV, GEMM or MATMUL with constant f32 weights and nothing else to read
 */
bool mdl_quant_is_product(const struct mdl_ir *ir, const struct mdl_ir_op *op);
struct mdl_qweights mdl_quant_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_quant_has_channels() - are its inputs dim 1 of what it reads (@in), or its outputs dim 1 of
 * what it writes? */
bool mdl_quant_has_channels(const struct mdl_ir *ir, const struct mdl_ir_op *op,
                            const struct mdl_qweights *w, bool in);
size_t mdl_quant_first_channel(const struct mdl_qweights *w, size_t output);
/** mdl_quant_row() - weights of @output by the sides: w scale y / x; @ret: [count] */
void mdl_quant_row(const struct mdl_qweights *w, const struct mdl_qsides *s, size_t output,
                   double *ret);
/**
 * mdl_quant_round() - rows to integers, q = round(w / s)
 *
 * s = max |w| / 127, but where a row already is integers times a number (of 8 bits once, as after
 * training for them), it is that number if the error is less; and s is more if the bias would not
 * fit 32 bits.
 * @shift: of the op, or NULL. @row: scratch, [count]. Where the mean of what is read is known, what
 * rounding adds to the mean of a result is taken off its shift: sum (s q - w) mean x, as if no
 * window reached over an edge. Source: M. Nagel et al., "Data-free quantization through weight
 * equalization and bias correction", ICCV 2019, section 4.2. Return: false: a number is not finite.
 */
bool mdl_quant_round(const struct mdl_qweights *w, const struct mdl_qsides *s, const float *shift,
                     double x_scale, double *row, struct mdl_qrounded *ret);
/** mdl_quant_rescale() - f32 weights and shift of @op by the sides' x and y. */
int mdl_quant_rescale(struct mdl_ir *ir, struct mdl_ir_op *op, const struct mdl_qsides *s);

/* ---- quant_equal.c ---- */

/**
 * mdl_quant_equalise() - what each value may be scaled by, channel by channel, before it is rounded
 * @chosen: [op_count]: runs on integers. @ret: [value_count], of pool memory: [dim 1] factors of at
 * least 1 that are to go into the products on both sides, or NULL.
 *
 * A value between products (with maximum and average pools, and reshapes that keep its channels)
 * has one scale, which its loudest channel decides; a channel of a smaller range is rounded as if
 * it were as loud. With an activation f, f(s x) = s f(x) for s > 0, f32 is as before; a clip at b
 * is left to the integers' end, which for no channel is above s b. What it costs is precision of
 * weights: rows of what reads the value get more unequal. So where depthwise ones read it, s is as
 * large as the range allows; else of some sets of s the one is taken for which the noise of
 * rounding both is least:
 *
 *   sum over readers, outputs o, inputs i:  (d / s[i])^2 w[o][i]^2 + (e[o] s[i])^2 E x[i]^2
 *
 * d: a step of the value, e[o] = max |w[o][i]| / s[i] / 127 one of row o. Source: M. Nagel et al.
 * 2019, section 4.1, whose s = sqrt(r1 r2) / r2 is among those; here the ranges r1 are of values,
 * since weights have a scale for each output anyway.
 */
int mdl_quant_equalise(struct mdl_ir *ir, const bool *chosen, float **ret);
