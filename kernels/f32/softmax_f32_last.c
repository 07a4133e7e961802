/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOFTMAX over an axis whose elements lie side by side.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"

struct job {
    const struct krn_call *call;
    struct krn_nest nest; /* of lines */
    size_t line;
};

static float line_max(const float *x, size_t n)
{
    vf max = vf_set(-INFINITY);
    float m = -INFINITY;
    size_t i = 0;

    for (; i + KRN_VL <= n; i += KRN_VL) {
        max = vf_max(max, vf_load(x + i));
    }
    for (size_t k = 0; k < KRN_VL; k++) {
        m = fmaxf(m, max[k]);
    }
    for (; i < n; i++) {
        m = fmaxf(m, x[i]);
    }
    return m;
}

static void softmax_line(const float *x, float *y, size_t n, bool log_wanted)
{
    float max = line_max(x, n), total;
    vf sum = vf_set(0.0f);

    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t k = base_min(n - i, (size_t)KRN_VL);
        vf t = vf_load_n(x + i, k) - max, e = vf_exp(t);

        vf_store_n(y + i, log_wanted ? t : e, k);
        if (k < KRN_VL) { /* the lanes beyond the end are not part of the sum */
            for (size_t l = k; l < KRN_VL; l++) {
                e[l] = 0;
            }
        }
        sum += e;
    }
    total = vf_sum(sum);
    total = log_wanted ? logf(total) : 1.0f / total;
    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t k = base_min(n - i, (size_t)KRN_VL);
        vf v = vf_load_n(y + i, k);

        vf_store_n(y + i, log_wanted ? v - total : v * total, k);
    }
}

static void softmax_lines(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;

    for (size_t i = 0; i < n; i++) {
        ptrdiff_t k = (ptrdiff_t)i;

        softmax_line((const float *)j->call->in[0] + at[1] + k * krn_nest_inner(&j->nest, 1),
                     (float *)j->call->out[0] + at[0] + k * krn_nest_inner(&j->nest, 0), j->line,
                     j->call->op->attr.softmax.log);
    }
}

static bool softmax_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    struct mdl_tensor x = m->tensors[op->in[0]], y = m->tensors[op->out[0]];
    size_t axis = op->attr.softmax.axis;

    if (x.dtype != MDL_F32 || y.dtype != MDL_F32 || axis >= x.rank || x.rank != y.rank ||
        x.dim[axis] != y.dim[axis] || x.dim[axis] == 0 ||
        (x.dim[axis] > 1 && (x.stride[axis] != 1 || y.stride[axis] != 1)) || !krn_op_is_plain(op)) {
        return false;
    }
    j->line = x.dim[axis];
    x.dim[axis] = y.dim[axis] = 1;
    return krn_nest_of((const struct mdl_tensor *const[]){&y, &x}, 2, &j->nest);
}

KRN_SUPPORTS_BY(struct job, softmax_of)
KRN_RUN_ROWS_BY(struct job, softmax_of, nest, softmax_lines)

KRN_ISA_PRIMITIVE(softmax_f32_last, MDL_OP_SOFTMAX, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);
