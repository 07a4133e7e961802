/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pools. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"

/* tap k of output p reads x at p s + k d - pad_begin, and exists if that lies inside x */
static struct ref_taps taps_of(const struct krn_call *c, const struct ref_walk *w)
{
    return (struct ref_taps){.win = &c->op->attr.pool.window,
                             .x = ref_in(c, 0),
                             .pad_end = c->op->attr.pool.pad_end_model,
                             .p = &w->index[2]};
}

static ptrdiff_t channel_at(const struct mdl_tensor *x, const size_t *index)
{
    return (ptrdiff_t)index[0] * x->stride[0] + (ptrdiff_t)index[1] * x->stride[1];
}

/* Flat index in x of the tap at @i, for MaxPool's second output: row-major, or (storage_order 1)
 * with the spatial dims column-major. */
static int64_t flat_index(const struct krn_call *c, const size_t *index, const size_t *i)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    size_t rank = c->op->attr.pool.window.rank, at = 0, image = 1;

    for (size_t j = 0; j < rank; j++) {
        size_t d = c->op->attr.pool.indices_row_major ? j : rank - 1 - j;

        at = at * x->dim[2 + d] + i[d];
        image *= x->dim[2 + d];
    }
    return (int64_t)((index[0] * x->dim[1] + index[1]) * image + at);
}

static bool above(double a, double b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

/*
 * MAX_POOL  y[n,c,p] = finish( max over taps k inside x of x[n,c, p s + k d - pad] )
 * The first of equal maxima gives the index, and of NaN, which is above all numbers; a window
 * without any tap gives the dtype's lowest.
 * Source: ONNX MaxPool, GlobalMaxPool.
 */
static void max_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
    struct ref_taps t = taps_of(c, w);
    size_t best[3] = {0};
    bool any = false;
    ptrdiff_t base = channel_at(x, w->index);
    double v = -INFINITY;

    while (ref_next_tap(&t)) {
        /* every dtype of a pool fits a double exactly, but i64, which is not pooled */
        double now = t.inside ? ref_f64(c->in[0], x->dtype, base + t.at) : 0;

        if (t.inside && (!any || above(now, v))) {
            memcpy(best, t.i, sizeof(best));
            any = true;
            v = now;
        }
    }
    ref_set_f64(c->out[0], y->dtype, w->at[0],
                y->dtype == MDL_F32 ? ref_finish(c, v, w->at[1]) : v);
    if (c->op->out[1] != MDL_NONE) {
        ref_set_i64(c->out[1], MDL_I64, ref_offset(ref_out(c, 1), w->index),
                    any ? flat_index(c, w->index, best) : 0);
    }
}

REF_EACH_ELEMENT(max, 0)

/*
 * AVG_POOL  y[n,c,p] = finish( sum over taps inside x / count ); count: those taps, or with
 * count_include_pad all taps within x and the padding that the model wrote (not what ceil_mode
 * added). Source: ONNX AveragePool, GlobalAveragePool.
 */
static void avg_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_quant *q = c->op->quant;
    enum mdl_dtype dtype = ref_in(c, 0)->dtype;
    struct ref_taps t = taps_of(c, w);
    size_t inside = 0, in_extent = 0, divisor;
    ptrdiff_t base = channel_at(ref_in(c, 0), w->index);
    double sum = 0;

    while (ref_next_tap(&t)) {
        if (t.inside) {
            sum += ref_f64(c->in[0], dtype, base + t.at) - (q ? q->x_zero : 0);
        }
        inside += t.inside;
        in_extent += t.in_extent;
    }
    divisor = c->op->attr.pool.count_include_pad ? in_extent : inside;
    if (q) {
        krn_ref_quant_real(c, divisor ? (float)sum * (q->x_scale / (float)divisor) : 0.0f, w->at[0],
                           0);
    } else {
        ref_set_f32(c->out[0], w->at[0],
                    ref_finish(c, divisor ? sum / (double)divisor : 0, w->at[1]));
    }
}

REF_EACH_ELEMENT(avg, 0)

static bool pool_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    bool max = op->kind == MDL_OP_MAX_POOL;

    if (!ref_window_ok(&op->attr.pool.window, x, y) || x->dim[1] != y->dim[1] ||
        (max && op->out[1] != MDL_NONE && m->tensors[op->out[1]].dtype != MDL_I64)) {
        return false;
    }
    if (op->quant) {
        return !max && op->residual == MDL_RESIDUAL_NONE && y->dtype != MDL_I32 &&
               krn_ref_quant_ok(m, op);
    }
    return (max ? x->dtype != MDL_I64 : x->dtype == MDL_F32) && y->dtype == x->dtype &&
           ref_epilogue_ok(m, op);
}

REF_PRIMITIVE(max_pool, MDL_OP_MAX_POOL, pool_supports, max_run);

REF_PRIMITIVE(avg_pool, MDL_OP_AVG_POOL, pool_supports, avg_run);
