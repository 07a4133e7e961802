/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NORM in two ways: over the pixels of channels that lie side by side, as an instance or group norm
 * of an NHWC image has them, and over rows that are dense, as a layer norm has them. Means first,
 * then squares of differences: one pass over both would cancel.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/nest.h"
#include "kernels/common/parallel.h"
#include "kernels/common/planned.h"

#define NORM_TENSORS 4u /* y, x, scale, bias */

/* y, x, scale and bias. Return: how many; 0: not all are f32 */
static size_t norm_tensors(const struct mdl_model *m, const struct mdl_op *op,
                           const struct mdl_tensor *t[NORM_TENSORS])
{
    size_t count = 1;

    t[0] = &m->tensors[op->out[0]];
    while (count < NORM_TENSORS && op->in[count - 1] != MDL_NONE) {
        t[count] = &m->tensors[op->in[count - 1]];
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        if (t[i]->dtype != MDL_F32) {
            return 0;
        }
    }
    return op->act <= MDL_ACT_SOFTPLUS && op->residual == MDL_RESIDUAL_NONE ? count : 0;
}

/* Sets of elements that are normalised together, and the elements of one. */
struct norm {
    size_t tensors;
    struct krn_nest outer, inner;
};

/* @t with the dims of the axes seen as 1 long, or, if @inside, all others */
static struct mdl_tensor dims_of(const struct mdl_op *op, const struct mdl_tensor *t, bool inside)
{
    struct mdl_tensor r = *t;

    for (size_t d = 0; d < t->rank; d++) {
        r.dim[d] = op->attr.norm.axes[d] == inside ? t->dim[d] : 1;
    }
    return r;
}

static bool norm_of(const struct mdl_model *m, const struct mdl_op *op, struct norm *ret)
{
    const struct mdl_tensor *t[NORM_TENSORS], *po[NORM_TENSORS], *pi[NORM_TENSORS];
    struct mdl_tensor outer[NORM_TENSORS], inner[NORM_TENSORS];

    ret->tensors = norm_tensors(m, op, t);
    for (size_t i = 0; i < ret->tensors; i++) {
        outer[i] = dims_of(op, t[i], false);
        inner[i] = dims_of(op, t[i], true);
        po[i] = &outer[i];
        pi[i] = &inner[i];
    }
    return ret->tensors >= 2 && krn_nest_of(po, ret->tensors, &ret->outer) &&
           krn_nest_of(pi, ret->tensors, &ret->inner);
}

/* ---- images ---- */

struct dim {
    size_t n;
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

static struct dim dim_of(const struct krn_nest *nest, size_t d)
{
    struct dim r = {.n = nest->dim[d]};

