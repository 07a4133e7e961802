/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base.h"
#include "model/lower/lowering.h"

/* Operators on quantised values. Scales and zero points of products must be constant, except for
 * the zero point of values quantised at run time. */

static bool is_byte(enum mdl_dtype t)
{
    return t == MDL_U8 || t == MDL_I8;
}

static int need_bytes(struct mdl_lower *l, size_t i)
{
    enum mdl_dtype t = mdl_l_value(l, l->in[i])->dtype;

    if (!is_byte(t)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input %zu of type %s is not supported", i,
                             mdl_dtype_name(t));
    }
    return 0;
}

/* Checks that one value is a valid scale. */
static int check_scale(struct mdl_lower *l, double scale)
{
    if (!isfinite(scale) || scale <= 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the scale %g is not a positive number", scale);
    }
    return 0;
}

/* Constant input @i with one value, or one per channel: value of channel @c. */
static double channel_value(const struct mdl_lower *l, size_t i, size_t c)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

    return mdl_const_real(v, mdl_ir_elements(v) == 1 ? 0 : c);
}

/* Input @i is constant and has one value, or one per channel (@channels > 1). */
static int check_const(struct mdl_lower *l, size_t i, size_t channels)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);
    size_t count = mdl_ir_elements(v);

    if (!v->data) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input %zu must be a constant", i);
    }
    if (count != 1 && count != channels) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input %zu has %zu values for %zu channels", i,
                             count, channels);
    }
    return 0;
}

static int check_zero(struct mdl_lower *l, size_t i, enum mdl_dtype dtype, size_t channels)
{
    int r = check_const(l, i, channels);

    if (r == 0 && mdl_l_value(l, l->in[i])->dtype != dtype) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "input %zu is a zero point of type %s, not %s", i,
                             mdl_dtype_name(mdl_l_value(l, l->in[i])->dtype),
                             mdl_dtype_name(dtype));
    }
    return r;
}

static int check_scales(struct mdl_lower *l, size_t i, size_t channels)
{
    int r = check_const(l, i, channels);

    r = r < 0 ? r : mdl_l_f32(l, i);
    for (size_t c = 0; r == 0 && c < mdl_ir_elements(mdl_l_value(l, l->in[i])); c++) {
        r = check_scale(l, channel_value(l, i, c));
    }
    return r;
}

