/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/sample.h"

#include <math.h>

#include "base/base.h"

/* The elements along one dim: index and weight. */
struct along {
    size_t count;
    size_t at[4];
    double weight[4];
};

static void add(struct along *a, double at, double weight)
{
    if (weight != 0) {
        a->at[a->count] = (size_t)at;
        a->weight[a->count++] = weight;
    }
}

static bool inside(double v, size_t n)
{
    return v >= 0 && v <= (double)(n - 1);
}

/* @v within 0 .. n - 1; a NaN gives 0 */
static double clamp(double v, size_t n)
{
    return v >= (double)(n - 1) ? (double)(n - 1) : v > 0 ? v : 0;
}

/*
 * The position inside the image that padding puts in the place of @v: the edge, or the mirror image
 * about the outer pixels' centres (align_corners) or borders. Source: ONNX GridSample-20.
 */
static double padded(const struct mdl_op *op, double v, size_t n)
{
    double low = op->attr.grid.align_corners ? 0 : -0.5;
    double span = op->attr.grid.align_corners ? (double)(n - 1) : (double)n, flips, rest;

    if (op->attr.grid.padding != MDL_GRID_REFLECTION || !(span > 0)) {
        return clamp(v, n);
    }
    v = fabs(v - low);
    rest = fmod(v, span);
    flips = fmod(floor(v / span), 2);
    return clamp(flips == 0 ? low + rest : low + span - rest, n);
}

static struct along linear_along(double v, size_t n)
{
    struct along a = {0};
    double first = floor(v);

    if (!(v > -1 && v < (double)n)) {
        return a;
    }
    if (first >= 0) {
        add(&a, first, 1 - (v - first));
    }
    if (first + 1 < (double)n) {
        add(&a, first + 1, v - first);
    }
    return a;
}

/* Keys's cubic with a = -0.75, at distance @t */
static double cubic(double t)
{
    static const double a = -0.75;

    t = fabs(t);
    return t <= 1  ? ((a + 2) * t - (a + 3)) * t * t + 1
           : t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
                   : 0;
}

static struct along cubic_along(const struct mdl_op *op, double v, size_t n)
{
    struct along a = {0};
    bool zeros = op->attr.grid.padding == MDL_GRID_ZEROS;
    double first;

    if (!zeros && !(fabs(v) < 0x1p40)) {
        v = padded(op, v, n); /* so far out, neighbours are the same number */
    }
    if (zeros && !(v > -2 && v < (double)n + 1)) {
        return a;
    }
    first = floor(v) - 1;
    for (int k = 0; k < 4; k++) {
        double at = first + k;

        if (!zeros) {
            add(&a, padded(op, at, n), cubic(v - at));
        } else if (inside(at, n)) {
            add(&a, at, cubic(v - at));
        }
    }
    return a;
}

/* One coordinate @g of a grid, -1 to 1 over @n pixels. */
static struct along grid_along(const struct mdl_op *op, double g, size_t n)
{
    struct along a = {0};
    bool zeros = op->attr.grid.padding == MDL_GRID_ZEROS;
    double v =
        op->attr.grid.align_corners ? (g + 1) / 2 * (double)(n - 1) : ((g + 1) * (double)n - 1) / 2;

    switch (op->attr.grid.mode) {
    case MDL_RESIZE_CUBIC:
        return cubic_along(op, v, n);
    case MDL_RESIZE_LINEAR:
        return linear_along(zeros ? v : padded(op, v, n), n);
    default:
        v = nearbyint(v); /* ties to even */
        if (!zeros) {
            add(&a, padded(op, v, n), 1);
        } else if (inside(v, n)) {
            add(&a, v, 1);
        }
        return a;
    }
}

/* All combinations of the elements along each spatial dim. */
static size_t combine(const struct along *a, size_t rank, const ptrdiff_t *stride,
                      struct krn_sample_tap *ret)
{
    size_t count = 1;

    for (size_t d = 0; d < rank; d++) {
        count *= a[d].count;
    }
    for (size_t i = 0; i < count; i++) {
        struct krn_sample_tap t = {.weight = 1};

        for (size_t d = rank, rest = i; d-- > 0; rest /= a[d].count) {
            size_t k = rest % a[d].count;

            t.at += (ptrdiff_t)a[d].at[k] * stride[d];
            t.weight *= a[d].weight[k];
        }
        ret[i] = t;
    }
    return count;
}

static const struct mdl_tensor *tensor(const struct krn_call *c, size_t in)
{
    return &c->model->tensors[c->op->in[in]];
}

static float element(const struct krn_call *c, size_t in, ptrdiff_t at)
{
    float v;

    memcpy(&v, (const char *)c->in[in] + at * (ptrdiff_t)sizeof(v), sizeof(v));
    return v;
}

size_t krn_grid_taps(const struct krn_call *c, size_t n, const size_t *index,
                     struct krn_sample_tap *ret)
{
    const struct mdl_tensor *x = tensor(c, 0), *grid = tensor(c, 1);
    size_t rank = x->rank - 2;
    ptrdiff_t at = (ptrdiff_t)n * grid->stride[0];
    struct along a[3];

