/* SPDX-License-Identifier: Apache-2.0 */
/* Quantises an f32 graph by a calibration: adds QUANTIZE and DEQUANTIZE around the operands and the
 * result of every operator that shall run on integers, and replaces its weights by dequantised
 * integers. The result is fused like a graph that was quantised in the file. */
#include <math.h>

#include "model/quant/calibration.h"
#include "model/quant/quant_private.h"

struct plan {
    struct mdl_ir *ir;
    const struct mdl_calibration *c;
    size_t values;           /* number of values before this pass */
    size_t *same;            /* values that must share one range: a representative each */
    struct mdl_range *range; /* of representatives; low > high: none */
    bool *integer;           /* per value: its operator writes integers, so all readers use them */
    size_t *instead;         /* per value: its dequantised form, or itself */
    bool *chosen;            /* per op: runs on integers */
    bool *wanted;            /* per value: integers are read, or it only moves on */
    float **factor;          /* per value: [dim 1] its factors, or NULL */
};

/* Ops that only move values keep the range. */
static void join_moves(struct plan *p)
{
    for (size_t k = 0; k < p->ir->op_count; k++) {
        const struct mdl_ir_op *op = &p->ir->ops[k];

        if (op->dead) {
            continue;
        }
        if (op->kind == MDL_IR_VIEW || op->kind == MDL_OP_MAX_POOL) {
            p->same[mdl_quant_find(p->same, op->op.in[0])] = mdl_quant_find(p->same, op->op.out[0]);
        }
        for (size_t i = 0; i < op->concat_count; i++) {
            p->same[mdl_quant_find(p->same, op->concat_in[i])] =
                mdl_quant_find(p->same, op->op.out[0]);
        }
    }
}

/* The range of a value whose channels are scaled. */
static bool scaled_range(const struct plan *p, size_t v, struct mdl_range *ret)
{
    const struct mdl_channels *seen = mdl_calibration_channels(p->c, p->ir->values[v].name);
    const float *s = p->factor[v];

    *ret = (struct mdl_range){.low = 0, .high = 0};
    for (size_t i = 0; seen && i < seen->count; i++) {
        ret->low = base_min(ret->low, s[i] * seen->low[i]);
        ret->high = base_max(ret->high, s[i] * seen->high[i]);
    }
    return seen != NULL;
}

static void fill_ranges(struct plan *p)
{
    for (size_t i = 0; i < p->values; i++) {
        p->range[i] = (struct mdl_range){.low = INFINITY, .high = -INFINITY};
    }
    for (size_t i = 0; i < p->values; i++) {
        const struct mdl_ir_value *v = &p->ir->values[i];
        const struct mdl_range *r = v->name[0] ? mdl_calibration_find(p->c, v->name) : NULL;
        struct mdl_range *to = &p->range[mdl_quant_find(p->same, i)], scaled;

        if (p->factor[i]) {
            r = scaled_range(p, i, &scaled) ? &scaled : NULL;
        }
        if (r && v->dtype == MDL_F32 && !v->data) {
            to->low = base_min(to->low, r->low);
            to->high = base_max(to->high, r->high);
        }
    }
}

/* Scale and zero point of a value; 0 is always one of its numbers. A value that was always 0 gets
 * the scale of a range of 1. */
static bool param_of(struct plan *p, size_t v, struct mdl_qparam *ret)
{
    const struct mdl_range *r = v < p->values ? &p->range[mdl_quant_find(p->same, v)] : NULL;
    double low, high, scale;

    if (!r || !(r->low <= r->high) || p->ir->values[v].dtype != MDL_F32 || p->ir->values[v].data) {
        return false;
    }
    low = base_min((double)r->low, 0.0);
    high = base_max((double)r->high, 0.0);
    if (p->c->symmetric && low < 0) {
        scale = base_max(-low, high) / 127;
        *ret = (struct mdl_qparam){.dtype = MDL_I8, .scale = (float)scale};
    } else {
        scale = (high - low) / 255;
        *ret = (struct mdl_qparam){.dtype = MDL_U8, .scale = (float)scale};
        ret->zero = scale > 0 ? (int32_t)nearbyint(-low / scale) : 0;
    }
    if (!(ret->scale > 1e-30f)) {
        ret->scale = 1.0f / 255;
        ret->zero = 0;
    }
    return true;
}

/* Return: the dequantised form of @v, made on first use; @v itself if it has no range. */
static size_t quantised(struct plan *p, size_t v)
{
    struct mdl_qparam q;

    if (v < p->values && p->instead[v] == v && param_of(p, v, &q)) {
        size_t y = mdl_quant_add(p->ir, MDL_OP_QUANTIZE, v, &q, MDL_NONE);

        p->instead[v] = mdl_quant_add(p->ir, MDL_OP_DEQUANTIZE, y, &q, MDL_NONE);
    }
    return v < p->values ? p->instead[v] : v;
}

