/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "model/ir/bounds.h"
#include "model/lower/lowering.h"

/* Element functions and broadcast arithmetic. */

static int lower_unary(struct mdl_lower *l, int act)
{
    int r = mdl_l_need(l, 1);

    r = r < 0 || act == MDL_ACT_NEG || act == MDL_ACT_ABS || act == MDL_ACT_SIGN ||
                act == MDL_ACT_NOT || act == MDL_ACT_RELU
            ? r
            : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    if (act == MDL_ACT_NOT && mdl_l_value(l, l->in[0])->dtype != MDL_BOOL) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the input must be of type bool");
    }
    return mdl_ir_unary(l->ir, (enum mdl_act)act, 0, 0, l->in[0], &l->out[0]);
}

/* Functions with attributes alpha, and beta or gamma. */
static int lower_unary_ab(struct mdl_lower *l, int act)
{
    float a = 0, b = 0;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    switch (act) {
    case MDL_ACT_LEAKY_RELU:
        a = mdl_l_float(l, "alpha", 0.01f);
        break;
    case MDL_ACT_HARD_SIGMOID:
        a = mdl_l_float(l, "alpha", 0.2f);
        b = mdl_l_float(l, "beta", 0.5f);
        break;
    case MDL_ACT_SELU:
        a = mdl_l_float(l, "alpha", 1.67326319217681884765625f);
        b = mdl_l_float(l, "gamma", 1.05070102214813232421875f);
        break;
    default:
        a = mdl_l_float(l, "alpha", 1.0f);
        break;
    }
    return mdl_ir_unary(l->ir, (enum mdl_act)act, a, b, l->in[0], &l->out[0]);
}

static int clip_dynamic(struct mdl_lower *l)
{
    size_t y = l->in[0];
    int r = 0;

    if (mdl_l_in(l, 1) != MDL_NONE) {
        r = mdl_ir_binary(l->ir, MDL_BIN_MAX, y, l->in[1], &y);
    }
    if (r == 0 && mdl_l_in(l, 2) != MDL_NONE) {
        r = mdl_ir_binary(l->ir, MDL_BIN_MIN, y, l->in[2], &y);
    }
    l->out[0] = y;
    return r;
}

static int lower_clip(struct mdl_lower *l, int arg)
{
    float low = mdl_l_float(l, "min", -INFINITY), high = mdl_l_float(l, "max", INFINITY);
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    if ((mdl_l_in(l, 1) != MDL_NONE && !mdl_l_const_float(l, 1, &low)) ||
        (mdl_l_in(l, 2) != MDL_NONE && !mdl_l_const_float(l, 2, &high)) ||
        mdl_l_value(l, l->in[0])->dtype != MDL_F32) {
        return clip_dynamic(l);
    }
    if (low == 0 && high == INFINITY) {
        return mdl_ir_unary(l->ir, MDL_ACT_RELU, 0, 0, l->in[0], &l->out[0]);
    }
    return mdl_ir_unary(l->ir, MDL_ACT_CLIP, low, high, l->in[0], &l->out[0]);
}

static int lower_prelu(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_PRELU);
    struct mdl_ir_value x, slope;
    size_t s, dim[MDL_RANK_MAX];
    int r = mdl_l_need(l, 2);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    r = r < 0 ? r : mdl_l_f32(l, 1);
    if (r < 0) {
        return r;
    }
    s = l->in[1];
    x = *mdl_l_value(l, l->in[0]);
    slope = *mdl_l_value(l, s);
    /* opset 6: one slope per channel; later it broadcasts from the right, but some files keep the
     * old meaning */
    if (slope.rank == 1 && slope.dim[0] > 1 && x.rank >= 2 && slope.dim[0] == x.dim[1] &&
        (l->opset < 7 || slope.dim[0] != x.dim[x.rank - 1])) {
        for (size_t i = 0; i < x.rank; i++) {
            dim[i] = i == 1 ? slope.dim[0] : 1;
        }
        r = mdl_ir_reshape(l->ir, s, x.rank, dim, &s);
    }
    r = r < 0 ? r : mdl_ir_spread(l->ir, (size_t[]){l->in[0], s}, 2, x.rank, x.dim, op.op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_F32, x.rank, x.dim, &l->out[0]);
}

