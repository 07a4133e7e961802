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

/* the activations that integers have */
static float linear_act(const struct mdl_op *op, float t)
{
    switch (op->act) {
    case MDL_ACT_RELU:
        return t < 0.0f ? 0.0f : t;
    case MDL_ACT_CLIP:
        t = t < op->act_a ? op->act_a : t;
        return t > op->act_b ? op->act_b : t;
    case MDL_ACT_LEAKY_RELU:
        return t < 0.0f ? t * op->act_a : t;
    default:
        return t;
    }
}

static void finish(const struct krn_call *c, float t, ptrdiff_t y_at, ptrdiff_t r_at)
{
    const struct mdl_op *op = c->op;
    const struct mdl_quant *q = op->quant;
    enum mdl_dtype dtype = ref_out(c, 0)->dtype;
    float r = 0;

    if (op->residual != MDL_RESIDUAL_NONE) {
        enum mdl_dtype from = c->model->tensors[op->residual_in].dtype;

        r = (float)((int32_t)ref_i64(c->residual, from, r_at) - q->r_zero) * q->r_scale;
    }
    if (op->residual == MDL_RESIDUAL_BEFORE_ACT) {
        t += r;
    }
    t = op->act <= MDL_ACT_LEAKY_RELU
            ? linear_act(op, t)
            : (float)ref_act(op->act, (double)op->act_a, (double)op->act_b, (double)t);
    if (op->residual == MDL_RESIDUAL_AFTER_ACT) {
        t += r;
    }
    if (dtype == MDL_F32) {
        ref_set_f32(c->out[0], y_at, (double)t);
    } else {
        store_byte(c->out[0], dtype, y_at, t, q->y_zero);
    }
}

/* @sum without the bias */
static void finish_sum(const struct krn_call *c, uint32_t sum, size_t channel, ptrdiff_t y_at,
                       ptrdiff_t r_at)
{
    const struct mdl_quant *q = c->op->quant;

    sum += q->bias ? (uint32_t)q->bias[channel] : 0;
    if (ref_out(c, 0)->dtype == MDL_I32) {
        ref_set_i64(c->out[0], MDL_I32, y_at, (int32_t)sum);
    } else {
        finish(c, (float)(int32_t)sum * c->op->scale[channel], y_at, r_at);
    }
}

static int32_t x_zero_of(const struct krn_call *c)
{
    return c->op->in[2] == MDL_NONE ? c->op->quant->x_zero
                                    : (int32_t)ref_i64(c->in[2], ref_in(c, 2)->dtype, 0);
}

static int32_t w_zero_of(const struct krn_call *c, size_t channel)
{
    return c->op->quant->w_zero ? c->op->quant->w_zero[channel] : 0;
}

static uint32_t conv_sum(const struct krn_call *c, const size_t *at)
{
    const struct mdl_tensor *x = ref_in(c, 0), *w = ref_in(c, 1);
    const struct mdl_window *win = &c->op->attr.conv.window;
    size_t o = at[1], count = ref_taps(win);
    size_t first = o / (ref_out(c, 0)->dim[1] / c->op->attr.conv.groups) * w->dim[1];
    int32_t x_zero = x_zero_of(c), w_zero = w_zero_of(c, o);
    uint32_t sum = 0;

    for (size_t k = 0; k < count; k++) {
        struct ref_tap t = ref_tap(win, x, w, win->pad_end, &at[2], k);

        for (size_t i = 0; t.inside && i < w->dim[1]; i++) {
            ptrdiff_t x_at =
                (ptrdiff_t)at[0] * x->stride[0] + (ptrdiff_t)(first + i) * x->stride[1] + t.at;
            ptrdiff_t w_at = (ptrdiff_t)o * w->stride[0] + (ptrdiff_t)i * w->stride[1] + t.w_at;

            sum += (uint32_t)(((int32_t)ref_i64(c->in[0], x->dtype, x_at) - x_zero) *
                              ((int32_t)ref_i64(c->in[1], w->dtype, w_at) - w_zero));
        }
    }
    return sum;
}

