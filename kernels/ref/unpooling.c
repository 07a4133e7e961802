/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that undo a pooling or an im2col, and the older pooling of regions. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * COL2IM  y[n,c,p] = the sum over taps k and blocks l with p = l s + k d - pad of x[n, c K + k, l]
 * Source: ONNX Col2Im-18.
 */
static void col2im_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    const size_t *blocks = c->op->attr.col2im.blocks;
    struct mdl_tensor image = *x; /* its blocks, as pixels */
    struct ref_taps t = {
        .win = &c->op->attr.col2im.window, .x = &image, .p = &w->index[2], .back = true};
    size_t taps = x->dim[1] / ref_out(c, 0)->dim[1];
    ptrdiff_t stride = x->stride[2];
    double sum = 0;

    for (size_t d = t.win->rank; d-- > 0; stride *= (ptrdiff_t)blocks[d]) {
        image.dim[2 + d] = blocks[d];
        image.stride[2 + d] = stride;
    }
    while (ref_next_tap(&t)) {
        size_t column = w->index[1] * taps + t.seen - 1;

        if (t.inside) {
            sum += ref_f64(c->in[0], x->dtype,
                           (ptrdiff_t)w->index[0] * x->stride[0] +
                               (ptrdiff_t)column * x->stride[1] + t.at);
        }
    }
    ref_set_f64(c->out[0], ref_out(c, 0)->dtype, w->at[0], sum);
}

static bool col2im_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    const struct mdl_window *win = &op->attr.col2im.window;

    return x->dtype == y->dtype && x->rank == 3 && win->rank >= 1 && win->rank <= 3 &&
           y->rank == win->rank + 2 && ref_plain(op);
}

REF_OPERATOR(col2im, MDL_OP_COL2IM, REF_EACH_ELEMENT, 0);

/*
 * MAX_UNPOOL  y = 0, but y[i[p]] = x[p], the indices counted over all of y, row-major
 * Of equal indices the last in order is kept, and one outside y is left out: the indices come with
 * the frame. Each member of the team writes its part of y and reads all indices.
 * Source: ONNX MaxUnpool-11.
 */
static void max_unpool_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *x = ref_in(c, 0), *indices = ref_in(c, 1), *y = ref_out(c, 0);
    size_t count = mdl_elements(x);
    struct ref_walk w;

    ref_walk_start(&w, y, begin);
    ref_walk_add(&w, y);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        ref_set_f32(c->out[0], w.at[0], 0);
    }
    ref_walk_start(&w, x, 0);
    ref_walk_add(&w, x);
    ref_walk_add(&w, indices);
    for (size_t i = 0; i < count; i++, ref_walk_next(&w)) {
        int64_t to = ref_i64(c->in[1], indices->dtype, w.at[1]);
        size_t index[MDL_RANK_MAX], rest = (size_t)to;

        if (to < 0 || (uint64_t)to < begin || (uint64_t)to >= end) {
            continue;
        }
        for (size_t d = y->rank; d-- > 0; rest /= y->dim[d]) {
            index[d] = rest % y->dim[d];
        }
        ref_set_f32(c->out[0], ref_offset(y, index), (double)ref_f32(c->in[0], w.at[0]));
    }
}

static bool max_unpool_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *indices = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    return x->dtype == MDL_F32 && y->dtype == MDL_F32 && indices->dtype == MDL_I64 &&
           ref_same_dims(x, indices, x->rank) && x->rank == y->rank && ref_plain(op);
}

REF_OPERATOR(max_unpool, MDL_OP_MAX_UNPOOL, REF_RUN);

/* round(@v * @scale), halves away from zero, within what no image reaches. A NaN gives 0. */
static ptrdiff_t roi_edge(float v, float scale)
{
    static const float far = 0x1p40f;
    float r = roundf(v * scale);

    return (ptrdiff_t)(r >= far ? far : r <= -far ? -far : r == r ? r : 0);
}

/*
 * MAX_ROI_POOL  y[r,c,p] = max of x[image of r, c] over bin p of region r, whose edges are whole
 * pixels; 0 for an empty bin. Rows of regions: image, x1, y1, x2, y2. A region of an image that
 * does not exist: zeros.   Source: ONNX MaxRoiPool-1; R. Girshick, Fast R-CNN, 2015, section 2.1.
 */
static double roi_max(const struct krn_call *c, const size_t *index)
{
    const struct mdl_tensor *x = ref_in(c, 0), *rois = ref_in(c, 1), *y = ref_out(c, 0);
    ptrdiff_t roi = (ptrdiff_t)index[0] * rois->stride[0];
    float image = ref_f32(c->in[1], roi), scale = c->op->attr.roi.scale;
    ptrdiff_t begin[2], end[2];
    double largest = 0;
    bool first = true;

    if (!(image >= 0 && image < (float)x->dim[0])) {
        return 0;
    }
    for (size_t d = 0; d < 2; d++) {
        size_t n = x->dim[2 + d];
        ptrdiff_t low =
            roi_edge(ref_f32(c->in[1], roi + (ptrdiff_t)(2 - d) * rois->stride[1]), scale);
        ptrdiff_t high =
            roi_edge(ref_f32(c->in[1], roi + (ptrdiff_t)(4 - d) * rois->stride[1]), scale);
        double size = high - low + 1 > 1 ? (double)(high - low + 1) : 1;
        double bin = size / (double)y->dim[2 + d];

        begin[d] = (ptrdiff_t)floor((double)index[2 + d] * bin) + low;
        end[d] = (ptrdiff_t)ceil((double)(index[2 + d] + 1) * bin) + low;
        begin[d] = begin[d] < 0 ? 0 : begin[d];
        end[d] = end[d] > (ptrdiff_t)n ? (ptrdiff_t)n : end[d];
    }
    for (ptrdiff_t i = begin[0]; i < end[0]; i++) {
        for (ptrdiff_t k = begin[1]; k < end[1]; k++) {
            double v = (double)ref_f32(
                c->in[0], ref_offset(x, (size_t[]){(size_t)image, index[1], (size_t)i, (size_t)k}));

            largest = first || v > largest ? v : largest;
            first = false;
        }
    }
    return largest;
}

static void max_roi_pool_at(const struct krn_call *c, const struct ref_walk *w)
{
    ref_set_f32(c->out[0], w->at[0], roi_max(c, w->index));
}

static bool max_roi_pool_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *rois = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    return ref_all_f32(m, op) && x->rank == 4 && y->rank == 4 && rois->rank == 2 &&
           rois->dim[1] == 5 && rois->dim[0] == y->dim[0] && x->dim[1] == y->dim[1] &&
           ref_plain(op);
}

REF_OPERATOR(max_roi_pool, MDL_OP_MAX_ROI_POOL, REF_EACH_ELEMENT, 0);
