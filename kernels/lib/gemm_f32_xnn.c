/* SPDX-License-Identifier: Apache-2.0 */
/* Products with constant weights over XNNPACK's fully connected operator. */
#include "base.h"
#include "kernels/table.h"
#include "kernels/lib/xnn_versions.h"

static bool product_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *p)
{
    bool aliased = op->residual != MDL_RESIDUAL_NONE &&
                   m->tensors[op->residual_in].storage == m->tensors[op->out[0]].storage;

    /* some kernels of 2024 read whole vectors, also behind the last value of a row */
    return krn_product_of(m, op, p) && p->b_const && !aliased && p->k % KRN_XNN_STEP == 0 &&
           krn_xnn_ready();
}

static int make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct krn_product p;
    struct krn_xnn_limits l;
    const uint8_t *b;
    float *kernel, *at;
    int r;

    if (!product_of(m, op, &p)) {
        return -EOPNOTSUPP;
    }
    b = krn_const_ptr(m, op->in[1]);
    kernel = at = calloc(p.n * p.k, sizeof(float));
    if (!kernel) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < p.n; n++) {
        float scale = p.alpha * (op->scale ? op->scale[n] : 1.0f);

        for (size_t k = 0; k < p.k; k++) {
            *at++ = scale * krn_load_unaligned(b, (ptrdiff_t)n * p.b_n + (ptrdiff_t)k * p.b_k);
        }
    }
    krn_xnn_range(op, &l.min, &l.max);
    r = krn_xnn_make_product(&p, kernel, op->shift, l, ret);
    free(kernel);
    return r;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_product p;

    return product_of(m, op, &p);
}

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *ret)
{
    struct krn_product p;

    return product_of(m, op, &p) ? krn_xnn_new(m, op, make, (p.k + 1) * p.n * sizeof(float), ret)
                                 : -EOPNOTSUPP;
}

static void run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_xnn_rest(call->op, krn_product_epilogue(call));
    struct krn_product p;

    krn_product_of(call->model, call->op, &p);
    krn_xnn_setup_product(x, &p, call->in[0], call->out[0], call->pool);
    krn_xnn_finish_or(call, x, &e, &p.y_as_pixels,
                      call->op->kind == MDL_OP_GEMM ? &krn_gemm__ref : &krn_matmul__ref);
}

const struct krn_variant krn_gemm_f32__xnn = {
    .name = "gemm_f32__xnn",
    .kind = MDL_OP_GEMM,
    .needs = KRN_XNN_NEEDS,
    .supports = supports,
    .prepare = prepare,
    .release = krn_xnn_release,
    .run = run,
};

const struct krn_variant krn_matmul_f32__xnn = {
    .name = "matmul_f32__xnn",
    .kind = MDL_OP_MATMUL,
    .needs = KRN_XNN_NEEDS,
    .supports = supports,
    .prepare = prepare,
    .release = krn_xnn_release,
    .run = run,
};