static void conv_at(const struct krn_call *c, const struct ref_walk *w)
{
    finish_sum(c, conv_sum(c, w->index), w->index[1], w->at[0], w->at[1]);
}

REF_BODY(conv, 0)

/* Offset of row or column @index, in batch @at, of a factor whose rank may be less than y's. */
static ptrdiff_t batch_offset(const struct mdl_tensor *t, size_t y_rank, const size_t *at)
{
    ptrdiff_t offset = 0;

    for (size_t d = 0; d + 2 < t->rank; d++) {
        size_t k = y_rank - t->rank + d;

        offset += t->dim[d] == 1 ? 0 : (ptrdiff_t)at[k] * t->stride[d];
    }
    return offset;
}

static uint32_t product_sum(const struct krn_call *c, const size_t *at)
{
    const struct mdl_tensor *a = ref_in(c, 0), *b = ref_in(c, 1), *y = ref_out(c, 0);
    bool gemm = c->op->kind == MDL_OP_GEMM;
    bool ta = gemm && c->op->attr.gemm.trans_a, tb = gemm && c->op->attr.gemm.trans_b;
    size_t i = at[y->rank - 2], j = at[y->rank - 1], count = a->dim[a->rank - 1 - ta];
    ptrdiff_t a_k = a->stride[a->rank - 1 - ta], b_k = b->stride[b->rank - 2 + tb];
    ptrdiff_t a_at =
        batch_offset(a, y->rank, at) + (ptrdiff_t)i * a->stride[a->rank - 2 + (size_t)ta];
    ptrdiff_t b_at =
        batch_offset(b, y->rank, at) + (ptrdiff_t)j * b->stride[b->rank - 1 - (size_t)tb];
    int32_t a_zero = x_zero_of(c), b_zero = w_zero_of(c, j);
    uint32_t sum = 0;

    for (size_t k = 0; k < count; k++, a_at += a_k, b_at += b_k) {
        sum += (uint32_t)(((int32_t)ref_i64(c->in[0], a->dtype, a_at) - a_zero) *
                          ((int32_t)ref_i64(c->in[1], b->dtype, b_at) - b_zero));
    }
    return sum;
}

static void product_at(const struct krn_call *c, const struct ref_walk *w)
{
    finish_sum(c, product_sum(c, w->index), w->index[ref_out(c, 0)->rank - 1], w->at[0], w->at[1]);
}

REF_BODY(product, 0)

static void pool_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    const struct mdl_window *win = &c->op->attr.pool.window;
    ptrdiff_t base = (ptrdiff_t)w->index[0] * x->stride[0] + (ptrdiff_t)w->index[1] * x->stride[1];
    size_t count = ref_taps(win), inside = 0, in_extent = 0, divisor;
    int32_t sum = 0;

    for (size_t k = 0; k < count; k++) {
        struct ref_tap t = ref_tap(win, x, NULL, c->op->attr.pool.pad_end_model, &w->index[2], k);

        if (t.inside) {
            sum += (int32_t)ref_i64(c->in[0], x->dtype, base + t.at) - c->op->quant->x_zero;
        }
        inside += t.inside;
        in_extent += t.in_extent;
    }
    divisor = c->op->attr.pool.count_include_pad ? in_extent : inside;
    finish(c, divisor ? (float)sum * (c->op->quant->x_scale / (float)divisor) : 0.0f, w->at[0], 0);
}

REF_BODY(pool, 0)

static void add_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_quant *q = c->op->quant;
    int32_t a = (int32_t)ref_i64(c->in[0], ref_in(c, 0)->dtype, w->at[1]) - q->x_zero;
    int32_t b = (int32_t)ref_i64(c->in[1], ref_in(c, 1)->dtype, w->at[2]) - q->b_zero;
    float left = (float)a * q->x_scale, right = (float)b * q->b_scale;

    finish(c, left + right, w->at[0], 0);
}

REF_BODY(add, 2)

