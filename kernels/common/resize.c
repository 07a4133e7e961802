/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref.h"
#include "kernels/common/resize.h"
#include "kernels/table.h"

/*
 * RESIZE  y[p] = x at the source coordinate of p, by the nearest element or n-linearly
 *
 * Per dim, i of n outputs, in inputs, scale s:   Source: ONNX Resize-13, Upsample-9 (asymmetric)
 *   half_pixel, pytorch_half_pixel  (i + 0.5) / s - 0.5   (pytorch: 0 where n = 1)
 *   asymmetric                      i / s
 *   align_corners                   i (in - 1) / (n - 1)  (0 where n = 1)
 *   tf_half_pixel_for_nn            (i + 0.5) / s
 * Where the written scale is just the rounded n / in, the exact ratio is used, so that ties fall as
 * the formula says and not as a rounded scale does.
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
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
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

/* n-linear: the sum over all corners of the product of their weights */
static double corners(const struct krn_call *c, const struct krn_resize_pair *p, size_t rank)
{
    enum mdl_dtype t = ref_in(c, 0)->dtype;
    double sum = 0;

    for (size_t corner = 0; corner < (size_t)1 << rank; corner++) {
        double weight = 1;
        ptrdiff_t at = 0;

        for (size_t d = 0; d < rank && weight != 0; d++) {
            size_t far = corner >> d & 1;
            weight *= far ? p[d].weight : 1 - p[d].weight;
            at += p[d].at[far];
        }
        if (weight != 0) {
            sum += weight * ref_f64(c->in[0], t, at);
        }
    }
    return sum;
}

static void resize_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *y = ref_out(c, 0);
    ptrdiff_t bytes = (ptrdiff_t)mdl_dtype_bytes(y->dtype);
    struct ref_walk w;

    ref_walk_start(&w, y, begin);
    ref_walk_add(&w, y);
    ref_walk_add_residual(&w, c);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        struct krn_resize_pair p[MDL_RANK_MAX];
        ptrdiff_t at = 0;

        for (size_t d = 0; d < y->rank; d++) {
            p[d] = krn_resize_neighbours(c, d, w.index[d]);
            at += p[d].at[0];
        }
        if (y->dtype == MDL_F32) {
            double v = c->op->attr.resize.mode == MDL_RESIZE_NEAREST ? (double)ref_f32(c->in[0], at)
                                                                     : corners(c, p, y->rank);
            ref_set_f32(c->out[0], w.at[0], ref_finish(c, v, w.at[1]));
        } else if (c->op->attr.resize.mode == MDL_RESIZE_LINEAR) {
            ref_set_f64(c->out[0], y->dtype, w.at[0], corners(c, p, y->rank));
        } else {
            memcpy((char *)c->out[0] + w.at[0] * bytes, (const char *)c->in[0] + at * bytes,
                   (size_t)bytes);
        }
    }
}

static void resize_run(const struct krn_call *c)
{
    ref_share(c, mdl_elements(ref_out(c, 0)), resize_body);
}

static bool resize_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (x->dtype != y->dtype || x->rank != y->rank || !ref_epilogue_ok(m, op)) {
        return false;
    }
    for (size_t d = 0; d < x->rank; d++) {
        if ((x->dim[d] == 0 && y->dim[d] != 0) || !(op->attr.resize.scale[d] > 0)) {
            return false;
        }
    }
    return true;
}

const struct krn_variant krn_resize__ref = {
    .name = "resize__ref",
    .kind = MDL_OP_RESIZE,
    .reference = true,
    .supports = resize_supports,
    .run = resize_run,
};
