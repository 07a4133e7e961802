/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over the ops, in order: each op is merged into the op that makes its input, if possible.
 * The merged op keeps its place and writes the output of the removed op. */
#include <math.h>

#include "model/compile/passes.h"

/* The dim along which scale and shift of @op lie. */
static size_t channel_axis(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    return op->kind == MDL_OP_MATMUL ? ir->values[op->op.out[0]].rank - 1 : 1;
}

/* Return: a constant that varies at most along dim @axis of @y. */
static const struct mdl_ir_value *per_channel(struct mdl_ir *ir, size_t v,
                                              const struct mdl_ir_value *y, size_t axis)
{
    const struct mdl_ir_value *c = &ir->values[mdl_match_unspread(ir, v)];

    if (!c->data || c->dtype != MDL_F32 || c->rank > y->rank) {
        return NULL;
    }
    for (size_t i = 0; i < c->rank; i++) {
        size_t at = y->rank - c->rank + i;

        if (c->dim[i] != 1 && (at != axis || c->dim[i] != y->dim[axis])) {
            return NULL;
        }
    }
    return c;
}

/* y = x * scale + shift of one op; the constants vary along one dim. */
struct affine {
    size_t x; /* the value that is not constant */
    const struct mdl_ir_value *c;
    enum { AFFINE_BN, AFFINE_ADD, AFFINE_SUB, AFFINE_FROM, AFFINE_MUL, AFFINE_DIV } what;
};

static bool read_affine(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t axis,
                        struct affine *ret)
{
    const struct mdl_ir_value *y = &ir->values[op->op.out[0]];

    if (op->op.act != MDL_ACT_NONE || y->dtype != MDL_F32 || axis >= y->rank) {
        return false;
    }
    if (op->kind == MDL_OP_AFFINE) {
        *ret = (struct affine){.x = op->op.in[0], .what = AFFINE_BN};
        return axis == 1;
    }
    if (op->kind != MDL_OP_BINARY) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        ret->c = per_channel(ir, op->op.in[i], y, axis);
        ret->x = op->op.in[1 - i];
        if (!ret->c || ir->values[ret->x].data) {
            continue;
        }
        switch (op->op.attr.binary) {
        case MDL_BIN_ADD:
            ret->what = AFFINE_ADD;
            return true;
        case MDL_BIN_SUB:
            ret->what = i == 1 ? AFFINE_SUB : AFFINE_FROM;
            return true;
        case MDL_BIN_MUL:
            ret->what = AFFINE_MUL;
            return true;
        case MDL_BIN_DIV:
            ret->what = AFFINE_DIV;
            return i == 1;
        default:
            return false;
        }
    }
    return false;
}

/* scale' and shift' of one channel */
static void step_affine(const struct affine *a, const struct mdl_ir_op *op, size_t channel,
                        double *scale, double *shift)
{
    double c = a->c ? mdl_const_channel(a->c, channel) : 0;

    switch (a->what) {
    case AFFINE_BN:
        *scale *= (double)op->op.scale[channel];
        *shift = *shift * (double)op->op.scale[channel] + (double)op->op.shift[channel];
        break;
    case AFFINE_ADD:
        *shift += c;
        break;
    case AFFINE_SUB:
        *shift -= c;
        break;
    case AFFINE_FROM:
        *scale = -*scale;
        *shift = c - *shift;
        break;
    case AFFINE_MUL:
        *scale *= c;
        *shift *= c;
        break;
    case AFFINE_DIV:
        *scale /= c;
        *shift /= c;
        break;
    }
}

/* Weights times a larger or smaller scale would be infinite or 0. */
#define SCALE_MOST 1e18

static bool is_applicable(double scale, double shift)
{
    return isfinite(shift) && fabs(scale) <= SCALE_MOST &&
           (scale == 0 || fabs(scale) >= 1 / SCALE_MOST);
}

/* Applies @a after @into's scale and shift. Return: false: it stays apart. */
static bool apply_affine(struct mdl_ir *ir, struct mdl_ir_op *into, const struct affine *a,
                         const struct mdl_ir_op *op, size_t channels)
{
    float *scale = mdl_ir_alloc(ir, channels, sizeof(*scale));
    float *shift = mdl_ir_alloc(ir, channels, sizeof(*shift));
    bool scaled = into->kind == MDL_OP_AFFINE;

    for (size_t i = 0; i < channels; i++) {
        double s = into->op.scale ? (double)into->op.scale[i] : 1;
        double t = into->op.shift ? (double)into->op.shift[i] : 0;

        step_affine(a, op, i, &s, &t);
        scale[i] = (float)s;
        shift[i] = (float)t;
        if (!is_applicable((double)scale[i], (double)shift[i])) {
            return false;
        }
        scaled |= scale[i] != 1;
    }
    into->op.scale = scaled ? scale : NULL;
    into->op.shift = shift;
    into->op.channels = channels;
    return true;
}

