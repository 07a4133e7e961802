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
        bool axes[MDL_RANK_MAX];
        bool rms; /* divides by the root mean square, without subtracting the mean */
        float epsilon;
    } norm;
    struct {
        float scale;
        float softcap; /* not 0: a score s becomes softcap tanh(s / softcap), before the mask */
        bool causal;   /* query i attends to keys 0 .. i only */
    } attention;
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
        size_t axis;
    } gather;
    struct {
        size_t axis;
        bool max, last; /* last: select_last_index; y keeps the axis with dim 1 */
    } arg;
};
