/* SPDX-License-Identifier: Apache-2.0 */
/* Products with constant weights over XNNPACK's fully connected operator. */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/lib/xnn.h"
#include "kernels/table.h"

static bool product_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *p)
{
    /* some kernels of 2024 read whole vectors, also behind the last value of a row */
    return krn_product_of(m, op, p) && p->b_const && !krn_epilogue_aliased(m, op) &&
           p->k % KRN_XNN_STEP == 0 && krn_xnn_ready();
}

static int make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct krn_product p;
    struct krn_xnn_limits l;
    base_autofree float *kernel = NULL;

    if (!product_of(m, op, &p)) {
        return -EOPNOTSUPP;
    }
    kernel = calloc(p.n * p.k, sizeof(float));
    if (!kernel) {
        return -ENOMEM;
    }
    krn_product_pack(m, op, &p, (struct krn_range){0, p.n}, kernel);
    krn_xnn_range(op, &l.min, &l.max);
    return krn_xnn_make_product(&p, kernel, op->shift, l, ret);
}

KRN_SUPPORTS_AS(supports, struct krn_product, product_of)

KRN_XNN_PREPARE(prepare, struct krn_product, product_of, make, (p.k + 1) * p.n * sizeof(float))

static void run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_xnn_rest(call->op, krn_epilogue_of(call));
    struct krn_product p;

    krn_product_of(call->model, call->op, &p);
    krn_xnn_setup_product(x, &p, call->in[0], call->out[0], call->pool);
    krn_xnn_finish(call, x, &e, &p.y_as_pixels,
                   call->op->kind == MDL_OP_GEMM ? &krn_gemm__ref : &krn_matmul__ref);
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_PRIMITIVE(what##_f32__xnn, kind, .needs = KRN_XNN_NEEDS, .whole = true,                    \
                  .supports = supports, .prepare = prepare, .release = krn_xnn_release,            \
                  .run = run);
KRN_PRODUCTS(PRIMITIVE)
