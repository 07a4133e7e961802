/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices come with the frame. One below zero counts from the end; an update whose index is outside
 * is left out. Where several updates go to one element, they apply in row-major order of the
 * indices: with `none` the last one stays.
 */
#include "kernels/ref/ref.h"
#include "kernels/table.h"
#include "model/common/arithmetic.h"

/* Return: whether @k is inside; *ret_at: 0..n-1. */
static bool scatter_index(int64_t k, size_t n, ptrdiff_t *ret_at)
{
    int64_t end = (int64_t)n;

    if (k < -end || k >= end) {
        return false;
    }
    *ret_at = (ptrdiff_t)(k < 0 ? k + end : k);
    return true;
}

/* One update, element @u of in[2], of element @y. */
static void scatter_one(const struct krn_call *c, ptrdiff_t y, ptrdiff_t u)
{
    static const enum mdl_binary join_of[MDL_SCATTER_COUNT] = {[MDL_SCATTER_ADD] = MDL_BIN_ADD,
                                                               [MDL_SCATTER_MUL] = MDL_BIN_MUL,
                                                               [MDL_SCATTER_MIN] = MDL_BIN_MIN,
                                                               [MDL_SCATTER_MAX] = MDL_BIN_MAX};
    enum mdl_dtype t = ref_out(c, 0)->dtype;
    enum mdl_binary join = join_of[c->op->attr.scatter.which];

    if (c->op->attr.scatter.which == MDL_SCATTER_NONE) {
        ref_move(c->out[0], y, c->in[2], u, 1, t);
    } else if (t == MDL_F32) {
        ref_set_f32(
            c->out[0], y,
            mdl_real_binary(join, (double)ref_f32(c->out[0], y), (double)ref_f32(c->in[2], u)));
    } else {
        ref_set_i64(c->out[0], t, y,
                    mdl_int_binary(join, ref_i64(c->out[0], t, y), ref_i64(c->in[2], t, u)));
    }
}

/* y = x */
static struct ref_run scatter_copy_run_of(const struct krn_call *c)
{
    return ref_run_of(ref_out(c, 0), ref_in(c, 0), ref_out(c, 0)->rank);
}

static void scatter_copy_at(const struct krn_call *c, const struct ref_walk *w, size_t elements)
{
    ref_move(c->out[0], w->at[0], c->in[0], w->at[1], elements, ref_out(c, 0)->dtype);
}

REF_EACH_RUN(scatter_copy)

static bool scatter_types(const struct mdl_model *m, const struct mdl_op *op)
{
    enum mdl_dtype t = ref_out_dtype(m, op), index = ref_in_dtype(m, op, 1);

    return ref_in_dtype(m, op, 0) == t && ref_in_dtype(m, op, 2) == t && ref_plain(op) &&
           (index == MDL_I64 || index == MDL_I32) &&
           (unsigned)op->attr.scatter.which < MDL_SCATTER_COUNT;
}

/*
 * SCATTER_ELEMENTS  y = x, then y[.., indices[.., i, ..], ..] = updates[.., i, ..] along
 * attr.scatter.axis, or their sum, product, minimum, maximum     Source: ONNX ScatterElements-18.
 * Lines along the axis are independent.
 */
static void scatter_elements_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *indices = ref_in(c, 1), *u = ref_in(c, 2), *y = ref_out(c, 0);
    size_t axis = c->op->attr.scatter.axis;
    struct mdl_tensor il = ref_line(indices, axis), ul = ref_line(u, axis), yl = ref_line(y, axis);
    struct ref_walk w;

    ref_walk_start(&w, &il, begin);
    ref_walk_add(&w, &il);
    ref_walk_add(&w, &ul);
    ref_walk_add(&w, &yl);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        for (ptrdiff_t k = 0; k < (ptrdiff_t)indices->dim[axis]; k++) {
            ptrdiff_t at;

            if (scatter_index(
                    ref_i64(c->in[1], indices->dtype, w.at[0] + k * indices->stride[axis]),
                    y->dim[axis], &at)) {
                scatter_one(c, w.at[2] + at * y->stride[axis], w.at[1] + k * u->stride[axis]);
            }
        }
    }
}

