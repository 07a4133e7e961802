/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/lower/lowering.h"

/* Operators of com.microsoft, as ONNX Runtime's quantiser and optimiser write them.
 *
 * QLinear operators become DequantizeLinear, the operator, QuantizeLinear. mdl_quant_fuse() turns
 * that into integer arithmetic where we have it. The rest is computed in f32 and rounded once; it
 * differs by at most one step from ONNX Runtime's answer. */

#define MS "com.microsoft"
#define OPSET 11 /* of ONNX's operators that these follow */

/* One input of a QLinear operator: value, scale and zero point are inputs @at, @at + 1, @at + 2. */
static int dequantized(struct mdl_lower *l, size_t at, size_t x, size_t *ret)
{
    struct mdl_lower_param p = {.scale = mdl_l_in(l, at + 1), .zero = mdl_l_in(l, at + 2)};

    return mdl_lower_dequantize(l, x, &p, ret);
}

/* The result @y, whose scale and zero point are inputs @at and @at + 1; without a zero point it has
 * the type of input 0. */
static int quantized(struct mdl_lower *l, size_t at, size_t y, size_t *ret)
{
    struct mdl_lower_param p = {.scale = l->in[at], .zero = mdl_l_in(l, at + 1)};
    size_t elements = mdl_ir_elements(mdl_l_value(l, p.scale));
    int r = 0;

    if (elements != 1) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "%zu scales of the result are not supported",
                             elements);
    }
    if (p.zero == MDL_NONE) {
        r = mdl_ir_scalar(l->ir, mdl_l_value(l, l->in[0])->dtype, 0, &p.zero);
    }
    return r < 0 ? r : mdl_lower_quantize(l, y, &p, ret);
}

/* Refuses a node whose inputs 0 .. @count - 1 are not there, except for the zero points @zeros (a
 * bit each). */
static int need(struct mdl_lower *l, size_t count, unsigned zeros)
{
    for (size_t i = 0; i < count; i++) {
        if (!(zeros >> i & 1) && mdl_l_in(l, i) == MDL_NONE) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "input %zu is missing", i);
        }
    }
    return mdl_l_need(l, 0);
}

/* As one of ONNX's operators, with one result. */
static int as(struct mdl_lower *l, const char *op_type, int64_t opset, const size_t *in,
              size_t count, size_t *ret)
{
    return mdl_lower_as(l, op_type, &(struct mdl_lower_values){opset, in, count, 1, ret});
}

/* ---- layout ---- */

/* Moves the channels of an image to the end, or back to dim 1. */
static int move_channels(struct mdl_lower *l, bool to_last, size_t *x)
{
    size_t rank = mdl_l_value(l, *x)->rank, perm[MDL_RANK_MAX] = {0};

    if (rank < 3) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "an input of rank %zu has no channels", rank);
    }
    for (size_t i = 1; i < rank; i++) {
        perm[i] = to_last ? (i + 1 == rank ? 1 : i + 1) : i == 1 ? rank - 1 : i - 1;
    }
    return mdl_ir_permute(l->ir, *x, perm, x);
}

static bool channels_last(struct mdl_lower *l)
{
    return mdl_l_int(l, "channels_last", 0) != 0;
}

/* ---- QLinear operators ---- */

static int lower_binary(struct mdl_lower *l, int which)
{
    size_t a, b, y;
    int r = need(l, 7, 1u << 2 | 1u << 5);

    r = r < 0 ? r : dequantized(l, 0, l->in[0], &a);
    r = r < 0 ? r : dequantized(l, 3, l->in[3], &b);
    r = r < 0 ? r : mdl_ir_binary(l->ir, (enum mdl_binary)which, a, b, &y);
    return r < 0 ? r : quantized(l, 6, y, &l->out[0]);
}

enum simple { AVERAGE_POOL, GLOBAL_AVERAGE_POOL, LEAKY_RELU, SIGMOID, SOFTMAX, REDUCE_MEAN };