/* Which operators become integers. */
static bool is_chosen(struct plan *p, const struct mdl_ir_op *op)
{
    const struct mdl_ir *ir = p->ir;
    struct mdl_qparam q;

    if (op->kind >= (int)MDL_OP_COUNT || op->op.quant || mdl_calibration_keeps(p->c, op->op.name) ||
        (op->op.residual != MDL_RESIDUAL_NONE && !param_of(p, op->op.residual_in, &q))) {
        return false;
    }
    switch (op->kind) {
    case MDL_OP_CONV:
    case MDL_OP_GEMM:
    case MDL_OP_MATMUL:
        return mdl_quant_is_product(ir, op) && param_of(p, op->op.in[0], &q);
    case MDL_OP_BINARY:
        return op->op.attr.binary == MDL_BIN_ADD && op->op.act <= MDL_ACT_LEAKY_RELU &&
               mdl_ir_same_dims(&ir->values[op->op.in[0]], &ir->values[op->op.in[1]]) &&
               param_of(p, op->op.in[0], &q) && param_of(p, op->op.in[1], &q) &&
               param_of(p, op->op.out[0], &q);
    case MDL_OP_AVG_POOL:
        return param_of(p, op->op.in[0], &q) && param_of(p, op->op.out[0], &q);
    default:
        return false;
    }
}

/* What lies around product @op. */
static struct mdl_qsides sides_of(const struct plan *p, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &p->ir->values[op->op.in[0]];
    struct mdl_qweights w = mdl_quant_weights(p->ir, op);
    const struct mdl_channels *seen = x->name[0] ? mdl_calibration_channels(p->c, x->name) : NULL;
    struct mdl_qsides s = {.scale = op->op.scale, .y = p->factor[op->op.out[0]]};

    if (op->op.in[0] < p->values) {
        s.x = p->factor[op->op.in[0]];
    }
    if (seen && mdl_quant_has_channels(p->ir, op, &w, true) && seen->count == x->dim[1]) {
        s.x_mean = seen->mean;
    }
    return s;
}

/* Replaces the weights of @op by dequantised integers. Return: false: they cannot be. */
static bool replace_weights(struct plan *p, struct mdl_ir_op *op, double x_scale)
{
    struct mdl_ir *ir = p->ir;
    const struct mdl_ir_value w = ir->values[op->op.in[1]];
    struct mdl_qweights of = mdl_quant_weights(ir, op);
    struct mdl_qsides s = sides_of(p, op);
    struct mdl_qrounded to = {.q = mdl_ir_alloc(ir, mdl_ir_elements(&w), 1),
                              .scale = mdl_ir_alloc(ir, of.outputs, sizeof(*to.scale)),
                              .shift = mdl_ir_alloc(ir, of.outputs, sizeof(*to.shift))};
    double *row = mdl_ir_alloc(ir, of.count, sizeof(*row));
    struct mdl_ir_op back = mdl_ir_op_make(ir, MDL_OP_DEQUANTIZE);
    size_t dim[MDL_RANK_MAX];

    if (!mdl_quant_round(&of, &s, op->op.shift, x_scale, row, &to)) {
        return false;
    }
    for (size_t i = 0; i < w.rank; i++) {
        dim[i] = i == (of.step == 1 ? 0u : 1u) ? of.outputs : 1;
    }
    back.op.in[0] = mdl_ir_const_new(ir, MDL_I8, w.rank, w.dim, to.q, false);
    back.op.in[1] = mdl_ir_const_new(ir, MDL_F32, w.rank, dim, to.scale, false);
    back.op.out[0] = mdl_ir_value_new(ir, MDL_F32, w.rank, w.dim);
    mdl_ir_op_add(ir, &back);
    op->op.in[1] = back.op.out[0];
    op->op.scale = NULL;
    op->op.shift = to.shift;
    op->op.channels = of.outputs;
    return true;
}

static bool gives_integers(const struct plan *p, const struct mdl_ir_op *op)
{
    return p->wanted[op->op.out[0]] && !p->ir->values[op->op.out[0]].output &&
           op->op.act <= MDL_ACT_LEAKY_RELU;
}

