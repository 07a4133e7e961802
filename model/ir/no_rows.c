/* SPDX-License-Identifier: Apache-2.0 */
/* Is there any row? What exporters ask before they look at boxes, and what has no rows then. */
#include <math.h>

#include "model/ir/rows.h"

/* Counts and conditions are a few operators on each other. A file cannot make the search longer. */
#define STEPS_MAX 64u

static bool is_length(const struct mdl_ir *ir, size_t v)
{
    return ir->values[v].dtype == MDL_I64 || ir->values[v].dtype == MDL_I32;
}

/* ---- which count a condition asks for ---- */

/* A product of lengths. It is 0 where one of them is. */
struct lengths {
    size_t open, open_count; /* the factor that may be 0, and how many such there are */
    double most;             /* a bound of the product */
    unsigned steps;
};

static bool factor(const struct mdl_ir *ir, size_t v, size_t i, struct lengths *n)
{
    const struct mdl_ir_value *x = &ir->values[v];
    int64_t least, most;

    if (!x->data && (x->most == MDL_NONE || mdl_ir_elements(x) != 1)) {
        return false;
    }
    least = mdl_const_int(x->data ? x : &ir->values[x->least], i);
    most = mdl_const_int(x->data ? x : &ir->values[x->most], i);
    n->most *= (double)most;
    if (least == 0) {
        n->open = v;
        n->open_count++;
    }
    return least >= 0;
}

/* Return: false if element @i of @v is not known to be a product of lengths. */
static bool factors(const struct mdl_ir *ir, size_t v, size_t i, struct lengths *n)
{
    const struct mdl_ir_op *op;
    size_t x;

    mdl_rows_trace(ir, &v, &i);
    op = mdl_ir_writer(ir, v);
    x = op ? op->op.in[0] : MDL_NONE;
    if (n->steps++ == STEPS_MAX || !is_length(ir, v)) {
        return false;
    }
    if (op && op->kind == MDL_OP_BINARY && op->op.attr.binary == MDL_BIN_MUL) {
        return factors(ir, x, i, n) && factors(ir, op->op.in[1], i, n);
    }
    if (op && op->kind == MDL_OP_REDUCE && op->op.attr.reduce.which == MDL_RED_PROD &&
        ir->values[x].rank == 1 && op->op.attr.reduce.axes[0]) {
        for (size_t k = 0; k < ir->values[x].dim[0]; k++) {
            if (!factors(ir, x, k, n)) {
                return false;
            }
        }
        return true;
    }
    return factor(ir, v, i, n);
}

/* Return: the count that is 0 where @v is, or MDL_NONE. */
static size_t count_of(const struct mdl_ir *ir, size_t v)
{
    struct lengths n = {.open = MDL_NONE, .most = 1};

    /* a larger product might overflow to 0 */
    return factors(ir, v, 0, &n) && n.open_count == 1 && n.most <= INT32_MAX ? n.open : MDL_NONE;
}

/* @v, or what it is a one-element view of */
static size_t through_views(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_op *op = mdl_ir_writer(ir, v);

    while (op && op->kind == MDL_IR_VIEW && mdl_ir_elements(&ir->values[op->op.in[0]]) == 1) {
        v = op->op.in[0];
        op = mdl_ir_writer(ir, v);
    }
    return v;
}

static bool is_int(const struct mdl_ir *ir, size_t v, int64_t value)
{
    const struct mdl_ir_value *x = &ir->values[v];

    return x->data && is_length(ir, v) && mdl_ir_elements(x) == 1 && mdl_const_int(x, 0) == value;
}

