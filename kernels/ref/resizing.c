/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/resize.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

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

REF_EACH_ELEMENT(resize)

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

REF_PRIMITIVE(resize, MDL_OP_RESIZE, resize_supports, resize_run)
