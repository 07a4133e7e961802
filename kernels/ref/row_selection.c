/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose number of rows depends on the data: NonZero, joined rows, ReverseSequence. */
#include "base/base.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * NON_ZERO  y[:, k] = the index of the k-th element of x that is not 0, in row-major order; the
 * columns after the last are 0. out[1]: how many there are.           Source: ONNX NonZero-13.
 */
static void non_zero_run(const struct krn_call *c)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
    size_t count = 0, all = mdl_elements(x);
    struct ref_walk w;

    ref_walk_start(&w, x, 0);
    ref_walk_add(&w, x);
    for (size_t i = 0; i < all; i++, ref_walk_next(&w)) {
        bool is_set = ref_is_int(x->dtype) ? ref_i64(c->in[0], x->dtype, w.at[0]) != 0
                                           : !(ref_f32(c->in[0], w.at[0]) == 0);

        for (size_t d = 0; d < x->rank && is_set; d++) {
            ref_set_i64(c->out[0], MDL_I64,
                        (ptrdiff_t)d * y->stride[0] + (ptrdiff_t)count * y->stride[1],
                        (int64_t)w.index[d]);
        }
        count += is_set;
    }
    ref_set_i64(c->out[1], MDL_I64, 0, (int64_t)count);
    for (size_t k = count; k < all; k++) {
        for (size_t d = 0; d < x->rank; d++) {
            ref_zero(c->out[0], (ptrdiff_t)d * y->stride[0] + (ptrdiff_t)k * y->stride[1], 1,
                     MDL_I64);
        }
    }
}

static bool non_zero_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return y->rank == 2 && y->dtype == MDL_I64 && y->dim[0] == x->rank && ref_plain(op) &&
           y->dim[1] == mdl_elements(x) && op->out[1] != MDL_NONE &&
           m->tensors[op->out[1]].dtype == MDL_I64;
}

REF_PRIMITIVE(non_zero, MDL_OP_NON_ZERO, non_zero_supports, non_zero_run);

/*
 * JOIN_ROWS  the valid rows of in[0], then those of in[2], along attr.join_rows.axis; then the fill
 * in[1] and in[3]: how many rows are valid; absent: all. in[2] may be absent.
 */
static struct ref_run join_rows_run_of(const struct krn_call *c)
{
    const struct mdl_tensor *y = ref_out(c, 0);
    size_t most = y->rank - c->op->attr.join_rows.axis - 1;
    struct ref_run a = ref_run_of(y, ref_in(c, 0), most), b = a;

    if (c->op->in[2] != MDL_NONE) {
        b = ref_run_of(y, ref_in(c, 2), most);
    }
    return b.dims < a.dims ? b : a;
}

static void fill_run(const struct krn_call *c, ptrdiff_t to, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        ref_set_f64(c->out[0], ref_out(c, 0)->dtype, to + (ptrdiff_t)i, c->op->attr.join_rows.fill);
    }
}

static void join_rows_at(const struct krn_call *c, const struct ref_walk *w, size_t elements)
{
    size_t axis = c->op->attr.join_rows.axis, row = w->index[axis];
    bool two = c->op->in[2] != MDL_NONE;
    size_t first = ref_rows(c, 1, ref_in(c, 0)->dim[axis]), k = row >= first;
    size_t second = two ? ref_rows(c, 3, ref_in(c, 2)->dim[axis]) : 0;
    const struct mdl_tensor *part;
    ptrdiff_t at;

    if (row >= first + second) {
        fill_run(c, w->at[0], elements);
        return;
    }
    part = ref_in(c, 2 * k);
    at = ref_offset(part, w->index) - (k ? (ptrdiff_t)first * part->stride[axis] : 0);
    ref_move(c->out[0], w->at[0], c->in[2 * k], at, elements, part->dtype);
}

static bool join_rows_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    size_t axis = op->attr.join_rows.axis, rows = 0;

    for (size_t i = 0; i < 4; i += 2) {
        const struct mdl_tensor *x;

        if (i && op->in[i] == MDL_NONE) {
            continue;
        }
        x = &m->tensors[op->in[i]];
        if (x->dtype != y->dtype || x->rank != y->rank || axis >= x->rank ||
            !ref_is_count(m, op, i + 1)) {
            return false;
        }
        rows += x->dim[axis];
    }
    return rows == y->dim[axis] && ref_plain(op);
}

REF_OPERATOR(join_rows, MDL_OP_JOIN_ROWS, REF_EACH_RUN);

/*
 * REVERSE_SEQUENCE  y[t, b] = x[n - 1 - t, b] for t < n = in[1][b], else x[t, b]; t and b are the
 * dims attr.reverse.time and .batch. A length outside 0..T is clamped.
 *                                                              Source: ONNX ReverseSequence-10.
 */
static struct ref_run reverse_sequence_run_of(const struct krn_call *c)
{
    const struct mdl_tensor *y = ref_out(c, 0);
    size_t last = base_max(c->op->attr.reverse.time, c->op->attr.reverse.batch);

    return ref_run_of(y, ref_in(c, 0), y->rank - last - 1);
}

static void reverse_sequence_at(const struct krn_call *c, const struct ref_walk *w, size_t elements)
{
    const struct mdl_tensor *x = ref_in(c, 0), *lens = ref_in(c, 1);
    size_t time = c->op->attr.reverse.time, batch = c->op->attr.reverse.batch;
    int64_t all = (int64_t)x->dim[time], t = (int64_t)w->index[time];
    int64_t n = ref_i64(c->in[1], lens->dtype, (ptrdiff_t)w->index[batch] * lens->stride[0]);
    ptrdiff_t at = w->at[1];

    n = n > all ? all : n;
    if (t < n) {
        at += (ptrdiff_t)(n - 1 - 2 * t) * x->stride[time];
    }
    ref_move(c->out[0], w->at[0], c->in[0], at, elements, x->dtype);
}

static bool reverse_sequence_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    const struct mdl_tensor *lens = &m->tensors[op->in[1]];

    return x->dtype == y->dtype && x->rank == y->rank && ref_plain(op) && lens->rank == 1 &&
           lens->dtype == MDL_I64 && op->attr.reverse.time < x->rank &&
           op->attr.reverse.batch < x->rank && op->attr.reverse.time != op->attr.reverse.batch &&
           lens->dim[0] == x->dim[op->attr.reverse.batch];
}

REF_OPERATOR(reverse_sequence, MDL_OP_REVERSE_SEQUENCE, REF_EACH_RUN);
