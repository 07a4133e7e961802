/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/op.h - an operator after fusion: kind, inputs and outputs, attributes, epilogue
 *
 * Kinds are those of model/operators.h. Inputs and outputs are indices of tensors in the model
 * (model/model.h). Plain data, immutable once the model is loaded; any thread.
 */
#pragma once

#include "model/attr.h"
#include "model/operators.h"
#include "model/values.h"

/**
 * MDL_ACTS() - X(ID, name) of each element function, for a separate op (MDL_OP_UNARY) or the
 * epilogue of another op. a, b: parameters.
 */
/* clang-format off */
#define MDL_ACTS(X)                                                                                \
    X(NONE, none)                                                                                  \
    X(RELU, relu)                   /* max(x, 0) */                                                \
    X(CLIP, clip)                   /* min(max(x, a), b) */                                        \
    X(LEAKY_RELU, leaky_relu)       /* x < 0 ? a x : x */                                          \
    X(SIGMOID, sigmoid)                                                                            \
    X(HARD_SIGMOID, hard_sigmoid)   /* max(0, min(1, a x + b)) */                                  \
    X(HARD_SWISH, hard_swish)       /* x * max(0, min(1, x/6 + 0.5)) */                            \
    X(SILU, silu)                   /* x * sigmoid(x), found as Mul(x, Sigmoid(x)) */              \
    X(TANH, tanh)                                                                                  \
    X(ELU, elu)                     /* x < 0 ? a (e^x - 1) : x */                                  \
    X(SWISH, swish)                 /* x * sigmoid(a x) */                                         \
    X(MISH, mish)                   /* x * tanh(ln(1 + e^x)) */                                    \
    X(GELU, gelu)                   /* x / 2 * (1 + erf(x / sqrt(2))) */                           \
    X(GELU_TANH, gelu_tanh)         /* x / 2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */        \
    X(SOFTPLUS, softplus)           /* ln(1 + e^x) */                                              \
    /* only ever in MDL_OP_UNARY: */                                                               \
    X(SELU, selu)                   /* b (x > 0 ? x : a (e^x - 1)) */                              \
    X(SOFTSIGN, softsign)                                                                          \
    X(EXP, exp)                                                                                    \
    X(LOG, log)                                                                                    \
    X(SQRT, sqrt)                                                                                  \
    X(RECIPROCAL, reciprocal)                                                                      \
    X(NEG, neg)                                                                                    \
    X(ABS, abs)                                                                                    \
    X(FLOOR, floor)                                                                                \
    X(CEIL, ceil)                                                                                  \
    X(ROUND, round)                 /* ties to even */                                             \
    X(SIGN, sign)                                                                                  \
    X(ERF, erf)                                                                                    \
    X(SIN, sin)                                                                                    \
    X(COS, cos)                                                                                    \
    X(TAN, tan)                                                                                    \
    X(ASIN, asin)                                                                                  \
    X(ACOS, acos)                                                                                  \
    X(ATAN, atan)                                                                                  \
    X(SINH, sinh)                                                                                  \
    X(COSH, cosh)                                                                                  \
    X(ASINH, asinh)                                                                                \
    X(ACOSH, acosh)                                                                                \
    X(ATANH, atanh)                                                                                \
    X(THRESHOLDED_RELU, thresholded_relu) /* x <= a ? 0 : x */                                     \
    X(SHRINK, shrink)               /* x < -a ? x + b : x > a ? x - b : 0 */                       \
    X(NOT, not)                     /* of a boolean */                                             \
    X(BIT_NOT, bit_not)             /* of an integer */
/* clang-format on */

#define MDL_ACT_ID(ID, name) MDL_ACT_##ID,
enum mdl_act { MDL_ACTS(MDL_ACT_ID) MDL_ACT_COUNT };
#undef MDL_ACT_ID

/**
 * struct mdl_quant - the parameters of an op on quantised values, x = (q - zero) scale
 *
 * Ops that have one: CONV, GEMM, MATMUL, AVG_POOL and BINARY (ADD) whose inputs are u8 or i8. Sums
 * of products are exact integers (32 bits, wrapping). Then every step is rounded to f32, without
 * contraction:
 *
 *   CONV, GEMM, MATMUL  t = (sum (x - x_zero)(w - w_zero[o]) + bias[o]) * op.scale[o]
 *   AVG_POOL            t = sum (x - x_zero) * (x_scale / count)
 *   BINARY ADD          t = (a - x_zero) * x_scale + (b - b_zero) * b_scale
 *
 * followed by the op's epilogue, with the residual (r - r_zero) * r_scale. If y is u8 or i8, all of
 * that is in units of y's scale (act_a and act_b of CLIP too), act is NONE, RELU, CLIP or
 * LEAKY_RELU, and
 * y = sat(round(t) + y_zero), ties to even; NaN gives y_zero. If y is f32, it is t in real units,
 * with any act. If y is i32, it is the sum itself, and op.scale is NULL (CONV, GEMM, MATMUL; no
 * epilogue). Source: ONNX QLinearConv, QLinearMatMul, QuantizeLinear, ConvInteger.
 */
struct mdl_quant {
    int32_t x_zero; /* of in[0]; if in[2] is present, that scalar of in[0]'s type replaces it */
    int32_t b_zero; /* BINARY: of in[1] */
    int32_t r_zero; /* of the residual */
    int32_t y_zero;
    float x_scale, b_scale, r_scale;
    const int32_t *w_zero; /* per output channel (op.channels), or NULL: 0 */
    const int32_t *bias;   /* per output channel, or NULL */
};

#define MDL_OP_IN_MAX 4u
#define MDL_OP_OUT_MAX 2u

enum mdl_residual { MDL_RESIDUAL_NONE, MDL_RESIDUAL_BEFORE_ACT, MDL_RESIDUAL_AFTER_ACT };

struct mdl_op {
    enum mdl_op_kind kind;
    char *name; /* owned; ONNX node name (or its first output's name) for messages and traces */
    size_t in[MDL_OP_IN_MAX]; /* tensor indices, MDL_NONE where absent */
    size_t out[MDL_OP_OUT_MAX];
    union mdl_attr attr;
    /* Folded at load; f32, owned by the model, one per output channel; NULL: none. For CONV,
     * CONV_TRANSPOSE and GEMM/MATMUL with a constant b:  y = epilogue( scale[o] * (sum w x) +
     * shift[o] ). A primitive multiplies the scale (a batch norm) into the weights when it packs
     * them; shift includes the model's bias. For AFFINE these are the operands. */
    const float *scale;
    const float *shift;
    size_t channels;               /* length of scale and shift, and of the arrays of quant */
    const struct mdl_quant *quant; /* owned by the model; NULL: the op is not quantised */
    /* epilogue: t = act(t) with the residual added before or after it */
    enum mdl_act act;
    float act_a, act_b;
    enum mdl_residual residual;
    size_t residual_in; /* tensor of y's shape, or MDL_NONE */
    double macs;        /* multiply-accumulates of this op for one frame (0 for memory-bound ops) */
};

/** mdl_op_kind_name() - Return: its name for messages, JSON and tables: "conv", "gemm", ...; "?"
 * for values outside the enum. Any thread. */
const char *mdl_op_kind_name(enum mdl_op_kind k);

/** mdl_op_is() - Return: whether the operator has that trait; false for kinds outside the table. */
bool mdl_op_is(int kind, enum mdl_op_trait trait);