/* A lone per-channel product or sum becomes an affine op, so that the next one can join it. */
static void make_affine(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    const struct mdl_ir_value *y = &ir->values[op->op.out[0]];
    struct mdl_ir_op fresh = mdl_ir_op_make(ir, MDL_OP_AFFINE);
    struct affine a;

    if (y->rank < 2 || y->rank > 5 || !read_affine(ir, op, 1, &a) ||
        !mdl_ir_same_dims(&ir->values[a.x], y) ||
        (mdl_ir_writer(ir, a.x) && mdl_ir_writer(ir, a.x)->kind == MDL_IR_VIEW)) {
        return;
    }
    fresh.op.name = op->op.name;
    fresh.op.in[0] = a.x;
    fresh.op.out[0] = op->op.out[0];
    if (apply_affine(ir, &fresh, &a, op, y->dim[1])) {
        *op = fresh;
    }
}

static void fuse_affine(struct mdl_ir *ir, size_t k)
{
    struct mdl_ir_op *op = &ir->ops[k], *into = NULL;
    struct affine a = {0};
    size_t axis;

    for (size_t i = 0; i < 2 && !into; i++) {
        struct mdl_ir_op *p = mdl_ir_writer(ir, op->op.in[i]);

        if (p && p->op.act == MDL_ACT_NONE && p->op.residual == MDL_RESIDUAL_NONE &&
            mdl_match_private(ir, op->op.in[i]) &&
            (mdl_match_const_weights(ir, p) || p->kind == MDL_OP_AFFINE ||
             p->kind == MDL_OP_BINARY)) {
            into = p;
        }
    }
    if (!into || !read_affine(ir, op, channel_axis(ir, into), &a) ||
        mdl_ir_writer(ir, a.x) != into ||
        !mdl_ir_same_dims(&ir->values[a.x], &ir->values[op->op.out[0]])) {
        return;
    }
    if (into->kind == MDL_OP_BINARY) {
        make_affine(ir, into);
    }
    axis = channel_axis(ir, into);
    if (into->kind != MDL_OP_BINARY &&
        apply_affine(ir, into, &a, op, ir->values[op->op.out[0]].dim[axis])) {
        mdl_ir_absorb(ir, into, k);
    }
}

static void fuse_activation(struct mdl_ir *ir, size_t k)
{
    const struct mdl_ir_op *op = &ir->ops[k];
    struct mdl_ir_op *into = mdl_ir_writer(ir, op->op.in[0]);

    if (!into || !mdl_match_private(ir, op->op.in[0]) || op->op.act >= MDL_ACT_SELU ||
        ir->values[op->op.in[0]].dtype != MDL_F32 || into->op.act != MDL_ACT_NONE ||
        into->op.residual == MDL_RESIDUAL_AFTER_ACT) {
        return;
    }
    switch (into->kind) {
    case MDL_OP_CONV:
    case MDL_OP_CONV_TRANSPOSE:
    case MDL_OP_GEMM:
    case MDL_OP_MATMUL:
    case MDL_OP_AFFINE:
    case MDL_OP_BINARY:
    case MDL_OP_NORM:
        into->op.act = op->op.act;
        into->op.act_a = op->op.act_a;
        into->op.act_b = op->op.act_b;
        mdl_ir_absorb(ir, into, k);
        break;
    default:
        break;
    }
}

/* Return: whether the op that makes @v can add @other to its result. */
static bool takes_residual(struct mdl_ir *ir, size_t v, size_t other)
{
    const struct mdl_ir_op *p = mdl_ir_writer(ir, v), *o = mdl_ir_writer(ir, other);

    return p && (p->kind == MDL_OP_CONV || p->kind == MDL_OP_GEMM) &&
           p->op.residual == MDL_RESIDUAL_NONE && mdl_match_private(ir, v) && v != other &&
           !ir->values[other].data &&
           !(o && o->kind == MDL_IR_VIEW && o->view.kind == MDL_VIEW_EXPAND);
}

static void fuse_residual(struct mdl_ir *ir, size_t k)
{
    struct mdl_ir_op *op = &ir->ops[k], *into;
    size_t a = op->op.in[0], b = op->op.in[1], v = MDL_NONE, other = MDL_NONE;

    if (op->op.attr.binary != MDL_BIN_ADD || op->op.act != MDL_ACT_NONE ||
        ir->values[op->op.out[0]].dtype != MDL_F32) {
        return;
    }
    if (takes_residual(ir, a, b)) {
        v = a;
        other = b;
    }
    /* the later one, so that the other value exists when it runs */
    if (takes_residual(ir, b, a) && (v == MDL_NONE || ir->values[b].op > ir->values[a].op)) {
        v = b;
        other = a;
    }
    if (v == MDL_NONE) {
        return;
    }
    into = mdl_ir_writer(ir, v);
    into->op.residual =
        into->op.act == MDL_ACT_NONE ? MDL_RESIDUAL_BEFORE_ACT : MDL_RESIDUAL_AFTER_ACT;
    into->op.residual_in = other;
    if (ir->values[other].op != MDL_NONE && ir->values[other].op > ir->values[v].op) {
        /* the other is computed later: run in the place of the sum */
        size_t out = op->op.out[0];

        *op = *into;
        op->op.out[0] = out;
        into->dead = true;
    } else {
        mdl_ir_absorb(ir, into, k);
    }
}