/* x, its scale and zero point, those of the result */
static int lower_simple(struct mdl_lower *l, int which)
{
    static const char *const names[] = {
        [AVERAGE_POOL] = "AveragePool", [GLOBAL_AVERAGE_POOL] = "GlobalAveragePool",
        [LEAKY_RELU] = "LeakyRelu",     [SIGMOID] = "Sigmoid",
        [SOFTMAX] = "Softmax",          [REDUCE_MEAN] = "ReduceMean"};
    bool moved = which <= GLOBAL_AVERAGE_POOL && channels_last(l);
    int64_t opset = which == SOFTMAX ? mdl_l_int(l, "opset", 0) : OPSET;
    size_t x, y;
    int r = need(l, 4, 1u << 2);

    if (r == 0 && opset < 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "attribute opset is missing");
    }
    x = r < 0 ? MDL_NONE : l->in[0];
    r = r < 0 || !moved ? r : move_channels(l, false, &x);
    r = r < 0 ? r : dequantized(l, 0, x, &x);
    r = r < 0 ? r : as(l, names[which], opset, &x, 1, &y);
    r = r < 0 ? r : quantized(l, 3, y, &y);
    r = r < 0 || !moved ? r : move_channels(l, true, &y);
    l->out[0] = r < 0 ? MDL_NONE : y;
    return r;
}

/* Return: whether two scales or zero points are the same constant. */
static bool same_number(const struct mdl_lower *l, size_t a, size_t b)
{
    const struct mdl_ir_value *x = a == MDL_NONE ? NULL : mdl_l_value(l, a);
    const struct mdl_ir_value *y = b == MDL_NONE ? NULL : mdl_l_value(l, b);

    if (!x || !y) {
        return !x && !y;
    }
    return x->data && y->data && x->dtype == y->dtype && mdl_ir_elements(x) == 1 &&
           mdl_ir_elements(y) == 1 && mdl_const_real(x, 0) == mdl_const_real(y, 0);
}

/* Inputs whose parameters are the result's are bytes of it as they are. */
static int lower_concat(struct mdl_lower *l, int arg)
{
    size_t count = l->in_count < 5 ? 0 : (l->in_count - 2) / 3, *parts;
    int r = count && (l->in_count - 2) % 3 == 0
                ? mdl_l_need(l, l->in_count)
                : mdl_ir_refuse(l->ir, -EBADMSG,
                                "%zu inputs are not a scale, a zero point and three for each part",
                                l->in_count);

    parts = mdl_pool_alloc(l->ir->pool, count, sizeof(*parts));
    if (r == 0 && !parts) {
        return mdl_ir_nomem(l->ir);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        size_t at = 2 + 3 * i, x;

        parts[i] = l->in[at];
        if (same_number(l, l->in[0], l->in[at + 1]) && same_number(l, l->in[1], l->in[at + 2])) {
            continue;
        }
        r = dequantized(l, at, l->in[at], &x);
        r = r < 0 ? r : quantized(l, 0, x, &parts[i]);
    }
    return r < 0 ? r : as(l, "Concat", OPSET, parts, count, &l->out[0]);
}

static int lower_conv(struct mdl_lower *l, int arg)
{
    bool moved = channels_last(l);
    size_t *in, y;
    int r = mdl_l_need(l, 8);

    in = mdl_pool_memdup(l->ir->pool, l->in, l->in_count * sizeof(*in));
    if (r == 0 && !in) {
        return mdl_ir_nomem(l->ir);
    }
    r = r < 0 || !moved ? r : move_channels(l, false, &in[0]);
    r = r < 0 ? r : as(l, "QLinearConv", OPSET, in, l->in_count, &y);
    r = r < 0 || !moved ? r : move_channels(l, true, &y);
    l->out[0] = r < 0 ? MDL_NONE : y;
    return r;
}

/* ---- products ---- */

static int check_matrix(struct mdl_lower *l, size_t v)
{
    const struct mdl_ir_value *x = mdl_l_value(l, v);

    return x->rank == 2 ? 0
                        : mdl_ir_refuse(l->ir, -EBADMSG, "an input has rank %zu, not 2", x->rank);
}

/* C of QGemm, in units of alpha a_scale b_scale, as a term of [m][n]. */
static int gemm_addend(struct mdl_lower *l, const size_t dim[2], float alpha, size_t *ret)
{
    struct mdl_lower_param p = {.zero = MDL_NONE};
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[6]);
    size_t factor;
    int r;

    if (c->dtype != MDL_I32 || c->rank > 2) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input 6 is not a matrix or vector of int32");
    }
    p.axis = c->rank ? (int64_t)c->rank - 1 : 0;
    r = mdl_ir_scalar(l->ir, MDL_F32, (double)alpha, &factor);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, l->in[1], l->in[4], &p.scale);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, p.scale, factor, &p.scale);
    r = r < 0 ? r : mdl_lower_dequantize(l, l->in[6], &p, ret);
    return r < 0 ? r : mdl_ir_expand(l->ir, *ret, 2, dim, ret);
}

