/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ARG in f32, the first of equal ones: several results at a time if they are neighbours in x, else
 * several values of one result if those are neighbours.
 */
#include "base/base.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"
#include "kernels/common/vec_arith.h"
#include "kernels/primitive.h"

struct job {
    const struct krn_call *call;
    struct krn_nest nest; /* y, and x without the axis */
    size_t len;           /* of the axis */
    ptrdiff_t step;       /* from value to value of one result, in elements of x */
    bool max;
};

/* The best values seen, and where they were. */
struct best {
    vf value;
    vi at;
};

static bool job_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]], *x = &m->tensors[op->in[0]];
    const size_t axis = op->attr.arg.axis;
    struct mdl_tensor lines = *x;
    const struct mdl_tensor *const t[] = {y, &lines};

    if (x->dtype != MDL_F32 || y->dtype != MDL_I64 || op->attr.arg.last || axis >= x->rank ||
        x->dim[axis] == 0 || x->dim[axis] > INT32_MAX || !krn_op_is_plain(op)) {
        return false;
    }
    j->len = x->dim[axis];
    j->step = x->stride[axis];
    j->max = op->attr.arg.max;
    lines.dim[axis] = 1;
    return krn_nest_of(t, base_array_count(t), &j->nest);
}

/* NaN is better than every number; of equal values, and of two NaN, neither is. */
KRN_INLINE bool beats(float v, float than, bool max)
{
    return !(max ? v <= than : v >= than) && than == than;
}

/* The same for vectors, which are seen in order: the first of equals stays. */
KRN_INLINE void take(struct best *b, vf value, vi at, bool max)
{
    vi worse = max ? value <= b->value : value >= b->value;
    vi better = ~worse & (b->value == b->value);

    b->value = vf_select(better, value, b->value);
    b->at = (better & at) | (~better & b->at);
}

/* @n results whose values are neighbours */
KRN_INLINE vi neighbours(const struct job *j, const float *x, size_t n, bool max)
{
    struct best b = {vf_load_any(x, n), {0}};

    for (size_t k = 1; k < j->len; k++) {
        x += j->step;
        take(&b, vf_load_any(x, n), (vi){0} + (int32_t)k, max);
    }
    return b.at;
}

static size_t one(const struct job *j, const float *x, bool max)
{
    size_t k = 1, best = 0;

    if (j->step == 1 && j->len >= KRN_VL) {
        struct best b = {vf_load(x), {0}};

        for (size_t i = 0; i < KRN_VL; i++) {
            b.at[i] = (int32_t)i;
        }
        vi at = b.at;

        for (k = KRN_VL; k + KRN_VL <= j->len; k += KRN_VL) {
            at += KRN_VL;
            take(&b, vf_load(x + k), at, max);
        }
        best = (size_t)b.at[0];
        for (size_t i = 1; i < KRN_VL; i++) {
            size_t other = (size_t)b.at[i];

            if (beats(x[other], x[best], max) || (!beats(x[best], x[other], max) && other < best)) {
                best = other;
            }
        }
    }
    float value = x[(ptrdiff_t)best * j->step];

    for (; k < j->len; k++) {
        float v = x[(ptrdiff_t)k * j->step];

        if (beats(v, value, max)) {
            best = k;
            value = v;
        }
    }
    return best;
}

KRN_INLINE void row_of(const struct job *j, const ptrdiff_t *at, size_t n, bool max)
{
    int64_t *y = (int64_t *)j->call->out[0] + at[0];
    const float *x = (const float *)j->call->in[0] + at[1];
    const ptrdiff_t sy = krn_nest_inner(&j->nest, 0), sx = krn_nest_inner(&j->nest, 1);

    for (size_t i = 0; i < n;) {
        size_t count = sx == 1 && n > 1 ? base_min(n - i, (size_t)KRN_VL) : 1;

        if (count == 1) {
            y[(ptrdiff_t)i * sy] = (int64_t)one(j, x + (ptrdiff_t)i * sx, max);
        } else {
            vi best = count == KRN_VL ? neighbours(j, x + i, KRN_VL, max)
                                      : neighbours(j, x + i, count, max);

            for (size_t k = 0; k < count; k++) {
                y[(ptrdiff_t)(i + k) * sy] = best[k];
            }
        }
        i += count;
    }
}

static void row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;

    if (j->max) {
        row_of(j, at, n, true);
    } else {
        row_of(j, at, n, false);
    }
}

KRN_SUPPORTS_BY(struct job, job_of)
KRN_RUN_ROWS_BY(struct job, job_of, nest, row)

KRN_ISA_PRIMITIVE(arg_f32, MDL_OP_ARG, KRN_ISA_NEEDS, .supports = supports, .run = run);
