/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear. Values of 4 bits are in bytes, those of 16 bits in i32: only
 * who quantises must know, because it saturates. */
#include <math.h>

#include "model/lower/lowering.h"

static const struct width {
    enum mdl_dtype dtype;
    enum mdl_narrow narrow;
    int low, high;
} widths[] = {
    {MDL_U8, MDL_NARROW_NONE, 0, UINT8_MAX},  {MDL_I8, MDL_NARROW_NONE, INT8_MIN, INT8_MAX},
    {MDL_I32, MDL_NARROW_U16, 0, UINT16_MAX}, {MDL_I32, MDL_NARROW_I16, INT16_MIN, INT16_MAX},
    {MDL_U8, MDL_NARROW_U4, 0, 15},           {MDL_I8, MDL_NARROW_I4, -8, 7},
};

/* Splits dim @axis of @dim into blocks. */
static void split_axis(struct mdl_lower *l, size_t *rank, size_t *dim, size_t axis, size_t block)
{
    mdl_unserved_if(
        l, *rank == MDL_RANK_MAX || dim[axis] % block,
        "blocks of %zu do not divide a dimension of %zu, or there are too many dimensions", block,
        dim[axis]);
    for (size_t i = (*rank)++; i > axis + 1; i--) {
        dim[i] = dim[i - 1];
    }
    dim[axis + 1] = block;
    dim[axis] /= block;
}

/* A scale or zero point @p in the rank of x: one value, one per slice of dim @axis, or with
 * @block != 0 one per block of it. */
static size_t shape_param(struct mdl_lower *l, size_t p, const struct mdl_ir_value *x, size_t axis,
                          size_t block)
{
    struct mdl_ir_value v = *mdl_l_value(l, p);
    size_t rank = x->rank;

    if (block) {
        mdl_bad_if(l, v.rank != x->rank,
                   "the scale has rank %zu; with blocks it must have the rank of input 0", v.rank);
        for (size_t i = 0; i < x->rank; i++) {
            mdl_bad_if(l, v.dim[i] != (i == axis ? x->dim[i] / block : x->dim[i]),
                       "the dimensions of the scale do not fit blocks of %zu", block);
        }
        split_axis(l, &rank, v.dim, axis, 1);
        return mdl_ir_reshape(l->ir, p, rank, v.dim);
    }
    mdl_bad_if(
        l, mdl_ir_elements(&v) != 1 && (v.rank != 1 || axis >= rank || v.dim[0] != x->dim[axis]),
        "%zu scales or zero points do not fit the quantised dimension of input 0",
        mdl_ir_elements(&v));
    return mdl_lower_beside(l, p, rank, axis);
}

/* Brings scale and zero point into shape, as in[1] and in[2] of @op, and x as in[0]: it is split
 * for blocks. */
static void take_params(struct mdl_lower *l, const struct mdl_lower_param *p, struct mdl_ir_op *op,
                        size_t x)
{
    struct mdl_ir_value v = *mdl_l_value(l, x);
    const struct mdl_ir_value *scale = mdl_l_value(l, p->scale);
    bool one = mdl_ir_elements(scale) == 1;
    size_t block = one || p->block <= 1 ? 0 : (size_t)p->block;
    size_t axis = one ? 0 : mdl_l_axis(l, p->axis, v.rank, false);

    mdl_unserved_if(l, scale->dtype != MDL_F32, "a scale of type %s is not supported",
                    mdl_dtype_name(scale->dtype));
    mdl_bad_if(l, p->block < 0, "block_size is negative");
    op->op.in[1] = shape_param(l, p->scale, &v, axis, block);
    if (p->zero != MDL_NONE) {
        op->op.in[2] = shape_param(l, p->zero, &v, axis, block);
    }
    if (block) {
        split_axis(l, &v.rank, v.dim, axis, block);
        x = mdl_ir_reshape(l->ir, x, v.rank, v.dim);
    }
    op->op.in[0] = x;
}

/* In a graph that will be fused, a DEQUANTIZE of a constant is kept for the operator that reads it
 * (mdl_quant_fuse() evaluates the rest). */
static size_t emit_param_op(struct mdl_lower *l, struct mdl_ir_op *op, enum mdl_dtype dtype)
{
    const struct mdl_ir_value x = *mdl_l_value(l, op->op.in[0]);

    if (op->kind == MDL_OP_QUANTIZE || !x.data || l->ir->options->no_fusion) {
        return mdl_ir_emit(l->ir, op, dtype, x.rank, x.dim);
    }
    op->op.out[0] = mdl_ir_value_new(l->ir, dtype, x.rank, x.dim);
    mdl_ir_op_add(l->ir, op);
    return op->op.out[0];
}

/* clip(round(x / scale) + zero), in f32: exact, for 16 bits are far less than its 24 */
static size_t quantize_wide(struct mdl_lower *l, const struct mdl_ir_op *op, const struct width *w)
{
    struct mdl_ir *ir = l->ir;
    size_t t = mdl_ir_binary(ir, MDL_BIN_DIV, op->op.in[0], op->op.in[1]);

    t = mdl_ir_unary(ir, MDL_ACT_ROUND, 0, 0, t);
    if (op->op.in[2] != MDL_NONE) {
        t = mdl_ir_binary(ir, MDL_BIN_ADD, t, mdl_ir_cast(ir, op->op.in[2], MDL_F32));
    }
    t = mdl_ir_unary(ir, MDL_ACT_CLIP, (float)w->low, (float)w->high, t);
    return mdl_ir_cast(ir, t, MDL_I32);
}

