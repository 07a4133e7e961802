/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pools and a mean over height and width (REDUCE) over XNNPACK. Its max pool uses
 * the nearest pixel of the image for one outside; its average pool counts only pixels of the image.
 * Both need windows that contain some of the image. Images may have any pixel stride, but no gaps
 * between rows. If an average may have lost a NaN, the portable primitive runs the op again.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/pool_common.h"
#include "kernels/lib/xnn.h"
#include "kernels/table.h"

/* Return: whether each of @out windows along a dim contains a pixel of the image, after @before of
 * padding. */
static bool each_sees(size_t out, size_t stride, size_t taps, size_t before, size_t size)
{
    return before < taps && (out - 1) * stride < before + size;
}

static bool pads(const struct mdl_op *op)
{
    const struct mdl_window *w = &op->attr.pool.window;
    bool any = false;

    for (size_t d = 0; d < w->rank; d++) {
        any |= w->pad_begin[d] || w->pad_end[d];
    }
    return any;
}

static bool pool_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_xnn_pool *ret)
{
    bool mean = op->kind == MDL_OP_REDUCE, padded = !mean && pads(op), max, dilated;
    struct krn_pool p;
    const struct krn_win *w = &p.win;

    if (!(mean ? krn_pool_mean_of : krn_pool_of)(m, op, &p) || !krn_img_flat(&p.x) ||
        p.x.c % KRN_XNN_STEP != 0 || !krn_xnn_ready() ||
        (!mean && !krn_win_fits(&op->attr.pool.window, &p.x, &p.y))) {
        return false;
    }
    max = op->kind == MDL_OP_MAX_POOL;
    dilated = w->dh > 1 || w->dw > 1;
    *ret = (struct krn_xnn_pool){
        .which = max ? KRN_XNN_MAX : KRN_XNN_AVERAGE, .x = p.x, .y = p.y, .win = p.win};
    if (!max && !padded && w->kh == p.x.h && w->kw == p.x.w) {
        ret->which = KRN_XNN_GLOBAL;
        return true;
    }
    return !(padded && (dilated || p.fixed)) && (max || !dilated) &&
           each_sees(p.y.h, w->sh, w->kh, (size_t)w->top, p.x.h) &&
           each_sees(p.y.w, w->sw, w->kw, (size_t)w->left, p.x.w);
}

/* the primitive that packs nothing and supports every pool of this file */
static const struct krn_primitive *portable_of(const struct mdl_op *op)
{
    return op->kind == MDL_OP_REDUCE     ? &krn_reduce_f32_nhwc_mean__vec
           : op->kind == MDL_OP_MAX_POOL ? &krn_max_pool_f32_nhwc__vec
                                         : &krn_avg_pool_f32_nhwc__vec;
}

static int make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct krn_xnn_pool p;
    xnn_operator_t x;
    int r;

    if (!pool_of(m, op, &p)) {
        return -EOPNOTSUPP;
    }
    r = krn_xnn_make_pool(&p, &x);
    return r < 0 ? r
                 : krn_xnn_set_up(x,
                                  krn_xnn_setup_pool(x, &p, krn_xnn_nowhere(), krn_xnn_nowhere(),
                                                     krn_xnn_nowhere(), NULL),
                                  ret);
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_xnn_pool p;
    size_t space;

    return pool_of(m, op, &p) && krn_xnn_knows_pool(&p, &space);
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    struct krn_xnn_pool p;
    size_t space;

    return pool_of(m, op, &p) && krn_xnn_knows_pool(&p, &space)
               ? width * base_align_up(space, BASE_CACHE_LINE_BYTES)
               : 0;
}

/* pointers to rows, as far as can be told */
KRN_XNN_PREPARE(prepare, struct krn_xnn_pool, pool_of, make,
                p.which == KRN_XNN_GLOBAL ? 0
                                          : p.y.h * p.y.w * p.win.kh * p.win.kw * sizeof(void *))

static void run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_epilogue_of(call);
    struct krn_xnn_pool p;

    pool_of(call->model, call->op, &p);
    krn_xnn_setup_pool(x, &p, call->in[0], call->out[0], call->scratch, call->pool);
    krn_xnn_finish(call, x, &e, &p.y, portable_of(call->op));
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_PRIMITIVE(what##__xnn, kind, .needs = KRN_XNN_NEEDS, .whole = true, .supports = supports,  \
                  .prepare = prepare, .release = krn_xnn_release, .scratch_bytes = scratch_bytes,  \
                  .run = run)

#ifndef __x86_64__
PRIMITIVE(max_pool_f32_nhwc, MDL_OP_MAX_POOL);
#endif
PRIMITIVE(avg_pool_f32_nhwc, MDL_OP_AVG_POOL);
PRIMITIVE(reduce_f32_nhwc_mean, MDL_OP_REDUCE);
