/* SPDX-License-Identifier: Apache-2.0 */
/* The largest or smallest elements of a line. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * TOP_K  the k first elements of each line along attr.top_k.axis and their indices (I64), the
 * largest (smallest) first, the earlier one of equals; k is y's dim. NaN is above all numbers.
 * in[1]: how many elements of a line are valid; absent: all. The rest of k is filled with zeros.
 *                                                                      Source: ONNX TopK-11.
 * The line's indices in out[1] are a heap, its worst at the root, until all elements are seen.
 */
struct line {
    const struct krn_call *c;
    const struct mdl_tensor *x, *y, *at;
    size_t axis, valid;
    ptrdiff_t x_line, y_line, at_line; /* its first elements */
};

static int64_t heap_get(const struct line *l, size_t i)
{
    return ref_i64(l->c->out[1], MDL_I64, l->at_line + (ptrdiff_t)i * l->at->stride[l->axis]);
}

static void heap_set(const struct line *l, size_t i, int64_t k)
{
    ref_set_i64(l->c->out[1], MDL_I64, l->at_line + (ptrdiff_t)i * l->at->stride[l->axis], k);
}

/* Return: 1 if element @a is greater than element @b, -1 if less, 0 if equal. */
static int compare(const struct line *l, int64_t a, int64_t b)
{
    ptrdiff_t ia = l->x_line + (ptrdiff_t)a * l->x->stride[l->axis];
    ptrdiff_t ib = l->x_line + (ptrdiff_t)b * l->x->stride[l->axis];

    if (ref_is_int(l->x->dtype)) {
        int64_t va = ref_i64(l->c->in[0], l->x->dtype, ia);
        int64_t vb = ref_i64(l->c->in[0], l->x->dtype, ib);

        return (va > vb) - (va < vb);
    }
    float fa = ref_f32(l->c->in[0], ia), fb = ref_f32(l->c->in[0], ib);

    if (isnan(fa) || isnan(fb)) {
        return (isnan(fa) != 0) - (isnan(fb) != 0);
    }
    return (fa > fb) - (fa < fb);
}

/* Return: whether element @a comes before element @b in the result. */
static bool before(const struct line *l, int64_t a, int64_t b)
{
    int order = compare(l, a, b);

    return order == 0 ? a < b : (order > 0) == l->c->op->attr.top_k.largest;
}

/* Puts element @k at or below slot @i of a heap of @n. */
static void sift(const struct line *l, size_t i, size_t n, int64_t k)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        int64_t below = heap_get(l, child);

        if (child + 1 < n && before(l, below, heap_get(l, child + 1))) {
            below = heap_get(l, ++child);
        }
        if (!before(l, k, below)) {
            break;
        }
        heap_set(l, i, below);
    }
    heap_set(l, i, k);
}

static void top_k_line(const struct krn_call *c, size_t axis, const ptrdiff_t *at)
{
    const struct line line = {.c = c,
                              .x = ref_in(c, 0),
                              .y = ref_out(c, 0),
                              .at = ref_out(c, 1),
                              .axis = axis,
                              .valid = ref_rows(c, 1, ref_in(c, 0)->dim[axis]),
                              .x_line = at[0],
                              .y_line = at[1],
                              .at_line = at[2]};
    const struct line *l = &line;
    size_t all = l->y->dim[axis], k = all < l->valid ? all : l->valid;

    for (size_t i = 0; i < all; i++) {
        heap_set(l, i, i < k ? (int64_t)i : 0);
    }
    for (size_t i = k / 2; i-- > 0;) {
        sift(l, i, k, heap_get(l, i));
    }
    for (size_t i = k; k && i < l->valid; i++) {
        if (before(l, (int64_t)i, heap_get(l, 0))) {
            sift(l, 0, k, (int64_t)i);
        }
    }
    for (size_t n = k; n > 1; n--) {
        int64_t last = heap_get(l, n - 1);

        heap_set(l, n - 1, heap_get(l, 0));
        sift(l, 0, n - 1, last);
    }
    for (size_t i = 0; i < all; i++) {
        ptrdiff_t to = l->y_line + (ptrdiff_t)i * l->y->stride[l->axis];

        if (i < k) {
            ref_move(l->c->out[0], to, l->c->in[0],
                     l->x_line + (ptrdiff_t)heap_get(l, i) * l->x->stride[l->axis], 1, l->y->dtype);
        } else {
            ref_zero(l->c->out[0], to, 1, l->y->dtype);
        }
    }
}

static bool top_k_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    size_t axis = op->attr.top_k.axis;

    return x->dtype == y->dtype && x->rank == y->rank && axis < x->rank && ref_plain(op) &&
           op->out[1] != MDL_NONE && m->tensors[op->out[1]].dtype == MDL_I64 &&
           m->tensors[op->out[1]].rank == x->rank && y->dim[axis] <= x->dim[axis] &&
           ref_is_count(m, op, 1);
}

REF_OPERATOR(top_k, MDL_OP_TOP_K, REF_EACH_LINE, top_k.axis, ref_in(c, 0), ref_out(c, 0),
             ref_out(c, 1));