static void scatter_elements_run(const struct krn_call *c)
{
    struct mdl_tensor lines = ref_line(ref_in(c, 1), c->op->attr.scatter.axis);

    scatter_copy_run(c);
    if (mdl_elements(ref_in(c, 1))) {
        ref_share(c, mdl_elements(&lines), scatter_elements_body);
    }
}

static bool scatter_elements_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    size_t rank = m->tensors[op->out[0]].rank;

    return scatter_types(m, op) && op->attr.scatter.axis < rank &&
           m->tensors[op->in[0]].rank == rank && m->tensors[op->in[1]].rank == rank &&
           m->tensors[op->in[2]].rank == rank;
}

REF_PRIMITIVE(scatter_elements, MDL_OP_SCATTER_ELEMENTS, scatter_elements_supports,
              scatter_elements_run);

/*
 * SCATTER_ND  y = x, then y[indices[i..., :], after] = updates[i..., after], or their sum, product,
 * minimum, maximum                                               Source: ONNX ScatterND-18.
 * The team shares the dims after the indexed ones, so that updates of one element stay in order.
 */
/* The dims of @t from @first on. */
static struct mdl_tensor scatter_rest(const struct mdl_tensor *t, size_t first)
{
    struct mdl_tensor r = *t;

    r.rank = t->rank - first;
    for (size_t d = 0; d < r.rank; d++) {
        r.dim[d] = t->dim[d + first];
        r.stride[d] = t->stride[d + first];
    }
    return r;
}

static bool scatter_nd_place(const struct krn_call *c, ptrdiff_t tuple, ptrdiff_t *ret_y)
{
    const struct mdl_tensor *indices = ref_in(c, 1), *y = ref_out(c, 0);
    size_t last = indices->rank - 1;

    *ret_y = 0;
    for (size_t d = 0; d < indices->dim[last]; d++) {
        ptrdiff_t at;

        if (!scatter_index(
                ref_i64(c->in[1], indices->dtype, tuple + (ptrdiff_t)d * indices->stride[last]),
                y->dim[d], &at)) {
            return false;
        }
        *ret_y += at * y->stride[d];
    }
    return true;
}

static void scatter_nd_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *indices = ref_in(c, 1), *u = ref_in(c, 2), *y = ref_out(c, 0);
    struct mdl_tensor tuples = ref_heads(indices, 1);
    struct mdl_tensor yr = scatter_rest(y, indices->dim[indices->rank - 1]),
                      ur = scatter_rest(u, indices->rank - 1);
    struct ref_walk w, in;

    ref_walk_start(&w, &tuples, 0);
    ref_walk_add(&w, &tuples);
    for (size_t i = 0, n = mdl_elements(&tuples); i < n; i++, ref_walk_next(&w)) {
        ptrdiff_t from = 0, to;

        if (!scatter_nd_place(c, w.at[0], &to)) {
            continue;
        }
        for (size_t d = 0; d + 1 < indices->rank; d++) {
            from += (ptrdiff_t)w.index[d] * u->stride[d];
        }
        ref_walk_start(&in, &yr, begin);
        ref_walk_add(&in, &yr);
        ref_walk_add(&in, &ur);
        for (size_t k = begin; k < end; k++, ref_walk_next(&in)) {
            scatter_one(c, to + in.at[0], from + in.at[1]);
        }
    }
}

static void scatter_nd_run(const struct krn_call *c)
{
    const struct mdl_tensor *indices = ref_in(c, 1);
    struct mdl_tensor rest = scatter_rest(ref_out(c, 0), indices->dim[indices->rank - 1]);

    scatter_copy_run(c);
    ref_share(c, mdl_elements(&rest), scatter_nd_body);
}

static bool scatter_nd_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *indices = &m->tensors[op->in[1]];
    size_t width = indices->rank ? indices->dim[indices->rank - 1] : SIZE_MAX;

    return scatter_types(m, op) && width <= x->rank &&
           m->tensors[op->in[2]].rank == indices->rank - 1 + x->rank - width &&
           m->tensors[op->out[0]].rank == x->rank;
}

REF_PRIMITIVE(scatter_nd, MDL_OP_SCATTER_ND, scatter_nd_supports, scatter_nd_run);
