/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "model/lower/narrow.h"

/* Element functions beside those of elements.c: most are compositions, and none is part of an
 * epilogue. */

/* Functions of one f32 input; their parameters are attributes. */
static int lower_function(struct mdl_lower *l, int act)
{
    float a = act == MDL_ACT_SHRINK             ? mdl_l_float(l, "lambd", 0.5f)
              : act == MDL_ACT_THRESHOLDED_RELU ? mdl_l_float(l, "alpha", 1.0f)
                                                : 0;
    float b = act == MDL_ACT_SHRINK ? mdl_l_float(l, "bias", 0) : 0;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    return r < 0 ? r : mdl_ir_unary(l->ir, (enum mdl_act)act, a, b, l->in[0], &l->out[0]);
}

/* max(x, 0) + min(0, a (e^(x / a) - 1)) is max(x, 0) + a elu(min(x, 0) / a), where a is positive.
 * No large x is divided, which would overflow. */
static int lower_celu(struct mdl_lower *l, int arg)
{
    float alpha = mdl_l_float(l, "alpha", 1.0f);
    size_t x, y, a;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    if (!(alpha > 0) || isinf(alpha)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "alpha %g is not supported; it must be above 0",
                             (double)alpha);
    }
    x = l->in[0];
    if (alpha == 1) {
        return mdl_ir_unary(l->ir, MDL_ACT_ELU, 1, 0, x, &l->out[0]);
    }
    r = mdl_ir_scalar(l->ir, MDL_F32, (double)alpha, &a);
    r = r < 0 ? r : mdl_ir_unary(l->ir, MDL_ACT_CLIP, -INFINITY, 0, x, &y);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_DIV, y, a, &y);
    r = r < 0 ? r : mdl_ir_unary(l->ir, MDL_ACT_ELU, 1, 0, y, &y);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, y, a, &y);
    r = r < 0 ? r : mdl_ir_unary(l->ir, MDL_ACT_RELU, 0, 0, x, &x);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_ADD, x, y, &l->out[0]);
}

/* only a NaN differs from itself */
static int lower_is_nan(struct mdl_lower *l, int arg)
{
    size_t same;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_EQUAL, l->in[0], l->in[0], &same);
    return r < 0 ? r : mdl_ir_unary(l->ir, MDL_ACT_NOT, 0, 0, same, &l->out[0]);
}

static int lower_is_inf(struct mdl_lower *l, int arg)
{
    bool positive = mdl_l_int(l, "detect_positive", 1) != 0;
    bool negative = mdl_l_int(l, "detect_negative", 1) != 0;
    size_t x, infinity;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    x = l->in[0];
    if (!positive && !negative) {
        struct mdl_ir_value v = *mdl_l_value(l, x);

        r = mdl_ir_scalar(l->ir, MDL_BOOL, 0, &x);
        return r < 0 ? r : mdl_ir_expand(l->ir, x, v.rank, v.dim, &l->out[0]);
    }
    if (positive && negative) {
        r = mdl_ir_unary(l->ir, MDL_ACT_ABS, 0, 0, x, &x);
    }
    r = r < 0 ? r : mdl_ir_scalar(l->ir, MDL_F32, positive ? HUGE_VAL : -HUGE_VAL, &infinity);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_EQUAL, x, infinity, &l->out[0]);
}

static int lower_mod(struct mdl_lower *l, int arg)
{
    bool fmod = mdl_l_int(l, "fmod", 0) != 0;
    enum mdl_dtype dtype;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    dtype = mdl_l_value(l, l->in[0])->dtype;
    if (dtype == MDL_BOOL || (dtype == MDL_F32 && !fmod)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the inputs are of type %s; fmod 0 takes integers",
                             mdl_dtype_name(dtype));
    }
    return mdl_ir_binary(l->ir, fmod ? MDL_BIN_FMOD : MDL_BIN_MOD, l->in[0], l->in[1], &l->out[0]);
}

