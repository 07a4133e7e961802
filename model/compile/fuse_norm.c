/* SPDX-License-Identifier: Apache-2.0 */
/* Norms as exporters write them: a layer norm as means, differences and a quotient, then scale and
 * shift; a group norm as an instance norm between two reshapes. */
#include "model/compile/passes.h"
#include "model/ir/build.h"

static bool finish(struct mdl_ir *ir, struct mdl_ir_op *norm, size_t y)
{
    norm->op.out[0] = y;
    mdl_ir_op_add(ir, norm);
    return true;
}

/* ---- (x - mean) / sqrt(var + epsilon) ---- */

/* Return: whether @v is mean(t^2) over some dims: *ret_t and *ret_op, the mean. */
static bool mean_square(struct mdl_ir *ir, size_t v, size_t *ret_t, const struct mdl_ir_op **ret_op)
{
    const struct mdl_ir_op *mean = mdl_match_producer(ir, v, MDL_OP_REDUCE), *square;
    double exponent;

    if (!mean || mean->op.attr.reduce.which != MDL_RED_MEAN) {
        return false;
    }
    *ret_op = mean;
    square = mdl_match_producer(ir, mean->op.in[0], MDL_OP_BINARY);
    if (!square) {
        return false;
    }
    *ret_t = square->op.in[0];
    return (square->op.attr.binary == MDL_BIN_POW &&
            mdl_match_number(ir, square->op.in[1], &exponent) && exponent == 2) ||
           (square->op.attr.binary == MDL_BIN_MUL && square->op.in[1] == *ret_t);
}

/* Return: whether @v is sqrt(mean(t^2) + epsilon), perhaps broadcast */
static bool deviation(struct mdl_ir *ir, size_t v, size_t *ret_t, const struct mdl_ir_op **ret_op,
                      float *ret_epsilon)
{
    const struct mdl_ir_op *root = mdl_match_unary(ir, mdl_match_unspread(ir, v), MDL_ACT_SQRT);
    const struct mdl_ir_op *sum = root ? mdl_match_binary(ir, root->op.in[0], MDL_BIN_ADD) : NULL;
    double epsilon;

    for (size_t i = 0; sum && i < 2; i++) {
        if (mdl_match_number(ir, sum->op.in[i], &epsilon) &&
            mean_square(ir, sum->op.in[1 - i], ret_t, ret_op)) {
            *ret_epsilon = (float)epsilon;
            return epsilon >= 0;
        }
    }
    return false;
}

/* Return: whether @v is 1 / sqrt(mean(t^2) + epsilon) */
static bool inverse_deviation(struct mdl_ir *ir, size_t v, size_t *ret_t,
                              const struct mdl_ir_op **ret_op, float *ret_epsilon)
{
    const struct mdl_ir_op *op;

    v = mdl_match_unspread(ir, v);
    op = mdl_match_unary(ir, v, MDL_ACT_RECIPROCAL);
    if (op) {
        return deviation(ir, op->op.in[0], ret_t, ret_op, ret_epsilon);
    }
    op = mdl_match_binary(ir, v, MDL_BIN_DIV);
    return op && mdl_match_is(ir, op->op.in[0], 1) &&
           deviation(ir, op->op.in[1], ret_t, ret_op, ret_epsilon);
}

/* Return: whether @v is x - mean(x) over the dims of @like. */
static bool centred(struct mdl_ir *ir, size_t v, const struct mdl_ir_op *like, size_t *ret_x)
{
    const struct mdl_ir_op *sub = mdl_match_binary(ir, v, MDL_BIN_SUB), *mean;

    if (!sub) {
        return false;
    }
    mean = mdl_match_producer(ir, mdl_match_unspread(ir, sub->op.in[1]), MDL_OP_REDUCE);
    if (!mean || mean->op.attr.reduce.which != MDL_RED_MEAN || mean->op.in[0] != sub->op.in[0]) {
        return false;
    }
    *ret_x = sub->op.in[0];
    return memcmp(mean->op.attr.reduce.axes, like->op.attr.reduce.axes,
                  sizeof(like->op.attr.reduce.axes)) == 0;
}

