/* SPDX-License-Identifier: Apache-2.0 */
/* Element functions beside those of elements.c: most are compositions, and none is part of an
 * epilogue. */
#include <math.h>

#include "model/lower/lowering.h"

/* max(x, 0) + min(0, a (e^(x / a) - 1)) is max(x, 0) + a elu(min(x, 0) / a), where a is positive.
 * No large x is divided, which would overflow. */
static size_t lower_celu(struct mdl_lower *l, int arg)
{
    float alpha = mdl_l_float(l, "alpha", 1.0f);
    size_t x = l->in[0], y, a;

    mdl_unserved_if(l, !(alpha > 0) || isinf(alpha),
                    "alpha %g is not supported; it must be above 0", (double)alpha);
    if (alpha == 1) {
        return mdl_ir_unary(l->ir, MDL_ACT_ELU, 1, 0, x);
    }
    a = mdl_ir_scalar(l->ir, MDL_F32, (double)alpha);
    y = mdl_ir_unary(l->ir, MDL_ACT_CLIP, -INFINITY, 0, x);
    y = mdl_ir_binary(l->ir, MDL_BIN_DIV, y, a);
    y = mdl_ir_unary(l->ir, MDL_ACT_ELU, 1, 0, y);
    y = mdl_ir_binary(l->ir, MDL_BIN_MUL, y, a);
    x = mdl_ir_unary(l->ir, MDL_ACT_RELU, 0, 0, x);
    return mdl_ir_binary(l->ir, MDL_BIN_ADD, x, y);
}

/* only a NaN differs from itself */
static size_t lower_is_nan(struct mdl_lower *l, int arg)
{
    size_t same = mdl_ir_binary(l->ir, MDL_BIN_EQUAL, l->in[0], l->in[0]);

    return mdl_ir_unary(l->ir, MDL_ACT_NOT, 0, 0, same);
}

static size_t lower_is_inf(struct mdl_lower *l, int arg)
{
    bool positive = mdl_l_int(l, "detect_positive", 1) != 0;
    bool negative = mdl_l_int(l, "detect_negative", 1) != 0;
    size_t x = l->in[0], infinity;

    if (!positive && !negative) {
        struct mdl_ir_value v = *mdl_l_value(l, x);

        x = mdl_ir_scalar(l->ir, MDL_BOOL, 0);
        return mdl_ir_expand(l->ir, x, v.rank, v.dim);
    }
    if (positive && negative) {
        x = mdl_ir_unary(l->ir, MDL_ACT_ABS, 0, 0, x);
    }
    infinity = mdl_ir_scalar(l->ir, MDL_F32, positive ? HUGE_VAL : -HUGE_VAL);
    return mdl_ir_binary(l->ir, MDL_BIN_EQUAL, x, infinity);
}

static size_t lower_mod(struct mdl_lower *l, int arg)
{
    bool fmod = mdl_l_int(l, "fmod", 0) != 0;
    enum mdl_dtype dtype = mdl_l_value(l, l->in[0])->dtype;

    mdl_bad_if(l, dtype == MDL_BOOL || (dtype == MDL_F32 && !fmod),
               "the inputs are of type %s; fmod 0 takes integers", mdl_dtype_name(dtype));
    return mdl_ir_binary(l->ir, fmod ? MDL_BIN_FMOD : MDL_BIN_MOD, l->in[0], l->in[1]);
}

/* Xor of booleans, and the operators on the bits of integers */
static size_t lower_bits(struct mdl_lower *l, int which)
{
    bool logic = strcmp(l->node->op_type, "Xor") == 0;
    enum mdl_dtype dtype = mdl_l_value(l, l->in[0])->dtype;

    mdl_bad_if(l, logic ? dtype != MDL_BOOL : dtype == MDL_BOOL || dtype == MDL_F32,
               "the inputs are of type %s; they must be %s", mdl_dtype_name(dtype),
               logic ? "bool" : "integers");
    return mdl_ir_binary(l->ir, (enum mdl_binary)which, l->in[0], l->in[1]);
}

static size_t lower_bit_not(struct mdl_lower *l, int arg)
{
    enum mdl_dtype dtype = mdl_l_value(l, l->in[0])->dtype;

    mdl_bad_if(l, dtype == MDL_BOOL || dtype == MDL_F32,
               "the input is of type %s; it must be an integer", mdl_dtype_name(dtype));
    return mdl_ir_unary(l->ir, MDL_ACT_BIT_NOT, 0, 0, l->in[0]);
}