/* y = alpha a_scale b_scale (sum (a - a_zero)(b - b_zero) + C), quantised where it has a scale */
static int lower_gemm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GEMM);
    bool ta = mdl_l_int(l, "transA", 0) != 0, tb = mdl_l_int(l, "transB", 0) != 0;
    struct mdl_lower_param b;
    size_t dim[2], k, y;
    int r = need(l, 6, 1u << 2 | 1u << 5);

    r = r < 0 ? r : check_matrix(l, l->in[0]);
    r = r < 0 ? r : check_matrix(l, l->in[3]);
    if (r < 0) {
        return r;
    }
    b = (struct mdl_lower_param){.scale = l->in[4], .zero = mdl_l_in(l, 5), .axis = tb ? 0 : 1};
    dim[0] = mdl_l_value(l, l->in[0])->dim[ta];
    k = mdl_l_value(l, l->in[0])->dim[!ta];
    dim[1] = mdl_l_value(l, l->in[3])->dim[!tb];
    if (k != mdl_l_value(l, l->in[3])->dim[tb]) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "inner dimensions %zu and %zu differ", k,
                             mdl_l_value(l, l->in[3])->dim[tb]);
    }
    op.op.attr.gemm.trans_a = ta;
    op.op.attr.gemm.trans_b = tb;
    op.op.attr.gemm.alpha = mdl_l_float(l, "alpha", 1);
    op.op.attr.gemm.beta = 1;
    op.op.macs = (double)dim[0] * (double)dim[1] * (double)k;
    r = dequantized(l, 0, l->in[0], &op.op.in[0]);
    r = r < 0 ? r : mdl_lower_dequantize(l, l->in[3], &b, &op.op.in[1]);
    if (r == 0 && mdl_l_in(l, 6) != MDL_NONE) {
        r = gemm_addend(l, dim, op.op.attr.gemm.alpha, &op.op.in[2]);
    }
    r = r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_F32, 2, dim, &y);
    if (r == 0 && mdl_l_in(l, 7) != MDL_NONE) {
        return quantized(l, 7, y, &l->out[0]);
    }
    l->out[0] = r < 0 ? MDL_NONE : y;
    return r;
}

/* Integers @y times both scales, plus input @bias where it is there. */
static int scale_product(struct mdl_lower *l, size_t y, size_t a_scale, size_t b_scale, size_t bias)
{
    size_t scale;
    int r;

    if (mdl_ir_elements(mdl_l_value(l, a_scale)) != 1) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "%zu scales of input 0 are not supported, only one",
                             mdl_ir_elements(mdl_l_value(l, a_scale)));
    }
    r = mdl_ir_binary(l->ir, MDL_BIN_MUL, a_scale, b_scale, &scale);
    r = r < 0 ? r : mdl_ir_cast(l->ir, y, MDL_F32, &y);
    r = r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, y, scale, &y);
    if (r == 0 && mdl_l_in(l, bias) != MDL_NONE) {
        r = mdl_ir_binary(l->ir, MDL_BIN_ADD, y, l->in[bias], &y);
    }
    l->out[0] = r < 0 ? MDL_NONE : y;
    return r;
}

/* A, B, their scales, their zero points, a bias */
static int lower_to_float(struct mdl_lower *l, int arg)
{
    size_t y;
    int r = mdl_l_need(l, 4);

    r = r < 0 ? r
              : as(l, "MatMulInteger", OPSET,
                   (size_t[]){l->in[0], l->in[1], mdl_l_in(l, 4), mdl_l_in(l, 5)}, 4, &y);
    return r < 0 ? r : scale_product(l, y, l->in[2], l->in[3], 6);
}

/* A in f32, B, its scale, its zero point, a bias */
static int lower_dynamic(struct mdl_lower *l, int arg)
{
    size_t a[3], y;
    int r = mdl_l_need(l, 3);

    r = r < 0 ? r
              : mdl_lower_as(l, "DynamicQuantizeLinear",
                             &(struct mdl_lower_values){OPSET, l->in, 1, 3, a});
    r = r < 0 ? r
              : as(l, "MatMulInteger", OPSET, (size_t[]){a[0], l->in[1], a[2], mdl_l_in(l, 3)}, 4,
                   &y);
    return r < 0 ? r : scale_product(l, y, a[1], l->in[2], 4);
}

/* ---- fused operators of f32 ---- */