static bool fuse_quotient(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    struct mdl_ir_op norm = mdl_ir_op_make(ir, MDL_OP_NORM);
    const struct mdl_ir_op *mean = NULL;
    size_t t = MDL_NONE, v = MDL_NONE, x, again;
    float epsilon = 0;

    if (op->op.attr.binary == MDL_BIN_DIV && deviation(ir, op->op.in[1], &t, &mean, &epsilon)) {
        v = op->op.in[0];
    }
    for (size_t i = 0; op->op.attr.binary == MDL_BIN_MUL && v == MDL_NONE && i < 2; i++) {
        if (inverse_deviation(ir, op->op.in[i], &t, &mean, &epsilon)) {
            v = op->op.in[1 - i];
        }
    }
    if (v == MDL_NONE || !mdl_ir_same_dims(&ir->values[v], &ir->values[op->op.out[0]])) {
        return false;
    }
    if (centred(ir, v, mean, &x)) { /* some exporters write the difference twice */
        if (t != v && (!centred(ir, t, mean, &again) || again != x)) {
            return false;
        }
    } else if (t == v) {
        x = v;
        norm.op.attr.norm.rms = true;
    } else {
        return false;
    }
    memcpy(norm.op.attr.norm.axes, mean->op.attr.reduce.axes, sizeof(norm.op.attr.norm.axes));
    norm.op.attr.norm.epsilon = epsilon;
    norm.op.in[0] = x;
    return finish(ir, &norm, op->op.out[0]);
}

/* ---- scale and shift after a norm ---- */

/* The norm that writes @v, perhaps before a reshape: *ret_view. NULL: none that nothing else
 * reads. */
static struct mdl_ir_op *norm_before(struct mdl_ir *ir, size_t v, const struct mdl_ir_op **ret_view)
{
    const struct mdl_ir_op *view = mdl_match_view(ir, v, MDL_VIEW_RESHAPE);

    *ret_view = view;
    if (!mdl_match_private(ir, v) || (view && !mdl_match_private(ir, view->op.in[0]))) {
        return NULL;
    }
    return mdl_match_producer(ir, view ? view->op.in[0] : v, MDL_OP_NORM);
}

/* Reshapes operand @c, of y's rank after broadcasting, like y was reshaped to @x: y's dim 1 became
 * two of x's. Return: false if that is not so, or c is no constant per channel. */
