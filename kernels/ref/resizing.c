/* SPDX-License-Identifier: Apache-2.0 */
/* Resize, by nearest, linear and cubic filters. */
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

/* cubic or antialiased: the same over all taps of dim @d and the dims after it */
static double wide(const struct krn_call *c, const struct krn_resize_taps *taps, size_t d,
                   ptrdiff_t at)
{
    const struct mdl_tensor *x = ref_in(c, 0);
    double sum = 0;

    if (d == x->rank) {
        return ref_f64(c->in[0], x->dtype, at);
    }
    for (size_t k = 0; k < taps[d].count; k++) {
        struct krn_resize_tap tap = krn_resize_tap(&taps[d], k);

        if (tap.weight != 0) {
            sum += tap.weight * wide(c, taps, d + 1, at + (ptrdiff_t)tap.at * x->stride[d]);
        }
    }
    return sum;
}

static double weighed(const struct krn_call *c, const size_t *index)
{
    struct krn_resize_taps taps[MDL_RANK_MAX];
    struct krn_resize_pair pairs[MDL_RANK_MAX];
    size_t rank = ref_in(c, 0)->rank;

    if (krn_resize_is_wide(c->op)) {
        for (size_t d = 0; d < rank; d++) {
            taps[d] = krn_resize_taps(c, d, index[d]);
        }
        return wide(c, taps, 0, 0);
    }
    for (size_t d = 0; d < rank; d++) {
        pairs[d] = krn_resize_neighbours(c, d, index[d]);
    }
    return corners(c, pairs, rank);
}

static ptrdiff_t nearest_at(const struct krn_call *c, const size_t *index)
{
    ptrdiff_t at = 0;

    for (size_t d = 0; d < ref_in(c, 0)->rank; d++) {
        at += krn_resize_neighbours(c, d, index[d]).at[0];
    }
    return at;
}

static bool outside(const struct krn_call *c, const size_t *index)
{
    for (size_t d = 0; d < ref_in(c, 0)->rank; d++) {
        if (krn_resize_outside(c, d, index[d])) {
            return true;
        }
    }
    return false;
}

static void resize_at(const struct krn_call *c, const struct ref_walk *w)
{
    enum mdl_dtype t = ref_out(c, 0)->dtype;
    double v;

    if (outside(c, w->index)) {
        v = (double)c->op->attr.resize.extrapolation;
    } else if (c->op->attr.resize.mode != MDL_RESIZE_NEAREST) {
        v = weighed(c, w->index);
    } else if (t == MDL_F32) {
        v = (double)ref_f32(c->in[0], nearest_at(c, w->index));
    } else {
        ref_move(c->out[0], w->at[0], c->in[0], nearest_at(c, w->index), 1, t);
        return;
    }
    ref_set_f64(c->out[0], t, w->at[0], t == MDL_F32 ? ref_finish(c, v, w->at[1]) : v);
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

REF_OPERATOR(resize, MDL_OP_RESIZE, REF_EACH_ELEMENT, 0);
