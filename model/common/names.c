/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "model/model.h"

/* Every table is indexed by its enum; an index past it is a bug of the caller, answered with "?".
 */
#define NAME_OF(table, i) ((size_t)(i) < base_array_count(table) ? (table)[i] : "?")

static const char *const dtype_names[MDL_DTYPE_COUNT] = {
    [MDL_F32] = "f32", [MDL_I32] = "i32", [MDL_I64] = "i64",
    [MDL_U8] = "u8",   [MDL_I8] = "i8",   [MDL_BOOL] = "bool",
};

static const size_t dtype_sizes[MDL_DTYPE_COUNT] = {
    [MDL_F32] = 4, [MDL_I32] = 4, [MDL_I64] = 8, [MDL_U8] = 1, [MDL_I8] = 1, [MDL_BOOL] = 1,
};

static const char *const op_names[MDL_OP_COUNT] = {
    [MDL_OP_COPY] = "copy",
    [MDL_OP_CONV] = "conv",
    [MDL_OP_CONV_TRANSPOSE] = "conv_transpose",
    [MDL_OP_GEMM] = "gemm",
    [MDL_OP_MATMUL] = "matmul",
    [MDL_OP_MAX_POOL] = "max_pool",
    [MDL_OP_AVG_POOL] = "avg_pool",
    [MDL_OP_LRN] = "lrn",
    [MDL_OP_AFFINE] = "affine",
    [MDL_OP_BINARY] = "binary",
    [MDL_OP_UNARY] = "unary",
    [MDL_OP_PRELU] = "prelu",
    [MDL_OP_SOFTMAX] = "softmax",
    [MDL_OP_REDUCE] = "reduce",
    [MDL_OP_RESIZE] = "resize",
    [MDL_OP_PAD] = "pad",
    [MDL_OP_GATHER] = "gather",
    [MDL_OP_WHERE] = "where",
    [MDL_OP_ARG] = "arg",
    [MDL_OP_QUANTIZE] = "quantize",
    [MDL_OP_DEQUANTIZE] = "dequantize",
};

static const char *const act_names[MDL_ACT_COUNT] = {
    [MDL_ACT_NONE] = "none",
    [MDL_ACT_RELU] = "relu",
    [MDL_ACT_CLIP] = "clip",
    [MDL_ACT_LEAKY_RELU] = "leaky_relu",
    [MDL_ACT_SIGMOID] = "sigmoid",
    [MDL_ACT_HARD_SIGMOID] = "hard_sigmoid",
    [MDL_ACT_HARD_SWISH] = "hard_swish",
    [MDL_ACT_SILU] = "silu",
    [MDL_ACT_TANH] = "tanh",
    [MDL_ACT_ELU] = "elu",
    [MDL_ACT_SOFTPLUS] = "softplus",
    [MDL_ACT_SELU] = "selu",
    [MDL_ACT_SOFTSIGN] = "softsign",
    [MDL_ACT_EXP] = "exp",
    [MDL_ACT_LOG] = "log",
    [MDL_ACT_SQRT] = "sqrt",
    [MDL_ACT_RECIPROCAL] = "reciprocal",
    [MDL_ACT_NEG] = "neg",
    [MDL_ACT_ABS] = "abs",
    [MDL_ACT_FLOOR] = "floor",
    [MDL_ACT_CEIL] = "ceil",
    [MDL_ACT_ROUND] = "round",
    [MDL_ACT_SIGN] = "sign",
    [MDL_ACT_ERF] = "erf",
    [MDL_ACT_NOT] = "not",
};

static const char *const binary_names[MDL_BIN_COUNT] = {
    [MDL_BIN_ADD] = "add",         [MDL_BIN_SUB] = "sub",     [MDL_BIN_MUL] = "mul",
    [MDL_BIN_DIV] = "div",         [MDL_BIN_MAX] = "max",     [MDL_BIN_MIN] = "min",
    [MDL_BIN_POW] = "pow",         [MDL_BIN_EQUAL] = "equal", [MDL_BIN_LESS] = "less",
    [MDL_BIN_GREATER] = "greater", [MDL_BIN_AND] = "and",     [MDL_BIN_OR] = "or",
};

const char *mdl_dtype_name(enum mdl_dtype t)
{
    return NAME_OF(dtype_names, t);
}

size_t mdl_dtype_bytes(enum mdl_dtype t)
{
    return (size_t)t < base_array_count(dtype_sizes) ? dtype_sizes[t] : 0;
}

const char *mdl_op_kind_name(enum mdl_op_kind k)
{
    return NAME_OF(op_names, k);
}

const char *mdl_act_name(enum mdl_act a)
{
    return NAME_OF(act_names, a);
}

const char *mdl_binary_name(enum mdl_binary b)
{
    return NAME_OF(binary_names, b);
}

size_t mdl_elements(const struct mdl_tensor *t)
{
    size_t n = 1;

    for (size_t i = 0; i < t->rank; i++) {
        n *= t->dim[i];
    }
    return n;
}

bool mdl_is_dense(const struct mdl_tensor *t)
{
    ptrdiff_t want = 1;

    if (mdl_elements(t) == 0) {
        return true; /* no element, no gap */
    }
    for (size_t i = t->rank; i-- > 0;) {
        /* the stride of a dimension of 1 is never used */
        if (t->dim[i] != 1 && t->stride[i] != want) {
            return false;
        }
        want *= (ptrdiff_t)t->dim[i];
    }
    return true;
}

bool mdl_is_nhwc(const struct mdl_tensor *t, size_t *ret_pixel)
{
    ptrdiff_t pixel, want;

    if (t->rank < 3 || (t->dim[1] != 1 && t->stride[1] != 1)) {
        return false;
    }
    /* The innermost dimension that has a neighbour says what a pixel is; where none has (1x1
     * images, batch 1), any pixel stride is true and the channel count is the natural one. */
    pixel = 0;
    want = 1;
    for (size_t k = t->rank; k-- > 0;) {
        size_t dim = t->dim[k];

        if (k == 1 || dim == 1) {
            continue;
        }
        if (!pixel) {
            pixel = t->stride[k];
            if (pixel < (ptrdiff_t)t->dim[1]) {
                return false;
            }
        }
        if (t->stride[k] != pixel * want) {
            return false;
        }
        want *= (ptrdiff_t)dim;
    }
    *ret_pixel = pixel ? (size_t)pixel : t->dim[1];
    return true;
}
