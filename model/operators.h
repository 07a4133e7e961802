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

/* The third column: cast, binary, ... stand for fold_cast() and so on in model/ir/fold.c. These may
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
    /* LSTM, GRU, RNN; in: x W' + b [T][N][D * gates * H], R [D][gates * H][H] [, state            \
     * [1 or 2][D][N][H]] [, peepholes [D][3 H] or Rbh [D][H]]; out: Y [T][D][N][H] [, cell        \
     * [D][N][H]], the LSTM's c, or the workspace of a GRU that resets before its product */       \
    X(RECURRENT, recurrent, reference, MDL_OP_HEAVY)                                               \
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
    /* sums of the elements up to each, along attr.cumsum.axis */                                  \
    X(CUMSUM, cumsum, reference, MDL_OP_FOLLOWS)                                                   \
    X(RESIZE, resize, reference, MDL_OP_SPATIAL)                                                   \
    /* in: x, grid [N][p ...][2 or 3] of positions -1 to 1 */                                      \
    X(GRID_SAMPLE, grid_sample, reference, MDL_OP_SPATIAL)                                         \
    /* in: x, regions [R][4], image of each [R] i64 or i32 */                                      \
    X(ROI_ALIGN, roi_align, reference, MDL_OP_SPATIAL)                                             \
    /* in: x, regions [R][5]: image, x1, y1, x2, y2 */                                             \
    X(MAX_ROI_POOL, max_roi_pool, reference, MDL_OP_SPATIAL)                                       \
    /* what a deformable convolution multiplies; in: x, offset [, mask] */                         \
    X(DEFORM_COLUMNS, deform_columns, reference, MDL_OP_SPATIAL)                                   \
    /* in: x [N][C K][blocks] */                                                                   \
    X(COL2IM, col2im, reference, 0)                                                                \
    /* in: x, indices i64 into all of y, row-major */                                              \
    X(MAX_UNPOOL, max_unpool, reference, MDL_OP_SPATIAL)                                           \
    X(PAD, pad, reference, MDL_OP_FOLLOWS)                                                         \
    /* in: x, indices [, how many rows of x are valid] */                                          \
    X(GATHER, gather, gather, 0)                                                                   \
    X(GATHER_ELEMENTS, gather_elements, reference, 0)                                              \
    X(GATHER_ND, gather_nd, reference, 0)                                                          \
    /* in: x, indices, updates; which: attr.scatter */                                             \
    X(SCATTER_ELEMENTS, scatter_elements, reference, 0)                                            \
    X(SCATTER_ND, scatter_nd, reference, 0)                                                        \
    /* in: x [, how many elements of a line are valid]; out: values, indices */                    \
    X(TOP_K, top_k, reference, 0)                                                                  \
    /* in: x; out: indices, padded; how many are valid */                                          \
    X(NON_ZERO, non_zero, reference, 0)                                                            \
    /* in: boxes, scores [, thresholds of IoU and score]; out: rows, padded; how many are valid */ \
    X(NMS, nms, reference, 0)                                                                      \
    /* in: a, its valid rows or none [, b, its valid rows or none]: both, then a fill */           \
    X(JOIN_ROWS, join_rows, reference, 0)                                                          \
    /* in: x, lengths */                                                                           \
    X(REVERSE_SEQUENCE, reverse_sequence, reference, 0)                                            \
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
