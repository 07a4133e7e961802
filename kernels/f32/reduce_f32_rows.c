/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REDUCE in f32 over one dim, or neighbouring ones that are contiguous: several results at a time
 * if they are neighbours in x, else several values of one result if those are neighbours.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"
#include "kernels/common/vec_arith.h"
#include "kernels/primitive.h"

#define CHUNK 512u /* values: longer sums are sums of chunks, which keeps their rounding small */
#define LANES 4u   /* vectors of sums: their additions do not wait for each other */

struct job {
    const struct krn_call *call;
    struct krn_nest nest; /* y, and x without the reduced dims */
    size_t len;           /* values of a result */
    ptrdiff_t step;       /* from value to value, in elements of x */
    enum mdl_reduce which;
};

static bool job_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]], *x = &m->tensors[op->in[0]];
    struct mdl_tensor kept = *x, reduced = *x;
    const struct mdl_tensor *const t[] = {y, &kept}, *const inside[] = {&reduced};
    struct krn_nest in;

    if (x->dtype != MDL_F32 || y->dtype != MDL_F32 || x->rank != y->rank || !krn_op_is_plain(op)) {
        return false;
    }
    for (size_t d = 0; d < x->rank; d++) {
        *(op->attr.reduce.axes[d] ? &kept.dim[d] : &reduced.dim[d]) = 1;
    }
    if (!krn_nest_of(t, base_array_count(t), &j->nest) ||
        !krn_nest_of(inside, base_array_count(inside), &in) || in.dims != 1) {
        return false;
    }
    j->which = op->attr.reduce.which;
    j->len = in.dim[0];
    j->step = in.stride[0][0];
    return true;
}

KRN_INLINE vf first_of(vf x, enum mdl_reduce which)
{
    return which == MDL_RED_L1                                  ? vf_abs(x)
           : which == MDL_RED_L2 || which == MDL_RED_SUM_SQUARE ? x * x
                                                                : x;
}

KRN_INLINE vf joined(vf sum, vf x, enum mdl_reduce which)
{
    switch (which) {
    case MDL_RED_MAX:
        return vf_nan_max(sum, x);
    case MDL_RED_MIN:
        return vf_nan_min(sum, x);
    case MDL_RED_PROD:
        return sum * x;
    default:
        return sum + x;
    }
}

KRN_INLINE float finished(float sum, size_t len, enum mdl_reduce which)
{
    return which == MDL_RED_MEAN ? sum / (float)len : which == MDL_RED_L2 ? sqrtf(sum) : sum;
}

/* The sums of @n results whose values are neighbours. */
KRN_INLINE vf neighbours(const struct job *j, const float *x, size_t n, enum mdl_reduce which)
{
    vf all = {0};

    for (size_t begin = 0; begin < j->len; begin += CHUNK) {
        size_t end = base_min(begin + CHUNK, j->len);
        vf sum = first_of(vf_load_any(x, n), which);

        x += j->step;
        for (size_t k = begin + 1; k < end; k++, x += j->step) {
            sum = joined(sum, first_of(vf_load_any(x, n), which), which);
        }
        all = begin == 0 ? sum : joined(all, sum, which);
    }
    return all;
}

static float across(vf v, enum mdl_reduce which)
{
    float lane[KRN_VL];
    vf sum;

    vf_store(lane, v);
    sum = vf_set(lane[0]);
    for (size_t i = 1; i < KRN_VL; i++) {
        sum = joined(sum, vf_set(lane[i]), which);
    }
    return sum[0];
}

/* The sum of at most CHUNK values. */
KRN_INLINE float chunk(const float *x, ptrdiff_t step, size_t len, enum mdl_reduce which)
{
    const size_t block = LANES * KRN_VL;
    size_t k = 1;
    float sum = first_of(vf_set(*x), which)[0];

    if (step == 1 && len >= block) {
        vf s[LANES];

        for (size_t i = 0; i < LANES; i++) {
            s[i] = first_of(vf_load(x + i * KRN_VL), which);
        }
        for (k = block; k + block <= len; k += block) {
            for (size_t i = 0; i < LANES; i++) {
                s[i] = joined(s[i], first_of(vf_load(x + k + i * KRN_VL), which), which);
            }
        }
        for (size_t i = 1; i < LANES; i++) {
            s[0] = joined(s[0], s[i], which);
        }
        sum = across(s[0], which);
    }
    for (; k < len; k++) {
        sum = joined(vf_set(sum), first_of(vf_set(x[(ptrdiff_t)k * step]), which), which)[0];
    }
    return sum;
}

KRN_INLINE float one(const struct job *j, const float *x, enum mdl_reduce which)
{
    float all = 0;

    for (size_t begin = 0; begin < j->len; begin += CHUNK) {
        float sum = chunk(x + (ptrdiff_t)begin * j->step, j->step,
                          base_min(j->len - begin, (size_t)CHUNK), which);

        all = begin == 0 ? sum : joined(vf_set(all), vf_set(sum), which)[0];
    }
    return all;
}

KRN_INLINE void row_of(const struct job *j, const ptrdiff_t *at, size_t n, enum mdl_reduce which)
{
    float *y = (float *)j->call->out[0] + at[0];
    const float *x = (const float *)j->call->in[0] + at[1];
    const ptrdiff_t sy = krn_nest_inner(&j->nest, 0), sx = krn_nest_inner(&j->nest, 1);

    for (size_t i = 0; i < n;) {
        size_t count = sx == 1 && n > 1 ? base_min(n - i, (size_t)KRN_VL) : 1;

        if (count == 1) {
            y[(ptrdiff_t)i * sy] = finished(one(j, x + (ptrdiff_t)i * sx, which), j->len, which);
        } else {
            vf sum = count == KRN_VL ? neighbours(j, x + i, KRN_VL, which)
                                     : neighbours(j, x + i, count, which);

            for (size_t k = 0; k < count; k++) {
                y[(ptrdiff_t)(i + k) * sy] = finished(sum[k], j->len, which);
            }
        }
        i += count;
    }
}

static void row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;

#define CASE(reduction)                                                                            \
    case reduction:                                                                                \
        row_of(j, at, n, reduction);                                                               \
        break;
    switch (j->which) { /* one loop for each */
        CASE(MDL_RED_MAX)
        CASE(MDL_RED_MIN)
        CASE(MDL_RED_PROD)
        CASE(MDL_RED_L1)
        CASE(MDL_RED_L2)
        CASE(MDL_RED_SUM_SQUARE)
        CASE(MDL_RED_MEAN)
    default:
        row_of(j, at, n, MDL_RED_SUM);
        break;
    }
#undef CASE
}

KRN_SUPPORTS_BY(struct job, job_of)
KRN_RUN_ROWS_BY(struct job, job_of, nest, row)

KRN_ISA_PRIMITIVE(reduce_f32_rows, MDL_OP_REDUCE, KRN_ISA_NEEDS, .supports = supports, .run = run);
