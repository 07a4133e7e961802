/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/model.h - a network as the rest of the house sees it: storages, strided tensors, operators,
 * units
 *
 * A loaded model is plain data, immutable after mdl_load() and shared read-only by every thread.
 *
 *  - A *storage* is a piece of memory: a range of the frame's arena, a constant, or a buffer that
 * comes with the frame (a model input or output). Two storages overlap in the arena only if their
 * lifetimes in unit order do not overlap, so any team can run any unit of any frame and a plan can
 * change without moving data.
 *  - A *tensor* is a strided view of a storage. Dimensions are in ONNX order (N,C,H,W for images);
 * strides say where elements are: NHWC is stride {H*W*C, 1, W*C, C}. Broadcast is stride 0;
 * transpose, slice, split, squeeze and the parts of a concat are views and cost nothing.
 *  - An *op* is one operator after fusion, in topological order; its epilogue (residual add,
 * activation) runs while the result is still in cache.
 *  - A *unit* is a run of consecutive ops with one heavy operator in it; a plan may cut between any
 * two units.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MDL_RANK_MAX 8u
#define MDL_NAME_MAX 256u
#define MDL_ERROR_MAX 512u
#define MDL_NONE SIZE_MAX /* "no such tensor" wherever an index may be absent */

enum mdl_dtype { MDL_F32, MDL_I32, MDL_I64, MDL_U8, MDL_I8, MDL_BOOL, MDL_DTYPE_COUNT };

enum mdl_home {
    MDL_HOME_ARENA,  /* storage.offset is a byte offset in the frame's arena */
    MDL_HOME_INPUT,  /* storage.index-th input buffer of the frame; row-major, dense, borrowed from
                        the client */
    MDL_HOME_OUTPUT, /* storage.index-th output buffer of the frame; row-major, dense */
    MDL_HOME_CONST,  /* storage.data: inside the model file's mapping or owned by the model */
};

struct mdl_storage {
    enum mdl_home home;
    size_t bytes;
    size_t
        offset; /* ARENA: multiple of 64. INPUT: also set (room for a converted image), see below */
    size_t index; /* INPUT, OUTPUT */
    const void
        *data; /* CONST; alignment of the element type is NOT guaranteed (file bytes): use memcpy */
    size_t first_op; /* lifetime: written first by this op ... */
    size_t last_op;  /* ... read last by this op (ARENA) */
};

struct mdl_tensor {
    char *name; /* owned; ONNX value name, or a made-up one */
    enum mdl_dtype dtype;
    size_t storage; /* index into model.storages */
    size_t offset;  /* byte offset of element 0 inside the storage */
    size_t rank;    /* 0 (scalar) .. MDL_RANK_MAX */
    size_t
        dim[MDL_RANK_MAX]; /* ONNX order; every dimension is known; 0 is allowed (empty tensor) */
    ptrdiff_t stride[MDL_RANK_MAX]; /* in elements, same order as dim; 0 where broadcast */
};

enum mdl_op_kind {
    MDL_OP_COPY, /* y = x, strides and dtype may differ (layout change, Cast, Identity, Transpose,
                    Concat part) */
    MDL_OP_CONV, /* in: x, w const; 1-D, 2-D or 3-D */
    MDL_OP_CONV_TRANSPOSE,
    MDL_OP_GEMM,   /* y[M][N] = alpha * A' B' + beta * C; in: a, b [, c]; b is mostly const (fully
                      connected) */
    MDL_OP_MATMUL, /* batched, numpy semantics; in: a, b */
    MDL_OP_MAX_POOL,
    MDL_OP_AVG_POOL, /* global pools are pools with a full window */
    MDL_OP_LRN,
    MDL_OP_AFFINE,  /* y = x * scale[c] + shift[c] along dim 1 (a batch norm that found no producer)
                     */
    MDL_OP_BINARY,  /* in: a, b, both already broadcast to y's shape by strides; which: attr.binary
                     */
    MDL_OP_UNARY,   /* y = act(x); which: op.act, see enum mdl_act */
    MDL_OP_PRELU,   /* in: x, slope (broadcast by strides) */
    MDL_OP_SOFTMAX, /* along attr.softmax.axis; log selects LogSoftmax */
    MDL_OP_REDUCE,  /* over the dims set in attr.reduce.axes; y has rank of x with those dims 1 */
    MDL_OP_RESIZE,
    MDL_OP_PAD,
    MDL_OP_GATHER,   /* in: x, indices */
    MDL_OP_WHERE,    /* in: cond, a, b, broadcast by strides */
    MDL_OP_ARG,      /* ArgMax, ArgMin */
    MDL_OP_QUANTIZE, /* in: x f32, scale f32 [, zero of y's type]: y = sat(round(x / scale) + zero),
                        u8 or i8; ties to even, a NaN gives the zero */
    MDL_OP_DEQUANTIZE, /* in: x u8, i8 or i32, scale f32 [, zero of x's type]: y = (x - zero) scale;
                          both: scale and zero have x's rank and dims that are x's or 1 */
    MDL_OP_COUNT
};

