/* SPDX-License-Identifier: Apache-2.0 */
/* DequantizeLinear -> operator -> QuantizeLinear becomes one operator on integers, with its
 * activation and residual; without a QuantizeLinear after it, the operator's result is f32. A
 * DequantizeLinear of a constant that no such operator uses is evaluated. */
#include <math.h>

#include "model/ir/build.h"
#include "model/quant/quant_private.h"

#define BIAS_MAX ((double)(1 << 30))

struct pass {
    struct mdl_ir *ir;
    size_t *reader; /* per value: the last op that reads it */
};

/* The dim of the weights along which their scales lie. */
static size_t weight_axis(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    switch (op->kind) {
    case MDL_OP_CONV:
        return 0;
    case MDL_OP_GEMM:
        return op->op.attr.gemm.trans_b ? 0 : 1;
    default:
        return ir->values[op->op.in[1]].rank - 1;
    }
}

/* Scale or zero point @v (or NULL: @none) of channel @c; a constant. */
static double per_channel(const struct mdl_ir_value *v, size_t c, double none)
{
    return v ? mdl_const_channel(v, c) : none;
}

/* One value, or one for each index of dim @axis. */
static bool lies_along(const struct mdl_ir_value *v, size_t axis, size_t channels)
{
    if (!v->data) {
        return false;
    }
    for (size_t i = 0; i < v->rank; i++) {
        if (v->dim[i] != 1 && (i != axis || v->dim[i] != channels)) {
            return false;
        }
    }
    return true;
}

struct weights {
    size_t q; /* value: u8 or i8, constant */
    const struct mdl_ir_value *scale, *zero;
    size_t channels;
};

static bool read_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op, struct weights *ret)
{
    const struct mdl_ir_op *from = mdl_ir_writer(ir, op->op.in[1]);
    const struct mdl_ir_value *q;
    size_t axis = weight_axis(ir, op);

    if (!from || from->kind != MDL_OP_DEQUANTIZE) {
        return false;
    }
    q = &ir->values[from->op.in[0]];
    if (!q->data || (q->dtype != MDL_U8 && q->dtype != MDL_I8) || axis >= q->rank) {
        return false;
    }
    ret->q = from->op.in[0];
    ret->channels = q->dim[axis];
    ret->scale = &ir->values[from->op.in[1]];
    ret->zero = from->op.in[2] == MDL_NONE ? NULL : &ir->values[from->op.in[2]];
    return lies_along(ret->scale, axis, ret->channels) &&
           (!ret->zero || lies_along(ret->zero, axis, ret->channels)) && ret->channels > 0;
}

/* The addend of channel @c in reals: a bias or C, constant or dequantised from a constant. */
struct addend {
    const struct mdl_ir_value *v, *scale, *zero; /* scale NULL: v is f32 itself */
    const float *shift;
    double beta;
};

static bool read_addend(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t channels,
                        struct addend *ret)
{
    const struct mdl_ir_op *from;
    size_t v = op->op.in[2];

    *ret = (struct addend){.shift = op->op.shift, .beta = 1};
    if (v == MDL_NONE) {
        return true;
    }
    if (op->kind == MDL_OP_MATMUL) {
        return false;
    }
    if (op->kind == MDL_OP_GEMM) {
        ret->beta = (double)op->op.attr.gemm.beta;
    }
    from = mdl_ir_writer(ir, v);
    if (from && from->kind == MDL_IR_VIEW && from->view.kind == MDL_VIEW_EXPAND) {
        v = from->op.in[0];
        from = mdl_ir_writer(ir, v);
    }
    if (from && from->kind == MDL_OP_DEQUANTIZE) {
        v = from->op.in[0];
        ret->scale = &ir->values[from->op.in[1]];
        ret->zero = from->op.in[2] == MDL_NONE ? NULL : &ir->values[from->op.in[2]];
        if (!lies_along(ret->scale, ir->values[v].rank - 1, channels) ||
            (ret->zero && !lies_along(ret->zero, ir->values[v].rank - 1, channels))) {
            return false;
        }
    }
    ret->v = &ir->values[v];
    return ret->v->rank > 0 && lies_along(ret->v, ret->v->rank - 1, channels) &&
           mdl_ir_elements(ret->v) == channels;
}

