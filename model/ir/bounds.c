/* SPDX-License-Identifier: Apache-2.0 */
/* The least and the most that computed lengths can be. */
#include "model/ir/build.h"
#include "model/ir/rows.h"

/* a shape has at most MDL_RANK_MAX elements; a list of a few lengths some more */
#define BOUNDED_ELEMENTS_MAX 64u

/* Return: whether the result grows with each input (BIN_SUB: with the first, and falls with the
 * second; BIN_MUL: unless one is negative). */
static bool grows(const struct mdl_ir_op *op)
{
    switch (op->kind) {
    case MDL_IR_VIEW:
    case MDL_IR_CONCAT:
    case MDL_OP_COPY:
        return true;
    case MDL_OP_BINARY:
        return op->op.attr.binary <= MDL_BIN_MUL || op->op.attr.binary == MDL_BIN_MAX ||
               op->op.attr.binary == MDL_BIN_MIN;
    case MDL_OP_REDUCE:
        return op->op.attr.reduce.which == MDL_RED_MAX || op->op.attr.reduce.which == MDL_RED_MIN ||
               op->op.attr.reduce.which == MDL_RED_SUM;
    default:
        return false;
    }
}

static bool is_known(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_value *x = &ir->values[v];

    return (x->dtype == MDL_I64 || x->dtype == MDL_I32) && (x->data || x->most != MDL_NONE);
}

/* Return: whether all inputs are known, and one is not constant. */
static bool all_known(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    bool computed = false;

    for (size_t at = 0, v; (v = mdl_ir_reads(op, &at)) != MDL_NONE;) {
        if (!is_known(ir, v)) {
            return false;
        }
        computed |= !ir->values[v].data;
    }
    return computed;
}

static size_t bound(const struct mdl_ir *ir, size_t v, bool most)
{
    return ir->values[v].data ? v : most ? ir->values[v].most : ir->values[v].least;
}

static bool is_negative(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_value *least = &ir->values[bound(ir, v, false)];

    for (size_t i = 0; i < mdl_ir_elements(least); i++) {
        if (mdl_const_int(least, i) < 0) {
            return true;
        }
    }
    return false;
}

/* The op on the bounds of its inputs, or MDL_NONE if it could not be folded. */
static size_t evaluate(struct mdl_ir *ir, const struct mdl_ir_op *of, bool most)
{
    struct mdl_ir_value y = ir->values[of->op.out[0]];
    struct mdl_ir_op op = *of;
    bool falls = op.kind == MDL_OP_BINARY && op.op.attr.binary == MDL_BIN_SUB;
    size_t value;

    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        if (op.op.in[i] != MDL_NONE) {
            op.op.in[i] = bound(ir, op.op.in[i], falls && i == 1 ? !most : most);
        }
    }
    op.concat_in = mdl_ir_alloc(ir, op.concat_count, sizeof(*op.concat_in));
    for (size_t i = 0; i < op.concat_count; i++) {
        op.concat_in[i] = bound(ir, of->concat_in[i], most);
    }
    value = mdl_ir_emit(ir, &op, y.dtype, y.rank, y.dim);
    return mdl_ir_is_const(ir, value) ? value : MDL_NONE;
}

void mdl_bounds_of(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t y = op->op.out[0], least, most;
    const struct mdl_ir_value *v = &ir->values[y];

    if (v->data || mdl_ir_elements(v) > BOUNDED_ELEMENTS_MAX || !grows(op) || !all_known(ir, op) ||
        (op->kind == MDL_OP_BINARY && op->op.attr.binary == MDL_BIN_MUL &&
         (is_negative(ir, op->op.in[0]) || is_negative(ir, op->op.in[1])))) {
        return;
    }
    least = evaluate(ir, op, false);
    most = evaluate(ir, op, true);
    if (least != MDL_NONE && most != MDL_NONE) {
        ir->values[y].least = least;
        ir->values[y].most = most;
    }
}

struct span {
    int64_t least, most;
};

/* What element @i of @v can be; one element stands for all. */
static struct span span_of(const struct mdl_ir *ir, size_t v, size_t i)
{
    i = mdl_ir_elements(&ir->values[v]) == 1 ? 0 : i;
    return (struct span){mdl_const_int(&ir->values[bound(ir, v, false)], i),
                         mdl_const_int(&ir->values[bound(ir, v, true)], i)};
}

/* Return: 0, 1, or -1: either is possible. */
static int compare(enum mdl_binary which, struct span a, struct span b)
{
    switch (which) {
    case MDL_BIN_EQUAL:
        return a.most < b.least || b.most < a.least     ? 0
               : a.least == a.most && b.least == b.most ? a.least == b.least
                                                        : -1;
    case MDL_BIN_LESS:
        return a.most < b.least ? 1 : a.least >= b.most ? 0 : -1;
    case MDL_BIN_GREATER:
        return compare(MDL_BIN_LESS, b, a);
    default:
        return -1;
    }
}

size_t mdl_bounds_decide(struct mdl_ir *ir, enum mdl_binary which, size_t a, size_t b)
{
    size_t na = mdl_ir_elements(&ir->values[a]), nb = mdl_ir_elements(&ir->values[b]);
    size_t n = na == 1 ? nb : na, rank, dim[MDL_RANK_MAX];
    unsigned char *data;

    if (!is_known(ir, a) || !is_known(ir, b) || ir->values[a].rows != MDL_NONE ||
        ir->values[b].rows != MDL_NONE || n == 0 || n > BOUNDED_ELEMENTS_MAX ||
        (na != 1 && nb != 1 && !mdl_ir_same_dims(&ir->values[a], &ir->values[b]))) {
        return MDL_NONE;
    }
    rank = mdl_ir_broadcast(ir, (size_t[]){a, b}, 2, dim);
    data = mdl_ir_fold_alloc(ir, n);
    for (size_t i = 0; i < n; i++) {
        int c = compare(which, span_of(ir, a, i), span_of(ir, b, i));

        if (c < 0) {
            return MDL_NONE;
        }
        data[i] = (unsigned char)c;
    }
    return mdl_ir_const_new(ir, MDL_BOOL, rank, dim, data, false);
}
