/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on quantised values. Scales and zero points of products must be constant, except for
 * the zero point of values quantised at run time. */
#include <math.h>

#include "model/lower/lowering.h"

static bool is_byte(enum mdl_dtype t)
{
    return t == MDL_U8 || t == MDL_I8;
}

static void need_bytes(struct mdl_lower *l, size_t i)
{
    enum mdl_dtype t = mdl_l_value(l, l->in[i])->dtype;

    mdl_unserved_if(l, !is_byte(t), "input %zu of type %s is not supported", i, mdl_dtype_name(t));
}

/* Constant input @i with one value, or one per channel: value of channel @c. */
static double channel_value(const struct mdl_lower *l, size_t i, size_t c)
{
    return mdl_const_channel(mdl_l_value(l, l->in[i]), c);
}

/* Input @i is constant and has one value, or one per channel (@channels > 1). */
static void check_const(struct mdl_lower *l, size_t i, size_t channels)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);
    size_t count = mdl_ir_elements(v);

    mdl_unserved_if(l, !v->data, "input %zu must be a constant", i);
    mdl_unserved_if(l, count != 1 && count != channels, "input %zu has %zu values for %zu channels",
                    i, count, channels);
}

static void check_zero(struct mdl_lower *l, size_t i, enum mdl_dtype dtype, size_t channels)
{
    check_const(l, i, channels);
    mdl_bad_if(l, mdl_l_value(l, l->in[i])->dtype != dtype,
               "input %zu is a zero point of type %s, not %s", i,
               mdl_dtype_name(mdl_l_value(l, l->in[i])->dtype), mdl_dtype_name(dtype));
}

static void check_scales(struct mdl_lower *l, size_t i, size_t channels)
{
    check_const(l, i, channels);
    mdl_l_f32(l, i);
    for (size_t c = 0; c < mdl_ir_elements(mdl_l_value(l, l->in[i])); c++) {
        double scale = channel_value(l, i, c);

        mdl_bad_if(l, !isfinite(scale) || scale <= 0, "the scale %g is not a positive number",
                   scale);
    }
}

/* Zero points of the weights, NULL where they are all 0. */
static const int32_t *weight_zeros(struct mdl_lower *l, size_t i, size_t channels)
{
    int32_t *zero = mdl_ir_alloc(l->ir, channels, sizeof(*zero));
    bool any = false;

    for (size_t c = 0; c < channels; c++) {
        zero[c] = (int32_t)channel_value(l, i, c);
        any |= zero[c] != 0;
    }
    return any ? zero : NULL;
}

/* ---- DynamicQuantizeLinear ---- */

/* scale = (max(x, 0) - min(x, 0)) / 255, zero = round(clip(-min / scale, 0, 255)); all zeros give a
 * scale of 0, a zero point of 0 and zeros. Source: ONNX DynamicQuantizeLinear. */
static size_t lower_dynamic_quantize(struct mdl_lower *l, int arg)
{
    struct mdl_ir *ir = l->ir;
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_QUANTIZE, 1);
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    bool axes[MDL_RANK_MAX];
    size_t nought, low, high, t, scale, zero;

    for (size_t i = 0; i < MDL_RANK_MAX; i++) {
        axes[i] = true;
    }
    nought = mdl_ir_scalar(ir, MDL_F32, 0);
    low = mdl_ir_reduce(ir, MDL_RED_MIN, l->in[0], axes, false);
    high = mdl_ir_reduce(ir, MDL_RED_MAX, l->in[0], axes, false);
    low = mdl_ir_binary(ir, MDL_BIN_MIN, low, nought);
    high = mdl_ir_binary(ir, MDL_BIN_MAX, high, nought);
    t = mdl_ir_binary(ir, MDL_BIN_SUB, high, low);
    scale = mdl_ir_binary(ir, MDL_BIN_DIV, t, mdl_ir_scalar(ir, MDL_F32, 255));
    t = mdl_ir_binary(ir, MDL_BIN_DIV, low, scale);
    t = mdl_ir_binary(ir, MDL_BIN_SUB, nought, t);
    t = mdl_ir_unary(ir, MDL_ACT_CLIP, 0, 255, t);
    t = mdl_ir_unary(ir, MDL_ACT_ROUND, 0, 0, t);
    zero = mdl_ir_cast(ir, t, MDL_U8);
    op.op.in[1] = mdl_lower_beside(l, scale, x.rank, 0);
    op.op.in[2] = mdl_lower_beside(l, zero, x.rank, 0);
    mdl_l_give(l, 1, scale);
    mdl_l_give(l, 2, zero);
    return mdl_ir_emit(ir, &op, MDL_U8, x.rank, x.dim);
}

/* ---- products ---- */

/* Which inputs of a node hold what; 0: it has no such input. */
struct product {
    size_t w, x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, bias;
};
static const struct product linear_product = {3, 1, 2, 4, 5, 6, 7, 8}; /* QLinearConv, -MatMul */
static const struct product integer_product = {.w = 1, .x_zero = 2, .w_zero = 3};

