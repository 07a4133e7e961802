/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, reductions, the place of an extreme, LRN. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"
#include "model/common/arithmetic.h"

/*
 * SOFTMAX  y[i] = e^(x[i] - max) / sum_j e^(x[j] - max) along attr.softmax.axis
 * log:     y[i] = x[i] - max - ln(sum_j e^(x[j] - max))     Source: ONNX Softmax-13, LogSoftmax-13
 */
static void softmax_line(const struct krn_call *c, size_t axis, const ptrdiff_t *at)
{
    size_t n = ref_in(c, 0)->dim[axis];
    ptrdiff_t x = at[0], y = at[1], r = at[2];
    ptrdiff_t x_step = ref_in(c, 0)->stride[axis], y_step = ref_out(c, 0)->stride[axis];
    ptrdiff_t r_step = ref_residual(c)->stride[axis];
    double max = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++) {
        max = fmax(max, (double)ref_f32(c->in[0], x + (ptrdiff_t)i * x_step));
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)ref_f32(c->in[0], x + (ptrdiff_t)i * x_step) - max);
    }
    for (size_t i = 0; i < n; i++, x += x_step, y += y_step, r += r_step) {
        double t = (double)ref_f32(c->in[0], x) - max;

        t = c->op->attr.softmax.log ? t - log(sum) : exp(t) / sum;
        ref_set_f32(c->out[0], y, ref_finish(c, t, r));
    }
}

static bool softmax_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return ref_all_f32(m, op) && x->rank == y->rank && op->attr.softmax.axis < x->rank &&
           ref_epilogue_ok(m, op);
}

REF_OPERATOR(softmax, MDL_OP_SOFTMAX, REF_EACH_LINE, softmax.axis, ref_in(c, 0), ref_out(c, 0),
             ref_residual(c));

/*
 * REDUCE  y = sum, mean, max, min, prod, sum |x|, sqrt(sum x^2) or sum x^2 over the set axes
 * Integers: sums wrap, a mean truncates toward zero. Over nothing: sum 0, prod 1, max and min the
 * type's lowest and highest, mean NaN (integers 0).                  Source: ONNX ReduceMean ...
 */
struct accumulator {
    double f;
    int64_t i;
};

/* how a further element joins; the others are added */
static const enum mdl_binary join_of[MDL_RED_COUNT] = {
    [MDL_RED_MAX] = MDL_BIN_MAX, [MDL_RED_MIN] = MDL_BIN_MIN, [MDL_RED_PROD] = MDL_BIN_MUL};

static bool squares(enum mdl_reduce which)
{
    return which == MDL_RED_L2 || which == MDL_RED_SUM_SQUARE;
}

static void reduce_f64(enum mdl_reduce which, struct accumulator *s, double x)
{
    x = squares(which) ? x * x : which == MDL_RED_L1 ? fabs(x) : x;
    s->f = mdl_real_binary(join_of[which], x, s->f);
}

static void reduce_i64(enum mdl_reduce which, struct accumulator *s, int64_t x)
{
    if (squares(which) || (which == MDL_RED_L1 && x < 0)) {
        x = mdl_int_binary(MDL_BIN_MUL, x, which == MDL_RED_L1 ? -1 : x);
    }
    s->i = mdl_int_binary(join_of[which], x, s->i);
}

static struct accumulator reduce_start(enum mdl_reduce which, enum mdl_dtype t)
{
    switch (which) {
    case MDL_RED_MAX:
        return (struct accumulator){.f = -INFINITY, .i = ref_lowest(t)};
    case MDL_RED_MIN:
        return (struct accumulator){.f = INFINITY, .i = ref_highest(t)};
    case MDL_RED_PROD:
        return (struct accumulator){.f = 1, .i = 1};
    default:
        return (struct accumulator){0};
    }
}

/* @n: elements that were reduced */
static void reduce_store(const struct krn_call *c, const struct accumulator *s, size_t n,
                         ptrdiff_t y, ptrdiff_t r)
{
    enum mdl_reduce which = c->op->attr.reduce.which;
    enum mdl_dtype t = ref_out(c, 0)->dtype;

    if (!ref_is_int(t)) {
        double v = which == MDL_RED_MEAN ? s->f / (double)n
                   : which == MDL_RED_L2 ? sqrt(s->f)
                                         : s->f;
        ref_set_f32(c->out[0], y, ref_finish(c, v, r));
    } else if (which == MDL_RED_L2) {
        ref_set_f64(c->out[0], t, y, sqrt((double)s->i));
    } else {
        bool mean = which == MDL_RED_MEAN && n != 0;
        ref_set_i64(c->out[0], t, y, mean ? s->i / (int64_t)n : s->i);
    }
}

