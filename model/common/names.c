/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sizes of data types, names and work of operators, and what a tensor's strides say. */
#include "base/base.h"
#include "model/common/arithmetic.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[MDL_DTYPE_COUNT] = {
    [MDL_F32] = {"f32", 4}, [MDL_I32] = {"i32", 4}, [MDL_I64] = {"i64", 8},
    [MDL_U8] = {"u8", 1},   [MDL_I8] = {"i8", 1},   [MDL_BOOL] = {"bool", 1},
};

static const struct {
    const char *name;
    unsigned traits; /* enum mdl_op_trait */
} operators[MDL_OP_COUNT] = {
#define OPERATOR(kind, name, fold, traits) [MDL_OP_##kind] = {#name, traits},
    MDL_OPERATORS(OPERATOR)
#undef OPERATOR
};

const char *mdl_dtype_name(enum mdl_dtype t)
{
    return (size_t)t < MDL_DTYPE_COUNT ? dtypes[t].name : "?";
}

size_t mdl_dtype_bytes(enum mdl_dtype t)
{
    return (size_t)t < MDL_DTYPE_COUNT ? dtypes[t].bytes : 0;
}

const char *mdl_op_kind_name(enum mdl_op_kind k)
{
    return (size_t)k < MDL_OP_COUNT ? operators[k].name : "?";
}

bool mdl_op_is(int kind, enum mdl_op_trait trait)
{
    return (size_t)kind < MDL_OP_COUNT && (operators[kind].traits & trait) != 0;
}

double mdl_op_work(const struct mdl_op *op, double made, double read)
{
    double each = 1;

    if (op->kind == MDL_OP_MAX_POOL || op->kind == MDL_OP_AVG_POOL) {
        for (size_t i = 0; i < op->attr.pool.window.rank; i++) {
            each *= (double)op->attr.pool.window.kernel[i];
        }
    } else if (op->kind == MDL_OP_LRN) {
        each = (double)op->attr.lrn.size;
    }
    return made * each + read > op->macs ? made * each + read : op->macs;
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
    /* The innermost spatial or batch dimension larger than 1 gives the pixel stride. Without one
     * (1x1 images, batch 1), any pixel stride is valid, and the channel count is used. */
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
