/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, padding and running sums. */
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * COPY  y = cast(x), strides and dtype may differ            Source: ONNX Cast, Identity, Transpose
 * Between equal dtypes the bits are moved. Integers are cut to the narrower type, reals truncated.
 */
static void copy_at(const struct krn_call *c, const struct ref_walk *w)
{
    enum mdl_dtype x = ref_in(c, 0)->dtype, y = ref_out(c, 0)->dtype;

    if (y == MDL_F32 && !ref_plain(c->op)) {
        ref_set_f32(c->out[0], w->at[0], ref_finish(c, ref_f64(c->in[0], x, w->at[1]), w->at[2]));
    } else if (x == y) {
        ref_move(c->out[0], w->at[0], c->in[0], w->at[1], 1, y);
    } else if (ref_is_int(x)) {
        ref_set_i64(c->out[0], y, w->at[0], ref_i64(c->in[0], x, w->at[1]));
    } else {
        ref_set_f64(c->out[0], y, w->at[0], ref_f64(c->in[0], x, w->at[1]));
    }
}

static bool copy_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return mdl_elements(&m->tensors[op->in[0]]) == mdl_elements(&m->tensors[op->out[0]]) &&
           ref_epilogue_ok(m, op);
}

REF_OPERATOR(copy, MDL_OP_COPY, REF_EACH_ELEMENT, 1);

/*
 * PAD  y[i] = x[i - begin] inside x; outside: the value, the nearest edge, the mirror image
 * (reflect does not repeat the edge: period 2 (n - 1)), or the next copy of x (wrap). Negative pads
 * crop.   Source: ONNX Pad-19
 */
static bool pad_source(enum mdl_pad_mode mode, ptrdiff_t i, size_t dim, size_t *ret_i)
{
    ptrdiff_t n = (ptrdiff_t)dim, period = 2 * (n - 1);

    if (n == 0 || (mode == MDL_PAD_CONSTANT && (i < 0 || i >= n))) {
        return false;
    }
    if (mode == MDL_PAD_EDGE || (n == 1 && mode == MDL_PAD_REFLECT)) {
        i = i < 0 ? 0 : i >= n ? n - 1 : i;
    } else if (mode == MDL_PAD_REFLECT) {
        i = (i % period + period) % period;
        i = i >= n ? period - i : i;
    } else if (mode == MDL_PAD_WRAP) {
        i = (i % n + n) % n;
    }
    *ret_i = (size_t)i;
    return true;
}

static void pad_at(const struct krn_call *c, const struct ref_walk *w)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
    size_t from[MDL_RANK_MAX];
    bool inside = true;

    for (size_t d = 0; d < y->rank && inside; d++) {
        inside = pad_source(c->op->attr.pad.mode, (ptrdiff_t)w->index[d] - c->op->attr.pad.begin[d],
                            x->dim[d], &from[d]);
    }
    if (inside) {
        ref_move(c->out[0], w->at[0], c->in[0], ref_offset(x, from), 1, y->dtype);
    } else {
        ref_set_f64(c->out[0], y->dtype, w->at[0], c->op->attr.pad.value);
    }
}

static bool pad_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->dtype == y->dtype && x->rank == y->rank && ref_plain(op) &&
           (unsigned)op->attr.pad.mode <= MDL_PAD_WRAP;
}

REF_OPERATOR(pad, MDL_OP_PAD, REF_EACH_ELEMENT, 0);

/*
 * CUMSUM  y[i] = sum of x[j], j <= i along attr.cumsum.axis; exclusive: j < i
 * Integers wrap.                                                    Source: ONNX CumSum-14
 */
static void cumsum_line(const struct krn_call *c, size_t axis, const ptrdiff_t *at)
{
    const struct mdl_tensor *tx = ref_in(c, 0), *ty = ref_out(c, 0);
    bool exclusive = c->op->attr.cumsum.exclusive;
    double real = 0;
    uint64_t integer = 0;

    for (size_t i = 0; i < tx->dim[axis]; i++) {
        ptrdiff_t from = at[0] + (ptrdiff_t)i * tx->stride[axis];
        ptrdiff_t to = at[1] + (ptrdiff_t)i * ty->stride[axis];

        if (ref_is_int(tx->dtype)) {
            uint64_t before = integer;

            integer += (uint64_t)ref_i64(c->in[0], tx->dtype, from);
            ref_set_i64(c->out[0], ty->dtype, to, (int64_t)(exclusive ? before : integer));
        } else {
            double before = real;

            real += (double)ref_f32(c->in[0], from);
            ref_set_f32(c->out[0], to, exclusive ? before : real);
        }
    }
}

static bool cumsum_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->dtype == y->dtype && x->dtype != MDL_BOOL && x->rank == y->rank &&
           op->attr.cumsum.axis < x->rank && ref_plain(op);
}

REF_OPERATOR(cumsum, MDL_OP_CUMSUM, REF_EACH_LINE, cumsum.axis, ref_in(c, 0), ref_out(c, 0));