/* Xor of booleans, and the operators on the bits of integers */
static int lower_bits(struct mdl_lower *l, int which)
{
    bool logic = strcmp(l->node->op_type, "Xor") == 0;
    enum mdl_dtype dtype;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    dtype = mdl_l_value(l, l->in[0])->dtype;
    if (logic ? dtype != MDL_BOOL : dtype == MDL_BOOL || dtype == MDL_F32) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the inputs are of type %s; they must be %s",
                             mdl_dtype_name(dtype), logic ? "bool" : "integers");
    }
    return mdl_ir_binary(l->ir, (enum mdl_binary)which, l->in[0], l->in[1], &l->out[0]);
}

static int lower_bit_not(struct mdl_lower *l, int arg)
{
    enum mdl_dtype dtype;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    dtype = mdl_l_value(l, l->in[0])->dtype;
    if (dtype == MDL_BOOL || dtype == MDL_F32) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the input is of type %s; it must be an integer",
                             mdl_dtype_name(dtype));
    }
    return mdl_ir_unary(l->ir, MDL_ACT_BIT_NOT, 0, 0, l->in[0], &l->out[0]);
}

static int lower_bit_shift(struct mdl_lower *l, int arg)
{
    const char *direction = mdl_l_string(l, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    int r = mdl_l_need(l, 2);

    if (r < 0 || l->error < 0) {
        return r < 0 ? r : l->error;
    }
    if (!left && strcmp(direction, "RIGHT") != 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "direction \"%s\" is neither LEFT nor RIGHT",
                             direction);
    }
    if (mdl_l_value(l, l->in[0])->dtype != MDL_U8 &&
        mdl_l_value(l, l->in[0])->narrow != MDL_NARROW_U16) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "inputs of type %s are not supported, only uint8 and uint16",
                             mdl_dtype_name(mdl_l_value(l, l->in[0])->dtype));
    }
    return mdl_ir_binary(l->ir, left ? MDL_BIN_SHIFT_LEFT : MDL_BIN_SHIFT_RIGHT, l->in[0], l->in[1],
                         &l->out[0]);
}

static int lower_cast_like(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *like;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    like = mdl_l_value(l, l->in[1]);
    return mdl_narrow_cast(l, l->in[0], like->dtype, like->narrow, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_functions[] = {
    {"Sin", lower_function, MDL_ACT_SIN},
    {"Cos", lower_function, MDL_ACT_COS},
    {"Tan", lower_function, MDL_ACT_TAN},
    {"Asin", lower_function, MDL_ACT_ASIN},
    {"Acos", lower_function, MDL_ACT_ACOS},
    {"Atan", lower_function, MDL_ACT_ATAN},
    {"Sinh", lower_function, MDL_ACT_SINH},
    {"Cosh", lower_function, MDL_ACT_COSH},
    {"Asinh", lower_function, MDL_ACT_ASINH},
    {"Acosh", lower_function, MDL_ACT_ACOSH},
    {"Atanh", lower_function, MDL_ACT_ATANH},
    {"ThresholdedRelu", lower_function, MDL_ACT_THRESHOLDED_RELU},
    {"Shrink", lower_function, MDL_ACT_SHRINK},
    {"Celu", lower_celu, 0},
    {"IsNaN", lower_is_nan, 0},
    {"IsInf", lower_is_inf, 0},
    {"Mod", lower_mod, 0},
    {"Xor", lower_bits, MDL_BIN_BIT_XOR},
    {"BitwiseAnd", lower_bits, MDL_BIN_BIT_AND},
    {"BitwiseOr", lower_bits, MDL_BIN_BIT_OR},
    {"BitwiseXor", lower_bits, MDL_BIN_BIT_XOR},
    {"BitwiseNot", lower_bit_not, 0},
    {"BitShift", lower_bit_shift, 0},
    {"CastLike", lower_cast_like, 0, .narrows = true},
    {0},
};