static bool split_channels(struct mdl_ir *ir, size_t c, size_t y, size_t x, size_t *ret)
{
    const struct mdl_ir_value v = ir->values[c], from = ir->values[y], to = ir->values[x];
    size_t dim[MDL_RANK_MAX], missing = from.rank - v.rank;

    if (!v.data || to.rank != from.rank + 1 || to.dim[0] != from.dim[0] ||
        to.dim[1] * to.dim[2] != from.dim[1]) {
        return false;
    }
    for (size_t i = 2; i < from.rank; i++) {
        if (to.dim[i + 1] != from.dim[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < v.rank; i++) {
        if (v.dim[i] != 1 && (i + missing != 1 || v.dim[i] != from.dim[1])) {
            return false;
        }
    }
    for (size_t i = 0; i < to.rank; i++) {
        dim[i] = 1;
    }
    if (mdl_ir_elements(&v) != 1) {
        dim[1] = to.dim[1];
        dim[2] = to.dim[2];
    }
    c = mdl_ir_reshape(ir, c, to.rank, dim);
    *ret = mdl_ir_repeat(ir, c, to.rank, to.dim);
    return true;
}

/* A product with, or a sum of, a norm and an operand that varies as scale and bias do. */
static bool fuse_operand(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    bool scale = op->op.attr.binary == MDL_BIN_MUL;

    for (size_t i = 0; i < 2; i++) {
        size_t v = op->op.in[i], c = op->op.in[1 - i], y = op->op.out[0];
        const struct mdl_ir_op *view;
        const struct mdl_ir_op *before = norm_before(ir, v, &view);
        struct mdl_ir_op norm, reshape;

        if (!before || before->op.in[2] != MDL_NONE || (scale && before->op.in[1] != MDL_NONE) ||
            (!scale && before->op.in[1] == MDL_NONE) ||
            !mdl_ir_same_dims(&ir->values[v], &ir->values[y])) {
            continue;
        }
        norm = *before;
        if (view) {
            reshape = *view;
            if (!split_channels(ir, mdl_match_unspread(ir, c), y, norm.op.in[0], &c)) {
                continue;
            }
        } else if (!mdl_ir_is_const(ir, mdl_match_unspread(ir, c))) {
            continue; /* a gate or a residual that happens to have the shape */
        }
        norm.op.in[scale ? 1 : 2] = c;
        if (view) {
            const struct mdl_ir_value x = ir->values[norm.op.in[0]];

            reshape.op.in[0] = mdl_ir_value_new(ir, x.dtype, x.rank, x.dim);
            finish(ir, &norm, reshape.op.in[0]);
            norm = reshape;
        }
        return finish(ir, &norm, y);
    }
    return false;
}

/* ---- torch's group norm: [N, C, ...] as [N, G, rest], an instance norm, and back ---- */

static bool changes_nothing(struct mdl_ir *ir, const struct mdl_ir_op *norm)
{
    for (size_t i = 1; i < 3; i++) {
        const struct mdl_ir_value *v =
            norm->op.in[i] == MDL_NONE ? NULL : &ir->values[mdl_match_unspread(ir, norm->op.in[i])];

        for (size_t k = 0; v && k < mdl_ir_elements(v); k++) {
            if (!v->data || mdl_const_real(v, k) != (i == 1 ? 1 : 0)) {
                return false;
            }
        }
    }
    return true;
}

static bool fuse_group(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    const struct mdl_ir_op *norm = mdl_match_producer(ir, op->op.in[0], MDL_OP_NORM);
    const struct mdl_ir_op *before =
        norm ? mdl_match_view(ir, norm->op.in[0], MDL_VIEW_RESHAPE) : NULL;
    struct mdl_ir_op fresh = mdl_ir_op_make(ir, MDL_OP_NORM), back = *op;
    struct mdl_ir_value x, flat;
    size_t dim[MDL_RANK_MAX];

    if (!before || !mdl_match_private(ir, op->op.in[0])) {
        return false;
    }
    x = ir->values[before->op.in[0]];
    flat = ir->values[norm->op.in[0]];
    if (x.rank < 3 || x.rank >= MDL_RANK_MAX || flat.rank < 3 || x.dim[0] != flat.dim[0] ||
        flat.dim[1] == 0 || x.dim[1] % flat.dim[1] != 0 || norm->op.attr.norm.axes[0] ||
        norm->op.attr.norm.axes[1] || !mdl_ir_same_dims(&x, &ir->values[op->op.out[0]]) ||
        !changes_nothing(ir, norm)) {
        return false;
    }
    for (size_t i = 2; i < flat.rank; i++) {
        if (!norm->op.attr.norm.axes[i]) {
            return false;
        }
    }
    fresh.op.attr.norm = norm->op.attr.norm;
    dim[0] = x.dim[0];
    dim[1] = flat.dim[1];
    dim[2] = x.dim[1] / flat.dim[1];
    fresh.op.attr.norm.axes[2] = true;
    for (size_t i = 2; i < x.rank; i++) {
        dim[i + 1] = x.dim[i];
        fresh.op.attr.norm.axes[i + 1] = true;
    }
    fresh.op.in[0] = mdl_ir_reshape(ir, before->op.in[0], x.rank + 1, dim);
    back.op.in[0] = mdl_ir_value_new(ir, x.dtype, x.rank + 1, dim);
    finish(ir, &fresh, back.op.in[0]);
    return finish(ir, &back, op->op.out[0]);
}

bool mdl_fuse_norm(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    enum mdl_binary which = op->op.attr.binary;

    if (op->kind == MDL_IR_VIEW) {
        return op->view.kind == MDL_VIEW_RESHAPE && fuse_group(ir, op);
    }
    if (op->kind != MDL_OP_BINARY || op->op.act != MDL_ACT_NONE || op->op.quant ||
        ir->values[op->op.out[0]].dtype != MDL_F32) {
        return false;
    }
    return ((which == MDL_BIN_DIV || which == MDL_BIN_MUL) && fuse_quotient(ir, op)) ||
           ((which == MDL_BIN_ADD || which == MDL_BIN_MUL) && fuse_operand(ir, op));
}
