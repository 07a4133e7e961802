/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on quantised values. Scales and zero points of products must be constant, except for
 * the zero point of values quantised at run time. */
#include <math.h>

#include "base/base.h"
#include "model/lower/lowering.h"

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
    if (l->out_count > 1) {
        l->out[1] = scale;
    }
    if (l->out_count > 2) {
        l->out[2] = zero;
    }
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
        if (!isfinite(scale[c]) || scale[c] <= 0) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                                 "the scales %g of the input, %g of the weights and %g of the "
                                 "output do not go together: %g is not a number above 0",
                                 channel_value(l, p->x_scale, 0), channel_value(l, p->w_scale, c),
                                 channel_value(l, p->y_scale, 0), (double)scale[c]);
        }
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
    return need_bytes(l, 0) != 0 ? l->ir->failure : need_bytes(l, p->w);
}

static size_t lower_conv(struct mdl_lower *l, int linear)
{
    const struct product *p = linear ? &linear_product : &integer_product;
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CONV);
    size_t dim[MDL_RANK_MAX];
    enum mdl_dtype dtype;

    if (check_product(l, p) != 0 || mdl_lower_conv_of(l, l->in[0], l->in[p->w], &op, dim) != 0) {
        return MDL_NONE;
    }
    op.op.channels = dim[1];
    return take_product(l, p, &op.op, &dtype) != 0
               ? MDL_NONE
               : mdl_ir_emit(l->ir, &op, dtype, mdl_l_value(l, l->in[0])->rank, dim);
}

static size_t lower_matmul(struct mdl_lower *l, int linear)
{
    struct product p = linear ? linear_product : integer_product;
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    const struct mdl_ir_value *w = mdl_l_value(l, l->in[p.w]);
    enum mdl_dtype dtype;

    p.bias = l->in_count; /* there is none */
    op.op.channels = w->rank < 2 ? 1 : w->dim[w->rank - 1];
    if (check_product(l, &p) != 0 || take_product(l, &p, &op.op, &dtype) != 0) {
        return MDL_NONE;
    }
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