/* Limits bytes that stand for 4 bits. */
static size_t saturate(struct mdl_lower *l, const struct width *w, size_t y)
{
    y = mdl_ir_binary(l->ir, MDL_BIN_MAX, y, mdl_ir_scalar(l->ir, w->dtype, w->low));
    return mdl_ir_binary(l->ir, MDL_BIN_MIN, y, mdl_ir_scalar(l->ir, w->dtype, w->high));
}

static size_t quantize_to(struct mdl_lower *l, size_t x, const struct mdl_lower_param *p,
                          const struct width *w)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_QUANTIZE);
    struct mdl_ir_value shape = *mdl_l_value(l, x);
    size_t y;

    mdl_unserved_if(l, shape.dtype != MDL_F32 && shape.dtype != MDL_I32,
                    "input 0 of type %s is not supported", mdl_dtype_name(shape.dtype));
    take_params(l, p, &op, mdl_ir_cast(l->ir, x, MDL_F32));
    if (w->dtype == MDL_I32) {
        y = quantize_wide(l, &op, w);
    } else {
        y = emit_param_op(l, &op, w->dtype);
        y = w->narrow == MDL_NARROW_NONE ? y : saturate(l, w, y);
    }
    y = mdl_ir_reshape(l->ir, y, shape.rank, shape.dim);
    l->ir->values[y].narrow = w->narrow;
    return y;
}

/* Return: the width of such elements, or NULL. */
static const struct width *width_of(enum mdl_dtype dtype, enum mdl_narrow narrow)
{
    for (size_t i = 0; i < base_array_count(widths); i++) {
        if (widths[i].dtype == dtype && widths[i].narrow == narrow) {
            return &widths[i];
        }
    }
    return NULL;
}

size_t mdl_lower_quantize(struct mdl_lower *l, size_t x, const struct mdl_lower_param *p)
{
    const struct mdl_ir_value *zero = mdl_l_value(l, p->zero);
    const struct width *w = p->zero == MDL_NONE ? &widths[0] : width_of(zero->dtype, zero->narrow);

    mdl_unserved_if(l, !w,
                    "a zero point of type %s is not supported (integers of 4 to 16 bits "
                    "are)",
                    mdl_dtype_name(zero->dtype));
    return quantize_to(l, x, p, w);
}

size_t mdl_lower_dequantize(struct mdl_lower *l, size_t x, const struct mdl_lower_param *p)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_DEQUANTIZE);
    struct mdl_ir_value shape = *mdl_l_value(l, x);

    mdl_unserved_if(l, shape.dtype != MDL_U8 && shape.dtype != MDL_I8 && shape.dtype != MDL_I32,
                    "input 0 of type %s is not supported", mdl_dtype_name(shape.dtype));
    mdl_bad_if(l, p->zero != MDL_NONE && mdl_l_value(l, p->zero)->dtype != shape.dtype,
               "the zero point must have the type of input 0");
    take_params(l, p, &op, x);
    return mdl_ir_reshape(l->ir, emit_param_op(l, &op, MDL_F32), shape.rank, shape.dim);
}

/* What output_dtype asks for; NULL: it does not say. */
static const struct width *output_width(struct mdl_lower *l)
{
    int64_t given = mdl_l_int(l, "output_dtype", 0);
    const struct mdl_onnx_type *type = mdl_onnx_type(given);
    const struct width *w =
        given == 0 || type->from == MDL_FROM_NONE ? NULL : width_of(type->dtype, type->narrow);

    mdl_unserved_if(l, !w && given != 0,
                    "output_dtype %s (%lld) is not supported; integers of 4, 8 and 16 bits are",
                    type->name, (long long)given);
    return w;
}

static struct mdl_lower_param param_of(struct mdl_lower *l)
{
    return (struct mdl_lower_param){.scale = l->in[1],
                                    .zero = mdl_l_in(l, 2),
                                    .axis = mdl_l_int(l, "axis", 1),
                                    .block = mdl_l_int(l, "block_size", 0)};
}

static size_t lower_quantize(struct mdl_lower *l, int arg)
{
    const struct width *w = mdl_l_in(l, 2) == MDL_NONE ? output_width(l) : NULL;
    struct mdl_lower_param p = param_of(l);

    return w ? quantize_to(l, l->in[0], &p, w) : mdl_lower_quantize(l, l->in[0], &p);
}

/* A result of 16 bits is computed in f32, like all floats. */
static size_t lower_dequantize(struct mdl_lower *l, int arg)
{
    int64_t given = mdl_l_int(l, "output_dtype", 0);
    const struct mdl_onnx_type *type = mdl_onnx_type(given);
    struct mdl_lower_param p = param_of(l);

    mdl_unserved_if(l,
                    given != 0 && (!mdl_onnx_served(type) || type->dtype != MDL_F32 ||
                                   type->from == MDL_FROM_F64),
                    "output_dtype %lld is not supported", (long long)given);
    return mdl_lower_dequantize(l, l->in[0], &p);
}

const struct mdl_lower_row mdl_lower_quantizes[] = {
    {"QuantizeLinear", lower_quantize, 2, .narrow = MDL_NARROW_OWN},
    {"DequantizeLinear", lower_dequantize, 2},
    {"QuantizeLinear", lower_quantize, 2, 0, 0, MDL_LOWER_MICROSOFT, .narrow = MDL_NARROW_OWN},
    {"DequantizeLinear", lower_dequantize, 2, 0, 0, MDL_LOWER_MICROSOFT},
    {0},
};
