/* SPDX-License-Identifier: Apache-2.0 */
/* Element functions and broadcast arithmetic. */
#include <math.h>

#include "model/lower/lowering.h"

/* The parameters of those functions that have some: attributes and their defaults. */
static const struct {
    const char *a, *b;
    float a_default, b_default;
} parameters[MDL_ACT_COUNT] = {
    [MDL_ACT_LEAKY_RELU] = {"alpha", NULL, 0.01f, 0},
    [MDL_ACT_HARD_SIGMOID] = {"alpha", "beta", 0.2f, 0.5f},
    [MDL_ACT_ELU] = {"alpha", NULL, 1, 0},
    [MDL_ACT_SELU] = {"alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f},
    [MDL_ACT_THRESHOLDED_RELU] = {"alpha", NULL, 1, 0},
    [MDL_ACT_SHRINK] = {"lambd", "bias", 0.5f, 0},
};

static size_t lower_unary(struct mdl_lower *l, int act)
{
    const char *a = parameters[act].a, *b = parameters[act].b;

    mdl_bad_if(l, act == MDL_ACT_NOT && mdl_l_value(l, l->in[0])->dtype != MDL_BOOL,
               "the input must be of type bool");
    return mdl_ir_unary(l->ir, (enum mdl_act)act,
                        a ? mdl_l_float(l, a, parameters[act].a_default) : 0,
                        b ? mdl_l_float(l, b, parameters[act].b_default) : 0, l->in[0]);
}

static size_t clip_dynamic(struct mdl_lower *l)
{
    size_t y = l->in[0];

    if (mdl_l_in(l, 1) != MDL_NONE) {
        y = mdl_ir_binary(l->ir, MDL_BIN_MAX, y, l->in[1]);
    }
    if (mdl_l_in(l, 2) != MDL_NONE) {
        y = mdl_ir_binary(l->ir, MDL_BIN_MIN, y, l->in[2]);
    }
    return y;
}

static size_t lower_clip(struct mdl_lower *l, int arg)
{
    float low = mdl_l_float(l, "min", -INFINITY), high = mdl_l_float(l, "max", INFINITY);

    if ((mdl_l_in(l, 1) != MDL_NONE && !mdl_l_const_float(l, 1, &low)) ||
        (mdl_l_in(l, 2) != MDL_NONE && !mdl_l_const_float(l, 2, &high)) ||
        mdl_l_value(l, l->in[0])->dtype != MDL_F32) {
        return clip_dynamic(l);
    }
    if (low == 0 && high == INFINITY) {
        return mdl_ir_unary(l->ir, MDL_ACT_RELU, 0, 0, l->in[0]);
    }
    return mdl_ir_unary(l->ir, MDL_ACT_CLIP, low, high, l->in[0]);
}

static size_t lower_prelu(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_PRELU);
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), slope = *mdl_l_value(l, l->in[1]);
    size_t s = l->in[1];

    /* opset 6: one slope per channel; later it broadcasts from the right, but some files keep the
     * old meaning */
    if (slope.rank == 1 && slope.dim[0] > 1 && x.rank >= 2 && slope.dim[0] == x.dim[1] &&
        (l->opset < 7 || slope.dim[0] != x.dim[x.rank - 1])) {
        s = mdl_lower_beside(l, s, x.rank, 1);
    }
    mdl_ir_spread(l->ir, (size_t[]){l->in[0], s}, 2, x.rank, x.dim, op.op.in);
    return mdl_ir_emit(l->ir, &op, MDL_F32, x.rank, x.dim);
}

/* Input 1. Before opset 7 it broadcasts only on request, from attribute axis on. */
static size_t second(struct mdl_lower *l)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), y = *mdl_l_value(l, l->in[1]);
    size_t dim[MDL_RANK_MAX], at;

    if (l->opset >= 7 || !mdl_l_int(l, "broadcast", 0) || x.rank <= y.rank) {
        return l->in[1];
    }
    at = mdl_l_axis(l, mdl_l_int(l, "axis", (int64_t)x.rank - (int64_t)y.rank), x.rank, true);
    mdl_bad_if(l, at + y.rank > x.rank, "input 1 does not fit into input 0 from axis %zu on", at);
    for (size_t i = 0; i + at < x.rank; i++) {
        dim[i] = i < y.rank ? y.dim[i] : 1;
    }
    return mdl_ir_reshape(l->ir, l->in[1], x.rank - at, dim);
}

/* Exporters write squares and cubes as powers; products are much faster. Return: whether @exponent
 * is such a constant that does not widen the result; *ret then counts the factors. */
static bool small_power(struct mdl_lower *l, size_t exponent, int *ret)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), e = *mdl_l_value(l, exponent);
    double value = e.data && mdl_ir_elements(&e) == 1 ? mdl_const_real(&e, 0) : 0;

    *ret = value == 1 ? 1 : value == 2 ? 2 : value == 3 ? 3 : 0;
    return *ret && e.rank <= x.rank;
}

