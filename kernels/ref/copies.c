/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * COPY  y = cast(x), strides and dtype may differ            Source: ONNX Cast, Identity, Transpose
 * Between equal dtypes the bits are moved. Integers are cut to the narrower type, reals truncated.
 */
static void copy_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct mdl_tensor *x = ref_in(c, 0), *y = ref_out(c, 0);
    size_t bytes = mdl_dtype_bytes(y->dtype);
    struct ref_walk w;

    ref_walk_start(&w, y, begin);
    ref_walk_add(&w, y);
    ref_walk_add(&w, x);
    ref_walk_add_residual(&w, c);
    for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {
        if (y->dtype == MDL_F32 && !ref_plain(c->op)) {
            ref_set_f32(c->out[0], w.at[0],
                        ref_finish(c, ref_f64(c->in[0], x->dtype, w.at[1]), w.at[2]));
        } else if (x->dtype == y->dtype) {
            memcpy((char *)c->out[0] + w.at[0] * (ptrdiff_t)bytes,
                   (const char *)c->in[0] + w.at[1] * (ptrdiff_t)bytes, bytes);
        } else if (ref_is_int(x->dtype)) {
            ref_set_i64(c->out[0], y->dtype, w.at[0], ref_i64(c->in[0], x->dtype, w.at[1]));
        } else {
            ref_set_f64(c->out[0], y->dtype, w.at[0], ref_f64(c->in[0], x->dtype, w.at[1]));
        }
    }
}

REF_EACH_ELEMENT(copy)

static bool copy_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return mdl_elements(&m->tensors[op->in[0]]) == mdl_elements(&m->tensors[op->out[0]]) &&
           ref_epilogue_ok(m, op);
}

REF_PRIMITIVE(copy, MDL_OP_COPY, copy_supports, copy_run);
