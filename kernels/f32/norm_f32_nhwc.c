/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NORM over the pixels of channels that lie side by side: an instance or group norm of an NHWC
 * image. Means first, then squares of differences: one pass over both would cancel.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/parallel.h"
#include "kernels/common/planned.h"
#include "kernels/f32/norm_f32.h"

struct dim {
    size_t n;
    bool axis;
    ptrdiff_t stride[NORM_TENSORS];
};

struct image {
    const struct krn_call *call;
    const struct mdl_op *op;
    size_t tensors, batch, pixels, groups, each; /* each: channels of a group */
    size_t block, blocks;                        /* groups that a member takes at once */
    size_t parts;
    struct dim n, p, g, c; /* strides of batch, pixels, groups and channels */
};

static ptrdiff_t magnitude(ptrdiff_t s)
{
    return s < 0 ? -s : s;
}

/* The dims longer than 1, outermost first by y's strides; neighbours that are alike are merged. */
static size_t dims_by_stride(const struct mdl_op *op, const struct mdl_tensor *const *t,
                             size_t tensors, struct dim dims[MDL_RANK_MAX])
{
    size_t count = 0, kept = 0;

    for (size_t d = 0; d < t[0]->rank; d++) {
        struct dim x = {t[0]->dim[d], op->attr.norm.axes[d], {0}};
        size_t at = count;

        if (x.n == 1) {
            continue;
        }
        for (size_t i = 0; i < tensors; i++) {
            x.stride[i] = t[i]->stride[d];
        }
        for (; at > 0 && magnitude(dims[at - 1].stride[0]) < magnitude(x.stride[0]); at--) {
            dims[at] = dims[at - 1];
        }
        dims[at] = x;
        count++;
    }
    for (size_t d = 0; d < count; d++) {
        bool merges = kept > 0 && dims[kept - 1].axis == dims[d].axis;

        for (size_t i = 0; merges && i < tensors; i++) {
            merges = dims[kept - 1].stride[i] == dims[d].stride[i] * (ptrdiff_t)dims[d].n;
        }
        if (merges) {
            dims[d].n *= dims[--kept].n;
        }
        dims[kept++] = dims[d];
    }
    return kept;
}

static bool image_of(const struct mdl_model *m, const struct mdl_op *op, struct image *ret)
{
    const struct mdl_tensor *t[NORM_TENSORS];
    struct image v = {
        .op = op, .tensors = norm_tensors(m, op, t), .n.n = 1, .p.n = 1, .g.n = 1, .c.n = 1};
    struct dim dims[MDL_RANK_MAX];
    size_t left;

    if (v.tensors < 2 || mdl_elements(t[0]) == 0) {
        return false;
    }
    for (size_t i = 1; i < v.tensors; i++) {
        for (size_t d = 0; d < t[0]->rank; d++) {
            if (t[i]->rank != t[0]->rank || t[i]->dim[d] != t[0]->dim[d]) {
                return false;
            }
        }
    }
    left = dims_by_stride(op, t, v.tensors, dims);
    if (left > 0 && dims[left - 1].axis) {
        v.c = dims[--left];
    }
    for (size_t i = 0; i < v.tensors; i++) { /* of a single group */
        v.g.stride[i] = (ptrdiff_t)v.c.n;
    }
    if (left > 0 && !dims[left - 1].axis) {
        v.g = dims[--left];
    }
    if (left == 0 || !dims[left - 1].axis) {
        return false;
    }
    v.p = dims[--left];
    if (left > 0 && !dims[left - 1].axis) {
        v.n = dims[--left];
    }
    for (size_t i = 0; i < 2; i++) {
        if ((v.c.n > 1 && v.c.stride[i] != 1) || v.g.stride[i] != (ptrdiff_t)v.c.n ||
            v.p.stride[i] < 0) {
            return false;
        }
    }
    for (size_t i = 2; i < v.tensors; i++) {
        if (v.p.stride[i] != 0) {
            return false;
        }
    }
    if (left != 0) {
        return false;
    }
    v.batch = v.n.n;
    v.pixels = v.p.n;
    v.groups = v.g.n;
    v.each = v.c.n;
    v.block = base_min((4 * KRN_VL + v.each - 1) / v.each, v.groups);
    v.blocks = (v.groups + v.block - 1) / v.block;
    *ret = v;
    return true;
}

/* floats of one of the arrays of a member: mean, then squares, then factor; shift */
static size_t array_floats(const struct image *v)
{
    return base_align_up(v->block * v->each + KRN_VL, 16);
}

#define ARRAYS 3u
#define SUM_PIXELS 256u /* summed at once, so that long sums round less */

/* sum[c] of x - mean, or of its squares, over the pixels, for up to four vectors of channels */
KRN_INLINE void sum_pixels(const struct image *v, const float *x, const float *mean, float *sum,
                           const size_t vectors, size_t lanes, const bool square)
{
    const size_t step = (size_t)v->p.stride[1];
    vf total[4], m[4];

#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; i++) {
        total[i] = vf_set(0.0f);
        m[i] = square ? vf_load(mean + i * KRN_VL) : total[i];
    }
    for (size_t p = 0; p < v->pixels;) {
        size_t end = base_min(v->pixels, p + SUM_PIXELS);
        vf acc[4];

#pragma GCC unroll 4
        for (size_t i = 0; i < vectors; i++) {
            acc[i] = vf_set(0.0f);
        }
        for (; p < end; p++) {
#pragma GCC unroll 4
            for (size_t i = 0; i < vectors; i++) {
                const float *at = x + p * step + i * KRN_VL;
                vf d = (vectors == 1 ? vf_load_n(at, lanes) : vf_load(at)) - m[i];

                acc[i] += square ? d * d : d;
            }
        }
#pragma GCC unroll 4
        for (size_t i = 0; i < vectors; i++) {
            total[i] += acc[i];
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; i++) {
        vf_store(sum + i * KRN_VL, total[i]);
    }
}

