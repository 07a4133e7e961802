/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as exporters write it: softmax(scale q k' + masks) v, with reshapes of the dims before
 * the last two in between, and the scale before or after the product. */
#include <math.h>

#include "model/compile/passes.h"
#include "model/ir/build.h"

#define MASKS_MAX 4u
#define STEPS_MAX 12u

struct found {
    size_t q, keys, v; /* keys: [..., D, N], as the product has them */
    double scale;
    size_t masks, mask[MASKS_MAX]; /* not broadcast yet ... */
    size_t shape[MASKS_MAX];       /* ... each a value of the shape that it broadcasts to */
    size_t widest;                 /* the value with the most dims among the scores */
};

/* A product of two matrices per batch, without anything fused into it. */
static struct mdl_ir_op *product(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_op *op = mdl_match_producer(ir, v, MDL_OP_MATMUL);

    return op && !op->op.quant && !op->op.scale && !op->op.shift && op->op.in[2] == MDL_NONE &&
                   ir->values[op->op.in[0]].dtype == MDL_F32 &&
                   ir->values[op->op.in[1]].rank == ir->values[op->op.in[0]].rank
               ? op
               : NULL;
}

/* Return: whether @op only swaps the last two dims. */
static bool swaps_last(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t rank = ir->values[op->op.out[0]].rank;

    for (size_t i = 0; i < rank; i++) {
        size_t want = i + 2 < rank ? i : i + 2 == rank ? rank - 1 : rank - 2;

        if (op->view.perm[i] != want) {
            return false;
        }
    }
    return rank >= 2;
}

static size_t swap_last(struct mdl_ir *ir, size_t v)
{
    size_t perm[MDL_RANK_MAX], rank = ir->values[v].rank;
    const struct mdl_ir_op *view = mdl_match_view(ir, v, MDL_VIEW_PERMUTE);

    if (view && swaps_last(ir, view)) {
        return view->op.in[0];
    }
    for (size_t i = 0; i < rank; i++) {
        perm[i] = i;
    }
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return mdl_ir_permute(ir, v, perm);
}

/* Takes a factor that nothing else needs from @v. */
static size_t take_scale(struct mdl_ir *ir, size_t v, double *scale)
{
    struct mdl_match_product p;

    if (!mdl_match_private(ir, v) || !mdl_match_product(ir, v, &p) || p.count != 1) {
        return v;
    }
    *scale *= p.factor;
    return p.value[0];
}

/* Return: whether two values have the same last two dims and as many elements. */
static bool same_scores(const struct mdl_ir *ir, size_t a, size_t b)
{
    const struct mdl_ir_value *x = &ir->values[a], *y = &ir->values[b];

    return x->rank >= 2 && y->rank >= 2 && x->dim[x->rank - 1] == y->dim[y->rank - 1] &&
           x->dim[x->rank - 2] == y->dim[y->rank - 2] && mdl_ir_elements(x) == mdl_ir_elements(y);
}

/* Return: whether @v is a product of queries and keys, or comes from one. */
static bool from_product(struct mdl_ir *ir, size_t v, size_t depth)
{
    const struct mdl_ir_op *op;

    if (product(ir, v)) {
        return true;
    }
    op = mdl_match_view(ir, v, MDL_VIEW_RESHAPE);
    op = op ? op : mdl_match_producer(ir, v, MDL_OP_BINARY);
    for (size_t i = 0; op && depth > 0 && i < 2; i++) {
        if (op->op.in[i] != MDL_NONE && from_product(ir, op->op.in[i], depth - 1)) {
            return true;
        }
    }
    return false;
}

#define LOOKS 5u

/* One step from the softmax up to the product: a mask, a number, a reshape. Return: the value
 * before it; MDL_NONE: none of these. */
static size_t step_up(struct mdl_ir *ir, size_t v, struct found *f)
{
    const struct mdl_ir_op *op = mdl_match_view(ir, v, MDL_VIEW_RESHAPE);
    double c;

    if (op) {
        return same_scores(ir, op->op.in[0], v) ? op->op.in[0] : MDL_NONE;
    }
    op = mdl_match_producer(ir, v, MDL_OP_BINARY);
    for (size_t i = 0; op && i < 2; i++) {
        size_t other = op->op.in[1 - i], from = op->op.in[i];
        enum mdl_binary which = op->op.attr.binary;

        if (!mdl_ir_same_dims(&ir->values[from], &ir->values[v])) {
            continue;
        }
        if (mdl_match_number(ir, other, &c) &&
            (which == MDL_BIN_MUL || (which == MDL_BIN_DIV && i == 0 && c != 0))) {
            f->scale = which == MDL_BIN_MUL ? f->scale * c : f->scale / c;
            return from;
        }
        /* what comes after the mask would scale it, too */
        if (which == MDL_BIN_ADD && f->scale == 1 && f->masks < MASKS_MAX &&
            from_product(ir, from, LOOKS)) {
            f->mask[f->masks] = mdl_match_unspread(ir, other);
            f->shape[f->masks++] = v;
            return from;
        }
    }
    return MDL_NONE;
}

/* From the weights @p, the softmax, up to the product of queries and keys. */
static bool find_scores(struct mdl_ir *ir, size_t p, struct found *f)
{
    const struct mdl_ir_op *softmax, *scores = NULL;
    size_t v = p;

    f->widest = p;
    while (mdl_match_private(ir, v) && mdl_match_view(ir, v, MDL_VIEW_RESHAPE) &&
           same_scores(ir, mdl_match_view(ir, v, MDL_VIEW_RESHAPE)->op.in[0], v)) {
        v = mdl_match_view(ir, v, MDL_VIEW_RESHAPE)->op.in[0];
    }
    softmax = mdl_match_producer(ir, v, MDL_OP_SOFTMAX);
    if (!softmax || !mdl_match_private(ir, v) || softmax->op.attr.softmax.log ||
        softmax->op.attr.softmax.axis + 1 != ir->values[v].rank || ir->values[v].rank < 2) {
        return false;
    }
    for (size_t i = 0; i < STEPS_MAX && v != MDL_NONE; i++) {
        v = i == 0 ? softmax->op.in[0] : step_up(ir, v, f);
        if (v == MDL_NONE || !mdl_match_private(ir, v)) {
            return false;
        }
        if (ir->values[v].rank > ir->values[f->widest].rank) {
            f->widest = v;
        }
        scores = product(ir, v);
        if (scores) {
            f->q = take_scale(ir, scores->op.in[0], &f->scale);
            f->keys = take_scale(ir, scores->op.in[1], &f->scale);
            return same_scores(ir, v, p);
        }
    }
    return false;
}

/* Reshapes the dims before the last two to those of @widest. */
static size_t widen(struct mdl_ir *ir, size_t v, size_t widest)
{
    const struct mdl_ir_value x = ir->values[v], w = ir->values[widest];
    size_t dim[MDL_RANK_MAX];

    for (size_t i = 0; i + 2 < w.rank; i++) {
        dim[i] = w.dim[i];
    }
    dim[w.rank - 2] = x.dim[x.rank - 2];
    dim[w.rank - 1] = x.dim[x.rank - 1];
    return mdl_ir_reshape(ir, v, w.rank, dim);
}

/* The mask @i in the rank of @widest, or MDL_NONE if its dims do not allow that: the dims of its
 * scores must be those of the widest but for the first, which was split, or has ones before it. */
static size_t widen_mask(struct mdl_ir *ir, const struct found *f, size_t i)
{
    const struct mdl_ir_value m = ir->values[f->mask[i]], s = ir->values[f->shape[i]];
    const struct mdl_ir_value w = ir->values[f->widest];
    size_t dim[MDL_RANK_MAX], more = w.rank - s.rank, missing = s.rank - m.rank;
    bool first, fits = s.rank >= 2 && m.rank <= s.rank;

    for (size_t d = 1; fits && d < s.rank; d++) {
        fits = s.dim[d] == w.dim[d + more];
    }
    if (!fits) {
        return MDL_NONE;
    }
    first = missing == 0 && m.dim[0] != 1; /* it has all of the first dim */
    for (size_t d = 0; d < w.rank; d++) {
        bool lead = d <= more && s.rank >= 3;

        dim[d] = lead ? (first ? w.dim[d] : 1) : d < more + missing ? 1 : m.dim[d - more - missing];
    }
    return mdl_ir_reshape(ir, f->mask[i], w.rank, dim);
}

/* The sum of all masks, broadcast to the scores; MDL_NONE if there is none. Return: false if they
 * do not fit. */
static bool join_masks(struct mdl_ir *ir, const struct found *f, size_t *ret)
{
    struct mdl_ir_value w = ir->values[f->widest];
    size_t sum = MDL_NONE;

    for (size_t i = 0; i < f->masks; i++) {
        size_t m = widen_mask(ir, f, i);

        if (m == MDL_NONE) {
            return false;
        }
        sum = sum == MDL_NONE ? m : mdl_ir_binary(ir, MDL_BIN_ADD, sum, m);
    }
    *ret = sum == MDL_NONE ? sum : mdl_ir_repeat(ir, sum, w.rank, w.dim);
    return true;
}

/* Makes the attention of all operands in the rank of the widest scores. */
static size_t attend(struct mdl_ir *ir, const struct found *f, size_t mask)
{
    struct mdl_ir_op a = mdl_ir_op_make(ir, MDL_OP_ATTENTION);
    struct mdl_ir_value w = ir->values[f->widest];
    size_t k = swap_last(ir, f->keys), last = w.rank - 1;

    a.op.in[0] = widen(ir, f->q, f->widest);
    a.op.in[1] = widen(ir, k, f->widest);
    a.op.in[2] = widen(ir, f->v, f->widest);
    a.op.in[3] = mask;
    a.op.attr.attention.scale = (float)f->scale;
    a.op.macs = (double)mdl_ir_elements(&w);
    w.dim[last] = ir->values[a.op.in[2]].dim[last];
    a.op.macs *= (double)(ir->values[a.op.in[0]].dim[last] + w.dim[last]);
    return mdl_ir_emit(ir, &a, MDL_F32, w.rank, w.dim);
}

static void swap(size_t *a, size_t *b)
{
    size_t c = *a;

    *a = *b;
    *b = c;
}

/* @swapped: the model's product is v' p', so that both v and the result are transposed. Return:
 * false: the masks do not fit. */
static bool emit(struct mdl_ir *ir, struct found *f, const struct mdl_ir_op *op, bool swapped)
{
    struct mdl_ir_op view = mdl_ir_op_make(ir, MDL_IR_VIEW);
    struct mdl_ir_value y = ir->values[op->op.out[0]];
    size_t mask, last = y.rank - 1;

    if (!join_masks(ir, f, &mask)) {
        return false;
    }
    for (size_t i = 0; i < y.rank; i++) {
        view.view.perm[i] = i;
    }
    view.view.kind = MDL_VIEW_RESHAPE;
    if (swapped) {
        f->v = swap_last(ir, f->v);
        swap(&y.dim[last], &y.dim[last - 1]);
        swap(&view.view.perm[last], &view.view.perm[last - 1]);
        view.view.kind = MDL_VIEW_PERMUTE;
    }
    view.op.in[0] = mdl_ir_reshape(ir, attend(ir, f, mask), y.rank, y.dim);
    view.op.out[0] = op->op.out[0];
    mdl_ir_op_add(ir, &view);
    return true;
}

bool mdl_fuse_attention(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    struct found f = {.scale = 1};
    const struct mdl_ir_op *view;
    bool found = false, swapped = false;

    if (op->kind != MDL_OP_MATMUL || op->op.quant || op->op.scale || op->op.shift ||
        op->op.act != MDL_ACT_NONE || op->op.residual != MDL_RESIDUAL_NONE ||
        ir->values[op->op.in[0]].rank != ir->values[op->op.in[1]].rank ||
        mdl_ir_elements(&ir->values[op->op.out[0]]) == 0) {
        return false;
    }
    if (find_scores(ir, op->op.in[0], &f)) {
        found = true;
        f.v = op->op.in[1];
    } else { /* y' = v' p' */
        view = mdl_match_view(ir, op->op.in[1], MDL_VIEW_PERMUTE);
        f = (struct found){.scale = 1};
        if (view && swaps_last(ir, view) && mdl_match_private(ir, op->op.in[1]) &&
            find_scores(ir, view->op.in[0], &f)) {
            found = swapped = true;
            f.v = op->op.in[0];
        }
    }
    /* constant keys or values stay with the product that packs them */
    return found && !mdl_ir_is_const(ir, f.keys) && !mdl_ir_is_const(ir, f.v) &&
           isfinite(f.scale) && mdl_ir_elements(&ir->values[f.q]) != 0 && emit(ir, &f, op, swapped);
}
