/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * CUMSUM  y[i] = sum of x[j], j <= i along attr.cumsum.axis; exclusive: j < i
 * Integers wrap.                                                    Source: ONNX CumSum-14
 */
static void cumsum_line(const struct krn_call *c, ptrdiff_t x, ptrdiff_t y)
{
    const struct mdl_tensor *tx = ref_in(c, 0), *ty = ref_out(c, 0);
    size_t axis = c->op->attr.cumsum.axis;
    bool exclusive = c->op->attr.cumsum.exclusive;
    double real = 0;
    uint64_t integer = 0;

    for (size_t i = 0; i < tx->dim[axis]; i++) {
        ptrdiff_t from = x + (ptrdiff_t)i * tx->stride[axis];
        ptrdiff_t to = y + (ptrdiff_t)i * ty->stride[axis];

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

/* @t with one element along the axis: a walk over it visits the start of each line. */
static struct mdl_tensor starts(const struct krn_call *c, const struct mdl_tensor *t)
{
    struct mdl_tensor lines = *t;

    lines.dim[c->op->attr.cumsum.axis] = 1;
    return lines;
}

static void cumsum_body(const struct krn_call *c, size_t begin, size_t end)
{
    struct mdl_tensor x = starts(c, ref_in(c, 0)), y = starts(c, ref_out(c, 0));
    struct ref_walk w;

    ref_walk_start(&w, &y, begin);
    ref_walk_add(&w, &x);
    ref_walk_add(&w, &y);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        cumsum_line(c, w.at[0], w.at[1]);
    }
}

static void cumsum_run(const struct krn_call *c)
{
    struct mdl_tensor lines = starts(c, ref_out(c, 0));

    ref_share(c, mdl_elements(&lines), cumsum_body);
}

static bool cumsum_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->dtype == y->dtype && x->dtype != MDL_BOOL && x->rank == y->rank &&
           op->attr.cumsum.axis < x->rank && ref_plain(op);
}

REF_PRIMITIVE(cumsum, MDL_OP_CUMSUM, cumsum_supports, cumsum_run);
