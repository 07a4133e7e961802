/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of rows, and attention. */
#include <math.h>

#include "base/base.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * NORM  y = (x - mean) / sqrt(var + epsilon) * scale + bias over each set of elements that differ
 * only in the dims of attr.norm.axes; rms: y = x / sqrt(mean(x^2) + epsilon) * scale + bias.
 * Absent scale: 1, bias: 0.    Source: ONNX LayerNormalization-17, InstanceNormalization-6,
 * GroupNormalization-21, RMSNormalization-23
 */
struct moments {
    double mean, inverse;
};

static struct moments moments_of(const struct krn_call *c, const struct mdl_tensor *inner,
                                 ptrdiff_t x)
{
    size_t n = mdl_elements(inner);
    double sum = 0, squares = 0, mean;
    struct ref_walk w;

    ref_walk_start(&w, inner, 0);
    ref_walk_add(&w, inner);
    for (size_t i = 0; i < n; i++, ref_walk_next(&w)) {
        sum += (double)ref_f32(c->in[0], x + w.at[0]);
    }
    mean = c->op->attr.norm.rms ? 0 : sum / (double)n;
    ref_walk_start(&w, inner, 0);
    ref_walk_add(&w, inner);
    for (size_t i = 0; i < n; i++, ref_walk_next(&w)) {
        double d = (double)ref_f32(c->in[0], x + w.at[0]) - mean;

        squares += d * d;
    }
    return (struct moments){mean, 1 / sqrt(squares / (double)n + (double)c->op->attr.norm.epsilon)};
}

/* @t with the dims of the axes seen as 1 long, or, if @inside, all others */
static struct mdl_tensor dims_of(const struct krn_call *c, const struct mdl_tensor *t, bool inside)
{
    struct mdl_tensor r = *t;

    for (size_t d = 0; d < t->rank; d++) {
        r.dim[d] = c->op->attr.norm.axes[d] == inside ? t->dim[d] : 1;
    }
    return r;
}

#define NORM_TENSORS 4u /* y, x, scale, bias */

static void norm_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *t[NORM_TENSORS] = {ref_out(c, 0), ref_in(c, 0)};
    struct mdl_tensor outer[NORM_TENSORS], inner[NORM_TENSORS];
    struct ref_walk w;

    for (size_t i = 1; i < 3; i++) {
        t[i + 1] = c->op->in[i] != MDL_NONE ? ref_in(c, i) : t[0];
    }
    for (size_t i = 0; i < NORM_TENSORS; i++) {
        outer[i] = dims_of(c, t[i], false);
        inner[i] = dims_of(c, t[i], true);
    }
    ref_walk_start(&w, &outer[0], begin);
    for (size_t i = 0; i < NORM_TENSORS; i++) {
        ref_walk_add(&w, &outer[i]);
    }
    for (size_t g = begin; g < end; g++, ref_walk_next(&w)) {
        struct moments m = moments_of(c, &inner[1], w.at[1]);
        struct ref_walk in;

        ref_walk_start(&in, &inner[0], 0);
        for (size_t i = 0; i < NORM_TENSORS; i++) {
            ref_walk_add(&in, &inner[i]);
        }
        for (size_t i = 0, n = mdl_elements(&inner[0]); i < n; i++, ref_walk_next(&in)) {
            double v = ((double)ref_f32(c->in[0], w.at[1] + in.at[1]) - m.mean) * m.inverse;

            v *= c->op->in[1] != MDL_NONE ? (double)ref_f32(c->in[1], w.at[2] + in.at[2]) : 1;
            v += c->op->in[2] != MDL_NONE ? (double)ref_f32(c->in[2], w.at[3] + in.at[3]) : 0;
            ref_set_f32(c->out[0], w.at[0] + in.at[0], ref_finish(c, v, 0));
        }
    }
}

static void norm_run(const struct krn_call *c)
{
    struct mdl_tensor groups = dims_of(c, ref_out(c, 0), false);

    ref_share(c, mdl_elements(ref_out(c, 0)) ? mdl_elements(&groups) : 0, norm_body);
}

static bool norm_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    bool ok = ref_all_f32(m, op) && op->residual == MDL_RESIDUAL_NONE &&
              (op->in[1] != MDL_NONE || op->in[2] == MDL_NONE);

    for (size_t i = 0; ok && i < 3; i++) {
        const struct mdl_tensor *t = op->in[i] == MDL_NONE ? y : &m->tensors[op->in[i]];

        ok = ref_same_dims(t, y, y->rank);
    }
    return ok;
}

REF_PRIMITIVE(norm, MDL_OP_NORM, norm_supports, norm_run);

/*
 * ATTENTION  y[..., i, e] = sum_j p[j] v[..., j, e], p = softmax_j(cap(scale q[..., i] k[..., j]) +
 * mask[..., i, j]), with attr.attention.causal over j <= i only. A row whose scores are all
 * negative infinity gives NaN.                               Source: ONNX Attention-23
 */
