/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pools. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"

/* Pools walk the window by a multi-index k over up to three spatial dims; tap k of output p reads
 * x at p s + k d - pad_begin, and exists if that lies inside x. */
static struct ref_tap tap_of(const struct krn_call *c, const size_t *p, size_t linear)
{
    return ref_tap(&c->op->attr.pool.window, ref_in(c, 0), NULL, c->op->attr.pool.pad_end_model, p,
                   linear);
}

static ptrdiff_t channel_at(const struct mdl_tensor *x, const size_t *index)
{
    return (ptrdiff_t)index[0] * x->stride[0] + (ptrdiff_t)index[1] * x->stride[1];
}

/* Flat index of the tap in x, for MaxPool's second output: row-major, or (storage_order 1) with the
 * spatial dims column-major. */
static int64_t flat_index(const struct krn_call *c, const size_t *index, size_t linear)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    const struct mdl_window *win = &c->op->attr.pool.window;
    size_t pos[3], at = 0, image = 1;

    for (size_t d = win->rank; d-- > 0; linear /= win->kernel[d]) {
        pos[d] = index[2 + d] * win->stride[d] + linear % win->kernel[d] * win->dilation[d] -
                 win->pad_begin[d];
        image *= x->dim[2 + d];
    }
    for (size_t j = 0; j < win->rank; j++) {
        size_t d = c->op->attr.pool.indices_row_major ? j : win->rank - 1 - j;
        at = at * x->dim[2 + d] + pos[d];
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
    size_t count = ref_taps(&c->op->attr.pool.window), best = count;
    ptrdiff_t base = channel_at(x, w->index), best_at = 0;

    for (size_t k = 0; k < count; k++) {
        struct ref_tap t = tap_of(c, &w->index[2], k);

        /* every dtype of a pool fits a double exactly, but i64, which is not pooled */
        if (t.inside && (best == count || above(ref_f64(c->in[0], x->dtype, base + t.at),
                                                ref_f64(c->in[0], x->dtype, best_at)))) {
            best = k;
            best_at = base + t.at;
        }
    }
    double v = best < count ? ref_f64(c->in[0], x->dtype, best_at) : -INFINITY;
    ref_set_f64(c->out[0], y->dtype, w->at[0],
                y->dtype == MDL_F32 ? ref_finish(c, v, w->at[1]) : v);
    if (c->op->out[1] != MDL_NONE) {
        ref_set_i64(c->out[1], MDL_I64, ref_offset(ref_out(c, 1), w->index),
                    best < count ? flat_index(c, w->index, best) : 0);
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
    size_t count = ref_taps(&c->op->attr.pool.window), inside = 0, in_extent = 0;
    ptrdiff_t base = channel_at(ref_in(c, 0), w->index);
    double sum = 0;

    for (size_t k = 0; k < count; k++) {
        struct ref_tap t = tap_of(c, &w->index[2], k);

        if (t.inside) {
            sum += (double)ref_f32(c->in[0], base + t.at);
        }
        inside += t.inside;
        in_extent += t.in_extent;
    }
    size_t divisor = c->op->attr.pool.count_include_pad ? in_extent : inside;
    ref_set_f32(c->out[0], w->at[0], ref_finish(c, divisor ? sum / (double)divisor : 0, w->at[1]));
}

REF_EACH_OR_QUANT(avg, 0)

static bool pool_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    const struct mdl_window *win = &op->attr.pool.window;
    if (op->quant) {
        return krn_ref_quant_supports(m, op);
    }
    bool dtype_ok = op->kind == MDL_OP_AVG_POOL ? x->dtype == MDL_F32 : x->dtype != MDL_I64;

    for (size_t d = 0; d < win->rank; d++) {
        if (win->stride[d] == 0 || win->kernel[d] == 0) {
            return false;
        }
    }
    if (op->kind == MDL_OP_MAX_POOL && op->out[1] != MDL_NONE &&
        m->tensors[op->out[1]].dtype != MDL_I64) {
        return false;
    }
    return dtype_ok && y->dtype == x->dtype && win->rank >= 1 && win->rank <= 3 &&
           x->rank == win->rank + 2 && y->rank == x->rank && x->dim[0] == y->dim[0] &&
           x->dim[1] == y->dim[1] && ref_epilogue_ok(m, op);
}

REF_PRIMITIVE(max_pool, MDL_OP_MAX_POOL, pool_supports, max_run);

REF_PRIMITIVE(avg_pool, MDL_OP_AVG_POOL, pool_supports, avg_run);
