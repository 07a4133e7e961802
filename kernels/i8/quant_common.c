/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/i8/quant_common.h"

#include <math.h>

#include "base/base.h"

void krn_quant_bounds(const struct mdl_model *m, const struct mdl_op *op,
                      struct krn_quant_epilogue *ret)
{
    enum mdl_dtype t = m->tensors[op->out[0]].dtype;
    float low = (float)((t == MDL_I8 ? INT8_MIN : 0) - op->quant->y_zero);
    float high = (float)((t == MDL_I8 ? INT8_MAX : UINT8_MAX) - op->quant->y_zero);

    ret->y_type = t;
    ret->y_zero = op->quant->y_zero;
    ret->act = op->act;
    ret->a = op->act_a;
    ret->b = op->act_b;
    ret->clamp =
        krn_is_byte(t) && op->act <= MDL_ACT_CLIP && op->residual != MDL_RESIDUAL_AFTER_ACT;
    ret->low = low;
    ret->high = high;
    if (ret->clamp && op->act == MDL_ACT_RELU) {
        ret->low = 0;
    } else if (ret->clamp && op->act == MDL_ACT_CLIP) {
        ret->low = base_min(base_max(op->act_a, low), high);
        ret->high = base_min(base_max(op->act_b, low), high);
    }
}

static bool image_of(const struct mdl_model *m, const struct mdl_op *op, size_t tensor,
                     struct krn_img *ret)
{
    return krn_img_for(m, op, tensor, ret) && krn_img_flat(ret);
}

static bool epilogue_ok(const struct mdl_model *m, const struct mdl_op *op, const struct krn_img *y)
{
    enum mdl_dtype t = m->tensors[op->out[0]].dtype;
    struct krn_img r;

    if (t == MDL_F32 ? op->act > MDL_ACT_SOFTPLUS
                     : !krn_is_byte(t) || op->act > MDL_ACT_LEAKY_RELU) {
        return false;
    }
    return op->residual == MDL_RESIDUAL_NONE ||
           (krn_is_byte(m->tensors[op->residual_in].dtype) &&
            image_of(m, op, op->residual_in, &r) && krn_img_same(&r, y));
}

/* Return: whether every real value of the op is below 2^31: at most half of that from a sum, and no
 * more from the residual. */
static bool is_small(const struct mdl_op *op)
{
    bool small = op->residual == MDL_RESIDUAL_NONE || fabsf(op->quant->r_scale) < 0x1p20f;

    for (size_t i = 0; i < op->channels; i++) {
        small &= fabsf(op->scale[i]) < 0.5f;
    }
    return small;
}

struct krn_quant_epilogue krn_quant_epilogue_of(const struct krn_call *c)
{
    const struct mdl_op *op = c->op;
    struct krn_quant_epilogue e = {.residual = op->residual};
    struct krn_img r;

    krn_quant_bounds(c->model, op, &e);
    e.plain = e.clamp && e.high - e.low == UINT8_MAX && is_small(op);
    if (op->residual != MDL_RESIDUAL_NONE && image_of(c->model, op, op->residual_in, &r)) {
        e.res = c->residual;
        e.res_pixel = r.pixel;
        e.res_signed = c->model->tensors[op->residual_in].dtype == MDL_I8;
        e.r_zero = op->quant->r_zero;
        e.r_scale = op->quant->r_scale;
    }
    return e;
}

/* Return: whether @op is on quantised values, with constant weights. */
static bool has_params(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *w = &m->tensors[op->in[1]];

    return op->quant && op->scale && op->in[2] == MDL_NONE && krn_is_byte(x->dtype) &&
           krn_is_byte(w->dtype) && m->storages[w->storage].home == MDL_HOME_CONST;
}

bool krn_quant_conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *ret)
{
    struct krn_conv c = {.tap_stride = 1};

    if (op->kind != MDL_OP_CONV || !has_params(m, op) ||
        !krn_img_any(&m->tensors[op->in[0]], &c.x) || !image_of(m, op, op->out[0], &c.y) ||
        !mdl_is_dense(&m->tensors[op->in[1]]) || !krn_conv_shape_of(m, op, &c) ||
        op->channels != c.y.c) {
        return false;
    }
    *ret = c;
    return epilogue_ok(m, op, &c.y);
}

bool krn_quant_product_of(const struct mdl_model *m, const struct mdl_op *op,
                          struct krn_product *ret)
{
    struct krn_product p;

    if (!has_params(m, op) || !krn_product_shape_of(m, op, &p) || op->channels != p.n) {
        return false;
    }
    p.alpha = 1;
    p.b_const = true;
    *ret = p;
    return epilogue_ok(m, op, &p.y_as_pixels);
}

bool krn_quant_product_frames(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_product p;

    return krn_quant_product_of(m, op, &p) && p.m == 1 && op->residual == MDL_RESIDUAL_NONE;
}

bool krn_quant_weights_fit(const struct mdl_model *m, const struct mdl_op *op)
{
    bool is_signed = m->tensors[op->in[1]].dtype == MDL_I8;

    if (!op->quant->w_zero) {
        return is_signed;
    }
    for (size_t i = 0; i < op->channels; i++) {
        if (op->quant->w_zero[i] != (is_signed ? 0 : 128)) {
            return false;
        }
    }
    return true;
}