struct attention_row {
    ptrdiff_t q, k, v, mask; /* element 0 of this query, of this head's keys and values */
    size_t keys;
};

static double score_of(const struct krn_call *c, const struct attention_row *r, size_t j)
{
    const struct mdl_tensor *q = ref_in(c, 0), *k = ref_in(c, 1);
    double cap = (double)c->op->attr.attention.softcap, sum = 0;
    size_t last = q->rank - 1;

    for (size_t d = 0; d < q->dim[last]; d++) {
        sum += (double)ref_f32(c->in[0], r->q + (ptrdiff_t)d * q->stride[last]) *
               (double)ref_f32(c->in[1], r->k + (ptrdiff_t)j * k->stride[last - 1] +
                                             (ptrdiff_t)d * k->stride[last]);
    }
    sum *= (double)c->op->attr.attention.scale;
    sum = cap != 0 ? cap * tanh(sum / cap) : sum;
    if (c->op->in[3] != MDL_NONE) {
        sum += (double)ref_f32(c->in[3], r->mask + (ptrdiff_t)j * ref_in(c, 3)->stride[last]);
    }
    return sum;
}

#define CHUNK 64u /* outputs summed at once: a reference has no memory of its own */

static void attention_row(const struct krn_call *c, const struct attention_row *r, ptrdiff_t y)
{
    const struct mdl_tensor *v = ref_in(c, 2), *out = ref_out(c, 0);
    size_t last = v->rank - 1, outputs = v->dim[last];
    double max = -INFINITY, total = 0;

    for (size_t j = 0; j < r->keys; j++) {
        double s = score_of(c, r, j);

        max = isnan(s) || s > max ? s : max;
    }
    for (size_t j = 0; j < r->keys; j++) {
        total += exp(score_of(c, r, j) - max);
    }
    for (size_t first = 0; first < outputs; first += CHUNK) {
        size_t n = base_min(outputs - first, (size_t)CHUNK);
        double sum[CHUNK] = {0};

        for (size_t j = 0; j < r->keys; j++) {
            double p = exp(score_of(c, r, j) - max) / total;

            for (size_t e = 0; e < n; e++) {
                sum[e] +=
                    p * (double)ref_f32(c->in[2], r->v + (ptrdiff_t)j * v->stride[last - 1] +
                                                      (ptrdiff_t)(first + e) * v->stride[last]);
            }
        }
        for (size_t e = 0; e < n; e++) {
            ref_set_f32(c->out[0], y + (ptrdiff_t)(first + e) * out->stride[last],
                        ref_finish(c, sum[e], 0));
        }
    }
}

static void attention_body(const struct krn_call *c, size_t begin, size_t end)
{
    struct mdl_tensor rows = *ref_out(c, 0), q = *ref_in(c, 0), k = *ref_in(c, 1);
    struct mdl_tensor v = *ref_in(c, 2), mask = c->op->in[3] == MDL_NONE ? q : *ref_in(c, 3);
    size_t last = rows.rank - 1, keys = k.dim[last - 1];
    struct ref_walk w;

    rows.dim[last] = q.dim[last] = mask.dim[last] = 1;
    k.dim[last] = k.dim[last - 1] = v.dim[last] = v.dim[last - 1] = 1;
    ref_walk_start(&w, &rows, begin);
    ref_walk_add(&w, &rows);
    ref_walk_add(&w, &q);
    ref_walk_add(&w, &k);
    ref_walk_add(&w, &v);
    ref_walk_add(&w, &mask);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        struct attention_row r = {w.at[1], w.at[2], w.at[3], w.at[4], keys};

        if (c->op->attr.attention.causal) {
            r.keys = base_min(keys, w.index[last - 1] + 1);
        }
        attention_row(c, &r, w.at[0]);
    }
}

static void attention_run(const struct krn_call *c)
{
    struct mdl_tensor rows = *ref_out(c, 0);

    if (mdl_elements(&rows)) {
        rows.dim[rows.rank - 1] = 1;
        ref_share(c, mdl_elements(&rows), attention_body);
    }
}

static bool attention_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *q = &m->tensors[op->in[0]], *k = &m->tensors[op->in[1]];
    const struct mdl_tensor *v = &m->tensors[op->in[2]], *y = &m->tensors[op->out[0]];
    const struct mdl_tensor *mask = op->in[3] == MDL_NONE ? NULL : &m->tensors[op->in[3]];
    size_t last = y->rank - 1;

    return y->rank >= 2 && ref_all_f32(m, op) && ref_same_dims(q, y, last) &&
           ref_same_dims(k, y, last - 1) && ref_same_dims(v, k, last) &&
           q->dim[last] == k->dim[last] && v->dim[last] == y->dim[last] &&
           (!mask || (ref_same_dims(mask, q, last) && mask->dim[last] == k->dim[last - 1])) &&
           !op->scale && !op->shift && op->residual == MDL_RESIDUAL_NONE;
}

REF_PRIMITIVE(attention, MDL_OP_ATTENTION, attention_supports, attention_run);