    for (size_t d = 0; d < rank; d++) {
        at += (ptrdiff_t)index[d] * grid->stride[d + 1];
    }
    for (size_t d = 0; d < rank; d++) { /* the grid has x, y, z */
        float g = element(c, 1, at + (ptrdiff_t)(rank - 1 - d) * grid->stride[rank + 1]);

        a[d] = grid_along(c->op, (double)g, x->dim[d + 2]);
    }
    return combine(a, rank, &x->stride[2], ret);
}

size_t krn_deform_taps(const struct krn_call *c, size_t n, size_t group, size_t k,
                       const size_t *index, struct krn_sample_tap *ret)
{
    const struct mdl_tensor *x = tensor(c, 0), *offset = tensor(c, 1);
    const struct mdl_window *win = &c->op->attr.deform.window;
    size_t taps = win->kernel[0] * win->kernel[1], count;
    size_t tap[2] = {k / win->kernel[1], k % win->kernel[1]};
    struct along a[2];

    for (size_t d = 0; d < 2; d++) {
        size_t channel = (group * taps + k) * 2 + d;
        float shift = element(
            c, 1,
            (ptrdiff_t)n * offset->stride[0] + (ptrdiff_t)channel * offset->stride[1] +
                (ptrdiff_t)index[0] * offset->stride[2] + (ptrdiff_t)index[1] * offset->stride[3]);
        double v = (double)(index[d] * win->stride[d] + tap[d] * win->dilation[d]) -
                   (double)win->pad_begin[d] + (double)shift;

        a[d] = linear_along(v, x->dim[d + 2]);
    }
    count = combine(a, 2, &x->stride[2], ret);
    if (c->op->in[2] != MDL_NONE) {
        const struct mdl_tensor *mask = tensor(c, 2);
        float m = element(
            c, 2,
            (ptrdiff_t)n * mask->stride[0] + (ptrdiff_t)(group * taps + k) * mask->stride[1] +
                (ptrdiff_t)index[0] * mask->stride[2] + (ptrdiff_t)index[1] * mask->stride[3]);

        if (m == 0) {
            return 0;
        }
        for (size_t i = 0; i < count; i++) {
            ret[i].weight *= (double)m;
        }
    }
    return count;
}

static int64_t roi_image(const struct krn_call *c, size_t r)
{
    const struct mdl_tensor *t = tensor(c, 2);
    const char *p = (const char *)c->in[2];
    ptrdiff_t at = (ptrdiff_t)r * t->stride[0];
    int64_t wide;
    int32_t narrow;

    if (t->dtype == MDL_I64) {
        memcpy(&wide, p + at * (ptrdiff_t)sizeof(wide), sizeof(wide));
        return wide;
    }
    memcpy(&narrow, p + at * (ptrdiff_t)sizeof(narrow), sizeof(narrow));
    return narrow;
}

/* Samples of a bin along a dim of @n pixels: as many as the attribute says, or one per pixel. */
static size_t roi_samples(size_t wanted, float bin, size_t n)
{
    float count = ceilf(bin);

    if (wanted) {
        return wanted;
    }
    return !(count >= 1) ? 1 : count >= (float)n ? n : (size_t)count;
}

/* Every step in f32, as others do it: how many samples a bin has depends on the last bit. */
struct krn_roi krn_roi_of(const struct krn_call *c, size_t r)
{
    const struct mdl_tensor *x = tensor(c, 0), *y = &c->model->tensors[c->op->out[0]];
    const struct mdl_tensor *rois = tensor(c, 1);
    int64_t image = roi_image(c, r);
    struct krn_roi roi = {.valid = image >= 0 && image < (int64_t)x->dim[0]};
    float offset = c->op->attr.roi.half_pixel ? 0.5f : 0;

    if (!roi.valid) {
        return roi;
    }
    roi.image = (size_t)image;
    for (size_t d = 0; d < 2; d++) { /* a region has x1, y1, x2, y2 */
        ptrdiff_t at = (ptrdiff_t)r * rois->stride[0];
        float begin = element(c, 1, at + (ptrdiff_t)(1 - d) * rois->stride[1]);
        float end = element(c, 1, at + (ptrdiff_t)(3 - d) * rois->stride[1]), size;

        begin = begin * c->op->attr.roi.scale;
        end = end * c->op->attr.roi.scale;
        size = (end - offset) - (begin - offset);
        if (!c->op->attr.roi.half_pixel) {
            size = size > 1 ? size : 1;
        }
        roi.start[d] = begin - offset;
        roi.bin[d] = size / (float)y->dim[d + 2];
        roi.grid[d] = roi_samples(c->op->attr.roi.samples, roi.bin[d], x->dim[d + 2]);
    }
    return roi;
}

/* Up to a pixel outside the image counts as its edge. */
static struct along roi_along(double v, size_t n)
{
    struct along a = {0};

    return v >= -1 && v <= (double)n ? linear_along(clamp(v, n), n) : a;
}

size_t krn_roi_taps(const struct krn_call *c, const struct krn_roi *roi, const size_t *bin,
                    const size_t *sample, struct krn_sample_tap *ret)
{
    const struct mdl_tensor *x = tensor(c, 0);
    struct along a[2];

    for (size_t d = 0; d < 2; d++) {
        float v = roi->start[d] + (float)bin[d] * roi->bin[d] +
                  ((float)sample[d] + 0.5f) * roi->bin[d] / (float)roi->grid[d];

        a[d] = roi_along((double)v, x->dim[d + 2]);
    }
    return combine(a, 2, &x->stride[2], ret);
}
