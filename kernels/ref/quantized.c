/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on bytes and integers. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"

static bool is_byte(enum mdl_dtype t)
{
    return t == MDL_U8 || t == MDL_I8;
}

/* sat(round(t) + zero) as u8 or i8 */
static void store_byte(void *p, enum mdl_dtype dtype, ptrdiff_t at, float t, int32_t zero)
{
    float low = (float)((dtype == MDL_I8 ? INT8_MIN : 0) - zero);
    float high = (float)((dtype == MDL_I8 ? INT8_MAX : UINT8_MAX) - zero);

    t = isnan(t) ? 0.0f : t < low ? low : t > high ? high : t;
    ref_set_i64(p, dtype, at, (int64_t)rintf(t) + zero); /* ties to even: the default mode */
}

void krn_ref_quant_real(const struct krn_call *c, float t, ptrdiff_t y_at, ptrdiff_t residual_at)
{
    const struct mdl_op *op = c->op;
    const struct mdl_quant *q = op->quant;
    enum mdl_dtype dtype = ref_out(c, 0)->dtype;
    float r = 0;

    if (op->residual != MDL_RESIDUAL_NONE) {
        enum mdl_dtype from = c->model->tensors[op->residual_in].dtype;

        r = (float)((int32_t)ref_i64(c->residual, from, residual_at) - q->r_zero) * q->r_scale;
    }
    if (op->residual == MDL_RESIDUAL_BEFORE_ACT) {
        t += r;
    }
    t = (float)ref_act(op->act, (double)op->act_a, (double)op->act_b, (double)t);
    if (op->residual == MDL_RESIDUAL_AFTER_ACT) {
        t += r;
    }
    if (dtype == MDL_F32) {
        ref_set_f32(c->out[0], y_at, (double)t);
    } else {
        store_byte(c->out[0], dtype, y_at, t, q->y_zero);
    }
}

void krn_ref_quant_sum(const struct krn_call *c, uint32_t sum, size_t channel, ptrdiff_t y_at,
                       ptrdiff_t residual_at)
{
    const struct mdl_quant *q = c->op->quant;

    sum += q->bias ? (uint32_t)q->bias[channel] : 0;
    if (ref_out(c, 0)->dtype == MDL_I32) {
        ref_set_i64(c->out[0], MDL_I32, y_at, (int32_t)sum);
    } else {
        krn_ref_quant_real(c, (float)(int32_t)sum * c->op->scale[channel], y_at, residual_at);
    }
}

void krn_ref_quant_add(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_quant *q = c->op->quant;
    int32_t a = (int32_t)ref_i64(c->in[0], ref_in(c, 0)->dtype, w->at[1]) - q->x_zero;
    int32_t b = (int32_t)ref_i64(c->in[1], ref_in(c, 1)->dtype, w->at[2]) - q->b_zero;
    float left = (float)a * q->x_scale, right = (float)b * q->b_scale;

    krn_ref_quant_real(c, left + right, w->at[0], 0);
}

bool krn_ref_quant_ok(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    if (!is_byte(ref_in_dtype(m, op, 0)) ||
        (op->residual != MDL_RESIDUAL_NONE &&
         (!is_byte(m->tensors[op->residual_in].dtype) ||
          !ref_same_dims(&m->tensors[op->residual_in], y, y->rank)))) {
        return false;
    }
    return y->dtype == MDL_F32   ? op->act <= MDL_ACT_SOFTPLUS
           : y->dtype == MDL_I32 ? ref_plain(op) && !op->scale
                                 : is_byte(y->dtype) && op->act <= MDL_ACT_LEAKY_RELU;
}

bool krn_ref_quant_product_ok(const struct mdl_model *m, const struct mdl_op *op)
{
    return krn_ref_quant_ok(m, op) && is_byte(ref_in_dtype(m, op, 1)) &&
           (op->scale || ref_out_dtype(m, op) == MDL_I32);
}

/*
 * QUANTIZE  y = sat(round(x / scale) + zero); DEQUANTIZE  y = (x - zero) * scale
 * Source: ONNX QuantizeLinear, DequantizeLinear
 */
static void param_at(const struct krn_call *c, const struct ref_walk *w)
{
    int32_t zero =
        c->op->in[2] == MDL_NONE ? 0 : (int32_t)ref_i64(c->in[2], ref_in(c, 2)->dtype, w->at[3]);
    float scale = ref_f32(c->in[1], w->at[2]);

    if (c->op->kind == MDL_OP_QUANTIZE) {
        store_byte(c->out[0], ref_out(c, 0)->dtype, w->at[0], ref_f32(c->in[0], w->at[1]) / scale,
                   zero);
    } else {
        int64_t v = ref_i64(c->in[0], ref_in(c, 0)->dtype, w->at[1]) - zero;

        ref_set_f32(c->out[0], w->at[0], (double)((float)v * scale));
    }
}

REF_EACH_ELEMENT(param, 3)

static bool param_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    bool to_bytes = op->kind == MDL_OP_QUANTIZE;
    const struct mdl_tensor *q = to_bytes ? y : x, *f = to_bytes ? x : y;

    for (size_t i = 1; i < 3; i++) {
        const struct mdl_tensor *t = op->in[i] == MDL_NONE ? NULL : &m->tensors[op->in[i]];

        if (!t) {
            continue;
        }
        if (t->rank != x->rank || t->dtype != (i == 1 ? MDL_F32 : q->dtype)) {
            return false;
        }
        for (size_t d = 0; d < t->rank; d++) {
            if (t->dim[d] != 1 && t->dim[d] != x->dim[d]) {
                return false;
            }
        }
    }
    return ref_same_dims(x, y, x->rank) && f->dtype == MDL_F32 && ref_plain(op) &&
           (is_byte(q->dtype) || (!to_bytes && q->dtype == MDL_I32));
}

REF_PRIMITIVE(quantize, MDL_OP_QUANTIZE, param_supports, param_run);

REF_PRIMITIVE(dequantize, MDL_OP_DEQUANTIZE, param_supports, param_run);