static void reduce_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
    enum mdl_reduce which = c->op->attr.reduce.which;
    struct mdl_tensor kept = *x, inner = *x;
    struct ref_walk w;

    for (size_t d = 0; d < x->rank; d++) {
        kept.dim[d] = c->op->attr.reduce.axes[d] ? 1 : x->dim[d];
        inner.dim[d] = c->op->attr.reduce.axes[d] ? x->dim[d] : 1;
    }
    ref_walk_start(&w, y, begin);
    ref_walk_add(&w, y);
    ref_walk_add(&w, &kept);
    ref_walk_add(&w, ref_residual(c));
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        struct accumulator s = reduce_start(which, x->dtype);
        size_t n = mdl_elements(&inner);
        struct ref_walk in;

        ref_walk_start(&in, &inner, 0);
        ref_walk_add(&in, &inner);
        for (size_t k = 0; k < n; k++, ref_walk_next(&in)) {
            if (ref_is_int(x->dtype)) {
                reduce_i64(which, &s, ref_i64(c->in[0], x->dtype, w.at[1] + in.at[0]));
            } else {
                reduce_f64(which, &s, (double)ref_f32(c->in[0], w.at[1] + in.at[0]));
            }
        }
        reduce_store(c, &s, n, w.at[0], w.at[2]);
    }
}

static bool reduce_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (x->dtype != y->dtype || x->rank != y->rank || !ref_epilogue_ok(m, op) ||
        (unsigned)op->attr.reduce.which >= MDL_RED_COUNT) {
        return false;
    }
    for (size_t d = 0; d < x->rank; d++) {
        if (y->dim[d] != (op->attr.reduce.axes[d] ? 1 : x->dim[d])) {
            return false;
        }
    }
    return true;
}

REF_OPERATOR(reduce, MDL_OP_REDUCE, REF_RUN);

/*
 * ARG  y[...,0,...] = index of the largest (smallest) x along the axis, the first of equal ones,
 * or the last with attr.arg.last; y is I64. NaN counts as the extreme, as in numpy.
 * Source: ONNX ArgMax-13, ArgMin-13.
 */
static bool arg_better(const struct krn_call *c, ptrdiff_t at, ptrdiff_t best)
{
    enum mdl_dtype t = ref_in(c, 0)->dtype;
    bool max = c->op->attr.arg.max, last = c->op->attr.arg.last;

    if (ref_is_int(t)) {
        int64_t a = ref_i64(c->in[0], t, at), b = ref_i64(c->in[0], t, best);
        return a == b ? last : max ? a > b : a < b;
    }
    double a = (double)ref_f32(c->in[0], at), b = (double)ref_f32(c->in[0], best);
    if (isnan(a) || isnan(b)) {
        return isnan(a) && (last || !isnan(b));
    }
    return a == b ? last : max ? a > b : a < b;
}

static void arg_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    size_t axis = c->op->attr.arg.axis;
    struct mdl_tensor lines = ref_line(x, axis);
    struct ref_walk w;

    ref_walk_start(&w, ref_out(c, 0), begin);
    ref_walk_add(&w, ref_out(c, 0));
    ref_walk_add(&w, &lines);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        size_t best = 0;

        for (size_t k = 1; k < x->dim[axis]; k++) {
            if (arg_better(c, w.at[1] + (ptrdiff_t)k * x->stride[axis],
                           w.at[1] + (ptrdiff_t)best * x->stride[axis])) {
                best = k;
            }
        }
        ref_set_i64(c->out[0], MDL_I64, w.at[0], (int64_t)best);
    }
}

static bool arg_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return y->dtype == MDL_I64 && x->rank == y->rank && op->attr.arg.axis < x->rank &&
           y->dim[op->attr.arg.axis] == 1 && ref_plain(op);
}

REF_OPERATOR(arg, MDL_OP_ARG, REF_RUN);

/*
 * LRN  y[n,c,...] = x / (bias + alpha / size sum x[n,j,...]^2)^beta,
 *      j from max(0, c - floor((size-1)/2)) to min(C-1, c + ceil((size-1)/2))   Source: ONNX LRN
 */
static void lrn_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    size_t size = c->op->attr.lrn.size, before = (size - 1) / 2, after = size - 1 - before;
    size_t ch = w->index[1], lo = ch > before ? ch - before : 0;
    size_t hi = x->dim[1] - 1 - ch < after ? x->dim[1] - 1 : ch + after;
    double sum = 0, base;

    for (size_t j = lo; j <= hi; j++) {
        ptrdiff_t at = w->at[1] + ((ptrdiff_t)j - (ptrdiff_t)ch) * x->stride[1];
        double v = (double)ref_f32(c->in[0], at);

        sum += v * v;
    }
    base = (double)c->op->attr.lrn.bias + (double)c->op->attr.lrn.alpha / (double)size * sum;
    base = pow(base, (double)c->op->attr.lrn.beta);
    ref_set_f32(c->out[0], w->at[0],
                ref_finish(c, (double)ref_f32(c->in[0], w->at[1]) / base, w->at[2]));
}

static bool lrn_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return ref_all_f32(m, op) && x->rank >= 2 && x->rank == y->rank && op->attr.lrn.size > 0 &&
           ref_epilogue_ok(m, op);
}

REF_OPERATOR(lrn, MDL_OP_LRN, REF_EACH_ELEMENT, 1);