static size_t lower_bit_shift(struct mdl_lower *l, int arg)
{
    const char *direction = mdl_l_string(l, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;

    mdl_bad_if(l, !left && strcmp(direction, "RIGHT") != 0,
               "direction \"%s\" is neither LEFT nor RIGHT", direction);
    mdl_unserved_if(l,
                    mdl_l_value(l, l->in[0])->dtype != MDL_U8 &&
                        mdl_l_value(l, l->in[0])->narrow != MDL_NARROW_U16,
                    "inputs of type %s are not supported, only uint8 and uint16",
                    mdl_dtype_name(mdl_l_value(l, l->in[0])->dtype));
    return mdl_ir_binary(l->ir, left ? MDL_BIN_SHIFT_LEFT : MDL_BIN_SHIFT_RIGHT, l->in[0],
                         l->in[1]);
}

static size_t lower_cast_like(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *like = mdl_l_value(l, l->in[1]);

    return mdl_narrow_cast(l, l->in[0], like->dtype, like->narrow);
}

/* x times a gate of x: Gelu, Swish */

static size_t lower_gelu(struct mdl_lower *l, int arg)
{
    const char *how = mdl_l_string(l, "approximate", "none");
    bool tanh = strcmp(how, "tanh") == 0;

    mdl_bad_if(l, !tanh && strcmp(how, "none") != 0,
               "approximate is \"%s\"; it must be none or tanh", how);
    return mdl_ir_unary(l->ir, tanh ? MDL_ACT_GELU_TANH : MDL_ACT_GELU, 0, 0, l->in[0]);
}

/* BiasGelu, FastGelu: of the sum with input 1, which FastGelu may lack */
static size_t lower_bias_gelu(struct mdl_lower *l, int act)
{
    size_t x = l->in[0];

    if (mdl_l_in(l, 1) != MDL_NONE) {
        x = mdl_ir_binary(l->ir, MDL_BIN_ADD, x, l->in[1]);
    }
    return mdl_ir_unary(l->ir, (enum mdl_act)act, 0, 0, x);
}

/* x sigmoid(alpha x); @thousandths: of the default of alpha */
static size_t lower_swish(struct mdl_lower *l, int thousandths)
{
    float alpha = mdl_l_float(l, "alpha", (float)thousandths / 1000);

    return mdl_ir_unary(l->ir, alpha == 1 ? MDL_ACT_SILU : MDL_ACT_SWISH, alpha == 1 ? 0 : alpha, 0,
                        l->in[0]);
}

const struct mdl_lower_row mdl_lower_functions[] = {
    {"Celu", lower_celu, 1, 1},
    {"IsNaN", lower_is_nan, 1, 1},
    {"IsInf", lower_is_inf, 1, 1},
    {"Mod", lower_mod, 2, .narrow = MDL_NARROW_KEEPS},
    {"Xor", lower_bits, 2, 0, MDL_BIN_BIT_XOR},
    {"BitwiseAnd", lower_bits, 2, 0, MDL_BIN_BIT_AND, .narrow = MDL_NARROW_KEEPS},
    {"BitwiseOr", lower_bits, 2, 0, MDL_BIN_BIT_OR, .narrow = MDL_NARROW_KEEPS},
    {"BitwiseXor", lower_bits, 2, 0, MDL_BIN_BIT_XOR, .narrow = MDL_NARROW_KEEPS},
    {"BitwiseNot", lower_bit_not, 1, .narrow = MDL_NARROW_WRAPS},
    {"BitShift", lower_bit_shift, 2, .narrow = MDL_NARROW_WRAPS},
    {"CastLike", lower_cast_like, 2, .narrow = MDL_NARROW_OWN},
    {"Gelu", lower_gelu, 1, 1, 0, MDL_LOWER_BOTH},
    {"Swish", lower_swish, 1, 1, 1000},
    {"BiasGelu", lower_bias_gelu, 2, 2, MDL_ACT_GELU, MDL_LOWER_MICROSOFT},
    {"FastGelu", lower_bias_gelu, 1, 2, MDL_ACT_GELU_TANH, MDL_LOWER_MICROSOFT},
    {"QuickGelu", lower_swish, 1, 1, 1702, MDL_LOWER_MICROSOFT},
    {0},
};
