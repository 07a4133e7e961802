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
static size_t fix(struct mdl_lower *l, const struct mdl_ir_value *v, const size_t *n, size_t period)
{
    size_t count = mdl_ir_elements(v);
    int64_t *fixed = mdl_ir_fold_alloc(l->ir, count * sizeof(*fixed));

    for (size_t i = 0; fixed && i < count; i++) {
        int64_t at = mdl_const_int(v, i), end = (int64_t)n[i % period];

        if (at < -end || at >= end) {
            return mdl_l_refuse(l, -EBADMSG, "index %lld is outside a dimension of %lld",
                                (long long)at, (long long)end);
        }
        fixed[i] = at < 0 ? at + end : at;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, v->rank, v->dim, fixed, false);
}

size_t mdl_l_indices(struct mdl_lower *l, size_t i, size_t n)
{
    struct mdl_ir_value v = *mdl_l_value(l, l->in[i]);

    if (mdl_l_index_type(l, i) != 0) {
        return MDL_NONE;
    }
    return v.data ? fix(l, &v, &n, 1) : l->in[i];
}

size_t mdl_l_along(struct mdl_lower *l, size_t *ret_axis)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *v;
    size_t axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false);
    size_t index = mdl_l_indices(l, 1, x->dim[axis]);

    *ret_axis = axis;
    x = mdl_l_value(l, l->in[0]);
    v = mdl_l_value(l, index);
    if (v->rank != x->rank) {
        return mdl_l_refuse(l, -EBADMSG, "the indices have rank %zu, the input has rank %zu",
                            v->rank, x->rank);
    }
    for (size_t d = 0; d < x->rank; d++) {
        if (d != axis && v->dim[d] > x->dim[d]) {
            return mdl_l_refuse(l, -EBADMSG,
                                "dimension %zu of the indices is %zu, of the input %zu", d,
                                v->dim[d], x->dim[d]);
        }
    }
    return index;
}

int mdl_l_tuples(struct mdl_lower *l, int64_t batch_dims, size_t *ret, size_t *ret_width)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), v = *mdl_l_value(l, l->in[1]);
    size_t batch = (size_t)batch_dims, width;

    if (mdl_l_index_type(l, 1) != 0) {
        return l->ir->failure;
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
    *ret = v.data && width ? fix(l, &v, &x.dim[batch], width) : l->in[1];
    return l->ir->failure;
}