/* Types of base and exponent may differ; the result has the base's. */
static size_t lower_pow(struct mdl_lower *l, int arg)
{
    size_t x = l->in[0], e = second(l), y = x;
    enum mdl_dtype dtype = mdl_l_value(l, x)->dtype;
    int factors;

    mdl_bad_if(l, dtype == MDL_BOOL || mdl_l_value(l, e)->dtype == MDL_BOOL,
               "the inputs must be numbers, not bool");
    if (small_power(l, e, &factors)) {
        for (int i = 1; i < factors; i++) {
            y = mdl_ir_binary(l->ir, MDL_BIN_MUL, y, x);
        }
        return y;
    }
    if (dtype == MDL_F32 || mdl_l_value(l, e)->dtype != MDL_F32) {
        e = mdl_ir_cast(l->ir, e, dtype);
    }
    return mdl_ir_binary(l->ir, MDL_BIN_POW, x, e);
}

static size_t lower_binary(struct mdl_lower *l, int which)
{
    size_t a = l->in[0], b = second(l), y;

    mdl_bad_if(
        l, (which == MDL_BIN_AND || which == MDL_BIN_OR) && mdl_l_value(l, a)->dtype != MDL_BOOL,
        "the inputs must be of type bool");
    y = mdl_bounds_decide(l->ir, (enum mdl_binary)which, a, b);
    return y != MDL_NONE ? y : mdl_ir_binary(l->ir, (enum mdl_binary)which, a, b);
}

/* a <= b as (a < b) or (a == b): a comparison with NaN stays false */
static size_t lower_or_equal(struct mdl_lower *l, int which)
{
    size_t strict = mdl_ir_binary(l->ir, (enum mdl_binary)which, l->in[0], l->in[1]);
    size_t equal = mdl_ir_binary(l->ir, MDL_BIN_EQUAL, l->in[0], l->in[1]);

    return mdl_ir_binary(l->ir, MDL_BIN_OR, strict, equal);
}

static size_t chain(struct mdl_lower *l, int which)
{
    size_t y = l->in[0];

    for (size_t i = 1; i < l->in_count; i++) {
        y = mdl_ir_binary(l->ir, (enum mdl_binary)which, y, l->in[i]);
    }
    return y;
}

static size_t lower_mean(struct mdl_lower *l, int arg)
{
    size_t sum = chain(l, MDL_BIN_ADD), n;

    if (l->in_count == 1) {
        return sum;
    }
    n = mdl_ir_scalar(l->ir, mdl_l_value(l, sum)->dtype, (double)l->in_count);
    return mdl_ir_binary(l->ir, MDL_BIN_DIV, sum, n);
}

/* Return: what a Where always takes, because its condition is a constant of equal elements; or
 * MDL_NONE, also where only another input knows how many rows the result has. */
static size_t always(const struct mdl_lower *l)
{
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[0]);
    size_t count = mdl_ir_elements(c), chosen;

    for (size_t i = 0; c->data && i < count; i++) {
        if (mdl_const_int(c, i) != mdl_const_int(c, 0)) {
            return MDL_NONE;
        }
    }
    if (!c->data || count == 0) {
        return MDL_NONE;
    }
    chosen = l->in[mdl_const_int(c, 0) ? 1 : 2];
    for (size_t i = 1; i < 3; i++) {
        if (mdl_l_value(l, l->in[i])->rows != MDL_NONE &&
            mdl_l_value(l, chosen)->rows == MDL_NONE) {
            return MDL_NONE;
        }
    }
    return chosen;
}

static size_t lower_where(struct mdl_lower *l, int arg)
{
    size_t rank, dim[MDL_RANK_MAX], chosen;

    mdl_bad_if(l,
               mdl_l_value(l, l->in[0])->dtype != MDL_BOOL ||
                   mdl_l_value(l, l->in[2])->dtype != mdl_l_value(l, l->in[1])->dtype,
               "the inputs have different types");
    rank = mdl_ir_broadcast(l->ir, l->in, 3, dim);
    chosen = always(l);
    return chosen != MDL_NONE ? mdl_ir_expand(l->ir, chosen, rank, dim)
                              : mdl_ir_where(l->ir, l->in, rank, dim);
}

