/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that compute each element by itself. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"
#include "model/common/arithmetic.h"

/*
 * BINARY  y = a op b, both broadcast to y by strides          Source: ONNX Add ... Or (numpy rules)
 *
 * model/common/arithmetic.h has the values. Pow takes a base and an exponent of different types and
 * has the base's type.
 */
static void binary_at(const struct krn_call *c, const struct ref_walk *w)
{
    enum mdl_dtype ta = ref_in(c, 0)->dtype, tb = ref_in(c, 1)->dtype, ty = ref_out(c, 0)->dtype;
    enum mdl_binary which = c->op->attr.binary;

    if (c->op->quant) {
        krn_ref_quant_add(c, w);
    } else if (ref_is_int(ta) && ref_is_int(tb)) {
        int64_t t =
            mdl_int_binary(which, ref_i64(c->in[0], ta, w->at[1]), ref_i64(c->in[1], tb, w->at[2]));
        ref_set_i64(c->out[0], ty, w->at[0], t);
    } else {
        double t = mdl_real_binary(which, ref_f64(c->in[0], ta, w->at[1]),
                                   ref_f64(c->in[1], tb, w->at[2]));
        ref_set_f64(c->out[0], ty, w->at[0], ty == MDL_F32 ? ref_finish(c, t, w->at[3]) : t);
    }
}

static bool binary_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    enum mdl_dtype a = ref_in_dtype(m, op, 0), b = ref_in_dtype(m, op, 1);
    bool logic = op->attr.binary >= MDL_BIN_EQUAL;
    bool bits = op->attr.binary == MDL_BIN_MOD ||
                (op->attr.binary >= MDL_BIN_BIT_AND && op->attr.binary <= MDL_BIN_SHIFT_RIGHT);

    if (op->quant) {
        return op->residual == MDL_RESIDUAL_NONE && ref_out_dtype(m, op) != MDL_I32 &&
               op->attr.binary == MDL_BIN_ADD && (b == MDL_U8 || b == MDL_I8) &&
               krn_ref_quant_ok(m, op);
    }
    return (unsigned)op->attr.binary < MDL_BIN_COUNT && b != MDL_DTYPE_COUNT &&
           (a == b || op->attr.binary == MDL_BIN_POW) && !(bits && a == MDL_F32) &&
           ref_out_dtype(m, op) == (logic ? MDL_BOOL : a) && ref_epilogue_ok(m, op) &&
           (a == MDL_F32 || ref_plain(op));
}

REF_OPERATOR(binary, MDL_OP_BINARY, REF_EACH_ELEMENT, 2);

/* UNARY  y = act(x), integers for those functions that stay in the integers; formulas at mdl_act */
static void unary_at(const struct krn_call *c, const struct ref_walk *w)
{
    enum mdl_dtype tx = ref_in(c, 0)->dtype, ty = ref_out(c, 0)->dtype;

    if (ref_is_int(tx)) {
        ref_set_i64(c->out[0], ty, w->at[0], mdl_int_unary(c->op, ref_i64(c->in[0], tx, w->at[1])));
    } else {
        ref_set_f64(c->out[0], ty, w->at[0],
                    ref_finish(c, (double)ref_f32(c->in[0], w->at[1]), w->at[2]));
    }
}

static bool unary_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    enum mdl_dtype x = ref_in_dtype(m, op, 0), y = ref_out_dtype(m, op);

    if (op->act == MDL_ACT_NOT) {
        return op->residual == MDL_RESIDUAL_NONE && y == x;
    }
    if (op->act == MDL_ACT_BIT_NOT) {
        return op->residual == MDL_RESIDUAL_NONE && y == x && ref_is_int(x) && x != MDL_BOOL;
    }
    if (x == MDL_F32) {
        return y == MDL_F32 && (unsigned)op->act < MDL_ACT_COUNT &&
               (op->residual == MDL_RESIDUAL_NONE || ref_epilogue_ok(m, op));
    }
    return y == x && op->residual == MDL_RESIDUAL_NONE &&
           (op->act == MDL_ACT_NONE || op->act == MDL_ACT_RELU || op->act == MDL_ACT_CLIP ||
            op->act == MDL_ACT_NEG || op->act == MDL_ACT_ABS || op->act == MDL_ACT_SIGN);
}

REF_OPERATOR(unary, MDL_OP_UNARY, REF_EACH_ELEMENT, 1);

/* PRELU  y = x < 0 ? slope x : x                                               Source: ONNX PRelu
 */
static void prelu_at(const struct krn_call *c, const struct ref_walk *w)
{
    enum mdl_dtype t = ref_out(c, 0)->dtype;

    if (ref_is_int(t)) {
        int64_t x = ref_i64(c->in[0], t, w->at[1]), slope = ref_i64(c->in[1], t, w->at[2]);
        ref_set_i64(c->out[0], t, w->at[0], x < 0 ? mdl_int_binary(MDL_BIN_MUL, slope, x) : x);
    } else {
        double x = (double)ref_f32(c->in[0], w->at[1]);
        double y = x < 0 ? (double)ref_f32(c->in[1], w->at[2]) * x : x;
        ref_set_f32(c->out[0], w->at[0], ref_finish(c, y, w->at[3]));
    }
}

static bool prelu_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    enum mdl_dtype t = ref_out_dtype(m, op);

    return ref_in_dtype(m, op, 0) == t && ref_in_dtype(m, op, 1) == t && ref_epilogue_ok(m, op);
}

REF_OPERATOR(prelu, MDL_OP_PRELU, REF_EACH_ELEMENT, 2);

/* WHERE  y = cond ? a : b, broadcast by strides                                Source: ONNX Where
 */
static void where_at(const struct krn_call *c, const struct ref_walk *w)
{
    size_t k = ref_i64(c->in[0], MDL_BOOL, w->at[1]) ? 1 : 2;

    ref_move(c->out[0], w->at[0], c->in[k], w->at[k + 1], 1, ref_out(c, 0)->dtype);
}

static bool where_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    enum mdl_dtype t = ref_out_dtype(m, op);

    return ref_in_dtype(m, op, 0) == MDL_BOOL && ref_in_dtype(m, op, 1) == t &&
           ref_in_dtype(m, op, 2) == t && ref_plain(op);
}

REF_OPERATOR(where, MDL_OP_WHERE, REF_EACH_ELEMENT, 3);

/*
 * AFFINE  y[n,c,...] = finish( scale[c] x[n,c,...] + shift[c] )
 * Source: ONNX BatchNormalization with scale = gamma / sqrt(var + eps), shift = beta - mean scale
 */
static void affine_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_op *op = c->op;
    size_t channel = w->rank > 1 ? w->index[1] : 0;
    double t = (double)ref_f32(c->in[0], w->at[1]);

    t *= op->scale ? (double)op->scale[channel] : 1;
    t += op->shift ? (double)op->shift[channel] : 0;
    ref_set_f32(c->out[0], w->at[0], ref_finish(c, t, w->at[2]));
}

static bool affine_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    return ref_all_f32(m, op) && ref_epilogue_ok(m, op) &&
           op->channels == (y->rank > 1 ? y->dim[1] : 1);
}

REF_OPERATOR(affine, MDL_OP_AFFINE, REF_EACH_ELEMENT, 1);
