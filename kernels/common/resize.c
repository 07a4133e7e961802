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
 * If the given scale is just n / in rounded, the exact ratio is used, so that ties follow the
 * formula, not the rounding.
 */
static double source(const struct mdl_op *op, size_t d, size_t i, size_t in, size_t n)
{
    double up = (double)op->attr.resize.scale[d], down = 1;

    if (op->attr.resize.scale[d] == (float)((double)n / (double)in)) {
        up = (double)n;
        down = (double)in;
    }
    switch (op->attr.resize.coord) {
    case MDL_COORD_ASYMMETRIC:
        return (double)i * down / up;
    case MDL_COORD_ALIGN_CORNERS:
        return n == 1 ? 0 : (double)(i * (in - 1)) / (double)(n - 1);
    case MDL_COORD_TF_HALF_PIXEL_NN:
        return ((double)i + 0.5) * down / up;
    case MDL_COORD_PYTORCH_HALF_PIXEL:
        if (n == 1) {
            return 0;
        }
        break;
    default:
        break;
    }
    return ((double)i + 0.5) * down / up - 0.5;
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