/* Element functions: as an op of its own (MDL_OP_UNARY) or as the epilogue of another op. a, b:
 * parameters. */
enum mdl_act {
    MDL_ACT_NONE,
    MDL_ACT_RELU,       /* max(x, 0) */
    MDL_ACT_CLIP,       /* min(max(x, a), b) */
    MDL_ACT_LEAKY_RELU, /* x < 0 ? a x : x */
    MDL_ACT_SIGMOID,
    MDL_ACT_HARD_SIGMOID, /* max(0, min(1, a x + b)) */
    MDL_ACT_HARD_SWISH,   /* x * max(0, min(1, x/6 + 0.5)) */
    MDL_ACT_SILU,         /* x * sigmoid(x), found as Mul(x, Sigmoid(x)) */
    MDL_ACT_TANH,
    MDL_ACT_ELU,      /* x < 0 ? a (e^x - 1) : x */
    MDL_ACT_SOFTPLUS, /* ln(1 + e^x) */
    /* only ever in MDL_OP_UNARY: */
    MDL_ACT_SELU,
    MDL_ACT_SOFTSIGN,
    MDL_ACT_EXP,
    MDL_ACT_LOG,
    MDL_ACT_SQRT,
    MDL_ACT_RECIPROCAL,
    MDL_ACT_NEG,
    MDL_ACT_ABS,
    MDL_ACT_FLOOR,
    MDL_ACT_CEIL,
    MDL_ACT_ROUND,
    MDL_ACT_SIGN,
    MDL_ACT_ERF,
    MDL_ACT_NOT,
    MDL_ACT_COUNT
};

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

/* A window over up to 3 spatial dims, outermost first (1-D uses [0]; 2-D: [0] = height, [1] =
 * width). */
struct mdl_window {
    size_t rank; /* spatial dims, 1..3 */
    size_t kernel[3];
    size_t stride[3];
    size_t dilation[3];
    size_t pad_begin[3]; /* already resolved: auto_pad and ceil_mode are gone */
    size_t pad_end[3];   /* may be larger than the model wrote it where ceil_mode asks for it */
};

