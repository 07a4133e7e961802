/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/resize.h"

#include <math.h>

/*
 * RESIZE  y[p] = x at the source coordinate of p, by the nearest element or n-linearly
 *
 * Per dim, i of n outputs, in inputs, scale s:   Source: ONNX Resize-13, Upsample-9 (asymmetric)
 *   half_pixel, pytorch_half_pixel  (i + 0.5) / s - 0.5   (pytorch: 0 where n = 1)
 *   asymmetric                      i / s
 *   align_corners                   i (in - 1) / (n - 1)  (0 where n = 1)
 *   tf_half_pixel_for_nn            (i + 0.5) / s
 *   half_pixel_symmetric            (i + 0.5) / s - 0.5 + (1 - n / (s in)) in / 2
 *   tf_crop_and_resize              (in - 1) (begin + i (end - begin) / (n - 1))
 *                                   ((in - 1) (begin + end) / 2 where n = 1)
 * If the given scale is just n / in rounded, the exact ratio is used, so that ties follow the
 * formula, not the rounding. Any other scale divides in floats, as in ONNX Runtime and torch: 17 by
 * 1.7f is 10, not a little less.
 */
static double divided(const struct mdl_op *op, size_t d, double i, size_t in, size_t n)
{
    float scale = op->attr.resize.scale[d];

    return scale == (float)((double)n / (double)in) ? i * (double)in / (double)n
                                                    : (double)((float)i / scale);
}

static double crop_source(const struct mdl_op *op, size_t d, size_t i, size_t in, size_t n)
{
    double begin = (double)op->attr.resize.roi_begin[d], end = (double)op->attr.resize.roi_end[d];
    double last = (double)(in - 1);

    return n == 1 ? (begin + end) * last / 2
                  : begin * last + (double)i * (end - begin) * last / (double)(n - 1);
}

static double source(const struct mdl_op *op, size_t d, size_t i, size_t in, size_t n)
{
    double centre = divided(op, d, (double)i + 0.5, in, n);

    switch (op->attr.resize.coord) {
    case MDL_COORD_ASYMMETRIC:
        return divided(op, d, (double)i, in, n);
    case MDL_COORD_ALIGN_CORNERS:
        return n == 1 ? 0 : (double)(i * (in - 1)) / (double)(n - 1);
    case MDL_COORD_TF_HALF_PIXEL_NN:
        return centre;
    case MDL_COORD_PYTORCH_HALF_PIXEL:
        if (n == 1) {
            return 0;
        }
        break;
    case MDL_COORD_HALF_PIXEL_SYMMETRIC:
        return centre - 0.5 + ((double)in - divided(op, d, (double)n, in, n)) / 2;
    case MDL_COORD_TF_CROP_AND_RESIZE:
        return crop_source(op, d, i, in, n);
    default:
        break;
    }
    return centre - 0.5;
}

static size_t clamp_index(double v, size_t in)
{
    return v <= 0 ? 0 : v >= (double)(in - 1) ? in - 1 : (size_t)v;
}

static size_t nearest(enum mdl_resize_round how, double v, size_t in)
{
    switch (how) {
    case MDL_ROUND_PREFER_FLOOR:
        v = ceil(v - 0.5);
        break;
    case MDL_ROUND_PREFER_CEIL:
        v = floor(v + 0.5);
        break;
    case MDL_ROUND_FLOOR:
        v = floor(v);
        break;
    case MDL_ROUND_CEIL:
        v = ceil(v);
        break;
    }
    return clamp_index(v, in);
}

struct krn_resize_pair krn_resize_neighbours(const struct krn_call *c, size_t d, size_t i)
{
    const struct mdl_tensor *x = &c->model->tensors[c->op->in[0]];
    const struct mdl_tensor *y = &c->model->tensors[c->op->out[0]];
    double v = source(c->op, d, i, x->dim[d], y->dim[d]);
    struct krn_resize_pair p;

