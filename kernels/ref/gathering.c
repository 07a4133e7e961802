/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices come with the frame, so one outside its dimension is clamped to it: a wrong answer, never
 * a read outside. An index below zero counts from the end. From an empty dimension zeros are
 * gathered.
 */
#include "kernels/ref/ref.h"
#include "kernels/table.h"

static bool is_index(enum mdl_dtype t)
{
    return t == MDL_I64 || t == MDL_I32;
}

/*
 * GATHER  y[before, i..., after] = x[before, indices[i...], after] along attr.gather.axis
 * in[2]: how many rows of x along the axis are valid; absent: all.        Source: ONNX Gather-13.
 */
static struct ref_run gather_run_of(const struct krn_call *c)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);

    return ref_run_of(y, x, x->rank - c->op->attr.gather.axis - 1);
}

static void gather_at(const struct krn_call *c, const struct ref_walk *w, size_t elements)
{
    const struct mdl_tensor *x = ref_in(c, 0), *indices = ref_in(c, 1);
    size_t axis = c->op->attr.gather.axis, n = ref_rows(c, 2, x->dim[axis]);
    int64_t k = ref_i64(c->in[1], indices->dtype, ref_offset(indices, &w->index[axis]));
    ptrdiff_t at = 0;

    if (n == 0) {
        ref_zero(c->out[0], w->at[0], elements, x->dtype);
        return;
    }
    for (size_t d = 0; d < x->rank; d++) {
        at += d == axis ? ref_clamped(k, n) * x->stride[d]
                        : (ptrdiff_t)w->index[d < axis ? d : d - 1 + indices->rank] * x->stride[d];
    }
    ref_move(c->out[0], w->at[0], c->in[0], at, elements, x->dtype);
}

static bool gather_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->dtype == y->dtype && op->attr.gather.axis < x->rank && ref_plain(op) &&
           is_index(ref_in_dtype(m, op, 1)) && ref_is_count(m, op, 2) &&
           y->rank == x->rank - 1 + m->tensors[op->in[1]].rank;
}

REF_OPERATOR(gather, MDL_OP_GATHER, REF_EACH_RUN);

/*
 * GATHER_ELEMENTS  y[.., i, ..] = x[.., indices[.., i, ..], ..] along attr.gather.axis; y has the
 * dims of the indices                                           Source: ONNX GatherElements-13.
 */
static void gather_elements_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *x = ref_in(c, 0), *indices = ref_in(c, 1), *y = ref_out(c, 0);
    size_t axis = c->op->attr.gather.axis;
    struct mdl_tensor lines = ref_line(x, axis);
    struct ref_walk w;

    ref_walk_start(&w, y, begin);
    ref_walk_add(&w, y);
    ref_walk_add(&w, indices);
    ref_walk_add(&w, &lines);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        int64_t k = ref_i64(c->in[1], indices->dtype, w.at[1]);

        if (x->dim[axis] == 0) {
            ref_zero(c->out[0], w.at[0], 1, y->dtype);
            continue;
        }
        ref_move(c->out[0], w.at[0], c->in[0],
                 w.at[2] + ref_clamped(k, x->dim[axis]) * x->stride[axis], 1, y->dtype);
    }
}

static bool gather_elements_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->dtype == y->dtype && x->rank == y->rank && op->attr.gather.axis < x->rank &&
           m->tensors[op->in[1]].rank == x->rank && is_index(ref_in_dtype(m, op, 1)) &&
           ref_plain(op);
}

REF_OPERATOR(gather_elements, MDL_OP_GATHER_ELEMENTS, REF_RUN);

/*
 * GATHER_ND  y[batch, i..., after] = x[batch, indices[batch, i..., :], after]; the first
 * attr.gather.batch_dims dims are common               Source: ONNX GatherND-13.
 */
static size_t gather_nd_width(const struct krn_call *c)
{
    const struct mdl_tensor *indices = ref_in(c, 1);

    return indices->dim[indices->rank - 1];
}

static struct ref_run gather_nd_run_of(const struct krn_call *c)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);

    return ref_run_of(y, x, x->rank - c->op->attr.gather.batch_dims - gather_nd_width(c));
}

/* *ret: the element of x where a run begins. Return: false: x is empty */
static bool gather_nd_source(const struct krn_call *c, const size_t *index, ptrdiff_t *ret)
{
    const struct mdl_tensor *x = ref_in(c, 0), *indices = ref_in(c, 1);
    size_t batch = c->op->attr.gather.batch_dims, width = gather_nd_width(c);
    ptrdiff_t at = 0, tuple = 0, step = indices->stride[indices->rank - 1];

    for (size_t d = 0; d + 1 < indices->rank; d++) {
        tuple += (ptrdiff_t)index[d] * indices->stride[d];
    }
    for (size_t d = 0; d < x->rank; d++) {
        size_t k = d - batch;

        if (d < batch) {
            at += (ptrdiff_t)index[d] * x->stride[d];
        } else if (k >= width) {
            at += (ptrdiff_t)index[indices->rank - 1 + k - width] * x->stride[d];
        } else if (x->dim[d] == 0) {
            return false;
        } else {
            at += x->stride[d] *
                  ref_clamped(ref_i64(c->in[1], indices->dtype, tuple + (ptrdiff_t)k * step),
                              x->dim[d]);
        }
    }
    *ret = at;
    return true;
}

static void gather_nd_at(const struct krn_call *c, const struct ref_walk *w, size_t elements)
{
    enum mdl_dtype t = ref_out(c, 0)->dtype;
    ptrdiff_t from;

    if (gather_nd_source(c, w->index, &from)) {
        ref_move(c->out[0], w->at[0], c->in[0], from, elements, t);
    } else {
        ref_zero(c->out[0], w->at[0], elements, t);
    }
}

static bool gather_nd_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    const struct mdl_tensor *indices = &m->tensors[op->in[1]];
    size_t batch = op->attr.gather.batch_dims, width;

    if (indices->rank == 0 || !is_index(indices->dtype) || x->dtype != y->dtype) {
        return false;
    }
    width = indices->dim[indices->rank - 1];
    return batch < indices->rank && batch + width <= x->rank && ref_plain(op) &&
           y->rank == indices->rank - 1 + x->rank - batch - width;
}

REF_OPERATOR(gather_nd, MDL_OP_GATHER_ND, REF_EACH_RUN);
