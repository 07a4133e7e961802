/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that read an image between its pixels, at positions that come with the frame. */
#include "kernels/common/sample.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

static ptrdiff_t channel_at(const struct mdl_tensor *x, size_t n, size_t c)
{
    return (ptrdiff_t)n * x->stride[0] + (ptrdiff_t)c * x->stride[1];
}

static double sum_of(const struct krn_call *c, ptrdiff_t base, const struct krn_sample_tap *tap,
                     size_t count)
{
    double sum = 0;

    for (size_t k = 0; k < count; k++) {
        sum += tap[k].weight * (double)ref_f32(c->in[0], base + tap[k].at);
    }
    return sum;
}

/*
 * GRID_SAMPLE  y[n,c,p] = x[n,c] at the position grid[n,p], whose -1 and 1 are the outer borders of
 * the first and the last pixel, or with align_corners their centres; nearest, n-linear or cubic
 * Source: ONNX GridSample-20.
 */
static void grid_sample_at(const struct krn_call *c, const struct ref_walk *w)
{
    struct krn_sample_tap tap[KRN_SAMPLE_TAPS_MAX];
    size_t count = krn_grid_taps(c, w->index[0], &w->index[2], tap);

    ref_set_f32(c->out[0], w->at[0],
                sum_of(c, channel_at(ref_in(c, 0), w->index[0], w->index[1]), tap, count));
}

static bool grid_sample_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *grid = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    if (!ref_all_f32(m, op) || x->rank < 3 || x->rank > 5 || grid->rank != x->rank ||
        y->rank != x->rank || !ref_plain(op) || grid->dim[0] != y->dim[0] ||
        x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1] ||
        grid->dim[grid->rank - 1] != x->rank - 2) {
        return false;
    }
    for (size_t d = 2; d < x->rank; d++) {
        if (x->dim[d] == 0 || grid->dim[d - 1] != y->dim[d]) {
            return false;
        }
    }
    return true;
}

REF_OPERATOR(grid_sample, MDL_OP_GRID_SAMPLE, REF_EACH_ELEMENT, 0);

/*
 * ROI_ALIGN  y[r,c,p] = the mean over the samples of bin p of region r of x[image of r, c],
 * bilinear; a sample outside counts as 0. The maximum is that of each sample's four products of
 * weight and element, as ONNX's own tests have it. A region of an image that does not exist: zeros.
 * Source: ONNX RoiAlign-16.
 */
static double roi_value(const struct krn_call *c, const struct krn_roi *roi, ptrdiff_t base,
                        const size_t *bin)
{
    struct krn_sample_tap tap[4];
    double sum = 0, largest = 0;
    bool first = true;

    for (size_t i = 0; i < roi->grid[0] * roi->grid[1]; i++) {
        size_t sample[2] = {i / roi->grid[1], i % roi->grid[1]};
        size_t count = krn_roi_taps(c, roi, bin, sample, tap);

        sum += sum_of(c, base, tap, count);
        for (size_t k = 0; k < 4; k++) { /* a tap that is not there: weight 0 */
            double v = k < count ? sum_of(c, base, &tap[k], 1) : 0;

            largest = first || v > largest ? v : largest;
            first = false;
        }
    }
    return c->op->attr.roi.max ? largest : sum / (double)(roi->grid[0] * roi->grid[1]);
}

static void roi_align_at(const struct krn_call *c, const struct ref_walk *w)
{
    struct krn_roi roi = krn_roi_of(c, w->index[0]);
    ptrdiff_t base = channel_at(ref_in(c, 0), roi.image, w->index[1]);

    ref_set_f32(c->out[0], w->at[0], roi.valid ? roi_value(c, &roi, base, &w->index[2]) : 0);
}

static bool roi_align_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *rois = &m->tensors[op->in[1]];
    const struct mdl_tensor *image = &m->tensors[op->in[2]], *y = &m->tensors[op->out[0]];

    return x->dtype == MDL_F32 && rois->dtype == MDL_F32 && y->dtype == MDL_F32 &&
           (image->dtype == MDL_I64 || image->dtype == MDL_I32) && x->rank == 4 && y->rank == 4 &&
           rois->rank == 2 && rois->dim[1] == 4 && image->rank == 1 && rois->dim[0] == y->dim[0] &&
           image->dim[0] == y->dim[0] && x->dim[1] == y->dim[1] && x->dim[2] && x->dim[3] &&
           ref_plain(op);
}

REF_OPERATOR(roi_align, MDL_OP_ROI_ALIGN, REF_EACH_ELEMENT, 0);

/*
 * DEFORM_COLUMNS  y[n, (g K + k) C/G + c, p] = mask[n, o K + k, p] x[n, g C/G + c] at
 *   p s + k d - pad + offset[n, 2 (o K + k), p], bilinear, zero outside; o: the offset group of the
 *   channel. A 1x1 convolution of G groups turns this into a deformable one of K taps.
 * Source: ONNX DeformConv-19.
 */
static void deform_columns_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    const struct mdl_window *win = &c->op->attr.deform.window;
    size_t taps = win->kernel[0] * win->kernel[1], per = x->dim[1] / c->op->attr.deform.groups;
    size_t per_offset = x->dim[1] / c->op->attr.deform.offset_groups;
    size_t k = w->index[1] / per % taps;
    size_t from = w->index[1] / (per * taps) * per + w->index[1] % per;
    struct krn_sample_tap tap[4];
    size_t count = krn_deform_taps(c, w->index[0], from / per_offset, k, &w->index[2], tap);

    ref_set_f32(c->out[0], w->at[0], sum_of(c, channel_at(x, w->index[0], from), tap, count));
}

static bool deform_columns_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *offset = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    size_t taps = op->attr.deform.window.kernel[0] * op->attr.deform.window.kernel[1];
    size_t groups = op->attr.deform.groups, offsets = op->attr.deform.offset_groups;

    return ref_all_f32(m, op) && x->rank == 4 && offset->rank == 4 && y->rank == 4 && groups &&
           offsets && taps && x->dim[1] % groups == 0 && x->dim[1] % offsets == 0 && x->dim[2] &&
           x->dim[3] && offset->dim[1] == 2 * offsets * taps && y->dim[1] == x->dim[1] * taps &&
           (op->in[2] == MDL_NONE || m->tensors[op->in[2]].dim[1] == offsets * taps) &&
           ref_plain(op);
}

REF_OPERATOR(deform_columns, MDL_OP_DEFORM_COLUMNS, REF_EACH_ELEMENT, 0);
