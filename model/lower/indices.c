/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower/indices.h"

int mdl_l_index_type(struct mdl_lower *l, size_t i)
{
    enum mdl_dtype t = mdl_l_value(l, l->in[i])->dtype;

    if (t != MDL_I64 && t != MDL_I32) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "the indices have type %s; they must be int32 or int64",
                             mdl_dtype_name(t));
    }
    return 0;
}

/* Constant indices, the k-th of a dim of n[k % period], as a new constant. */
static int fix(struct mdl_lower *l, const struct mdl_ir_value *v, const size_t *n, size_t period,
               size_t *ret)
{
    size_t count = mdl_ir_elements(v);
    int64_t *fixed;
    void *data;
    int r = mdl_ir_fold_alloc(l->ir, count * sizeof(*fixed), &data);

    if (r < 0) {
        return r;
    }
    fixed = data;
    for (size_t i = 0; i < count; i++) {
        int64_t at = mdl_const_int(v, i), end = (int64_t)n[i % period];

        if (at < -end || at >= end) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "index %lld is outside a dimension of %lld",
                                 (long long)at, (long long)end);
        }
        fixed[i] = at < 0 ? at + end : at;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, v->rank, v->dim, fixed, false, ret);
}

int mdl_l_indices(struct mdl_lower *l, size_t i, size_t n, size_t *ret)
{
    struct mdl_ir_value v = *mdl_l_value(l, l->in[i]);
    int r = mdl_l_index_type(l, i);

    if (r < 0) {
        return r;
    }
    *ret = l->in[i];
    return v.data ? fix(l, &v, &n, 1, ret) : 0;
}

int mdl_l_index_shape(struct mdl_lower *l, size_t at, size_t axis)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *v = mdl_l_value(l, at);

    if (v->rank != x->rank) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the indices have rank %zu, the input has rank %zu",
                             v->rank, x->rank);
    }
    for (size_t d = 0; d < x->rank; d++) {
        if (d != axis && v->dim[d] > x->dim[d]) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "dimension %zu of the indices is %zu, of the input %zu", d,
                                 v->dim[d], x->dim[d]);
        }
    }
    return 0;
}

int mdl_l_tuples(struct mdl_lower *l, int64_t batch_dims, size_t *ret, size_t *ret_width)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), v = *mdl_l_value(l, l->in[1]);
    size_t batch = (size_t)batch_dims, width;
    int r = mdl_l_index_type(l, 1);

    if (r < 0) {
        return r;
    }
    if (v.rank == 0 || batch_dims < 0 || batch >= v.rank || batch >= base_max(x.rank, (size_t)1)) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "%lld batch dimensions do not fit indices of rank %zu and an input of "
                             "rank %zu",
                             (long long)batch_dims, v.rank, x.rank);
    }
    width = v.dim[v.rank - 1];
    if (width > x.rank - batch) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "%zu indices in a row; the input has %zu dimensions for them", width,
                             x.rank - batch);
    }
    for (size_t d = batch; d < batch + width; d++) {
        if (x.dim[d] == 0 && mdl_ir_elements(&v)) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of input 0 is empty", d);
        }
    }
    *ret_width = width;
    *ret = l->in[1];
    return v.data && width ? fix(l, &v, &x.dim[batch], width, ret) : 0;
}
