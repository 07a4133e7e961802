/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/arithmetic.h - what operators of two inputs compute, and those of one integer, the
 * same where a constant is folded and in the reference; how much work operators are, roughly
 *
 * Reals are computed in double, Max and Min pass NaN on. Sums and products of integers wrap. Div
 * truncates toward zero. Div and Mod give 0 for a zero divisor, a shift by more bits than there are
 * too: ONNX leaves that undefined, and it must not trap. Threads: any.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#include "model/model.h"

/** mdl_op_work() - Return: about how many elementary steps a run of @op takes: multiplications, or
 * elements that it reads and writes where those are more. @made, @read: elements of its outputs and
 * inputs. Pure. */
double mdl_op_work(const struct mdl_op *op, double made, double read);

/** mdl_int_unary() - the function @op->act of an integer; those that do not stay in the integers
 * leave it as it is. */
static inline int64_t mdl_int_unary(const struct mdl_op *op, int64_t x)
{
    switch (op->act) {
    case MDL_ACT_RELU:
        return x < 0 ? 0 : x;
    case MDL_ACT_CLIP:
        x = (double)x < (double)op->act_a ? (int64_t)op->act_a : x;
        return (double)x > (double)op->act_b ? (int64_t)op->act_b : x;
    case MDL_ACT_NEG:
        return (int64_t)(0 - (uint64_t)x);
    case MDL_ACT_ABS:
        return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case MDL_ACT_SIGN:
        return x < 0 ? -1 : x > 0;
    case MDL_ACT_NOT:
        return x == 0;
    case MDL_ACT_BIT_NOT:
        return ~x;
    default:
        return x;
    }
}

/** mdl_int_power() - @base^@exponent; a negative exponent gives the real result truncated toward
 * zero, 0 for base 0. */
static inline int64_t mdl_int_power(int64_t base, int64_t exponent)
{
    uint64_t result = 1, square = (uint64_t)base;

    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    }
    for (; exponent; exponent >>= 1, square *= square) {
        result *= exponent & 1 ? square : 1;
    }
    return (int64_t)result;
}

/** mdl_int_binary() - Return: @a op @b; a comparison gives 0 or 1. */
static inline int64_t mdl_int_binary(enum mdl_binary which, int64_t a, int64_t b)
{
    switch (which) {
    case MDL_BIN_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MDL_BIN_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case MDL_BIN_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MDL_BIN_DIV:
        return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    case MDL_BIN_MAX:
        return a > b ? a : b;
    case MDL_BIN_MIN:
        return a < b ? a : b;
    case MDL_BIN_POW:
        return mdl_int_power(a, b);
    case MDL_BIN_MOD:
        b = b == 0 || b == -1 ? 1 : b;
        return a % b + (a % b && (a < 0) != (b < 0) ? b : 0);
    case MDL_BIN_FMOD:
        return b == 0 || b == -1 ? 0 : a % b;
    case MDL_BIN_BIT_AND:
        return a & b;
    case MDL_BIN_BIT_OR:
        return a | b;
    case MDL_BIN_BIT_XOR:
        return a ^ b;
    case MDL_BIN_SHIFT_LEFT:
        return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
    case MDL_BIN_SHIFT_RIGHT:
        return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a >> b);
    case MDL_BIN_EQUAL:
        return a == b;
    case MDL_BIN_LESS:
        return a < b;
    case MDL_BIN_GREATER:
        return a > b;
    case MDL_BIN_AND:
        return a && b;
    case MDL_BIN_OR:
        return a || b;
    case MDL_BIN_COUNT:
        break;
    }
    return 0;
}

/** mdl_real_binary() - Return: @a op @b; a comparison gives 0 or 1; 0: of integers only. */
static inline double mdl_real_binary(enum mdl_binary which, double a, double b)
{
    switch (which) {
    case MDL_BIN_ADD:
        return a + b;
    case MDL_BIN_SUB:
        return a - b;
    case MDL_BIN_MUL:
        return a * b;
    case MDL_BIN_DIV:
        return a / b;
    case MDL_BIN_MAX:
        return isnan(a) || a > b ? a : b;
    case MDL_BIN_MIN:
        return isnan(a) || a < b ? a : b;
    case MDL_BIN_POW:
        return pow(a, b);
    case MDL_BIN_FMOD:
        return fmod(a, b);
    case MDL_BIN_EQUAL:
        return a == b;
    case MDL_BIN_LESS:
        return a < b;
    case MDL_BIN_GREATER:
        return a > b;
    case MDL_BIN_AND:
        return a != 0 && b != 0;
    case MDL_BIN_OR:
        return a != 0 || b != 0;
    case MDL_BIN_MOD:
    case MDL_BIN_BIT_AND:
    case MDL_BIN_BIT_OR:
    case MDL_BIN_BIT_XOR:
    case MDL_BIN_SHIFT_LEFT:
    case MDL_BIN_SHIFT_RIGHT:
    case MDL_BIN_COUNT:
        break;
    }
    return 0;
}