/* Zero points of the weights, NULL where they are all 0. */
static int weight_zeros(struct mdl_lower *l, size_t i, size_t channels, const int32_t **ret)
{
    int32_t *zero;
    bool any = false;

    *ret = NULL;
    if (mdl_l_in(l, i) == MDL_NONE) {
        return 0;
    }
    zero = mdl_pool_alloc(l->ir->pool, channels, sizeof(*zero));
    if (!zero) {
        return mdl_ir_nomem(l->ir);
    }
    for (size_t c = 0; c < channels; c++) {
        zero[c] = (int32_t)channel_value(l, i, c);
        any |= zero[c] != 0;
    }
    *ret = any ? zero : NULL;
    return 0;
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* Splits dim @axis of @dim into blocks. */
static int split_axis(struct mdl_lower *l, size_t *rank, size_t *dim, size_t axis, size_t block)
{
    if (*rank == MDL_RANK_MAX || dim[axis] % block) {
        return mdl_ir_refuse(
            l->ir, -EOPNOTSUPP,
            "blocks of %zu do not divide a dimension of %zu, or there are too many dimensions",
            block, dim[axis]);
    }
    for (size_t i = (*rank)++; i > axis + 1; i--) {
        dim[i] = dim[i - 1];
    }
    dim[axis + 1] = block;
    dim[axis] /= block;
    return 0;
}

/* A scale or zero point @p in the rank of x: one value, one per slice of dim @axis, or with
 * @block != 0 one per block of it. */
static int shape_param(struct mdl_lower *l, size_t p, const struct mdl_ir_value *x, size_t axis,
                       size_t block, size_t *ret)
{
    struct mdl_ir_value v = *mdl_l_value(l, p);
    size_t dim[MDL_RANK_MAX], rank = x->rank;
    int r;

    if (block) {
        if (v.rank != x->rank) {
            return mdl_ir_refuse(
                l->ir, -EBADMSG,
                "the scale has rank %zu; with blocks it must have the rank of input 0", v.rank);
        }
        memcpy(dim, v.dim, sizeof(dim));
        r = split_axis(l, &rank, dim, axis, 1);
        for (size_t i = 0; r == 0 && i < x->rank; i++) {
            if (v.dim[i] != (i == axis ? x->dim[i] / block : x->dim[i])) {
                return mdl_ir_refuse(l->ir, -EBADMSG,
                                     "the dimensions of the scale do not fit blocks of %zu", block);
            }
        }
        return r < 0 ? r : mdl_ir_reshape(l->ir, p, rank, dim, ret);
    }
    for (size_t i = 0; i < rank; i++) {
        dim[i] = 1;
    }
    if (mdl_ir_elements(&v) != 1) {
        if (v.rank != 1 || axis >= rank || v.dim[0] != x->dim[axis]) {
            return mdl_ir_refuse(
                l->ir, -EBADMSG,
                "%zu scales or zero points do not fit the quantised dimension of input 0",
                mdl_ir_elements(&v));
        }
        dim[axis] = v.dim[0];
    }
    return mdl_ir_reshape(l->ir, p, rank, dim, ret);
}

/* Reads axis and block_size, brings scale and zero point into shape; x is split for blocks. */
static int take_params(struct mdl_lower *l, struct mdl_ir_op *op, size_t *x)
{
    struct mdl_ir_value v = *mdl_l_value(l, *x);
    int64_t block = mdl_l_int(l, "block_size", 0);
    const struct mdl_ir_value *scale = mdl_l_value(l, l->in[1]);
    size_t axis = 0;
    int r = mdl_l_f32(l, 1);

    if (r == 0 && mdl_ir_elements(scale) != 1) {
        r = mdl_l_axis(l, mdl_l_int(l, "axis", 1), v.rank, false, &axis);
    }
    if (r < 0 || block < 0) {
        return r < 0 ? r : mdl_ir_refuse(l->ir, -EBADMSG, "block_size is negative");
    }
    if (mdl_ir_elements(scale) == 1 || block == 1) {
        block = 0;
    }
    r = shape_param(l, l->in[1], &v, axis, (size_t)block, &op->op.in[1]);
    if (r == 0 && mdl_l_in(l, 2) != MDL_NONE) {
        r = shape_param(l, l->in[2], &v, axis, (size_t)block, &op->op.in[2]);
    }
    if (r == 0 && block) {
        r = split_axis(l, &v.rank, v.dim, axis, (size_t)block);
        r = r < 0 ? r : mdl_ir_reshape(l->ir, *x, v.rank, v.dim, x);
    }
    return r;
}

/* In a graph that will be fused, a DEQUANTIZE of a constant is kept for the operator that reads it
 * (mdl_quant_fuse() evaluates the rest). */
static int emit_param_op(struct mdl_lower *l, struct mdl_ir_op *op, enum mdl_dtype dtype, size_t *y)
{
    const struct mdl_ir_value *x = mdl_l_value(l, op->op.in[0]);
    size_t rank = x->rank, dim[MDL_RANK_MAX];
    int r;

    memcpy(dim, x->dim, sizeof(dim));
    if (op->kind == MDL_OP_QUANTIZE || !x->data || l->ir->options->no_fusion) {
        return mdl_ir_emit(l->ir, op, dtype, rank, dim, y);
    }
    r = mdl_ir_value_new(l->ir, dtype, rank, dim, &op->op.out[0]);
    *y = op->op.out[0];
    return r < 0 ? r : mdl_ir_op_add(l->ir, op);
}

static int lower_quantize(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_QUANTIZE);
    enum { ONNX_UINT8 = 2, ONNX_INT8 = 3 };
    int64_t given = mdl_l_int(l, "output_dtype", 0);
    enum mdl_dtype dtype = given == ONNX_INT8 ? MDL_I8 : MDL_U8;
    struct mdl_ir_value shape;
    size_t x, y;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    if (mdl_l_in(l, 2) != MDL_NONE) {
        dtype = mdl_l_value(l, l->in[2])->dtype;
        given = 0;
    }
    if (!is_byte(dtype) || (given != 0 && given != ONNX_UINT8 && given != ONNX_INT8)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "only uint8 and int8 are supported as types of the result");
    }
    x = l->in[0];
    shape = *mdl_l_value(l, x);
    if (shape.dtype != MDL_F32 && shape.dtype != MDL_I32) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input 0 of type %s is not supported",
                             mdl_dtype_name(shape.dtype));
    }
    r = mdl_ir_cast(l->ir, x, MDL_F32, &x);
    r = r < 0 ? r : take_params(l, &op, &x);
    op.op.in[0] = x;
    r = r < 0 ? r : emit_param_op(l, &op, dtype, &y);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, shape.rank, shape.dim, &l->out[0]);
}

