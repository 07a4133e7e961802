/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUANTIZE and DEQUANTIZE with one scale and zero point, and the sum of two quantised tensors, over
 * dense rows of any layout (kernels/common/nest.h).
 */
#include "base/base.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"
#include "kernels/i8/quant_epilogue.h"

struct job {
    const struct krn_call *call;
    struct krn_nest nest;
    struct krn_quant_epilogue e; /* bounds of y, activation */
    float scale;
    int32_t zero;
    bool a_signed, b_signed;
};

static bool nest_of(const struct mdl_model *m, const struct mdl_op *op, size_t inputs,
                    struct krn_nest *ret)
{
    const struct mdl_tensor *t[3] = {&m->tensors[op->out[0]]};

    for (size_t i = 0; i < inputs; i++) {
        t[1 + i] = &m->tensors[op->in[i]];
    }
    if (op->residual != MDL_RESIDUAL_NONE || !krn_nest_of(t, 1 + inputs, ret)) {
        return false;
    }
    for (size_t i = 0; i <= inputs; i++) {
        if (krn_nest_inner(ret, i) != 1) {
            return false;
        }
    }
    return true;
}

static bool param_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    bool to_bytes = op->kind == MDL_OP_QUANTIZE;
    struct krn_nest nest;

    return krn_is_byte(to_bytes ? y->dtype : x->dtype) && op->act == MDL_ACT_NONE &&
           mdl_elements(&m->tensors[op->in[1]]) == 1 &&
           (op->in[2] == MDL_NONE || mdl_elements(&m->tensors[op->in[2]]) == 1) &&
           nest_of(m, op, 1, &nest);
}

static void quantize_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const vf scale = vf_set(j->scale), low = vf_set(j->e.low), high = vf_set(j->e.high);
    const vi zero = vi_set(j->zero);
    const float *x = (const float *)j->call->in[0] + at[1];
    uint8_t *y = (uint8_t *)j->call->out[0] + at[0], out[KRN_VL];

    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t k = base_min(n - i, (size_t)KRN_VL);
        vf t = vf_load_any(x + i, k) / scale;
        vi q = vq_round(vf_min(high, vf_max(low, t)), zero);

        if (k == KRN_VL) {
            vq_store1(y + i, q);
        } else {
            vq_store1(out, q);
            memcpy(y + i, out, k);
        }
    }
}

static void dequantize_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const uint8_t *x = (const uint8_t *)j->call->in[0] + at[1];
    float *y = (float *)j->call->out[0] + at[0];
    uint8_t in[KRN_VL] = {0};

    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t k = base_min(n - i, (size_t)KRN_VL);
        const uint8_t *from = x + i;
        vf v;

        if (k < KRN_VL) {
            memcpy(in, from, k);
            from = in;
        }
        v = vi_to_vf(vq_load1(from, j->a_signed) - j->zero) * j->scale;
        vf_store_any(y + i, v, k);
    }
}

KRN_INLINE void add_vectors(const struct job *j, uint8_t *y, const uint8_t *a, const uint8_t *b)
{
    const struct mdl_quant *q = j->call->op->quant;
    vi va[2], vb[2], vy[2];

    vq_load2(a, j->a_signed, &va[0], &va[1]);
    vq_load2(b, j->b_signed, &vb[0], &vb[1]);
#pragma GCC unroll 2
    for (size_t v = 0; v < 2; v++) {
        vf t = vi_to_vf(va[v] - q->x_zero) * q->x_scale;

        t = t + vi_to_vf(vb[v] - q->b_zero) * q->b_scale;
        if (!j->e.clamp) {
            t = krn_act_vec(j->e.act, t, j->e.a, j->e.b);
        }
        vy[v] = vq_round(vf_min(vf_set(j->e.high), vf_max(vf_set(j->e.low), t)), vi_set(q->y_zero));
    }
    vq_store2(y, vy[0], vy[1]);
}

static void add_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const uint8_t *a = (const uint8_t *)j->call->in[0] + at[1];
    const uint8_t *b = (const uint8_t *)j->call->in[1] + at[2];
    uint8_t *y = (uint8_t *)j->call->out[0] + at[0];
    uint8_t part[3][KRN_QUANT_LANES] = {{0}};
    size_t i = 0;

    for (; i + KRN_QUANT_LANES <= n; i += KRN_QUANT_LANES) {
        add_vectors(j, y + i, a + i, b + i);
    }
    if (i < n) {
        memcpy(part[1], a + i, n - i);
        memcpy(part[2], b + i, n - i);
        add_vectors(j, part[0], part[1], part[2]);
        memcpy(y + i, part[0], n - i);
    }
}

static bool add_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_nest nest;

    return op->quant && op->attr.binary == MDL_BIN_ADD &&
           krn_is_byte(m->tensors[op->in[0]].dtype) && krn_is_byte(m->tensors[op->in[1]].dtype) &&
           krn_is_byte(m->tensors[op->out[0]].dtype) && op->act <= MDL_ACT_LEAKY_RELU &&
           nest_of(m, op, 2, &nest);
}

static krn_nest_fn *row_of(enum mdl_op_kind kind)
{
    return kind == MDL_OP_BINARY     ? add_row
           : kind == MDL_OP_QUANTIZE ? quantize_row
                                     : dequantize_row;
}

static void run(const struct krn_call *call)
{
    const struct mdl_op *op = call->op;
    const struct mdl_tensor *t = call->model->tensors;
    struct job j = {.call = call, .a_signed = t[op->in[0]].dtype == MDL_I8};

    if (!nest_of(call->model, op, op->kind == MDL_OP_BINARY ? 2 : 1, &j.nest)) {
        return;
    }
    if (op->kind == MDL_OP_BINARY) {
        j.b_signed = t[op->in[1]].dtype == MDL_I8;
        krn_quant_bounds(call->model, op, &j.e);
    } else {
        enum mdl_dtype q = t[op->kind == MDL_OP_QUANTIZE ? op->out[0] : op->in[0]].dtype;

        memcpy(&j.scale, call->in[1], sizeof(j.scale));
        if (op->in[2] != MDL_NONE) {
            uint8_t zero;

            memcpy(&zero, call->in[2], 1);
            j.zero = q == MDL_I8 ? (int8_t)zero : zero;
        }
        j.e.low = (float)((q == MDL_I8 ? INT8_MIN : 0) - j.zero);
        j.e.high = (float)((q == MDL_I8 ? INT8_MAX : UINT8_MAX) - j.zero);
    }
    krn_nest_share(&j.nest, call->pool, call->width, row_of(op->kind), &j);
}

KRN_ISA_PRIMITIVE(quantize_i8, MDL_OP_QUANTIZE, KRN_ISA_NEEDS, .supports = param_supports,
                  .run = run);

KRN_ISA_PRIMITIVE(dequantize_i8, MDL_OP_DEQUANTIZE, KRN_ISA_NEEDS, .supports = param_supports,
                  .run = run);

KRN_ISA_PRIMITIVE(binary_i8_add, MDL_OP_BINARY, KRN_ISA_NEEDS, .supports = add_supports,
                  .run = run);
