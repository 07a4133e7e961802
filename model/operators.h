/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/operators.h - the table of all operators of a model
 *
 * One line per operator: its kind (MDL_OP_...), its name, how it is folded at load if all its
 * inputs are constant, and its traits. The table generates enum mdl_op_kind, the names, the layout
 * of outputs, constant folding, and the list of references: kernels/ref/ must export krn_NAME__ref
 * for each, or the build fails to link.
 *
 * The tables in model/lower/ map ONNX's operators to these.
 */
#pragma once

enum mdl_op_trait {
    MDL_OP_HEAVY = 1u << 0,    /* multiplies by weights; a unit has at most one */
    MDL_OP_SPATIAL = 1u << 1,  /* of rank 3 to 5: reads and writes channels-last */
    MDL_OP_FOLLOWS = 1u << 2,  /* not spatial: its output has its input's order in memory */
    MDL_OP_IN_PLACE = 1u << 3, /* may overwrite an input of its output's shape */
};

/* The third column: cast, binary, ... stand for mdl_fold_cast() and so on in model/ir/. These may
 * leave an op to the reference; `reference` always does. */
/* clang-format off */
#define MDL_OPERATORS(X)                                                                           \
    /* y = x, strides and dtype may differ: change of layout, Cast, Transpose, part of a Concat */ \
    X(COPY, copy, cast, MDL_OP_FOLLOWS)                                                            \
    /* in: x, w const; 1-D, 2-D or 3-D */                                                          \
    X(CONV, conv, reference, MDL_OP_HEAVY | MDL_OP_SPATIAL)                                        \
    X(CONV_TRANSPOSE, conv_transpose, reference, MDL_OP_HEAVY | MDL_OP_SPATIAL)                    \
    /* y[M][N] = alpha * A' B' + beta * C; in: a, b [, c]; b is mostly const (fully connected) */  \
    X(GEMM, gemm, reference, MDL_OP_HEAVY)                                                         \
    /* batched, numpy semantics; in: a, b */                                                       \
    X(MATMUL, matmul, reference, MDL_OP_HEAVY)                                                     \
    /* global pools are pools with a full window */                                                \
    X(MAX_POOL, max_pool, reference, MDL_OP_SPATIAL)                                               \
    X(AVG_POOL, avg_pool, reference, MDL_OP_SPATIAL)                                               \
    X(LRN, lrn, reference, MDL_OP_SPATIAL)                                                         \
    /* y = x * scale[c] + shift[c] along dim 1 (a batch norm that found no producer) */            \
    X(AFFINE, affine, reference, MDL_OP_SPATIAL | MDL_OP_FOLLOWS | MDL_OP_IN_PLACE)                \
    /* in: a, b, both already broadcast to y's shape by strides; which: attr.binary */             \
    X(BINARY, binary, binary, MDL_OP_FOLLOWS | MDL_OP_IN_PLACE)                                    \
    /* y = act(x); which: op.act, see enum mdl_act */                                              \
    X(UNARY, unary, unary, MDL_OP_FOLLOWS | MDL_OP_IN_PLACE)                                       \
    /* in: x, slope (broadcast by strides) */                                                      \
    X(PRELU, prelu, reference, MDL_OP_FOLLOWS | MDL_OP_IN_PLACE)                                   \
    /* in: x [, scale [, bias]], both broadcast to x's shape by strides: each set of elements that \
     * differ only in the dims of attr.norm.axes is normalised */                                  \
    X(NORM, norm, reference, MDL_OP_FOLLOWS)                                                       \
    /* in: q [..., M, D], k [..., N, D], v [..., N, E] [, mask [..., M, N]], equal dims before,    \
     * all by strides: y = softmax(scale q k' + mask) v */                                         \
    X(ATTENTION, attention, reference, MDL_OP_HEAVY)                                               \
    /* along attr.softmax.axis; log selects LogSoftmax */                                          \
    X(SOFTMAX, softmax, reference, MDL_OP_FOLLOWS)                                                 \
    /* over the dims set in attr.reduce.axes; y has rank of x with those dims 1 */                 \
    X(REDUCE, reduce, reduce, 0)                                                                   \
    X(RESIZE, resize, reference, MDL_OP_SPATIAL)                                                   \
    X(PAD, pad, reference, MDL_OP_FOLLOWS)                                                         \
    /* in: x, indices */                                                                           \
    X(GATHER, gather, gather, 0)                                                                   \
    /* in: cond, a, b, broadcast by strides */                                                     \
    X(WHERE, where, where, MDL_OP_FOLLOWS | MDL_OP_IN_PLACE)                                       \
    /* ArgMax, ArgMin */                                                                           \
    X(ARG, arg, reference, 0)                                                                      \
    /* in: x f32, scale f32 [, zero of y's type]: y = sat(round(x / scale) + zero), u8 or i8; ties \
     * to even, a NaN gives the zero */                                                            \
    X(QUANTIZE, quantize, reference, MDL_OP_SPATIAL | MDL_OP_FOLLOWS)                              \
    /* in: x u8, i8 or i32, scale f32 [, zero of x's type]: y = (x - zero) scale; of both, scale   \
     * and zero have x's rank and dims that are x's or 1 */                                        \
    X(DEQUANTIZE, dequantize, reference, MDL_OP_FOLLOWS)
/* clang-format on */

#define MDL_OPERATOR_KIND(kind, name, fold, traits) MDL_OP_##kind,
enum mdl_op_kind { MDL_OPERATORS(MDL_OPERATOR_KIND) MDL_OP_COUNT };
#undef MDL_OPERATOR_KIND