/* Bias i32 and multipliers x_scale w_scale / y_scale of a QLinear product. */
static void take_scales(struct mdl_lower *l, const struct product *p, struct mdl_op *op,
                        struct mdl_quant *q)
{
    float *scale = mdl_ir_alloc(l->ir, op->channels, sizeof(*scale));
    int32_t *bias = mdl_ir_alloc(l->ir, op->channels, sizeof(*bias));

    check_scales(l, p->x_scale, 1);
    check_scales(l, p->w_scale, op->channels);
    check_scales(l, p->y_scale, 1);
    for (size_t c = 0; c < op->channels; c++) {
        scale[c] = (float)(channel_value(l, p->x_scale, 0) * channel_value(l, p->w_scale, c) /
                           channel_value(l, p->y_scale, 0));
        mdl_unserved_if(l, !isfinite(scale[c]) || scale[c] <= 0,
                        "the scales %g of the input, %g of the weights and %g of the "
                        "output do not go together: %g is not a number above 0",
                        channel_value(l, p->x_scale, 0), channel_value(l, p->w_scale, c),
                        channel_value(l, p->y_scale, 0), (double)scale[c]);
    }
    op->scale = scale;
    if (mdl_l_in(l, p->bias) == MDL_NONE) {
        return;
    }
    check_const(l, p->bias, op->channels);
    mdl_bad_if(l,
               mdl_l_value(l, l->in[p->bias])->dtype != MDL_I32 ||
                   mdl_ir_elements(mdl_l_value(l, l->in[p->bias])) != op->channels,
               "the bias must be one int32 for each channel");
    for (size_t c = 0; c < op->channels; c++) {
        bias[c] = (int32_t)mdl_const_int(mdl_l_value(l, l->in[p->bias]), c);
    }
    q->bias = bias;
}

/* Everything but shapes; op.channels must be set. Return: the type of the result. */
static enum mdl_dtype take_product(struct mdl_lower *l, const struct product *p, struct mdl_op *op)
{
    struct mdl_quant *q = mdl_ir_alloc(l->ir, 1, sizeof(*q));
    enum mdl_dtype x_type = mdl_l_value(l, l->in[0])->dtype;
    enum mdl_dtype w_type = mdl_l_value(l, l->in[p->w])->dtype;
    enum mdl_dtype y_type = MDL_I32;
    size_t zero = mdl_l_in(l, p->x_zero);

    if (zero != MDL_NONE && !p->y_scale && !mdl_l_value(l, zero)->data) {
        mdl_unserved_if(
            l, mdl_ir_elements(mdl_l_value(l, zero)) != 1 || mdl_l_value(l, zero)->dtype != x_type,
            "the zero point of input 0 must be one value of its type");
        op->in[2] = zero;
    } else if (zero != MDL_NONE) {
        check_zero(l, p->x_zero, x_type, 1);
        q->x_zero = (int32_t)channel_value(l, p->x_zero, 0);
    }
    if (mdl_l_in(l, p->w_zero) != MDL_NONE) {
        check_zero(l, p->w_zero, w_type, op->channels);
        q->w_zero = weight_zeros(l, p->w_zero, op->channels);
    }
    if (p->y_scale) {
        y_type = mdl_l_value(l, l->in[p->y_zero])->dtype;
        mdl_unserved_if(l, !is_byte(y_type), "a result of type %s is not supported",
                        mdl_dtype_name(y_type));
        check_zero(l, p->y_zero, y_type, 1);
        q->y_zero = (int32_t)channel_value(l, p->y_zero, 0);
        take_scales(l, p, op, q);
    }
    op->quant = q;
    return y_type;
}

static void check_product(struct mdl_lower *l, const struct product *p)
{
    need_bytes(l, 0);
    need_bytes(l, p->w);
}

static size_t lower_conv(struct mdl_lower *l, int linear)
{
    const struct product *p = linear ? &linear_product : &integer_product;
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CONV);
    size_t dim[MDL_RANK_MAX];
    enum mdl_dtype dtype;

    check_product(l, p);
    mdl_lower_conv_of(l, l->in[0], l->in[p->w], &op, dim);
    op.op.channels = dim[1];
    dtype = take_product(l, p, &op.op);
    return mdl_ir_emit(l->ir, &op, dtype, mdl_l_value(l, l->in[0])->rank, dim);
}

static size_t lower_matmul(struct mdl_lower *l, int linear)
{
    struct product p = linear ? linear_product : integer_product;
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    const struct mdl_ir_value *w = mdl_l_value(l, l->in[p.w]);
    enum mdl_dtype dtype;

    p.bias = l->in_count; /* there is none */
    op.op.channels = w->rank < 2 ? 1 : w->dim[w->rank - 1];
    check_product(l, &p);
    dtype = take_product(l, &p, &op.op);
    return mdl_lower_product(l, l->in[0], l->in[p.w], &op, dtype);
}

const struct mdl_lower_row mdl_lower_quants[] = {
    {"DynamicQuantizeLinear", lower_dynamic_quantize, 1, 1},
    {"QLinearConv", lower_conv, 8, 0, 1},
    {"ConvInteger", lower_conv, 2, 0, 0},
    {"QLinearMatMul", lower_matmul, 8, 0, 1},
    {"MatMulInteger", lower_matmul, 2, 0, 0},
    {0},
};
