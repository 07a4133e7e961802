/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft, as ONNX Runtime's quantiser and optimiser write them.
 *
 * QLinear operators become DequantizeLinear, the operator, QuantizeLinear. mdl_quant_fuse() turns
 * that into integer arithmetic where we have it. The rest is computed in f32 and rounded once; it
 * differs by at most one step from ONNX Runtime's answer. */
#include "model/lower/lowering.h"

#define MS MDL_LOWER_MICROSOFT
#define OPSET 11 /* of ONNX's operators that these follow */

/* One input of a QLinear operator: value, scale and zero point are inputs @at, @at + 1, @at + 2. */
static size_t dequantized(struct mdl_lower *l, size_t at, size_t x)
{
    struct mdl_lower_param p = {.scale = mdl_l_in(l, at + 1), .zero = mdl_l_in(l, at + 2)};

    return mdl_lower_dequantize(l, x, &p);
}

/* The result @y, whose scale and zero point are inputs @at and @at + 1; without a zero point it has
 * the type of input 0. */
static size_t quantized(struct mdl_lower *l, size_t at, size_t y)
{
    struct mdl_lower_param p = {.scale = l->in[at], .zero = mdl_l_in(l, at + 1)};
    size_t elements = mdl_ir_elements(mdl_l_value(l, p.scale));

    mdl_unserved_if(l, elements != 1, "%zu scales of the result are not supported", elements);
    if (p.zero == MDL_NONE) {
        p.zero = mdl_ir_scalar(l->ir, mdl_l_value(l, l->in[0])->dtype, 0);
    }
    return mdl_lower_quantize(l, y, &p);
}

/* As one of ONNX's operators, with one result. */
static size_t as(struct mdl_lower *l, const char *op_type, int64_t opset, const size_t *in,
                 size_t count)
{
    size_t y;

    return mdl_lower_as(l, op_type, &(struct mdl_lower_values){opset, in, count, 1, &y});
}

/* ---- layout ---- */

/* Moves the channels of an image to the end, or back to dim 1, if it has them there. */
static size_t move_channels(struct mdl_lower *l, bool has, bool to_last, size_t x)
{
    size_t rank = mdl_l_value(l, x)->rank, perm[MDL_RANK_MAX] = {0};

    if (!has) {
        return x;
    }
    mdl_bad_if(l, rank < 3, "an input of rank %zu has no channels", rank);
    for (size_t i = 1; i < rank; i++) {
        perm[i] = to_last ? (i + 1 == rank ? 1 : i + 1) : i == 1 ? rank - 1 : i - 1;
    }
    return mdl_ir_permute(l->ir, x, perm);
}

static bool channels_last(struct mdl_lower *l)
{
    return mdl_l_int(l, "channels_last", 0) != 0;
}

/* ---- QLinear operators ---- */

static size_t lower_binary(struct mdl_lower *l, int which)
{
    size_t a = dequantized(l, 0, l->in[0]), b = dequantized(l, 3, l->in[3]);

    return quantized(l, 6, mdl_ir_binary(l->ir, (enum mdl_binary)which, a, b));
}

enum simple { AVERAGE_POOL, GLOBAL_AVERAGE_POOL, LEAKY_RELU, SIGMOID, SOFTMAX, REDUCE_MEAN };

