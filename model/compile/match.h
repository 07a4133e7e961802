/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/compile/match.h - questions that find patterns of ops; for model/compile/ only
 *
 * Uses must be counted (mdl_ir_count_uses()).
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_match_producer() - Return: the op of @kind that writes @v, without activation unless it is
 * UNARY; NULL if another op does. */
struct mdl_ir_op *mdl_match_producer(struct mdl_ir *ir, size_t v, int kind);
struct mdl_ir_op *mdl_match_binary(struct mdl_ir *ir, size_t v, enum mdl_binary which);
struct mdl_ir_op *mdl_match_unary(struct mdl_ir *ir, size_t v, enum mdl_act act);
struct mdl_ir_op *mdl_match_view(struct mdl_ir *ir, size_t v, enum mdl_view_kind kind);
/** mdl_match_private() - Return: whether at most one op reads @v, which is not an output. */
bool mdl_match_private(const struct mdl_ir *ir, size_t v);
/** mdl_match_const_weights() - Return: whether @op multiplies by constant weights and adds nothing:
 * a convolution or a matrix product. */
bool mdl_match_const_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_match_unspread() - Return: @v before it was broadcast. */
size_t mdl_match_unspread(struct mdl_ir *ir, size_t v);
/** mdl_match_number() - Return: whether @v is one constant number, perhaps broadcast. */
bool mdl_match_number(struct mdl_ir *ir, size_t v, double *ret);
/** mdl_match_is() - Return: whether @v is @number, but for rounding. */
bool mdl_match_is(struct mdl_ir *ir, size_t v, double number);
bool mdl_match_near(double a, double b);

/* factor * value[0] * value[1] * ... */
#define MDL_MATCH_FACTORS 4u
struct mdl_match_product {
    double factor;
    size_t count, value[MDL_MATCH_FACTORS];
};

/** mdl_match_product() - writes @v as a product: through Mul and Div by a number, and Pow with a
 * small whole exponent, of values that nothing else reads. Return: false for too many factors. */
bool mdl_match_product(struct mdl_ir *ir, size_t v, struct mdl_match_product *ret);
/** mdl_match_scaled() - Return: whether @v is @number times one value, which is *ret_x. */
bool mdl_match_scaled(struct mdl_ir *ir, size_t v, double number, size_t *ret_x);
/** mdl_match_plus() - Return: whether @v is @number plus a value, which is *ret_x. */
bool mdl_match_plus(struct mdl_ir *ir, size_t v, double number, size_t *ret_x);