static const struct activation {
    const char *name;
    enum mdl_act act;
    size_t numbers;
    float a, b; /* defaults */
} activations[] = {
    {"Relu", MDL_ACT_RELU, 0, 0, 0},
    {"Sigmoid", MDL_ACT_SIGMOID, 0, 0, 0},
    {"Tanh", MDL_ACT_TANH, 0, 0, 0},
    {"Softplus", MDL_ACT_SOFTPLUS, 0, 0, 0},
    {"Softsign", MDL_ACT_SOFTSIGN, 0, 0, 0},
    {"LeakyRelu", MDL_ACT_LEAKY_RELU, 1, 0.01f, 0},
    {"Elu", MDL_ACT_ELU, 1, 1, 0},
    {"Clip", MDL_ACT_CLIP, 2, 0, 0},
    {"HardSigmoid", MDL_ACT_HARD_SIGMOID, 2, 0.2f, 0.5f},
};

static int activate(struct mdl_lower *l, const char *name, const float *numbers, size_t count,
                    size_t *y)
{
    for (size_t i = 0; i < base_array_count(activations); i++) {
        const struct activation *a = &activations[i];

        if (strcmp(name, a->name) == 0) {
            if (a->act == MDL_ACT_CLIP && count < 2) {
                return mdl_ir_refuse(l->ir, -EBADMSG, "activation Clip needs two parameters");
            }
            return mdl_ir_unary(l->ir, a->act, a->numbers > 0 && count > 0 ? numbers[0] : a->a,
                                a->numbers > 1 && count > 1 ? numbers[1] : a->b, *y, y);
        }
    }
    return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "activation %.40s is not supported", name);
}

/* activation(convolution + Z) */
static int lower_fused_conv(struct mdl_lower *l, int arg)
{
    const struct mdl_gattr *numbers = mdl_l_attr(l, "activation_params");
    const char *name = mdl_l_string(l, "activation", "");
    size_t y;
    int r = mdl_l_need(l, 2);

    if (numbers && numbers->type != MDL_ATTR_FLOATS) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "attribute activation_params has the wrong type");
    }
    r = r < 0 ? r : as(l, "Conv", OPSET, l->in, base_min(l->in_count, (size_t)3), &y);
    if (r == 0 && mdl_l_in(l, 3) != MDL_NONE) {
        if (!mdl_ir_same_dims(mdl_l_value(l, l->in[3]), mdl_l_value(l, y))) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "input 3 has not the shape of the result");
        }
        r = mdl_ir_binary(l->ir, MDL_BIN_ADD, y, l->in[3], &y);
    }
    if (r == 0 && name[0]) {
        r = activate(l, name, numbers ? numbers->floats : NULL, numbers ? numbers->count : 0, &y);
    }
    l->out[0] = r < 0 ? MDL_NONE : y;
    return r;
}

static int lower_fused_gemm(struct mdl_lower *l, int arg)
{
    const char *name = mdl_l_string(l, "activation", "");
    float numbers[2];
    size_t count = 0, y;
    int r = mdl_l_need(l, 2);

    if (mdl_l_attr(l, "activation_alpha")) {
        numbers[count++] = mdl_l_float(l, "activation_alpha", 0);
        if (mdl_l_attr(l, "activation_beta")) {
            numbers[count++] = mdl_l_float(l, "activation_beta", 0);
        }
    }
    r = r < 0 ? r : as(l, "Gemm", OPSET, l->in, l->in_count, &y);
    if (r == 0 && name[0]) {
        r = activate(l, name, numbers, count, &y);
    }
    l->out[0] = r < 0 ? MDL_NONE : y;
    return r;
}

const struct mdl_lower_row mdl_lower_microsofts[] = {
    {"QLinearAdd", lower_binary, MDL_BIN_ADD, MS},
    {"QLinearMul", lower_binary, MDL_BIN_MUL, MS},
    {"QLinearConcat", lower_concat, 0, MS},
    {"QLinearAveragePool", lower_simple, AVERAGE_POOL, MS},
    {"QLinearGlobalAveragePool", lower_simple, GLOBAL_AVERAGE_POOL, MS},
    {"QLinearLeakyRelu", lower_simple, LEAKY_RELU, MS},
    {"QLinearSigmoid", lower_simple, SIGMOID, MS},
    {"QLinearSoftmax", lower_simple, SOFTMAX, MS},
    {"QLinearReduceMean", lower_simple, REDUCE_MEAN, MS},
    {"QLinearConv", lower_conv, 0, MS},
    {"QGemm", lower_gemm, 0, MS},
    {"MatMulIntegerToFloat", lower_to_float, 0, MS},
    {"DynamicQuantizeMatMul", lower_dynamic, 0, MS},
    {"FusedConv", lower_fused_conv, 0, MS},
    {"FusedGemm", lower_fused_gemm, 0, MS},
    {0},
};