static void sum_channels(const struct image *v, const float *x, const float *mean, float *sum,
                         size_t channels, bool square)
{
    size_t c = 0;

    for (; c + 4 * KRN_VL <= channels; c += 4 * KRN_VL) {
        if (square) {
            sum_pixels(v, x + c, mean + c, sum + c, 4, KRN_VL, true);
        } else {
            sum_pixels(v, x + c, mean + c, sum + c, 4, KRN_VL, false);
        }
    }
    for (; c < channels; c += KRN_VL) {
        sum_pixels(v, x + c, mean + c, sum + c, 1, base_min(channels - c, (size_t)KRN_VL), square);
    }
}

/* every channel gets the sum of its group */
static void sum_groups(const struct image *v, float *sum, size_t channels)
{
    for (size_t g = 0; g < channels; g += v->each) {
        double total = 0;

        for (size_t c = 0; c < v->each; c++) {
            total += (double)sum[g + c];
        }
        for (size_t c = 0; c < v->each; c++) {
            sum[g + c] = (float)(total / (double)(v->each * v->pixels));
        }
    }
}

/* factor and shift of the channels of some groups of one batch */
static void take_operands(const struct image *v, size_t batch, size_t first, size_t groups,
                          float *factor, float *shift)
{
    const ptrdiff_t *n = v->n.stride, *g = v->g.stride, *c = v->c.stride;

    for (size_t i = 0; i < groups * v->each; i++) {
        ptrdiff_t b = (ptrdiff_t)batch, k = (ptrdiff_t)(first + i / v->each);
        ptrdiff_t e = (ptrdiff_t)(i % v->each);

        factor[i] = (float)(1.0 / sqrt((double)factor[i] + (double)v->op->attr.norm.epsilon));
        if (v->tensors > 2) {
            factor[i] *= ((const float *)v->call->in[1])[b * n[2] + k * g[2] + e * c[2]];
        }
        shift[i] =
            v->tensors > 3 ? ((const float *)v->call->in[2])[b * n[3] + k * g[3] + e * c[3]] : 0.0f;
    }
}

static void image_part(void *arg, size_t part)
{
    const struct image *v = arg;
    const struct mdl_op *op = v->op;
    size_t floats = array_floats(v);
    float *mean = (float *)v->call->scratch + part * ARRAYS * floats, *factor = mean + floats;
    float *shift = factor + floats;
    struct krn_range items = krn_share(v->batch * v->blocks, 1, part, v->parts);

    for (size_t i = items.begin; i < items.end; i++) {
        size_t batch = i / v->blocks;
        struct krn_range g = krn_share(v->groups, 1, i % v->blocks, v->blocks);
        size_t channels = (g.end - g.begin) * v->each, at = g.begin * v->each;
        const float *x = (const float *)v->call->in[0] + (ptrdiff_t)batch * v->n.stride[1] + at;
        float *y = (float *)v->call->out[0] + (ptrdiff_t)batch * v->n.stride[0] + at;

        memset(mean, 0, floats * sizeof(*mean));
        if (!op->attr.norm.rms) {
            sum_channels(v, x, mean, mean, channels, false);
            sum_groups(v, mean, channels);
        }
        sum_channels(v, x, mean, factor, channels, true);
        sum_groups(v, factor, channels);
        take_operands(v, batch, g.begin, g.end - g.begin, factor, shift);
        for (size_t p = 0; p < v->pixels; p++) {
            const float *from = x + (ptrdiff_t)p * v->p.stride[1];
            float *to = y + (ptrdiff_t)p * v->p.stride[0];

            for (size_t c = 0; c < channels; c += KRN_VL) {
                size_t k = base_min(channels - c, (size_t)KRN_VL);
                vf t = (vf_load_n(from + c, k) - vf_load(mean + c)) * vf_load(factor + c) +
                       vf_load(shift + c);

                vf_store_n(to + c, krn_act_vec(op->act, t, op->act_a, op->act_b), k);
            }
        }
    }
}

KRN_SUPPORTS_BY(struct image, image_of)
KRN_SCRATCH_BYTES_BY(struct image, image_of, array_floats(&p) * ARRAYS * sizeof(float))

static void run(const struct krn_call *call)
{
    struct image v;

    if (image_of(call->model, call->op, &v)) {
        v.call = call;
        v.parts = base_max(call->width, 1u);
        krn_parallel(call->pool, v.parts, image_part, &v);
    }
}

KRN_ISA_PRIMITIVE(norm_f32_nhwc, MDL_OP_NORM, KRN_ISA_NEEDS, .supports = supports,
                  .scratch_bytes = scratch_bytes, .run = run);
