/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/attr.h - attributes of operators
 *
 * Plain data, complete and checked: ONNX's defaults, and values that follow from the shapes, are
 * filled in.
 */
#pragma once

#include "model/values.h"

enum mdl_binary {
    MDL_BIN_ADD,
    MDL_BIN_SUB,
    MDL_BIN_MUL,
    MDL_BIN_DIV,
    MDL_BIN_MAX,
    MDL_BIN_MIN,
    MDL_BIN_POW,
    MDL_BIN_EQUAL,
    MDL_BIN_LESS,
    MDL_BIN_GREATER,
    MDL_BIN_AND,
    MDL_BIN_OR, /* result BOOL */
    MDL_BIN_COUNT
};

enum mdl_reduce {
    MDL_RED_MEAN,
    MDL_RED_SUM,
    MDL_RED_MAX,
    MDL_RED_MIN,
    MDL_RED_PROD,
    MDL_RED_L1,
    MDL_RED_L2,
    MDL_RED_SUM_SQUARE,
    MDL_RED_COUNT
};

enum mdl_resize_mode { MDL_RESIZE_NEAREST, MDL_RESIZE_LINEAR };
enum mdl_resize_coord {
    MDL_COORD_HALF_PIXEL,
    MDL_COORD_ASYMMETRIC,
    MDL_COORD_ALIGN_CORNERS,
    MDL_COORD_PYTORCH_HALF_PIXEL,
    MDL_COORD_TF_HALF_PIXEL_NN
};
enum mdl_resize_round {
    MDL_ROUND_PREFER_FLOOR,
    MDL_ROUND_PREFER_CEIL,
    MDL_ROUND_FLOOR,
    MDL_ROUND_CEIL
};
enum mdl_pad_mode { MDL_PAD_CONSTANT, MDL_PAD_REFLECT, MDL_PAD_EDGE };

enum mdl_cell { MDL_CELL_RNN, MDL_CELL_GRU, MDL_CELL_LSTM };

/**
 * MDL_GATES() - X(ID, "ONNX's name", parameters, their defaults) of each function of a recurrent
 * cell; NAN: no default, because ONNX and ONNX Runtime do not agree
 */
/* clang-format off */
#define MDL_GATES(X)                                                                               \
    X(SIGMOID, "Sigmoid", 0, 0, 0)                                                                 \
    X(TANH, "Tanh", 0, 0, 0)                                                                       \
    X(RELU, "Relu", 0, 0, 0)                                                                       \
    X(SOFTSIGN, "Softsign", 0, 0, 0)                                                               \
    X(SOFTPLUS, "Softplus", 0, 0, 0)                                                               \
    X(LEAKY_RELU, "LeakyRelu", 1, 0.01f, 0)                  /* x < 0 ? a x : x */                 \
    X(THRESHOLDED_RELU, "ThresholdedRelu", 1, NAN, 0)        /* x > a ? x : 0 */                   \
    X(ELU, "Elu", 1, 1.0f, 0)                                /* x < 0 ? a (e^x - 1) : x */         \
    X(HARD_SIGMOID, "HardSigmoid", 2, 0.2f, 0.5f)            /* max(0, min(1, a x + b)) */         \
    X(AFFINE, "Affine", 2, NAN, NAN)                         /* a x + b */                         \
    X(SCALED_TANH, "ScaledTanh", 2, NAN, NAN)                /* a tanh(b x) */
/* clang-format on */
#define MDL_GATE_ID(ID, name, numbers, a, b) MDL_GATE_##ID,
enum mdl_gate { MDL_GATES(MDL_GATE_ID) MDL_GATE_COUNT };
#undef MDL_GATE_ID

/* One function of a cell, with its alpha and beta. */
struct mdl_gate_of {
    enum mdl_gate which;
    float a, b;
};

/* A window over up to 3 spatial dims, outermost first: 1-D uses [0]; 2-D has the height in [0] and
 * the width in [1]. Unit: elements of x. */
struct mdl_window {
    size_t rank; /* spatial dims, 1..3 */
    size_t kernel[3];
    size_t stride[3];
    size_t dilation[3];
    size_t pad_begin[3]; /* resolved from auto_pad and ceil_mode */
    size_t pad_end[3];   /* larger than in the model if ceil_mode requires it */
};

union mdl_attr {
    /* CONV, CONV_TRANSPOSE. Weights are row-major, as in ONNX: [O][C / groups][k ...] (CONV),
     * [C][O / groups][k ...] (CONV_TRANSPOSE). */
    struct {
        struct mdl_window window;
        size_t groups;
        size_t output_padding[3]; /* CONV_TRANSPOSE */
    } conv;
    struct {
        bool trans_a, trans_b;
        float alpha, beta;
    } gemm;
    struct {
        struct mdl_window window;
        /* AVG_POOL: divide by the taps inside the padded extent, which pad_end_model bounds, not
         * only by those inside the image */
        bool count_include_pad;
        size_t pad_end_model[3]; /* pad_end as in the model */
        bool indices_row_major;  /* MAX_POOL with a second output (I64 indices): storage_order */
    } pool;
    struct {
        size_t size;
        float alpha, beta, bias;
    } lrn;
    enum mdl_binary binary;
    struct {
        size_t axis;
        bool log;
    } softmax;
    struct {
        enum mdl_reduce which;
        bool axes[MDL_RANK_MAX];
    } reduce;
    struct {
        enum mdl_resize_mode mode;
        enum mdl_resize_coord coord;
        enum mdl_resize_round round;
        /* output / input of each dim, from the model's scales or sizes */
        float scale[MDL_RANK_MAX];
    } resize;
    struct {
        enum mdl_pad_mode mode;
        ptrdiff_t begin[MDL_RANK_MAX]; /* negative crops */
        ptrdiff_t end[MDL_RANK_MAX];
        double value;
    } pad;
    struct {
        enum mdl_cell cell;
        bool reverse[2];                /* of each direction: from the last step to the first */
        bool linear_before_reset;       /* GRU: the reset gate after the product, not before */
        bool input_forget;              /* LSTM: the forget gate is 1 - input gate */
        float clip;                     /* of what f and g get, not the LSTM's h; infinite: none */
        struct mdl_gate_of gates[2][3]; /* of each direction: ONNX's f, g, h */
    } recurrent;
    struct {
        size_t axis;
    } gather;
    struct {
        size_t axis;
        bool max, last; /* last: select_last_index; y keeps the axis with dim 1 */
    } arg;
};