static int lower_dequantize(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_DEQUANTIZE);
    struct mdl_ir_value shape;
    size_t x, y;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    x = l->in[0];
    shape = *mdl_l_value(l, x);
    if (!is_byte(shape.dtype) && shape.dtype != MDL_I32) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input 0 of type %s is not supported",
                             mdl_dtype_name(shape.dtype));
    }
    if (mdl_l_in(l, 2) != MDL_NONE && mdl_l_value(l, l->in[2])->dtype != shape.dtype) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the zero point must have the type of input 0");
    }
    r = take_params(l, &op, &x);
    op.op.in[0] = x;
    r = r < 0 ? r : emit_param_op(l, &op, MDL_F32, &y);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, shape.rank, shape.dim, &l->out[0]);
}

/* scale = (max(x, 0) - min(x, 0)) / 255, zero = round(clip(-min / scale, 0, 255)); all zeros give a
 * scale of 0, a zero point of 0 and zeros. Source: ONNX DynamicQuantizeLinear. */
static int lower_dynamic_quantize(struct mdl_lower *l, int arg)
{
    struct mdl_ir *ir = l->ir;
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_QUANTIZE);
    struct mdl_ir_value x;
    bool axes[MDL_RANK_MAX];
    size_t nought, steps, low, high, t, scale, zero, one[MDL_RANK_MAX];
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    for (size_t i = 0; i < MDL_RANK_MAX; i++) {
        axes[i] = true;
        one[i] = 1;
    }
    r = mdl_ir_scalar(ir, MDL_F32, 0, &nought);
    r = r < 0 ? r : mdl_ir_scalar(ir, MDL_F32, 255, &steps);
    r = r < 0 ? r : mdl_ir_reduce(ir, MDL_RED_MIN, l->in[0], axes, false, &low);
    r = r < 0 ? r : mdl_ir_reduce(ir, MDL_RED_MAX, l->in[0], axes, false, &high);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_MIN, low, nought, &low);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_MAX, high, nought, &high);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_SUB, high, low, &t);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_DIV, t, steps, &scale);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_DIV, low, scale, &t);
    r = r < 0 ? r : mdl_ir_binary(ir, MDL_BIN_SUB, nought, t, &t);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_CLIP, 0, 255, t, &t);
    r = r < 0 ? r : mdl_ir_unary(ir, MDL_ACT_ROUND, 0, 0, t, &t);
    r = r < 0 ? r : mdl_ir_cast(ir, t, MDL_U8, &zero);
    r = r < 0 ? r : mdl_ir_reshape(ir, scale, x.rank, one, &op.op.in[1]);
    r = r < 0 ? r : mdl_ir_reshape(ir, zero, x.rank, one, &op.op.in[2]);
    op.op.in[0] = l->in[0];
    r = r < 0 ? r : mdl_ir_emit(ir, &op, MDL_U8, x.rank, x.dim, &l->out[0]);
    if (r == 0 && l->out_count > 1) {
        l->out[1] = scale;
    }
    if (r == 0 && l->out_count > 2) {
        l->out[2] = zero;
    }
    return r;
}

/* ---- products ---- */

/* Which inputs of a node hold what; 0: it has no such input. */
struct product {
    size_t w, x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, bias;
};
static const struct product linear_product = {3, 1, 2, 4, 5, 6, 7, 8}; /* QLinearConv, -MatMul */
static const struct product integer_product = {.w = 1, .x_zero = 2, .w_zero = 3};

/* Bias i32 and multipliers x_scale w_scale / y_scale of a QLinear product. */
static int take_scales(struct mdl_lower *l, const struct product *p, struct mdl_op *op,
                       struct mdl_quant *q)
{
    float *scale = mdl_pool_alloc(l->ir->pool, op->channels, sizeof(*scale));
    int32_t *bias = mdl_pool_alloc(l->ir->pool, op->channels, sizeof(*bias));
    int r = check_scales(l, p->x_scale, 1);

    r = r < 0 ? r : check_scales(l, p->w_scale, op->channels);
    r = r < 0 ? r : check_scales(l, p->y_scale, 1);
    if (r < 0 || !scale || !bias) {
        return r < 0 ? r : mdl_ir_nomem(l->ir);
    }
    for (size_t c = 0; c < op->channels; c++) {
        scale[c] = (float)(channel_value(l, p->x_scale, 0) * channel_value(l, p->w_scale, c) /
                           channel_value(l, p->y_scale, 0));
        r = r < 0 ? r : check_scale(l, (double)scale[c]);
    }
    op->scale = scale;
    if (r < 0 || mdl_l_in(l, p->bias) == MDL_NONE) {
        return r;
    }
    r = check_const(l, p->bias, op->channels);
    if (r == 0 && (mdl_l_value(l, l->in[p->bias])->dtype != MDL_I32 ||
                   mdl_ir_elements(mdl_l_value(l, l->in[p->bias])) != op->channels)) {
        r = mdl_ir_refuse(l->ir, -EBADMSG, "the bias must be one int32 for each channel");
    }
    for (size_t c = 0; r == 0 && c < op->channels; c++) {
        bias[c] = (int32_t)mdl_const_int(mdl_l_value(l, l->in[p->bias]), c);
    }
    q->bias = bias;
    return r;
}