/* Before opset 7 the second input broadcasts only on request, from attribute axis on. */
static int old_broadcast(struct mdl_lower *l, size_t *b)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), y = *mdl_l_value(l, *b);
    int64_t axis = mdl_l_int(l, "axis", (int64_t)x.rank - (int64_t)y.rank);
    size_t dim[MDL_RANK_MAX], at;
    int r;

    if (!mdl_l_int(l, "broadcast", 0) || x.rank <= y.rank) {
        return 0;
    }
    r = mdl_l_axis(l, axis, x.rank, true, &at);
    if (r < 0) {
        return r;
    }
    if (at + y.rank > x.rank) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input 1 does not fit into input 0 from axis %zu on",
                             at);
    }
    for (size_t i = 0; i + at < x.rank; i++) {
        dim[i] = i < y.rank ? y.dim[i] : 1;
    }
    return mdl_ir_reshape(l->ir, *b, x.rank - at, dim, b);
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
static int lower_pow(struct mdl_lower *l, int arg)
{
    enum mdl_dtype dtype;
    size_t x, e;
    int factors, r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    x = l->in[0];
    e = l->in[1];
    dtype = mdl_l_value(l, x)->dtype;
    r = l->opset < 7 ? old_broadcast(l, &e) : 0;
    if (dtype == MDL_BOOL || mdl_l_value(l, e)->dtype == MDL_BOOL) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the inputs must be numbers, not bool");
    }
    if (r == 0 && small_power(l, e, &factors)) {
        l->out[0] = x;
        for (int i = 1; r == 0 && i < factors; i++) {
            r = mdl_ir_binary(l->ir, MDL_BIN_MUL, l->out[0], x, &l->out[0]);
        }
        return r;
    }
    if (r == 0 && (dtype == MDL_F32 || mdl_l_value(l, e)->dtype != MDL_F32)) {
        r = mdl_ir_cast(l->ir, e, dtype, &e);
    }
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_POW, x, e, &l->out[0]);
}

static int lower_binary(struct mdl_lower *l, int which)
{
    size_t b;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    b = l->in[1];
    if (l->opset < 7) {
        r = old_broadcast(l, &b);
    }
    if (r == 0 && (which == MDL_BIN_AND || which == MDL_BIN_OR) &&
        mdl_l_value(l, l->in[0])->dtype != MDL_BOOL) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the inputs must be of type bool");
    }
    r = r < 0 ? r : mdl_bounds_decide(l->ir, (enum mdl_binary)which, l->in[0], b, &l->out[0]);
    return r < 0 || l->out[0] != MDL_NONE
               ? r
               : mdl_ir_binary(l->ir, (enum mdl_binary)which, l->in[0], b, &l->out[0]);
}

/* a <= b as (a < b) or (a == b): a comparison with NaN stays false */
static int lower_or_equal(struct mdl_lower *l, int which)
{
    size_t strict, equal;
    int r = mdl_l_need(l, 2);

    r = r < 0 ? r : mdl_ir_binary(l->ir, (enum mdl_binary)which, l->in[0], l->in[1], &strict);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_EQUAL, l->in[0], l->in[1], &equal);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_OR, strict, equal, &l->out[0]);
}

static int chain(struct mdl_lower *l, int which)
{
    size_t y;
    int r = mdl_l_need(l, base_max(l->in_count, (size_t)1));

    if (r < 0) {
        return r;
    }
    y = l->in[0];
    for (size_t i = 1; r == 0 && i < l->in_count; i++) {
        r = mdl_ir_binary(l->ir, (enum mdl_binary)which, y, l->in[i], &y);
    }
    l->out[0] = y;
    return r;
}

