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
    MDL_BIN_POW,  /* a may be an integer where b is a float */
    MDL_BIN_MOD,  /* integers; the sign of b */
    MDL_BIN_FMOD, /* the sign of a */
    MDL_BIN_BIT_AND,
    MDL_BIN_BIT_OR,
    MDL_BIN_BIT_XOR, /* also of booleans */
    MDL_BIN_SHIFT_LEFT,
    MDL_BIN_SHIFT_RIGHT, /* of unsigned integers */
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

/* what becomes of an element that an update goes to */
enum mdl_scatter {
    MDL_SCATTER_NONE, /* the update replaces it */
    MDL_SCATTER_ADD,
    MDL_SCATTER_MUL,
    MDL_SCATTER_MIN,
    MDL_SCATTER_MAX,
    MDL_SCATTER_COUNT
};

enum mdl_resize_mode { MDL_RESIZE_NEAREST, MDL_RESIZE_LINEAR, MDL_RESIZE_CUBIC };
enum mdl_resize_coord {
    MDL_COORD_HALF_PIXEL,
    MDL_COORD_ASYMMETRIC,
    MDL_COORD_ALIGN_CORNERS,
    MDL_COORD_PYTORCH_HALF_PIXEL,
    MDL_COORD_TF_HALF_PIXEL_NN,
    MDL_COORD_HALF_PIXEL_SYMMETRIC,
    MDL_COORD_TF_CROP_AND_RESIZE
};
enum mdl_resize_round {
    MDL_ROUND_PREFER_FLOOR,
    MDL_ROUND_PREFER_CEIL,
    MDL_ROUND_FLOOR,
    MDL_ROUND_CEIL
};
enum mdl_pad_mode { MDL_PAD_CONSTANT, MDL_PAD_REFLECT, MDL_PAD_EDGE, MDL_PAD_WRAP };

/* GRID_SAMPLE: what lies outside the image */
enum mdl_grid_padding { MDL_GRID_ZEROS, MDL_GRID_BORDER, MDL_GRID_REFLECTION };

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

/** mdl_window_taps(), mdl_window_strided() - Return: elements of the kernel; it moves by more than
 * one element in some direction. */
static inline size_t mdl_window_taps(const struct mdl_window *w)
{
    size_t taps = 1;

    for (size_t i = 0; i < w->rank; i++) {
        taps *= w->kernel[i];
    }
    return taps;
}

static inline bool mdl_window_strided(const struct mdl_window *w)
{
    bool strided = false;

    for (size_t i = 0; i < w->rank; i++) {
        strided |= w->stride[i] > 1;
    }
    return strided;
}

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
        bool antialias;       /* LINEAR and CUBIC: a wider kernel where a dim shrinks */
        bool exclude_outside; /* CUBIC or antialias: no weight outside the input */
        float cubic_a;
        /* TF_CROP_AND_RESIZE: a region of each dim, 0 to 1, and what lies outside the input */
        float roi_begin[MDL_RANK_MAX], roi_end[MDL_RANK_MAX];
        float extrapolation;
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
        enum mdl_resize_mode mode;
        enum mdl_grid_padding padding;
        bool align_corners;
    } grid;
    /* DEFORM_COLUMNS; a window of two dims */
    struct {
        struct mdl_window window;
        size_t groups, offset_groups;
    } deform;
    /* ROI_ALIGN; MAX_ROI_POOL has the scale only */
    struct {
        float scale;     /* from the regions' coordinates to pixels */
        bool max;        /* not the mean */
        bool half_pixel; /* coordinates are of pixels' corners, not of centres */
        size_t samples;  /* of a bin along each dim; 0: by the region's size */
    } roi;
    struct {
        struct mdl_window window; /* kernel: the block */
        size_t blocks[3];         /* along each dim */
    } col2im;
    struct {
        size_t axis;       /* GATHER, GATHER_ELEMENTS */
        size_t batch_dims; /* GATHER_ND */
    } gather;
    struct {
        size_t axis; /* SCATTER_ELEMENTS */
        enum mdl_scatter which;
    } scatter;
    struct {
        size_t axis;
        bool largest;
    } top_k;
    struct {
        bool centre; /* boxes are (x, y, width, height) of their centre */
        size_t each; /* at most so many rows for one image and class */
    } nms;
    struct {
        size_t axis;
        double fill; /* what comes after the valid rows; truncated and saturated for integers */
    } join_rows;
    struct {
        size_t time, batch;
    } reverse;
    struct {
        size_t axis;
        bool exclusive; /* y[0] is 0, and an element is not part of its own sum */
    } cumsum;
    struct {
        size_t axis;
        bool max, last; /* last: select_last_index; y keeps the axis with dim 1 */
    } arg;
};
