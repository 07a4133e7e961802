/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref/ref.h"
#include "kernels/table.h"

static void move_element(const struct krn_call *c, ptrdiff_t y, ptrdiff_t x)
{
    ptrdiff_t bytes = (ptrdiff_t)mdl_dtype_bytes(ref_out(c, 0)->dtype);

    memcpy((char *)c->out[0] + y * bytes, (const char *)c->in[0] + x * bytes, (size_t)bytes);
}

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

static void pad_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
    const struct mdl_op *op = c->op;
    struct ref_walk w;

    ref_walk_start(&w, y, begin);
    ref_walk_add(&w, y);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        size_t from[MDL_RANK_MAX];
        bool inside = true;

        for (size_t d = 0; d < y->rank && inside; d++) {
            inside = pad_source(op->attr.pad.mode, (ptrdiff_t)w.index[d] - op->attr.pad.begin[d],
                                x->dim[d], &from[d]);
        }
        if (inside) {
            move_element(c, w.at[0], ref_offset(x, from));
        } else {
            ref_set_f64(c->out[0], y->dtype, w.at[0], op->attr.pad.value);
        }
    }
}

REF_EACH_ELEMENT(pad)

static bool pad_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->dtype == y->dtype && x->rank == y->rank && ref_plain(op) &&
           (unsigned)op->attr.pad.mode <= MDL_PAD_WRAP;
}

REF_PRIMITIVE(pad, MDL_OP_PAD, pad_supports, pad_run);