/* x, its scale and zero point, those of the result */
static size_t lower_simple(struct mdl_lower *l, int which)
{
    static const char *const names[] = {
        [AVERAGE_POOL] = "AveragePool", [GLOBAL_AVERAGE_POOL] = "GlobalAveragePool",
        [LEAKY_RELU] = "LeakyRelu",     [SIGMOID] = "Sigmoid",
        [SOFTMAX] = "Softmax",          [REDUCE_MEAN] = "ReduceMean"};
    bool moved = which <= GLOBAL_AVERAGE_POOL && channels_last(l);
    int64_t opset = which == SOFTMAX ? mdl_l_int(l, "opset", 0) : OPSET;
    size_t x;

    mdl_bad_if(l, opset < 1, "attribute opset is missing");
    x = move_channels(l, moved, false, l->in[0]);
    x = dequantized(l, 0, x);
    x = as(l, names[which], opset, &x, 1);
    x = quantized(l, 3, x);
    return move_channels(l, moved, true, x);
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
static size_t lower_concat(struct mdl_lower *l, int arg)
{
    size_t count = l->in_count < 5 ? 0 : (l->in_count - 2) / 3, *parts;

    mdl_bad_if(l, !count || (l->in_count - 2) % 3 != 0,
               "%zu inputs are not a scale, a zero point and three for each part", l->in_count);
    parts = mdl_ir_alloc(l->ir, count, sizeof(*parts));
    for (size_t i = 0; i < count; i++) {
        size_t at = 2 + 3 * i;

        parts[i] = l->in[at];
        if (!same_number(l, l->in[0], l->in[at + 1]) || !same_number(l, l->in[1], l->in[at + 2])) {
            parts[i] = quantized(l, 0, dequantized(l, at, l->in[at]));
        }
    }
    return as(l, "Concat", OPSET, parts, count);
}

static size_t lower_conv(struct mdl_lower *l, int arg)
{
    size_t *in = mdl_ir_memdup(l->ir, l->in, l->in_count * sizeof(*in));
    bool moved = channels_last(l);

    in[0] = move_channels(l, moved, false, in[0]);
    return move_channels(l, moved, true, as(l, "QLinearConv", OPSET, in, l->in_count));
}

/* ---- products ---- */

/* C of QGemm, in units of alpha a_scale b_scale, as a term of [m][n]. */
static size_t gemm_addend(struct mdl_lower *l, const size_t dim[2], float alpha)
{
    struct mdl_lower_param p = {.zero = MDL_NONE};
    const struct mdl_ir_value *c = mdl_l_value(l, l->in[6]);

    mdl_bad_if(l, c->dtype != MDL_I32 || c->rank > 2, "input 6 is not a matrix or vector of int32");
    p.axis = c->rank ? (int64_t)c->rank - 1 : 0;
    p.scale = mdl_ir_binary(l->ir, MDL_BIN_MUL, l->in[1], l->in[4]);
    p.scale =
        mdl_ir_binary(l->ir, MDL_BIN_MUL, p.scale, mdl_ir_scalar(l->ir, MDL_F32, (double)alpha));
    return mdl_ir_expand(l->ir, mdl_lower_dequantize(l, l->in[6], &p), 2, dim);
}

/* y = alpha a_scale b_scale (sum (a - a_zero)(b - b_zero) + C), quantised where it has a scale */
static size_t lower_gemm(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GEMM);
    struct mdl_lower_param p = {.scale = l->in[4], .zero = mdl_l_in(l, 5)};
    size_t dim[2], y;

    mdl_lower_gemm_of(l, l->in[0], l->in[3], &op.op, dim);
    op.op.attr.gemm.beta = 1;
    p.axis = op.op.attr.gemm.trans_b ? 0 : 1;
    op.op.in[0] = dequantized(l, 0, l->in[0]);
    op.op.in[1] = mdl_lower_dequantize(l, l->in[3], &p);
    if (mdl_l_in(l, 6) != MDL_NONE) {
        op.op.in[2] = gemm_addend(l, dim, op.op.attr.gemm.alpha);
    }
    y = mdl_ir_emit(l->ir, &op, MDL_F32, 2, dim);
    return mdl_l_in(l, 7) != MDL_NONE ? quantized(l, 7, y) : y;
}

/* Integers @y times both scales, plus input @bias where it is there. */
static size_t scale_product(struct mdl_lower *l, size_t y, size_t a_scale, size_t b_scale,
                            size_t bias)
{
    size_t count = mdl_ir_elements(mdl_l_value(l, a_scale)), scale;

    mdl_unserved_if(l, count != 1, "%zu scales of input 0 are not supported, only one", count);
    scale = mdl_ir_binary(l->ir, MDL_BIN_MUL, a_scale, b_scale);
    y = mdl_ir_binary(l->ir, MDL_BIN_MUL, mdl_ir_cast(l->ir, y, MDL_F32), scale);
    return mdl_l_in(l, bias) == MDL_NONE ? y : mdl_ir_binary(l->ir, MDL_BIN_ADD, y, l->in[bias]);
}

/* A, B, their scales, their zero points, a bias */
static size_t lower_to_float(struct mdl_lower *l, int arg)
{
    size_t in[4] = {l->in[0], l->in[1], mdl_l_in(l, 4), mdl_l_in(l, 5)};

    return scale_product(l, as(l, "MatMulInteger", OPSET, in, 4), l->in[2], l->in[3], 6);
}