static void quantise_op(struct plan *p, struct mdl_ir_op *op)
{
    struct mdl_qparam x;

    if (mdl_quant_is_product(p->ir, op) &&
        (!param_of(p, op->op.in[0], &x) || !replace_weights(p, op, (double)x.scale))) {
        mdl_ir_op_add(p->ir, op);
        return;
    }
    if (op->op.act == MDL_ACT_CLIP && p->factor[op->op.out[0]]) {
        op->op.act = MDL_ACT_RELU; /* the integers' upper end is below the clip, in every channel */
    }
    op->op.in[0] = quantised(p, op->op.in[0]);
    if (op->kind == MDL_OP_BINARY) {
        op->op.in[1] = quantised(p, op->op.in[1]);
    }
    if (op->op.residual != MDL_RESIDUAL_NONE) {
        op->op.residual_in = quantised(p, op->op.residual_in);
    }
    mdl_ir_op_add(p->ir, op);
    if (gives_integers(p, op)) {
        quantised(p, op->op.out[0]);
        p->integer[op->op.out[0]] = true;
    }
}

/* A value that only f32 operators read, if moved before, stays f32: rounding it would lose accuracy
 * for nothing. */
static void mark_wanted(struct plan *p)
{
    memset(p->wanted, 0, p->values * sizeof(*p->wanted));
    for (size_t k = p->ir->op_count; k-- > 0;) {
        const struct mdl_ir_op *op = &p->ir->ops[k];
        bool moves = op->kind >= (int)MDL_OP_COUNT || op->kind == MDL_OP_MAX_POOL;
        bool reads = !op->dead && (p->chosen[k] || (moves && p->wanted[op->op.out[0]]));

        for (size_t at = 0, v; reads && (v = mdl_ir_reads(op, &at)) != MDL_NONE;) {
            p->wanted[v] = true;
        }
    }
}

/* A sum or mean runs on integers only if its result is one; else only its operands would be
 * rounded. */
static void leave_rounding_alone(struct plan *p)
{
    bool again;

    do {
        again = false;
        mark_wanted(p);
        for (size_t k = 0; k < p->ir->op_count; k++) {
            const struct mdl_ir_op *op = &p->ir->ops[k];

            if (p->chosen[k] && (op->kind == MDL_OP_BINARY || op->kind == MDL_OP_AVG_POOL) &&
                !gives_integers(p, op)) {
                p->chosen[k] = false;
                again = true;
            }
        }
    } while (again);
}

static void read_again(struct plan *p, struct mdl_ir_op *op)
{
    if (op->kind < (int)MDL_OP_COUNT && mdl_quant_is_product(p->ir, op)) {
        struct mdl_qsides s = sides_of(p, op);

        if (s.x || s.y) {
            mdl_quant_rescale(p->ir, op, &s);
        }
    }
    for (size_t at = 0, *v; (v = mdl_ir_input(op, &at));) {
        *v = *v < p->values && p->integer[*v] ? p->instead[*v] : *v;
    }
    mdl_ir_op_add(p->ir, op);
}

static void plan_init(struct plan *p)
{
    struct mdl_ir *ir = p->ir;

    p->values = ir->value_count;
    p->same = mdl_ir_alloc(ir, p->values, sizeof(*p->same));
    p->instead = mdl_ir_alloc(ir, p->values, sizeof(*p->instead));
    p->range = mdl_ir_alloc(ir, p->values, sizeof(*p->range));
    p->integer = mdl_ir_alloc(ir, p->values, sizeof(*p->integer));
    p->chosen = mdl_ir_alloc(ir, ir->op_count, sizeof(*p->chosen));
    p->wanted = mdl_ir_alloc(ir, p->values, sizeof(*p->wanted));
    p->factor = mdl_ir_alloc(ir, p->values, sizeof(*p->factor));
    for (size_t i = 0; i < p->values; i++) {
        p->same[i] = p->instead[i] = i;
    }
    join_moves(p);
    fill_ranges(p);
    for (size_t k = 0; k < ir->op_count; k++) {
        p->chosen[k] = !ir->ops[k].dead && is_chosen(p, &ir->ops[k]);
    }
    leave_rounding_alone(p);
    mdl_quant_equalise(ir, p->chosen, p->factor);
    fill_ranges(p);
}

void mdl_quant_plan(struct mdl_ir *ir)
{
    struct plan p = {.ir = ir, .c = ir->options->calibration};
    const struct mdl_ir_op *ops;
    size_t count;

    if (!p.c) {
        return;
    }
    mdl_ir_drop_dead(ir);
    plan_init(&p);
    ops = mdl_ir_take_ops(ir, &count);
    for (size_t k = 0; k < count; k++) {
        struct mdl_ir_op op = ops[k];

        if (op.dead) {
            continue;
        }
        if (p.chosen[k]) {
            quantise_op(&p, &op);
        } else {
            read_again(&p, &op);
        }
    }
    mdl_quant_sink(ir);
}
