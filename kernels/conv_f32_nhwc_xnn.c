/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution over XNNPACK: indirect GEMM, a plain one for 1x1, or its depthwise kernels. Images
 * may have any distance between pixels, but no gaps between rows.
 */
#include <limits.h>

#include "base.h"
#include "kernels/xnn.h"

static bool conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *c)
{
    /* y is written before the residual is read; the window of an image in both directions; some
     * depthwise kernels read four channels at a time, also behind the last one */
    return krn_conv_of(m, op, c) && krn_img_flat(&c->x) && !krn_epilogue_aliased(m, op) &&
           (c->cg > 1 || c->og > 1 || c->groups == 1 || c->groups % 4 == 0) && krn_xnn_ready();
}

/* [o][tap][c] with the scale in it */
static void weights(const struct mdl_model *m, const struct mdl_op *op, const struct krn_conv *c,
                    float *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);

    for (size_t o = 0; o < c->y.c; o++) {
        float scale = op->scale ? op->scale[o] : 1.0f;

        for (size_t t = 0; t < c->taps; t++) {
            ptrdiff_t at = (ptrdiff_t)o * w->stride[0] + (ptrdiff_t)t * c->tap_stride;

            for (size_t k = 0; k < c->cg; k++) {
                *dst++ = scale * krn_load_unaligned(src, at + (ptrdiff_t)k * w->stride[1]);
            }
        }
    }
}

static int make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct krn_conv c;
    const struct krn_win *w = &c.win;
    float min, max, *kernel;
    xnn_operator_t x = NULL;
    enum xnn_status s;
    int r;

    if (!conv_of(m, op, &c)) {
        return -EOPNOTSUPP;
    }
    kernel = calloc(c.y.c * c.taps * c.cg, sizeof(float));
    if (!kernel) {
        return -ENOMEM;
    }
    weights(m, op, &c, kernel);
    krn_xnn_range(op, &min, &max);
    s = xnn_create_convolution2d_nhwc_f32(
        (uint32_t)w->top,
        (uint32_t)krn_xnn_padding(c.y.w, w->sw, (w->kw - 1) * w->dw + 1, w->left, c.x.w),
        (uint32_t)krn_xnn_padding(c.y.h, w->sh, (w->kh - 1) * w->dh + 1, w->top, c.x.h),
        (uint32_t)w->left, (uint32_t)w->kh, (uint32_t)w->kw, (uint32_t)w->sh, (uint32_t)w->sw,
        (uint32_t)w->dh, (uint32_t)w->dw, (uint32_t)c.groups, c.cg, c.og, c.x.pixel, c.y.pixel,
        kernel, op->shift, min, max, KRN_XNN_FLAGS, &x);
    free(kernel);
    r = krn_xnn_error(s);
    if (r < 0) {
        return r;
    }
    /* The first setup makes the table of row pointers, relative to its input; later ones move all
     * but those that point to zeros. Nothing lies at the address that this one gives or behind it,
     * so that no row is taken for the zeros. Nothing is read here. */
    float *nowhere = (float *)((uintptr_t)1 << (sizeof(uintptr_t) * CHAR_BIT - 2));

    r = krn_xnn_setup_conv(x, &c.x, nowhere, nowhere, NULL);
    if (r < 0) {
        xnn_delete_operator(x);
        return r;
    }
    *ret = x;
    return 0;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_conv c;

    return conv_of(m, op, &c);
}

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *p)
{
    struct krn_conv c;

    return conv_of(m, op, &c)
               ? krn_xnn_new(m, op, make, (c.taps * c.cg + 1) * c.y.c * sizeof(float), p)
               : -EOPNOTSUPP;
}

static void run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_xnn_rest(call->op, krn_epilogue_of(call));
    struct krn_conv c;

    krn_conv_of(call->model, call->op, &c);
    krn_xnn_setup_conv(x, &c.x, call->in[0], call->out[0], call->pool);
    krn_xnn_finish(call, x, &e, &c.y);
}

const struct krn_variant krn_conv_f32_nhwc__xnn = {
    .name = "conv_f32_nhwc__xnn",
    .kind = MDL_OP_CONV,
#ifdef __x86_64__
    .needs = KRN_CPU_AVX2, /* kernels for older CPUs read behind the last channel */
#endif
    .supports = supports,
    .prepare = prepare,
    .release = krn_xnn_release,
    .run = run,
};