/* A comparison of a length with a constant. */
static bool compares(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *ret_count,
                     bool *ret_none)
{
    enum mdl_binary which = op->op.attr.binary;
    size_t a = op->op.in[0], b = op->op.in[1];

    if (ir->values[a].data) { /* 0 < n: n > 0 */
        which = which == MDL_BIN_LESS      ? MDL_BIN_GREATER
                : which == MDL_BIN_GREATER ? MDL_BIN_LESS
                                           : which;
        a = op->op.in[1];
        b = op->op.in[0];
    }
    if (!(which == MDL_BIN_EQUAL && is_int(ir, b, 0)) &&
        !(which == MDL_BIN_GREATER && is_int(ir, b, 0)) &&
        !(which == MDL_BIN_LESS && is_int(ir, b, 1))) {
        return false;
    }
    *ret_none = which != MDL_BIN_GREATER;
    *ret_count = count_of(ir, a);
    return *ret_count != MDL_NONE;
}

bool mdl_rows_asks(const struct mdl_ir *ir, size_t v, size_t *ret_count, bool *ret_none)
{
    bool negated = false;

    for (unsigned i = 0; i < STEPS_MAX; i++) {
        const struct mdl_ir_op *op;

        v = through_views(ir, v);
        op = mdl_ir_writer(ir, v);
        if (op && op->kind == MDL_OP_BINARY) {
            if (!compares(ir, op, ret_count, ret_none)) {
                return false;
            }
            *ret_none ^= negated;
            return true;
        }
        if (op && op->kind == MDL_OP_UNARY && op->op.act == MDL_ACT_NOT) {
            negated = !negated;
        } else if (!op || op->kind != MDL_OP_COPY || ir->values[op->op.in[0]].dtype != MDL_BOOL) {
            return false;
        }
        v = op->op.in[0];
    }
    return false;
}

/* ---- what has no rows then ---- */

/* Where this count is 0. */
struct where {
    size_t count;
    unsigned steps;
};

static bool none_if(const struct mdl_ir *ir, size_t v, struct where *w);

/* Return: whether @v is a copy that holds but @fill there. */
static bool filled_if(const struct mdl_ir *ir, size_t v, double fill, struct where *w)
{
    const struct mdl_ir_op *op = mdl_ir_writer(ir, v);
    double has = op && op->kind == MDL_OP_JOIN_ROWS ? op->op.attr.join_rows.fill : 1;

    return (isnan(fill) ? isnan(has) : has == fill) && op->op.in[2] == MDL_NONE &&
           none_if(ir, op->op.in[1], w);
}

/* Return: whether @v, a number of rows, is 0 or less there. */
static bool none_if(const struct mdl_ir *ir, size_t v, struct where *w)
{
    const struct mdl_ir_op *op;
    size_t i = 0;

    if (mdl_ir_elements(&ir->values[v]) != 1 || w->steps++ == STEPS_MAX) {
        return false;
    }
    mdl_rows_trace(ir, &v, &i);
    if (ir->values[v].data) {
        return mdl_const_int(&ir->values[v], i) <= 0;
    }
    if (i == 0 && mdl_rows_same(ir, v, w->count)) {
        return true;
    }
    op = mdl_ir_writer(ir, v);
    if (op && op->kind == MDL_OP_BINARY && mdl_ir_elements(&ir->values[v]) == 1) {
        enum mdl_binary which = op->op.attr.binary;
        bool a = none_if(ir, op->op.in[0], w), b = none_if(ir, op->op.in[1], w);

        return which == MDL_BIN_MIN                           ? a || b
               : which == MDL_BIN_MAX || which == MDL_BIN_ADD ? a && b
                                                              : false;
    }
    /* what suppression and NonZero read has no candidates then */
    return op && op->op.out[1] == v &&
           ((op->kind == MDL_OP_NMS && filled_if(ir, op->op.in[1], (double)NAN, w)) ||
            (op->kind == MDL_OP_NON_ZERO && filled_if(ir, op->op.in[0], 0, w)));
}

bool mdl_rows_none_if(const struct mdl_ir *ir, size_t v, size_t count)
{
    struct where w = {.count = count};

    return none_if(ir, ir->values[v].rows, &w);
}