/* A in f32, B, its scale, its zero point, a bias */
static size_t lower_dynamic(struct mdl_lower *l, int arg)
{
    size_t a[3] = {MDL_NONE, MDL_NONE, MDL_NONE}, y;

    mdl_lower_as(l, "DynamicQuantizeLinear", &(struct mdl_lower_values){OPSET, l->in, 1, 3, a});
    y = as(l, "MatMulInteger", OPSET, (size_t[]){a[0], l->in[1], a[2], mdl_l_in(l, 3)}, 4);
    return scale_product(l, y, a[1], l->in[2], 4);
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

static size_t activate(struct mdl_lower *l, const char *name, const float *numbers, size_t count,
                       size_t y)
{
    if (!name[0]) {
        return y;
    }
    for (size_t i = 0; i < base_array_count(activations); i++) {
        const struct activation *a = &activations[i];

        if (strcmp(name, a->name) == 0) {
            mdl_bad_if(l, a->act == MDL_ACT_CLIP && count < 2,
                       "activation Clip needs two parameters");
            return mdl_ir_unary(l->ir, a->act, a->numbers > 0 && count > 0 ? numbers[0] : a->a,
                                a->numbers > 1 && count > 1 ? numbers[1] : a->b, y);
        }
    }
    mdl_l_refuse(l, -EOPNOTSUPP, "activation %.40s is not supported", name);
}

/* activation(convolution + Z) */
static size_t lower_fused_conv(struct mdl_lower *l, int arg)
{
    const struct mdl_gattr *numbers = mdl_l_typed(l, "activation_params", MDL_ATTR_FLOATS);
    size_t y = as(l, "Conv", OPSET, l->in, base_min(l->in_count, (size_t)3));
    if (mdl_l_in(l, 3) != MDL_NONE) {
        mdl_bad_if(l, !mdl_ir_same_dims(mdl_l_value(l, l->in[3]), mdl_l_value(l, y)),
                   "input 3 has not the shape of the result");
        y = mdl_ir_binary(l->ir, MDL_BIN_ADD, y, l->in[3]);
    }
    return activate(l, mdl_l_string(l, "activation", ""), numbers ? numbers->floats : NULL,
                    numbers ? numbers->count : 0, y);
}

static size_t lower_fused_gemm(struct mdl_lower *l, int arg)
{
    float numbers[2];
    size_t count = 0;

    if (mdl_l_attr(l, "activation_alpha")) {
        numbers[count++] = mdl_l_float(l, "activation_alpha", 0);
        if (mdl_l_attr(l, "activation_beta")) {
            numbers[count++] = mdl_l_float(l, "activation_beta", 0);
        }
    }
    return activate(l, mdl_l_string(l, "activation", ""), numbers, count,
                    as(l, "Gemm", OPSET, l->in, l->in_count));
}

/* Zero points that may be absent. */
#define X_ZERO (1u << 2)
#define BOTH_ZEROS (X_ZERO | 1u << 5)

const struct mdl_lower_row mdl_lower_microsofts[] = {
    {"QLinearAdd", lower_binary, 7, 0, MDL_BIN_ADD, MS, .spared = BOTH_ZEROS},
    {"QLinearMul", lower_binary, 7, 0, MDL_BIN_MUL, MS, .spared = BOTH_ZEROS},
    {"QLinearConcat", lower_concat, MDL_LOWER_ALL, 0, 0, MS},
    {"QLinearAveragePool", lower_simple, 4, 0, AVERAGE_POOL, MS, .spared = X_ZERO},
    {"QLinearGlobalAveragePool", lower_simple, 4, 0, GLOBAL_AVERAGE_POOL, MS, .spared = X_ZERO},
    {"QLinearLeakyRelu", lower_simple, 4, 0, LEAKY_RELU, MS, .spared = X_ZERO},
    {"QLinearSigmoid", lower_simple, 4, 0, SIGMOID, MS, .spared = X_ZERO},
    {"QLinearSoftmax", lower_simple, 4, 0, SOFTMAX, MS, .spared = X_ZERO},
    {"QLinearReduceMean", lower_simple, 4, 0, REDUCE_MEAN, MS, .spared = X_ZERO},
    {"QLinearConv", lower_conv, 8, 0, 0, MS},
    {"QGemm", lower_gemm, 6, 0, 0, MS, .spared = BOTH_ZEROS},
    {"MatMulIntegerToFloat", lower_to_float, 4, 0, 0, MS},
    {"DynamicQuantizeMatMul", lower_dynamic, 3, 0, 0, MS},
    {"FusedConv", lower_fused_conv, 2, 0, 0, MS},
    {"FusedGemm", lower_fused_gemm, 2, 0, 0, MS},
    {0},
};