static double addend_value(const struct addend *a, size_t c)
{
    double t = a->shift ? (double)a->shift[c] : 0;

    if (a->v && a->scale) {
        t += a->beta * (mdl_const_real(a->v, c) - per_channel(a->zero, c, 0)) *
             per_channel(a->scale, c, 1);
    } else if (a->v) {
        t += a->beta * mdl_const_real(a->v, c);
    }
    return t;
}

/* Fills in multipliers, zero points and biases of all channels. Return: false if they do not
 * fit. */
static bool fill_channels(struct mdl_ir *ir, const struct weights *w, const struct addend *a,
                          double x_scale, double alpha, double y_scale, struct mdl_op *op,
                          struct mdl_quant *q)
{
    float *scale = mdl_ir_alloc(ir, w->channels, sizeof(*scale));
    int32_t *zero = mdl_ir_alloc(ir, w->channels, sizeof(*zero));
    int32_t *bias = mdl_ir_alloc(ir, w->channels, sizeof(*bias));
    bool any_zero = false, any_bias = false;

    for (size_t c = 0; c < w->channels; c++) {
        double unit = x_scale * per_channel(w->scale, c, 1);
        double b = nearbyint(addend_value(a, c) / (unit * alpha));

        scale[c] = (float)(unit * alpha / y_scale);
        zero[c] = (int32_t)per_channel(w->zero, c, 0);
        if (!isfinite(scale[c]) || !(unit > 0) || !(fabs(b) <= BIAS_MAX)) {
            return false;
        }
        bias[c] = (int32_t)b;
        any_zero |= zero[c] != 0;
        any_bias |= bias[c] != 0;
    }
    op->scale = scale;
    op->shift = NULL;
    op->channels = w->channels;
    q->w_zero = any_zero ? zero : NULL;
    q->bias = any_bias ? bias : NULL;
    return true;
}

/* The QuantizeLinear that is the only reader of @v, or NULL. */
static struct mdl_ir_op *only_quantize(const struct pass *p, size_t v, struct mdl_qparam *ret)
{
    const struct mdl_ir_value *x = &p->ir->values[v];
    struct mdl_ir_op *op;

    if (x->uses != 1 || x->output || p->reader[v] == MDL_NONE) {
        return NULL;
    }
    op = &p->ir->ops[p->reader[v]];
    return op->kind == MDL_OP_QUANTIZE && op->op.in[0] == v && mdl_quant_param(p->ir, op, ret)
               ? op
               : NULL;
}

/* Return: whether the epilogue has an integer form. */
static bool is_linear(const struct mdl_op *op)
{
    return op->act <= MDL_ACT_LEAKY_RELU;
}

/* Residual and activation in units of @scale. */
static bool take_epilogue(const struct mdl_ir *ir, struct mdl_op *op, struct mdl_quant *q,
                          double scale)
{
    struct mdl_qparam r;

    if (op->residual != MDL_RESIDUAL_NONE) {
        if (!mdl_quant_source(ir, op->residual_in, &op->residual_in, &r)) {
            return false;
        }
        q->r_zero = r.zero;
        q->r_scale = (float)((double)r.scale / scale);
    }
    if (op->act == MDL_ACT_CLIP) {
        op->act_a = (float)((double)op->act_a / scale);
        op->act_b = (float)((double)op->act_b / scale);
    }
    return true;
}

/* @op (a changed copy of ir->ops[k]) replaces op @k and writes the output of @to, if any. */
static void commit(struct pass *p, size_t k, const struct mdl_ir_op *op, const struct mdl_quant *q,
                   struct mdl_ir_op *to)
{
    struct mdl_ir_op *at = &p->ir->ops[k];

    *at = *op;
    at->op.quant = mdl_ir_memdup(p->ir, q, sizeof(*q));
    if (to) {
        at->op.out[0] = to->op.out[0];
        p->ir->values[at->op.out[0]].op = k;
        to->dead = true;
    }
}

static void fuse_product(struct pass *p, size_t k)
{
    struct mdl_ir *ir = p->ir;
    struct mdl_ir_op op = ir->ops[k], *to;
    struct mdl_quant q = {0};
    struct mdl_qparam x, y = {.scale = 1};
    struct weights w;
    struct addend a;

    if (op.op.quant || op.op.scale || !mdl_quant_source(ir, op.op.in[0], &op.op.in[0], &x) ||
        !read_weights(ir, &op, &w) || !read_addend(ir, &op, w.channels, &a)) {
        return;
    }
    to = is_linear(&op.op) ? only_quantize(p, op.op.out[0], &y) : NULL;
    if (!take_epilogue(ir, &op.op, &q, (double)y.scale) ||
        !fill_channels(ir, &w, &a, (double)x.scale,
                       op.kind == MDL_OP_GEMM ? (double)op.op.attr.gemm.alpha : 1, (double)y.scale,
                       &op.op, &q)) {
        return;
    }
    if (op.kind == MDL_OP_GEMM) {
        op.op.attr.gemm.alpha = 1;
    }
    op.op.in[1] = w.q;
    op.op.in[2] = MDL_NONE;
    q.x_zero = x.zero;
    q.y_zero = y.zero;
    commit(p, k, &op, &q, to);
}