union mdl_attr {
    struct {
        struct mdl_window window;
        size_t groups;
        size_t output_padding[3]; /* CONV_TRANSPOSE */
    } conv; /* w: [O][C/groups][k...] (CONV), [C][O/groups][k...] (CONV_TRANSPOSE); row-major, as in
               ONNX */
    struct {
        bool trans_a, trans_b;
        float alpha, beta;
    } gemm;
    struct {
        struct mdl_window window;
        bool count_include_pad;  /* AVG: divide by the full window (within the padded extent the
                                    model wrote) */
        size_t pad_end_model[3]; /* pad_end as the model wrote it: what count_include_pad counts */
        bool indices_row_major;  /* MAX with a second output (I64 indices): storage_order */
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
        float scale[MDL_RANK_MAX]; /* output / input, per dim, as the model wrote it or derived from
                                      sizes */
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

/**
 * struct mdl_quant - an op on integers that stand for reals, x = (q - zero) * scale
 *
 * Ops that have one: CONV, GEMM, MATMUL, AVG_POOL and BINARY (ADD) whose inputs are u8 or i8. All
 * sums of products are exact integers (32 bits, wrapping); then, with every single step rounded to
 * f32 and nothing contracted:
 *
 *   CONV, GEMM, MATMUL  t = (sum (x - x_zero)(w - w_zero[o]) + bias[o]) * op.scale[o]
 *   AVG_POOL            t = sum (x - x_zero) * (x_scale / count)
 *   BINARY ADD          t = (a - x_zero) * x_scale + (b - b_zero) * b_scale
 *
 * and op's epilogue, where the residual is (r - r_zero) * r_scale. If y is u8 or i8, all of that is
 * in units of y's scale (act_a and act_b of CLIP too), act is NONE, RELU, CLIP or LEAKY_RELU, and
 * y = sat(round(t) + y_zero), ties to even, a NaN as y_zero. If y is f32, it is t in real units,
 * with any act. If y is i32, it is the sum itself and op.scale is NULL (CONV, GEMM, MATMUL; no
 * epilogue). Source: ONNX QLinearConv, QLinearMatMul, QuantizeLinear, ConvInteger.
 */
struct mdl_quant {
    int32_t
        x_zero; /* of in[0]; in[2], where it is there, is a scalar of in[0]'s type in its place */
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
    /* Folded at load, f32, owned by the model, one per output channel, NULL for none. For CONV,
     * CONV_TRANSPOSE and GEMM/MATMUL with a constant b:  y = epilogue( scale[o] * (sum w x) +
     * shift[o] ). The scale (a batch norm) is multiplied into the weights when a primitive packs
     * them; the bias of the model is already inside shift. For AFFINE these are the operands. */
    const float *scale;
    const float *shift;
    size_t channels;               /* length of scale and shift, and of the arrays of quant */
    const struct mdl_quant *quant; /* owned by the model; NULL: no op on quantised values */
    /* epilogue: t = act(t) with the residual added before or after it */
    enum mdl_act act;
    float act_a, act_b;
    enum mdl_residual residual;
    size_t residual_in; /* tensor of y's shape, or MDL_NONE */
    double macs;        /* multiply-accumulates of this op for one frame (0 for memory-bound ops) */
};

struct mdl_unit {
    char *name;               /* owned: name of its heavy op, or of its first op */
    size_t first_op, last_op; /* inclusive */
    size_t heavy_op;          /* index of the heavy operator, or first_op if there is none */
    double weight; /* equations (1) and (2) of the Pipe-search paper: H W C R S K, H W C F */
    double macs;
    size_t weight_bytes;
    size_t live_bytes; /* bytes of tensors alive across the cut after this unit (what a hand-off
                          touches) */
};

struct mdl_io {
    char *name;    /* owned */
    size_t tensor; /* its tensor; row-major dense in the buffer that comes with the frame */
    size_t bytes;
    /* inputs only: the COPY op that brings it into the arena, if it is the input's only reader; a
     * frame that comes as an image is converted straight into that op's output and the op is
     * skipped. MDL_NONE otherwise, then the image is converted into the arena range at the input
     * storage's offset, dense row-major. */
    size_t entry_op;
};

/* How an image becomes input 0: x = (pixel - mean[c]) / std[c], pixel in 0..255, after resizing to
 * the input's H x W. */
struct mdl_preproc {
    bool known; /* false: the model came without a sidecar; defaults mean 0, std 1, RGB, stretch */
    float mean[4];
    float std[4];
    bool bgr;  /* channel order of the model's input */
    bool nhwc; /* input 0 is [N][H][W][C] instead of [N][C][H][W] */
    enum {
        MDL_FIT_STRETCH,
        MDL_FIT_CROP,
        MDL_FIT_LETTERBOX
    } fit; /* how another aspect ratio is fitted */
};

struct mdl_model {
    char *name;    /* owned: as given to mdl_load() */
    char hash[65]; /* hex of a 256-bit hash of the model's bytes: key of learned costs */
    size_t storage_count, tensor_count, op_count, unit_count, input_count, output_count;
    struct mdl_storage *storages; /* all owned by the model */
    struct mdl_tensor *tensors;
    struct mdl_op *ops;
    struct mdl_unit *units;
    struct mdl_io *inputs;
    struct mdl_io *outputs;
    size_t arena_bytes;  /* of one frame, multiple of 64 */
    size_t tensor_bytes; /* sum over all values that the model's nodes compute at run time, as if
                            nothing were fused or shared (for the memory ratio) */
    size_t weight_bytes; /* constants that heavy ops read */
    double macs;
    struct mdl_preproc preproc;
    char **labels; /* label_count strings, owned, or NULL */
    size_t label_count;
    struct mdl_private
        *private; /* owned: the file mapping and what else lives as long as the model */
};

/**
 * mdl_const_eval_fn - runs one op whose inputs are all constant, at load
 * @m: a model under construction that holds just this op (index 0): inputs CONST, outputs ARENA
 * @arena: m->arena_bytes, 64-byte aligned
 * Given by the caller because operators live in kernels/. Return: 0, or -EOPNOTSUPP.
 */
typedef int (*mdl_const_eval_fn)(const struct mdl_model *m, void *arena);

struct mdl_calibration;

struct mdl_load_options {
    const char *name;             /* model name, copied */
    size_t weight_bytes_max;      /* refuse above; 0: 4 GiB */
    size_t arena_bytes_max;       /* refuse above; 0: 2 GiB */
    mdl_const_eval_fn const_eval; /* may be NULL: then only shape arithmetic is folded */
    bool no_fusion;               /* for tests: one op per node, no folding into producers */
    size_t threads; /* that may share the work during the call, the caller's among them; 0: 1 */
    /* where the weights that a network description makes up lie, in a file without a name, so that
     * their pages can be dropped like those of a model's file; NULL, a folder that is itself in
     * memory, or one without room: in memory */
    const char *weights_dir;
    /* quantise by this (model/calibration.h), borrowed; NULL: as the file is */
    const struct mdl_calibration *calibration;
};

/**
 * mdl_load() - read an ONNX file (*.onnx) or a network description (*.json) and compile it to units
 * @path: the file; a sidecar <path without extension>.sidecar.json beside it may give preprocessing
 * and labels
 * @options: borrowed during the call; NULL: defaults, named after the file
 * @ret_error: on failure a sentence that names the node and the reason, always terminated, at most
 * MDL_ERROR_MAX
 * @ret: owned by the caller, mdl_free()
 *
 * The file is mapped; weights of heavy operators (the first two inputs of CONV, CONV_TRANSPOSE,
 * GEMM, MATMUL) are never copied: they point into the mapping for as long as the model lives. All
 * other constants are copied, so that nothing but packing reads the file's pages afterwards: a file
 * cut short later harms only a renewed packing (docs/models.md). Hostile files are refused, never
 * trusted: sizes, nesting depth and counts are checked first. Threads: any; blocks on the file;
 * allocates. Return: 0, -errno of a system call, -EBADMSG for a malformed file, -EOPNOTSUPP for an
 * operator or attribute that is not supported, -E2BIG past a limit, -ENOMEM.
 */
int mdl_load(const char *path, const struct mdl_load_options *options,
             char ret_error[MDL_ERROR_MAX], struct mdl_model **ret);

/** mdl_free() - frees the model and its mapping. Takes NULL. Return: NULL. */
struct mdl_model *mdl_free(struct mdl_model *m);

/**
 * mdl_drop_op_weights() - tells the kernel that op @op's constant inputs inside the file mapping
 * were packed elsewhere and their pages are not needed in RAM (madvise). They stay readable.
 * Threads: the loader's.
 */
void mdl_drop_op_weights(const struct mdl_model *m, size_t op);

/** mdl_drop_weights() - the same for all of the file's mapping. Threads: any. */
void mdl_drop_weights(const struct mdl_model *m);

/* model/names.c: for messages, JSON and tables; never NULL for a valid value. */
const char *mdl_dtype_name(enum mdl_dtype t); /* "f32", "i64", ... */
size_t mdl_dtype_bytes(enum mdl_dtype t);
const char *mdl_op_kind_name(enum mdl_op_kind k); /* "conv", "gemm", ... */
const char *mdl_act_name(enum mdl_act a);
const char *mdl_binary_name(enum mdl_binary b);

/** mdl_elements() - product of dims; 1 for a scalar. Never overflows for a tensor of a loaded
 * model. */
size_t mdl_elements(const struct mdl_tensor *t);
/** mdl_is_dense() - row-major without gaps. mdl_is_nhwc() - rank >= 3, channel stride 1, spatial
 * dims dense above one common pixel stride (which may exceed C: a part of a concat). *ret_pixel:
 * that pixel stride in elements. */
bool mdl_is_dense(const struct mdl_tensor *t);
bool mdl_is_nhwc(const struct mdl_tensor *t, size_t *ret_pixel);
