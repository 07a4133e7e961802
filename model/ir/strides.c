/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ir/strides.h"

#include <math.h>

/* Pure arithmetic on dims, strides (in elements) and orders (dims from outer to inner). */

void mdl_strides_dense(size_t rank, const size_t *dim, const size_t *order, ptrdiff_t *ret_stride)
{
    ptrdiff_t n = 1;

    for (size_t i = rank; i-- > 0;) {
        ret_stride[order[i]] = n;
        n *= (ptrdiff_t)base_max(dim[order[i]], (size_t)1);
    }
}

void mdl_order_rows(size_t rank, size_t *ret_order)
{
    for (size_t i = 0; i < rank; i++) {
        ret_order[i] = i;
    }
}

void mdl_order_channels_last(size_t rank, size_t *ret_order)
{
    mdl_order_rows(rank, ret_order);
    for (size_t i = 1; i + 1 < rank; i++) {
        ret_order[i] = i + 1;
    }
    if (rank > 1) {
        ret_order[rank - 1] = 1;
    }
}

static struct mdl_tensor as_tensor(size_t rank, const size_t *dim, const ptrdiff_t *stride)
{
    struct mdl_tensor t = {.rank = rank};

    memcpy(t.dim, dim, rank * sizeof(*dim));
    memcpy(t.stride, stride, rank * sizeof(*stride));
    return t;
}

bool mdl_strides_nhwc(size_t rank, const size_t *dim, const ptrdiff_t *stride)
{
    struct mdl_tensor t = as_tensor(rank, dim, stride);
    size_t pixel;

    return rank >= 3 && rank <= 5 && mdl_is_nhwc(&t, &pixel);
}

bool mdl_strides_rows(size_t rank, const size_t *dim, const ptrdiff_t *stride)
{
    struct mdl_tensor t = as_tensor(rank, dim, stride);

    return mdl_is_dense(&t);
}