/* Sums and mean values: integers in, integers out. */
static void fuse_light(struct pass *p, size_t k)
{
    struct mdl_ir *ir = p->ir;
    struct mdl_ir_op op = ir->ops[k], *to;
    struct mdl_quant q = {0};
    struct mdl_qparam a, b = {.scale = 0}, y;

    if (op.op.quant || !is_linear(&op.op) || op.op.residual != MDL_RESIDUAL_NONE ||
        (op.kind == MDL_OP_BINARY && op.op.attr.binary != MDL_BIN_ADD) ||
        !mdl_quant_source(ir, op.op.in[0], &op.op.in[0], &a) ||
        (op.kind == MDL_OP_BINARY && !mdl_quant_source(ir, op.op.in[1], &op.op.in[1], &b))) {
        return;
    }
    to = only_quantize(p, op.op.out[0], &y);
    if (!to || !take_epilogue(ir, &op.op, &q, (double)y.scale)) {
        return;
    }
    q.x_zero = a.zero;
    q.b_zero = b.zero;
    q.y_zero = y.zero;
    q.x_scale = (float)((double)a.scale / (double)y.scale);
    q.b_scale = (float)((double)b.scale / (double)y.scale);
    commit(p, k, &op, &q, to);
}

/* Constants whose DequantizeLinear is left over; a convolution's bias then goes where those of
 * constant weights are. */
static void fold_rest(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        struct mdl_ir_op *op = &ir->ops[k];

        if (op->dead) {
            continue;
        }
        if (op->kind == MDL_OP_DEQUANTIZE && ir->values[op->op.in[0]].data &&
            ir->values[op->op.in[1]].data &&
            (op->op.in[2] == MDL_NONE || ir->values[op->op.in[2]].data)) {
            op->dead = mdl_fold_op(ir, op);
        } else if (op->kind == MDL_OP_CONV && !op->op.quant && op->op.in[2] != MDL_NONE &&
                   !op->op.shift && mdl_ir_is_const(ir, op->op.in[1]) &&
                   mdl_ir_is_const(ir, op->op.in[2])) {
            op->op.channels = mdl_ir_elements(&ir->values[op->op.in[2]]);
            op->op.shift =
                mdl_ir_memdup(ir, ir->values[op->op.in[2]].data, op->op.channels * sizeof(float));
            op->op.in[2] = MDL_NONE;
        }
    }
}

static void find_readers(struct pass *p)
{
    for (size_t i = 0; i < p->ir->value_count; i++) {
        p->reader[i] = MDL_NONE;
    }
    for (size_t k = 0; k < p->ir->op_count; k++) {
        const struct mdl_ir_op *op = &p->ir->ops[k];

        for (size_t i = 0; i < MDL_OP_IN_MAX && !op->dead; i++) {
            if (op->op.in[i] != MDL_NONE) {
                p->reader[op->op.in[i]] = k;
            }
        }
    }
}

void mdl_quant_fuse(struct mdl_ir *ir)
{
    struct pass p = {.ir = ir};

    if (!mdl_quant_any(ir)) {
        return;
    }
    p.reader = mdl_ir_alloc(ir, ir->value_count, sizeof(*p.reader));
    mdl_ir_count_uses(ir);
    find_readers(&p);
    for (size_t k = 0; k < ir->op_count; k++) {
        switch (ir->ops[k].dead ? MDL_IR_VIEW : ir->ops[k].kind) {
        case MDL_OP_CONV:
        case MDL_OP_GEMM:
        case MDL_OP_MATMUL:
            fuse_product(&p, k);
            break;
        case MDL_OP_BINARY:
        case MDL_OP_AVG_POOL:
            fuse_light(&p, k);
            break;
        default:
            break;
        }
    }
    mdl_ir_drop_dead(ir);
    fold_rest(ir);
}