/* Moves zeros around an image into the convolution's padding. */
static void fuse_pad(struct mdl_ir *ir, size_t k)
{
    struct mdl_window *w = &ir->ops[k].op.attr.conv.window;
    struct mdl_ir_op *pad = mdl_ir_writer(ir, ir->ops[k].op.in[0]);

    if (!pad || pad->kind != MDL_OP_PAD || !mdl_match_private(ir, ir->ops[k].op.in[0]) ||
        pad->op.attr.pad.mode != MDL_PAD_CONSTANT || pad->op.attr.pad.value != 0) {
        return;
    }
    for (size_t i = 0; i < MDL_RANK_MAX; i++) {
        ptrdiff_t begin = pad->op.attr.pad.begin[i], end = pad->op.attr.pad.end[i];

        if (begin < 0 || end < 0 || (i < 2 && (begin || end))) {
            return;
        }
    }
    for (size_t i = 0; i < w->rank; i++) {
        w->pad_begin[i] += (size_t)pad->op.attr.pad.begin[i + 2];
        w->pad_end[i] += (size_t)pad->op.attr.pad.end[i + 2];
    }
    ir->ops[k].op.in[0] = pad->op.in[0];
    pad->dead = true;
}

/* Merges the factor of a product into its scale, like a batch norm. */
static void fold_alpha(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    size_t n = ir->values[op->op.out[0]].dim[1];
    float *scale;

    if (op->op.attr.gemm.alpha == 1 || !mdl_ir_is_const(ir, op->op.in[1]) ||
        op->op.in[2] != MDL_NONE || op->op.scale) {
        return;
    }
    scale = mdl_ir_alloc(ir, n, sizeof(*scale));
    for (size_t i = 0; i < n; i++) {
        scale[i] = op->op.attr.gemm.alpha;
    }
    op->op.attr.gemm.alpha = 1;
    op->op.scale = scale;
    op->op.channels = n;
}

/* Norms and attention as exporters wrote them before ONNX had operators for them. What replaces a
 * block may need views that did not exist, so all ops are written anew, in order: what an op reads
 * has been written before it. */

/* Return: whether a block has such an op. */
static bool is_of_block(const struct mdl_ir_op *op)
{
    return op->kind == MDL_OP_SOFTMAX || op->kind == MDL_OP_NORM || op->kind == MDL_OP_REDUCE ||
           op->kind == MDL_OP_GEMM;
}

static void fuse_blocks(struct mdl_ir *ir)
{
    struct mdl_ir_op *ops;
    size_t count;
    bool any = false;

    for (size_t k = 0; k < ir->op_count; k++) {
        any |= !ir->ops[k].dead && is_of_block(&ir->ops[k]);
    }
    if (!any) {
        return;
    }
    ops = mdl_ir_take_ops(ir, &count);
    for (size_t k = 0; k < count; k++) {
        ir->node_name = ops[k].op.name;
        if (!ops[k].dead && !mdl_fuse_norm(ir, &ops[k]) && !mdl_fuse_attention(ir, &ops[k]) &&
            !mdl_fuse_rows(ir, &ops[k])) {
            mdl_ir_op_add(ir, &ops[k]);
        }
    }
    mdl_ir_drop_dead(ir);
}

void mdl_fuse(struct mdl_ir *ir)
{
    mdl_ir_count_uses(ir);
    mdl_fuse_patterns(ir);
    mdl_ir_count_uses(ir);
    fuse_blocks(ir);
    mdl_ir_count_uses(ir);
    for (size_t k = 0; k < ir->op_count; k++) {
        struct mdl_ir_op *op = &ir->ops[k];

        if (op->dead) {
            continue;
        }
        if (op->kind == MDL_OP_CONV) {
            fuse_pad(ir, k);
        } else if (op->kind == MDL_OP_GEMM) {
            fold_alpha(ir, op);
        } else if (op->kind == MDL_OP_AFFINE || op->kind == MDL_OP_BINARY) {
            fuse_affine(ir, k);
            if (!op->dead && op->kind == MDL_OP_BINARY) {
                mdl_fuse_branches(ir, k);
            }
            if (!op->dead && op->kind == MDL_OP_BINARY) {
                fuse_residual(ir, k);
            }
        } else if (op->kind == MDL_OP_UNARY) {
            fuse_activation(ir, k);
        }
    }
}
