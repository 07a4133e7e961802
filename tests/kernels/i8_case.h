/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/i8_case.h - cases of operators on quantised values, and their check
 *
 * Dot products of bytes also run emulated, on any CPU. The table does not list those primitives;
 * i8_finish() compares them as well.
 */
#pragma once

#include "tests/kernels/conv_shape.h"
#include "tests/kernels/one_op.h"

struct i8_case {
    enum mdl_dtype x, w, y;
    int fill;       /* of x and w: 0: random, 1: the lowest, 2: the highest, 3: either */
    bool zero_is_0; /* of the weights */
    bool narrow;    /* weights are at most 64 from their zero, the type's middle */
    enum mdl_act act;
    enum mdl_residual residual;
};

/** i8_random_type() - Return: i8 or u8 */
enum mdl_dtype i8_random_type(void);
/** i8_random_zero() - Return: a zero point of type @t, often at one of its ends */
int32_t i8_random_zero(enum mdl_dtype t);
/** i8_random_case() - Return: random types, fill, act and residual */
struct i8_case i8_random_case(void);

/** i8_image() - adds an NHWC image as one_op_image() does, of type @dtype. Return: its index */
size_t i8_image(struct one_op *o, enum mdl_dtype dtype, size_t n, size_t c, size_t h, size_t w,
                size_t pixel);
/** i8_fill() - fills a tensor of bytes; @kind: as `fill` of struct i8_case */
void i8_fill(struct one_op *o, size_t tensor, int kind);
/** i8_fill_weights() - fills input 1 as the case wants */
void i8_fill_weights(struct one_op *o, const struct i8_case *q);

/**
 * i8_product_quant() - gives a product of @terms terms its zero points, multipliers, biases and
 * epilogue
 * Return: the operator's quantisation, which i8_finish() frees; [channels] zero points of the
 * weights and [channels] biases follow it in memory.
 */
struct mdl_quant *i8_product_quant(struct one_op *o, const struct i8_case *k, size_t channels,
                                   size_t terms);
/** i8_add_residual() - adds the residual that the epilogue names, if any */
void i8_add_residual(struct one_op *o, struct mdl_quant *q);

/** i8_conv() - a filled convolution of @s. @ret_quant: as of i8_product_quant(). Return: for
 * i8_finish(), or one_op_free() */
struct one_op *i8_conv(const struct conv_shape *s, const struct i8_case *k, const char *name,
                       struct mdl_quant **ret_quant);

/**
 * i8_finish() - runs the case on every primitive, and frees @o and @q
 * @expect: as in struct check
 * Return: true, or false after printing the failure
 */
bool i8_finish(struct one_op *o, const struct i8_case *k, struct mdl_quant *q, const char *expect);

/** i8_emulated() - Return: the primitive @i on emulated dot products, NULL behind the last */
const struct krn_primitive *i8_emulated(size_t i);
/** i8_emulated_runs() - Return: how many cases primitives on emulated dot products ran */
size_t i8_emulated_runs(void);