void krn_ref_quant_run(const struct krn_call *c)
{
    static ref_body_fn *const body_of[MDL_OP_COUNT] = {[MDL_OP_CONV] = conv_body,
                                                       [MDL_OP_GEMM] = product_body,
                                                       [MDL_OP_MATMUL] = product_body,
                                                       [MDL_OP_AVG_POOL] = pool_body,
                                                       [MDL_OP_BINARY] = add_body};

    ref_share(c, mdl_elements(ref_out(c, 0)), body_of[c->op->kind]);
}

static bool epilogue_ok(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    if (op->residual != MDL_RESIDUAL_NONE &&
        (!is_byte(m->tensors[op->residual_in].dtype) ||
         !ref_same_dims(&m->tensors[op->residual_in], y, y->rank))) {
        return false;
    }
    return y->dtype == MDL_F32   ? op->act <= MDL_ACT_SOFTPLUS
           : y->dtype == MDL_I32 ? ref_plain(op) && !op->scale
                                 : is_byte(y->dtype) && op->act <= MDL_ACT_LEAKY_RELU;
}

static bool window_ok(const struct mdl_window *w, const struct mdl_tensor *x,
                      const struct mdl_tensor *y)
{
    for (size_t d = 0; d < w->rank; d++) {
        if (w->kernel[d] == 0 || w->stride[d] == 0) {
            return false;
        }
    }
    return w->rank >= 1 && w->rank <= 3 && x->rank == w->rank + 2 && y->rank == x->rank &&
           x->dim[0] == y->dim[0];
}

static bool conv_ok(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *w = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    size_t groups = op->attr.conv.groups;

    if (!window_ok(&op->attr.conv.window, x, y) || w->rank != x->rank || groups == 0 ||
        y->dim[1] % groups || w->dim[0] != y->dim[1] || w->dim[1] * groups != x->dim[1]) {
        return false;
    }
    for (size_t d = 0; d < op->attr.conv.window.rank; d++) {
        if (op->attr.conv.window.kernel[d] != w->dim[2 + d]) {
            return false;
        }
    }
    return op->channels == y->dim[1];
}

static bool product_ok(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *a = &m->tensors[op->in[0]], *b = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    bool gemm = op->kind == MDL_OP_GEMM;
    bool ta = gemm && op->attr.gemm.trans_a, tb = gemm && op->attr.gemm.trans_b;

    return a->rank >= 2 && b->rank >= 2 && y->rank >= 2 && a->rank <= y->rank &&
           b->rank <= y->rank && (!gemm || y->rank == 2) &&
           a->dim[a->rank - 1 - ta] == b->dim[b->rank - 2 + tb] &&
           a->dim[a->rank - 2 + (size_t)ta] == y->dim[y->rank - 2] &&
           b->dim[b->rank - 1 - (size_t)tb] == y->dim[y->rank - 1] &&
           op->channels == y->dim[y->rank - 1];
}

bool krn_ref_quant_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    bool product = op->kind == MDL_OP_CONV || op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL;

    if (!is_byte(x->dtype) || !epilogue_ok(m, op) ||
        (product &&
         (!is_byte(m->tensors[op->in[1]].dtype) || (!op->scale && y->dtype != MDL_I32)))) {
        return false;
    }
    switch (op->kind) {
    case MDL_OP_CONV:
        return conv_ok(m, op);
    case MDL_OP_GEMM:
    case MDL_OP_MATMUL:
        return product_ok(m, op);
    case MDL_OP_AVG_POOL:
        return op->residual == MDL_RESIDUAL_NONE && y->dtype != MDL_I32 && x->dim[1] == y->dim[1] &&
               window_ok(&op->attr.pool.window, x, y);
    case MDL_OP_BINARY:
        return op->residual == MDL_RESIDUAL_NONE && y->dtype != MDL_I32 &&
               op->attr.binary == MDL_BIN_ADD && is_byte(m->tensors[op->in[1]].dtype);
    default:
        return false;
    }
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