bool mdl_strides_equal(size_t rank, const size_t *dim, const ptrdiff_t *a, const ptrdiff_t *b)
{
    for (size_t i = 0; i < rank; i++) {
        if (dim[i] != 1 && a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

ptrdiff_t mdl_strides_view(const struct mdl_ir_op *op, const struct mdl_ir_value *x,
                           const ptrdiff_t *stride, const struct mdl_ir_value *y,
                           ptrdiff_t *ret_stride)
{
    ptrdiff_t at = 0;

    for (size_t i = 0; i < y->rank; i++) {
        size_t k = i + x->rank - y->rank; /* EXPAND only; wraps for the dims that are new */

        if (op->view.kind == MDL_VIEW_PERMUTE) {
            ret_stride[i] = stride[op->view.perm[i]];
        } else if (op->view.kind == MDL_VIEW_SLICE) {
            ret_stride[i] = stride[i] * op->view.step[i];
            at += y->dim[i] ? stride[i] * (ptrdiff_t)op->view.start[i] : 0;
        } else {
            ret_stride[i] = i + x->rank >= y->rank && x->dim[k] == y->dim[i] ? stride[k] : 0;
        }
    }
    return at;
}

static size_t magnitude(ptrdiff_t x)
{
    return (size_t)(x < 0 ? -x : x);
}

void mdl_order_of(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t *ret_order)
{
    size_t sorted[MDL_RANK_MAX], count = 0, n = 0;

    if (mdl_strides_nhwc(rank, dim, stride)) {
        mdl_order_channels_last(rank, ret_order);
        return;
    }
    for (size_t i = 0; i < rank; i++) {
        size_t k = count;

        if (dim[i] <= 1 || stride[i] == 0) {
            ret_order[n++] = i; /* nothing to learn from it: outside, in natural order */
            continue;
        }
        while (k > 0 && magnitude(stride[sorted[k - 1]]) < magnitude(stride[i])) {
            sorted[k] = sorted[k - 1];
            k--;
        }
        sorted[k] = i;
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        ret_order[n++] = sorted[i];
    }
}

/* Cuts both shapes (dims of 1 left out) into the smallest runs of equal products, in order. */
struct runs {
    size_t count;
    struct {
        size_t old_first, old_count, new_first, new_count;
    } run[MDL_RANK_MAX];
    size_t old_rank, old_at[MDL_RANK_MAX]; /* dims that are not 1 */
    size_t new_rank, new_at[MDL_RANK_MAX];
};

static void find_runs(size_t rank, const size_t *dim, size_t new_rank, const size_t *new_dim,
                      struct runs *r)
{
    size_t i = 0, k = 0;

    memset(r, 0, sizeof(*r));
    for (size_t a = 0; a < rank; a++) {
        if (dim[a] != 1) {
            r->old_at[r->old_rank++] = a;
        }
    }
    for (size_t a = 0; a < new_rank; a++) {
        if (new_dim[a] != 1) {
            r->new_at[r->new_rank++] = a;
        }
    }
    while (i < r->old_rank && k < r->new_rank) {
        size_t old_first = i, new_first = k;
        size_t old_size = dim[r->old_at[i++]], new_size = new_dim[r->new_at[k++]];

        while (old_size != new_size) {
            if (old_size < new_size) {
                old_size *= dim[r->old_at[i++]];
            } else {
                new_size *= new_dim[r->new_at[k++]];
            }
        }
        r->run[r->count].old_first = old_first;
        r->run[r->count].old_count = i - old_first;
        r->run[r->count].new_first = new_first;
        r->run[r->count++].new_count = k - new_first;
    }
}

bool mdl_strides_reshape(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t new_rank,
                         const size_t *new_dim, ptrdiff_t *ret_stride)
{
    struct runs r;

    for (size_t i = 0; i < new_rank; i++) {
        ret_stride[i] = 0;
    }
    for (size_t i = 0; i < rank; i++) {
        if (dim[i] == 0) {
            return true; /* nothing in it */
        }
    }
    find_runs(rank, dim, new_rank, new_dim, &r);
    for (size_t g = 0; g < r.count; g++) {
        size_t last = r.run[g].old_first + r.run[g].old_count - 1;
        ptrdiff_t s;

        for (size_t i = r.run[g].old_first; i < last; i++) {
            size_t at = r.old_at[i], next = r.old_at[i + 1];

            if (stride[at] != stride[next] * (ptrdiff_t)dim[next]) {
                return false;
            }
        }
        s = stride[r.old_at[last]];
        for (size_t i = r.run[g].new_count; i-- > 0;) {
            size_t at = r.new_at[r.run[g].new_first + i];

            ret_stride[at] = s;
            s *= (ptrdiff_t)new_dim[at];
        }
    }
    return true;
}

/* Where a run of dims lies in memory: the middle of the address bits that it covers. */
static double run_centre(const struct runs *r, size_t g, const size_t *dim, const ptrdiff_t *stride)
{
    double sum = 0, weight = 0;

    for (size_t i = 0; i < r->run[g].old_count; i++) {
        size_t at = r->old_at[r->run[g].old_first + i];
        double w = log2((double)dim[at]);

        sum += w * (log2((double)magnitude(stride[at]) + 1e-3) + w / 2);
        weight += w;
    }
    return weight > 0 ? sum / weight : 0;
}

void mdl_order_reshape(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t new_rank,
                       const size_t *new_dim, size_t *ret_order)
{
    struct runs r;
    size_t sorted[MDL_RANK_MAX], n = 0;

    mdl_order_rows(rank, ret_order);
    for (size_t i = 0; i < rank; i++) {
        if (dim[i] == 0) {
            return;
        }
    }
    find_runs(rank, dim, new_rank, new_dim, &r);
    for (size_t g = 0; g < r.count; g++) {
        size_t k = g;

        while (k > 0 &&
               run_centre(&r, sorted[k - 1], dim, stride) < run_centre(&r, g, dim, stride)) {
            sorted[k] = sorted[k - 1];
            k--;
        }
        sorted[k] = g;
    }
    for (size_t i = 0; i < rank; i++) {
        if (dim[i] == 1) {
            ret_order[n++] = i;
        }
    }
    for (size_t g = 0; g < r.count; g++) {
        for (size_t i = 0; i < r.run[sorted[g]].old_count; i++) {
            ret_order[n++] = r.old_at[r.run[sorted[g]].old_first + i];
        }
    }
}