const struct mdl_lower_row mdl_lower_elements[] = {
    {"Relu", lower_unary, 1, 0, MDL_ACT_RELU, .narrow = MDL_NARROW_KEEPS},
    {"Sigmoid", lower_unary, 1, 1, MDL_ACT_SIGMOID},
    {"HardSwish", lower_unary, 1, 1, MDL_ACT_HARD_SWISH},
    {"Tanh", lower_unary, 1, 1, MDL_ACT_TANH},
    {"Softplus", lower_unary, 1, 1, MDL_ACT_SOFTPLUS},
    {"Softsign", lower_unary, 1, 1, MDL_ACT_SOFTSIGN},
    {"Exp", lower_unary, 1, 1, MDL_ACT_EXP},
    {"Log", lower_unary, 1, 1, MDL_ACT_LOG},
    {"Sqrt", lower_unary, 1, 1, MDL_ACT_SQRT},
    {"Reciprocal", lower_unary, 1, 1, MDL_ACT_RECIPROCAL},
    {"Neg", lower_unary, 1, 0, MDL_ACT_NEG, .narrow = MDL_NARROW_WRAPS},
    {"Abs", lower_unary, 1, 0, MDL_ACT_ABS, .narrow = MDL_NARROW_WRAPS},
    {"Floor", lower_unary, 1, 1, MDL_ACT_FLOOR},
    {"Ceil", lower_unary, 1, 1, MDL_ACT_CEIL},
    {"Round", lower_unary, 1, 1, MDL_ACT_ROUND},
    {"Sign", lower_unary, 1, 0, MDL_ACT_SIGN, .narrow = MDL_NARROW_KEEPS},
    {"Erf", lower_unary, 1, 1, MDL_ACT_ERF},
    {"Not", lower_unary, 1, 0, MDL_ACT_NOT},
    {"LeakyRelu", lower_unary, 1, 1, MDL_ACT_LEAKY_RELU},
    {"HardSigmoid", lower_unary, 1, 1, MDL_ACT_HARD_SIGMOID},
    {"Elu", lower_unary, 1, 1, MDL_ACT_ELU},
    {"Selu", lower_unary, 1, 1, MDL_ACT_SELU},
    {"Sin", lower_unary, 1, 1, MDL_ACT_SIN},
    {"Cos", lower_unary, 1, 1, MDL_ACT_COS},
    {"Tan", lower_unary, 1, 1, MDL_ACT_TAN},
    {"Asin", lower_unary, 1, 1, MDL_ACT_ASIN},
    {"Acos", lower_unary, 1, 1, MDL_ACT_ACOS},
    {"Atan", lower_unary, 1, 1, MDL_ACT_ATAN},
    {"Sinh", lower_unary, 1, 1, MDL_ACT_SINH},
    {"Cosh", lower_unary, 1, 1, MDL_ACT_COSH},
    {"Asinh", lower_unary, 1, 1, MDL_ACT_ASINH},
    {"Acosh", lower_unary, 1, 1, MDL_ACT_ACOSH},
    {"Atanh", lower_unary, 1, 1, MDL_ACT_ATANH},
    {"ThresholdedRelu", lower_unary, 1, 1, MDL_ACT_THRESHOLDED_RELU},
    {"Shrink", lower_unary, 1, 1, MDL_ACT_SHRINK},
    {"Mish", lower_unary, 1, 1, MDL_ACT_MISH},
    {"Clip", lower_clip, 1, .narrow = MDL_NARROW_KEEPS},
    {"PRelu", lower_prelu, 2, 2},
    {"Add", lower_binary, 2, 0, MDL_BIN_ADD, .narrow = MDL_NARROW_WRAPS},
    {"Sub", lower_binary, 2, 0, MDL_BIN_SUB, .narrow = MDL_NARROW_WRAPS},
    {"Mul", lower_binary, 2, 0, MDL_BIN_MUL, .narrow = MDL_NARROW_WRAPS},
    {"Div", lower_binary, 2, 0, MDL_BIN_DIV, .narrow = MDL_NARROW_WRAPS},
    {"Pow", lower_pow, 2},
    {"Equal", lower_binary, 2, 0, MDL_BIN_EQUAL},
    {"Less", lower_binary, 2, 0, MDL_BIN_LESS},
    {"Greater", lower_binary, 2, 0, MDL_BIN_GREATER},
    {"And", lower_binary, 2, 0, MDL_BIN_AND},
    {"Or", lower_binary, 2, 0, MDL_BIN_OR},
    {"LessOrEqual", lower_or_equal, 2, 0, MDL_BIN_LESS},
    {"GreaterOrEqual", lower_or_equal, 2, 0, MDL_BIN_GREATER},
    {"Sum", chain, MDL_LOWER_ALL, 0, MDL_BIN_ADD},
    {"Max", chain, MDL_LOWER_ALL, 0, MDL_BIN_MAX, .narrow = MDL_NARROW_KEEPS},
    {"Min", chain, MDL_LOWER_ALL, 0, MDL_BIN_MIN, .narrow = MDL_NARROW_KEEPS},
    {"Mean", lower_mean, MDL_LOWER_ALL},
    {"Where", lower_where, 3, .narrow = MDL_NARROW_KEEPS, .like = 1},
    {0},
};