    if (c->op->attr.resize.mode == MDL_RESIZE_NEAREST) {
        p.at[0] = p.at[1] = (ptrdiff_t)nearest(c->op->attr.resize.round, v, x->dim[d]);
        p.weight = 0;
    } else {
        v = v < 0 ? 0 : v > (double)(x->dim[d] - 1) ? (double)(x->dim[d] - 1) : v;
        p.at[0] = (ptrdiff_t)v;
        p.at[1] = (ptrdiff_t)clamp_index(v + 1, x->dim[d]);
        p.weight = v - (double)p.at[0];
    }
    p.at[0] *= x->stride[d];
    p.at[1] *= x->stride[d];
    return p;
}

bool krn_resize_outside(const struct krn_call *c, size_t d, size_t i)
{
    const struct mdl_tensor *x = &c->model->tensors[c->op->in[0]];
    const struct mdl_tensor *y = &c->model->tensors[c->op->out[0]];
    double v;

    if (c->op->attr.resize.coord != MDL_COORD_TF_CROP_AND_RESIZE) {
        return false;
    }
    v = source(c->op, d, i, x->dim[d], y->dim[d]);
    return !(v >= 0 && v <= (double)(x->dim[d] - 1));
}

/*
 * The kernels of linear and cubic interpolation, t the distance.
 * Source: R. Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, Eq. (15).
 */
static double kernel(const struct mdl_op *op, double t)
{
    double a = (double)op->attr.resize.cubic_a;

    t = fabs(t);
    if (op->attr.resize.mode == MDL_RESIZE_LINEAR) {
        return t < 1 ? 1 - t : 0;
    }
    return t <= 1  ? ((a + 2) * t - (a + 3)) * t * t + 1
           : t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
                   : 0;
}

static double stretch_of(const struct mdl_op *op, size_t d)
{
    double scale = (double)op->attr.resize.scale[d];

    return op->attr.resize.antialias && scale < 1 ? scale : 1;
}

static double reach_of(const struct mdl_op *op, size_t d)
{
    return (op->attr.resize.mode == MDL_RESIZE_LINEAR ? 1 : 2) / stretch_of(op, d);
}

struct krn_resize_taps krn_resize_taps(const struct krn_call *c, size_t d, size_t i)
{
    const struct mdl_tensor *x = &c->model->tensors[c->op->in[0]];
    const struct mdl_tensor *y = &c->model->tensors[c->op->out[0]];
    struct krn_resize_taps t = {.op = c->op,
                                .in = x->dim[d],
                                .position = source(c->op, d, i, x->dim[d], y->dim[d]),
                                .stretch = stretch_of(c->op, d),
                                .total = 1};
    double reach = reach_of(c->op, d), sum = 0;

    if (t.stretch == 1 && t.position == floor(t.position)) {
        t.first = (ptrdiff_t)t.position;
        t.count = 1;
        return t;
    }
    t.first = (ptrdiff_t)floor(t.position - reach) + 1;
    t.count = (size_t)((ptrdiff_t)ceil(t.position + reach) - t.first);
    if (c->op->attr.resize.antialias || c->op->attr.resize.exclude_outside) {
        for (size_t k = 0; k < t.count; k++) {
            sum += krn_resize_tap(&t, k).weight;
        }
        t.total = sum != 0 ? sum : 1;
    }
    return t;
}

struct krn_resize_tap krn_resize_tap(const struct krn_resize_taps *t, size_t k)
{
    ptrdiff_t at = t->first + (ptrdiff_t)k;
    bool outside = at < 0 || at >= (ptrdiff_t)t->in;
    struct krn_resize_tap tap = {.at = at < 0 ? 0 : outside ? t->in - 1 : (size_t)at};

    if (t->count == 1) {
        tap.weight = 1;
    } else if (!outside || !t->op->attr.resize.exclude_outside) {
        tap.weight = kernel(t->op, ((double)at - t->position) * t->stretch) / t->total;
    }
    return tap;
}

size_t krn_resize_taps_max(const struct mdl_op *op, size_t d)
{
    return (size_t)(2 * reach_of(op, d)) + 2;
}
