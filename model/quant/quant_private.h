/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/quant/quant_private.h - shared by the passes over quantised graphs; for model/quant/ only
 */
#pragma once

#include "model/quant/quant.h"

/* one scale and zero point for a whole tensor: x = (q - zero) * scale */
struct mdl_qparam {
    float scale;
    int32_t zero;
    enum mdl_dtype dtype; /* of q */
};

/** mdl_quant_any() - Return: whether the graph has a DEQUANTIZE. */
bool mdl_quant_any(const struct mdl_ir *ir);
/** mdl_quant_param() - reads the parameters of a QUANTIZE or DEQUANTIZE of u8 or i8 with one
 * constant scale and zero point. Return: whether @op is such an op. */
bool mdl_quant_param(const struct mdl_ir *ir, const struct mdl_ir_op *op, struct mdl_qparam *ret);
/** mdl_quant_source() - Return: whether @v is the output of one DEQUANTIZE with one scale; if so,
 * its quantised value and parameters. */
bool mdl_quant_source(const struct mdl_ir *ir, size_t v, size_t *ret_q, struct mdl_qparam *ret);
/** mdl_quant_add() - appends a QUANTIZE (to @p->dtype) or DEQUANTIZE (@v of that type) of @v; the
 * output is @y, created if MDL_NONE. Return: it. */
size_t mdl_quant_add(struct mdl_ir *ir, enum mdl_op_kind kind, size_t v, const struct mdl_qparam *p,
                     size_t y);

/* ---- weights.c: constant f32 weights of a product, and their rounding ---- */

/* Weight i of output channel c lies at c * first + i * step and multiplies input channel
 * mdl_quant_first_channel(c) + i / taps. */
struct mdl_qweights {
    const void *data; /* f32, unaligned */
    size_t outputs, count, first, step, taps;
    size_t outputs_of_group;
};

/* Factors around a product; [channels] each; NULL: 1, or the mean is unknown. */
struct mdl_qsides {
    const float *scale;  /* batch norm of output channels */
    const float *x, *y;  /* factor of the input, of the output, against the file */
    const float *x_mean; /* mean of the input, as in the file */
};

struct mdl_qrounded {
    int8_t *q;            /* in the order of the weights */
    float *scale, *shift; /* [outputs] */
};

/** mdl_quant_is_product() - Return: whether @op is CONV, GEMM or MATMUL with constant f32 weights
 * and no further inputs */
bool mdl_quant_is_product(const struct mdl_ir *ir, const struct mdl_ir_op *op);
struct mdl_qweights mdl_quant_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_quant_has_channels() - Return: whether its channels are dim 1 of its input (@in) or of its
 * output. */
bool mdl_quant_has_channels(const struct mdl_ir *ir, const struct mdl_ir_op *op,
                            const struct mdl_qweights *w, bool in);
size_t mdl_quant_first_channel(const struct mdl_qweights *w, size_t output);
/** mdl_quant_row() - computes the weights of @output with the sides' factors: w scale y / x; @ret:
 * [count] */
void mdl_quant_row(const struct mdl_qweights *w, const struct mdl_qsides *s, size_t output,
                   double *ret);
/**
 * mdl_quant_round() - rounds rows to integers, q = round(w / s)
 *
 * s = max |w| / 127. If a row already is integers times a number (as after quantisation-aware
 * training), s is that number if the error is smaller. s is larger if the bias would not fit 32
 * bits.
 * @shift: of the op, or NULL. @row: scratch, [count]. If the mean of the input is known, the shift
 * is corrected for what rounding adds to the mean of a result, sum (s q - w) mean x, as if no
 * window crossed an edge. Source: M. Nagel et al., "Data-free quantization through weight
 * equalization and bias correction", ICCV 2019, section 4.2. Return: false if a number is not
 * finite.
 */
bool mdl_quant_round(const struct mdl_qweights *w, const struct mdl_qsides *s, const float *shift,
                     double x_scale, double *row, struct mdl_qrounded *ret);
/** mdl_quant_rescale() - rescales f32 weights and shift of @op by the sides' x and y. */
void mdl_quant_rescale(struct mdl_ir *ir, struct mdl_ir_op *op, const struct mdl_qsides *s);

/* ---- equalise.c ---- */

/** mdl_quant_find() - Return: the representative of @v in @same, values that are joined. */
size_t mdl_quant_find(size_t *same, size_t v);
/**
 * mdl_quant_equalise() - finds a factor for each channel of each value, applied before it is
 * rounded
 * @chosen: [op_count]: runs on integers. @ret: [value_count], in the pool: [dim 1] factors of at
 * least 1 to multiply into the products on both sides, or NULL.
 *
 * A value between products (or pools, or reshapes that keep its channels) has one scale, set by its
 * channel of largest range; a channel of smaller range loses precision. Scaling a channel by s > 0
 * does not change f32 results if its activation has f(s x) = s f(x). A clip at b is left to the
 * integers' upper end, which is at most s b for every channel. Scaling costs precision of weights:
 * the rows that read the value become less equal. So if depthwise convolutions read it, s is as
 * large as the range allows. Otherwise some sets of s are tried, and the one with the least
 * rounding noise of both is used:
 *
 *   sum over readers, outputs o, inputs i:  (d / s[i])^2 w[o][i]^2 + (e[o] s[i])^2 E x[i]^2
 *
 * d: a step of the value, e[o] = max |w[o][i]| / s[i] / 127 one of row o. Source: M. Nagel et al.
 * 2019, section 4.1, whose s = sqrt(r1 r2) / r2 is among them; here the ranges r1 are of values,
 * since weights have a scale per output anyway.
 */
void mdl_quant_equalise(struct mdl_ir *ir, const bool *chosen, float **ret);
