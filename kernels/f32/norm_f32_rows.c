/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NORM over rows that are dense, as a layer norm has them. Means first, then squares of the
 * differences: one pass over both would cancel.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"
#include "kernels/f32/norm_f32.h"

struct job {
    const struct krn_call *call;
    const struct mdl_op *op;
    struct krn_nest outer, inner; /* sets of elements, and the rows of one */
    size_t tensors, elements;
};

KRN_INLINE float inverse_of(double squares, size_t n, float epsilon)
{
    return (float)(1.0 / sqrt(squares / (double)n + (double)epsilon));
}

/* @t with the dims of the axes seen as 1 long, or, if @inside, all others */
static struct mdl_tensor dims_of(const struct mdl_op *op, const struct mdl_tensor *t, bool inside)
{
    struct mdl_tensor r = *t;

    for (size_t d = 0; d < t->rank; d++) {
        r.dim[d] = op->attr.norm.axes[d] == inside ? t->dim[d] : 1;
    }
    return r;
}

static bool rows_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    const struct mdl_tensor *t[NORM_TENSORS], *po[NORM_TENSORS], *pi[NORM_TENSORS];
    struct mdl_tensor outer[NORM_TENSORS], inner[NORM_TENSORS];

    j->tensors = norm_tensors(m, op, t);
    for (size_t i = 0; i < j->tensors; i++) {
        outer[i] = dims_of(op, t[i], false);
        inner[i] = dims_of(op, t[i], true);
        po[i] = &outer[i];
        pi[i] = &inner[i];
    }
    if (j->tensors < 2 || !krn_nest_of(po, j->tensors, &j->outer) ||
        !krn_nest_of(pi, j->tensors, &j->inner)) {
        return false;
    }
    j->op = op;
    j->elements = mdl_elements(&inner[0]);
    if (krn_nest_inner(&j->inner, 0) != 1 || krn_nest_inner(&j->inner, 1) != 1) {
        return false;
    }
    for (size_t i = 2; i < j->tensors; i++) {
        if (krn_nest_inner(&j->inner, i) != 0 && krn_nest_inner(&j->inner, i) != 1) {
            return false;
        }
    }
    return true;
}

/* One set of elements while it is normalised. */
struct set {
    const struct job *j;
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
    const bool scales = scale && krn_nest_inner(&s->j->inner, 2) == 1;
    const bool biases = bias && krn_nest_inner(&s->j->inner, 3) == 1;
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
    const struct job *j = arg;
    const struct krn_call *c = j->call;

    for (size_t i = 0; i < n; i++) {
        ptrdiff_t to[NORM_TENSORS] = {0};
        struct set s = {.j = j};

        for (size_t t = 0; t < j->tensors; t++) {
            to[t] = at[t] + (ptrdiff_t)i * krn_nest_inner(&j->outer, t);
        }
        s.y = (float *)c->out[0] + to[0];
        s.x = (const float *)c->in[0] + to[1];
        s.scale = j->tensors > 2 ? (const float *)c->in[1] + to[2] : NULL;
        s.bias = j->tensors > 3 ? (const float *)c->in[2] + to[3] : NULL;
        if (!j->op->attr.norm.rms) {
            krn_nest_run(&j->inner, 0, 1, add_row, &s);
            s.mean = (float)(s.sum / (double)j->elements);
            s.sum = 0;
        }
        krn_nest_run(&j->inner, 0, 1, add_squares, &s);
        s.inverse = inverse_of(s.sum, j->elements, j->op->attr.norm.epsilon);
        krn_nest_run(&j->inner, 0, 1, write_row, &s);
    }
}

KRN_SUPPORTS_BY(struct job, rows_of)
KRN_RUN_ROWS_BY(struct job, rows_of, outer, set_rows)

KRN_ISA_PRIMITIVE(norm_f32_rows, MDL_OP_NORM, KRN_ISA_NEEDS, .supports = supports, .run = run);