static int lower_mean(struct mdl_lower *l, int arg)
{
    size_t n;
    int r = chain(l, MDL_BIN_ADD);

    if (r < 0 || l->in_count == 1) {
        return r;
    }
    r = mdl_ir_scalar(l->ir, mdl_l_value(l, l->out[0])->dtype, (double)l->in_count, &n);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_DIV, l->out[0], n, &l->out[0]);
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

static int lower_where(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_WHERE);
    size_t rank, dim[MDL_RANK_MAX], chosen;
    enum mdl_dtype dtype;
    int r = mdl_l_need(l, 3);

    if (r < 0) {
        return r;
    }
    dtype = mdl_l_value(l, l->in[1])->dtype;
    if (mdl_l_value(l, l->in[0])->dtype != MDL_BOOL || mdl_l_value(l, l->in[2])->dtype != dtype) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the inputs have different types");
    }
    r = mdl_ir_broadcast(l->ir, l->in, 3, &rank, dim);
    chosen = r < 0 ? MDL_NONE : always(l);
    if (chosen != MDL_NONE) {
        return mdl_ir_expand(l->ir, chosen, rank, dim, &l->out[0]);
    }
    r = r < 0 ? r : mdl_ir_spread(l->ir, l->in, 3, rank, dim, op.op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, dtype, rank, dim, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_elements[] = {
    {"Relu", lower_unary, MDL_ACT_RELU},
    {"Sigmoid", lower_unary, MDL_ACT_SIGMOID},
    {"HardSwish", lower_unary, MDL_ACT_HARD_SWISH},
    {"Tanh", lower_unary, MDL_ACT_TANH},
    {"Softplus", lower_unary, MDL_ACT_SOFTPLUS},
    {"Softsign", lower_unary, MDL_ACT_SOFTSIGN},
    {"Exp", lower_unary, MDL_ACT_EXP},
    {"Log", lower_unary, MDL_ACT_LOG},
    {"Sqrt", lower_unary, MDL_ACT_SQRT},
    {"Reciprocal", lower_unary, MDL_ACT_RECIPROCAL},
    {"Neg", lower_unary, MDL_ACT_NEG},
    {"Abs", lower_unary, MDL_ACT_ABS},
    {"Floor", lower_unary, MDL_ACT_FLOOR},
    {"Ceil", lower_unary, MDL_ACT_CEIL},
    {"Round", lower_unary, MDL_ACT_ROUND},
    {"Sign", lower_unary, MDL_ACT_SIGN},
    {"Erf", lower_unary, MDL_ACT_ERF},
    {"Not", lower_unary, MDL_ACT_NOT},
    {"LeakyRelu", lower_unary_ab, MDL_ACT_LEAKY_RELU},
    {"HardSigmoid", lower_unary_ab, MDL_ACT_HARD_SIGMOID},
    {"Elu", lower_unary_ab, MDL_ACT_ELU},
    {"Selu", lower_unary_ab, MDL_ACT_SELU},
    {"Clip", lower_clip, 0},
    {"PRelu", lower_prelu, 0},
    {"Add", lower_binary, MDL_BIN_ADD},
    {"Sub", lower_binary, MDL_BIN_SUB},
    {"Mul", lower_binary, MDL_BIN_MUL},
    {"Div", lower_binary, MDL_BIN_DIV},
    {"Pow", lower_pow, 0},
    {"Equal", lower_binary, MDL_BIN_EQUAL},
    {"Less", lower_binary, MDL_BIN_LESS},
    {"Greater", lower_binary, MDL_BIN_GREATER},
    {"And", lower_binary, MDL_BIN_AND},
    {"Or", lower_binary, MDL_BIN_OR},
    {"LessOrEqual", lower_or_equal, MDL_BIN_LESS},
    {"GreaterOrEqual", lower_or_equal, MDL_BIN_GREATER},
    {"Sum", chain, MDL_BIN_ADD},
    {"Max", chain, MDL_BIN_MAX},
    {"Min", chain, MDL_BIN_MIN},
    {"Mean", lower_mean, 0},
    {"Where", lower_where, 0},
    {0},
};
