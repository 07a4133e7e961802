/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution over XNNPACK: indirect GEMM, a plain one for 1x1, or its depthwise kernels. Images
 * may have any distance between pixels, but no gaps between rows.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/lib/xnn.h"
#include "kernels/table.h"

static bool conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *c)
{
    /* y is written before the residual is read; the window of an image in both directions; some
     * depthwise kernels read whole vectors, also behind the last channel */
    return krn_conv_of(m, op, c) && krn_img_flat(&c->x) && !krn_epilogue_aliased(m, op) &&
           (c->cg > 1 || c->og > 1 || c->groups == 1 || c->groups % KRN_XNN_STEP == 0) &&
           krn_xnn_ready();
}

static int make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct krn_conv c;
    struct krn_xnn_limits l;
    xnn_operator_t x;
    base_autofree float *kernel = NULL;
    size_t line;
    int r;

    if (!conv_of(m, op, &c)) {
        return -EOPNOTSUPP;
    }
    line = c.taps * c.cg;
    kernel = calloc(c.y.c * line, sizeof(float));
    if (!kernel) {
        return -ENOMEM;
    }
    krn_conv_pack(m, op, &c, &(struct krn_conv_order){c.og * line, line, 1, c.cg}, kernel);
    krn_xnn_range(op, &l.min, &l.max);
    r = krn_xnn_make_conv(&c, kernel, op->shift, l, &x);
    return r < 0
               ? r
               : krn_xnn_set_up(
                     x, krn_xnn_setup_conv(x, &c, krn_xnn_nowhere(), krn_xnn_nowhere(), NULL), ret);
}

KRN_SUPPORTS_AS(supports, struct krn_conv, conv_of)

KRN_XNN_PREPARE(prepare, struct krn_conv, conv_of, make,
                (p.taps * p.cg + 1) * p.y.c * sizeof(float))

static void run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_xnn_rest(call->op, krn_epilogue_of(call));
    struct krn_conv c;

    krn_conv_of(call->model, call->op, &c);
    krn_xnn_setup_conv(x, &c, call->in[0], call->out[0], call->pool);
    krn_xnn_finish(call, x, &e, &c.y, &krn_conv__ref);
}

KRN_PRIMITIVE(conv_f32_nhwc__xnn, MDL_OP_CONV, .needs = KRN_XNN_NEEDS, .whole = true,
              .supports = supports, .prepare = prepare, .release = krn_xnn_release, .run = run);