/* Everything but shapes; op.channels must be set. */
static int take_product(struct mdl_lower *l, const struct product *p, struct mdl_op *op,
                        enum mdl_dtype *ret_dtype)
{
    struct mdl_quant *q = mdl_pool_alloc(l->ir->pool, 1, sizeof(*q));
    enum mdl_dtype x_type = mdl_l_value(l, l->in[0])->dtype;
    enum mdl_dtype w_type = mdl_l_value(l, l->in[p->w])->dtype;
    size_t zero = mdl_l_in(l, p->x_zero);
    int r = 0;

    if (!q) {
        return mdl_ir_nomem(l->ir);
    }
    if (zero != MDL_NONE && !p->y_scale && !mdl_l_value(l, zero)->data) {
        if (mdl_ir_elements(mdl_l_value(l, zero)) != 1 || mdl_l_value(l, zero)->dtype != x_type) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                                 "the zero point of input 0 must be one value of its type");
        }
        op->in[2] = zero;
    } else if (zero != MDL_NONE) {
        r = check_zero(l, p->x_zero, x_type, 1);
        q->x_zero = r < 0 ? 0 : (int32_t)channel_value(l, p->x_zero, 0);
    }
    if (r == 0 && mdl_l_in(l, p->w_zero) != MDL_NONE) {
        r = check_zero(l, p->w_zero, w_type, op->channels);
        r = r < 0 ? r : weight_zeros(l, p->w_zero, op->channels, &q->w_zero);
    }
    *ret_dtype = MDL_I32;
    if (r == 0 && p->y_scale) {
        *ret_dtype = mdl_l_value(l, l->in[p->y_zero])->dtype;
        if (!is_byte(*ret_dtype)) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "a result of type %s is not supported",
                                 mdl_dtype_name(*ret_dtype));
        }
        r = check_zero(l, p->y_zero, *ret_dtype, 1);
        q->y_zero = r < 0 ? 0 : (int32_t)channel_value(l, p->y_zero, 0);
        r = r < 0 ? r : take_scales(l, p, op, q);
    }
    op->quant = q;
    return r;
}

static int check_product(struct mdl_lower *l, const struct product *p)
{
    int r = mdl_l_need(l, p->y_zero ? p->y_zero + 1 : p->w + 1);

    r = r < 0 ? r : need_bytes(l, 0);
    return r < 0 ? r : need_bytes(l, p->w);
}

static int lower_conv(struct mdl_lower *l, int linear)
{
    const struct product *p = linear ? &linear_product : &integer_product;
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CONV);
    size_t dim[MDL_RANK_MAX];
    enum mdl_dtype dtype;
    int r = check_product(l, p);

    r = r < 0 ? r : mdl_lower_conv_of(l, l->in[0], l->in[p->w], &op, dim);
    if (r < 0) {
        return r;
    }
    op.op.channels = dim[1];
    r = take_product(l, p, &op.op, &dtype);
    return r < 0 ? r
                 : mdl_ir_emit(l->ir, &op, dtype, mdl_l_value(l, l->in[0])->rank, dim, &l->out[0]);
}

static int lower_matmul(struct mdl_lower *l, int linear)
{
    struct product p = linear ? linear_product : integer_product;
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    const struct mdl_ir_value *w;
    enum mdl_dtype dtype;
    int r = check_product(l, &p);

    if (r < 0) {
        return r;
    }
    p.bias = l->in_count; /* there is none */
    w = mdl_l_value(l, l->in[p.w]);
    op.op.channels = w->rank < 2 ? 1 : w->dim[w->rank - 1];
    r = take_product(l, &p, &op.op, &dtype);
    return r < 0 ? r : mdl_lower_product(l, l->in[0], l->in[p.w], &op, dtype, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_quants[] = {
    {"QuantizeLinear", lower_quantize, 0},
    {"DequantizeLinear", lower_dequantize, 0},
    {"DynamicQuantizeLinear", lower_dynamic_quantize, 0},
    {"QLinearConv", lower_conv, 1},
    {"ConvInteger", lower_conv, 0},
    {"QLinearMatMul", lower_matmul, 1},
    {"MatMulInteger", lower_matmul, 0},
    {0},
};