    for (size_t i = 0; i < nest->tensors; i++) {
        r.stride[i] = nest->stride[i][d];
    }
    return r;
}

/* Finds the batch, pixels, groups and channels of a group, in this order of strides; only pixels
 * must be there. */
static bool dims_of_image(const struct norm *s, struct image *v)
{
    size_t sets = s->outer.dims;
    struct dim last = dim_of(&s->outer, sets - 1);

    v->p = dim_of(&s->inner, 0);
    if (s->inner.dims > 2 || (s->inner.dims == 1 && v->p.stride[0] == 1)) {
        return false;
    }
    v->c = s->inner.dims == 2 ? dim_of(&s->inner, 1) : v->c;
    for (size_t i = 0; i < s->tensors; i++) { /* of a single group */
        v->g.stride[i] = (ptrdiff_t)v->c.n;
    }
    if (last.n == 1) {
        return true;
    }
    if (last.stride[0] < v->p.stride[0]) {
        v->g = last;
        sets--;
    }
    v->n = sets > 0 ? dim_of(&s->outer, 0) : v->n;
    return sets == 0 || (sets == 1 && v->n.stride[0] > v->p.stride[0]);
}

static bool image_of(const struct mdl_model *m, const struct mdl_op *op, struct image *ret)
{
    struct image v = {.op = op, .n.n = 1, .p.n = 1, .g.n = 1, .c.n = 1};
    struct norm s;

    if (!norm_of(m, op, &s) || !dims_of_image(&s, &v)) {
        return false;
    }
    v.tensors = s.tensors;
    for (size_t i = 0; i < v.tensors; i++) {
        if (i < 2 ? (v.c.n > 1 && v.c.stride[i] != 1) || v.g.stride[i] != (ptrdiff_t)v.c.n ||
                        v.p.stride[i] < 0
                  : v.p.stride[i] != 0) {
            return false;
        }
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
    struct krn_range items = krn_share_run(v->batch * v->blocks, 1, part, v->parts);

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

KRN_SUPPORTS_AS(image_supports, struct image, image_of)
KRN_SCRATCH_BYTES_BY(struct image, image_of, array_floats(&p) * ARRAYS * sizeof(float))

static void image_run(const struct krn_call *call)
{
    struct image v;

    if (image_of(call->model, call->op, &v)) {
        v.call = call;
        v.parts = base_max(call->width, 1u);
        krn_parallel(call->pool, v.parts, image_part, &v);
    }
}

KRN_ISA_PRIMITIVE(norm_f32_nhwc, MDL_OP_NORM, KRN_ISA_NEEDS, .supports = image_supports,
                  .scratch_bytes = scratch_bytes, .run = image_run);

/* ---- rows ---- */

struct rows {
    const struct krn_call *call;
    const struct mdl_op *op;
    struct norm sets;
    size_t elements; /* of a set */
};

KRN_INLINE float inverse_of(double squares, size_t n, float epsilon)
{
    return (float)(1.0 / sqrt(squares / (double)n + (double)epsilon));
}

static bool rows_of(const struct mdl_model *m, const struct mdl_op *op, struct rows *j)
{
    const struct krn_nest *inner = &j->sets.inner;

    if (!norm_of(m, op, &j->sets) || krn_nest_inner(inner, 0) != 1 ||
        krn_nest_inner(inner, 1) != 1) {
        return false;
    }
    for (size_t i = 2; i < j->sets.tensors; i++) {
        if (krn_nest_inner(inner, i) != 0 && krn_nest_inner(inner, i) != 1) {
            return false;
        }
    }
    j->op = op;
    j->elements = inner->rows * inner->dim[inner->dims - 1];
    return true;
}

/* One set of elements while it is normalised. */
struct set {
    const struct rows *j;
    const float *x, *scale, *bias;
    float *y, mean, inverse;
    double sum;
};

/* sum of x - mean, or of its squares */
KRN_INLINE double sum_row(const float *x, size_t n, float mean, const bool square)
{
    vf a = vf_set(0.0f), b = a, c = a, d = a;
    size_t i = 0;

#define TERM(at) (square ? (vf_load(at) - mean) * (vf_load(at) - mean) : vf_load(at) - mean)
    for (; i + 4 * KRN_VL <= n; i += 4 * KRN_VL) {
        a += TERM(x + i);
        b += TERM(x + i + KRN_VL);
        c += TERM(x + i + 2 * KRN_VL);
        d += TERM(x + i + 3 * KRN_VL);
    }
    for (; i + KRN_VL <= n; i += KRN_VL) {
        a += TERM(x + i);
    }
#undef TERM
    for (; i < n; i++) {
        float t = x[i] - mean;

        b[0] += square ? t * t : t;
    }
    return (double)vf_sum((a + b) + (c + d));
}

static void add_row(void *arg, const ptrdiff_t *at, size_t n)
{
    struct set *s = arg;

    s->sum += sum_row(s->x + at[1], n, 0.0f, false);
}

static void add_squares(void *arg, const ptrdiff_t *at, size_t n)
{
    struct set *s = arg;

    s->sum += sum_row(s->x + at[1], n, s->mean, true);
}

static void write_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct set *s = arg;
    const struct mdl_op *op = s->j->op;
    const float *x = s->x + at[1], *scale = s->scale ? s->scale + at[2] : NULL;
    const float *bias = s->bias ? s->bias + at[3] : NULL;
    const bool scales = scale && krn_nest_inner(&s->j->sets.inner, 2) == 1;
    const bool biases = bias && krn_nest_inner(&s->j->sets.inner, 3) == 1;
    const vf one_scale = vf_set(scale ? *scale : 1.0f), one_bias = vf_set(bias ? *bias : 0.0f);
    float *y = s->y + at[0];

    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t k = base_min(n - i, (size_t)KRN_VL);
        vf v = (vf_load_n(x + i, k) - s->mean) * s->inverse;

        v = v * (scales ? vf_load_n(scale + i, k) : one_scale) +
            (biases ? vf_load_n(bias + i, k) : one_bias);
        vf_store_n(y + i, krn_act_vec(op->act, v, op->act_a, op->act_b), k);
    }
}

static void set_rows(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct rows *j = arg;
    const struct krn_call *c = j->call;

    for (size_t i = 0; i < n; i++) {
        ptrdiff_t to[NORM_TENSORS] = {0};
        struct set s = {.j = j};

        for (size_t t = 0; t < j->sets.tensors; t++) {
            to[t] = at[t] + (ptrdiff_t)i * krn_nest_inner(&j->sets.outer, t);
        }
        s.y = (float *)c->out[0] + to[0];
        s.x = (const float *)c->in[0] + to[1];
        s.scale = j->sets.tensors > 2 ? (const float *)c->in[1] + to[2] : NULL;
        s.bias = j->sets.tensors > 3 ? (const float *)c->in[2] + to[3] : NULL;
        if (!j->op->attr.norm.rms) {
            krn_nest_run(&j->sets.inner, 0, 1, add_row, &s);
            s.mean = (float)(s.sum / (double)j->elements);
            s.sum = 0;
        }
        krn_nest_run(&j->sets.inner, 0, 1, add_squares, &s);
        s.inverse = inverse_of(s.sum, j->elements, j->op->attr.norm.epsilon);
        krn_nest_run(&j->sets.inner, 0, 1, write_row, &s);
    }
}

KRN_SUPPORTS_AS(rows_supports, struct rows, rows_of)
KRN_RUN_ROWS_BY(struct rows, rows_of, sets.outer, set_rows)

KRN_ISA_PRIMITIVE(norm_f32_rows, MDL_OP_NORM, KRN_ISA_NEEDS, .supports = rows_supports, .run = run);
