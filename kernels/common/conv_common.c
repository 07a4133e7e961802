/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/conv_common.h"

#include "base/base.h"

bool krn_conv_shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *c)
{
    const struct mdl_window *w = &op->attr.conv.window;
    const struct mdl_tensor *weights = &m->tensors[op->in[1]];
    size_t rank = m->tensors[op->in[0]].rank;
    bool back = op->kind == MDL_OP_CONV_TRANSPOSE;

    c->groups = op->attr.conv.groups;
    if (c->x.n != c->y.n || m->tensors[op->out[0]].rank != rank || weights->rank != rank ||
        !krn_win_of(w, rank, &c->win) || (!back && !krn_win_fits(w, &c->x, &c->y)) ||
        c->groups == 0 || c->x.c % c->groups != 0 || c->y.c % c->groups != 0) {
        return false;
    }
    c->cg = c->x.c / c->groups;
    c->og = c->y.c / c->groups;
    c->taps = c->win.kh * c->win.kw;
    for (size_t d = 0; d < w->rank; d++) {
        if (weights->dim[2 + d] != w->kernel[d]) {
            return false;
        }
    }
    return weights->dim[0] == (back ? c->x.c : c->y.c) && weights->dim[1] == (back ? c->og : c->cg);
}

bool krn_conv_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *ret)
{
    const struct mdl_tensor *weights;
    struct krn_conv c = {0};

    if (op->kind != MDL_OP_CONV || op->in[2] != MDL_NONE || !krn_is_const_f32(m, op->in[1]) ||
        !krn_img_of(&m->tensors[op->in[0]], &c.x) || !krn_img_of(&m->tensors[op->out[0]], &c.y) ||
        !krn_img_flat(&c.y) || !krn_conv_shape_of(m, op, &c)) {
        return false;
    }
    weights = &m->tensors[op->in[1]];
    c.tap_stride = weights->stride[weights->rank - 1];
    if (weights->rank == 4 && c.win.kh > 1) {
        ptrdiff_t ky_stride = weights->stride[2];

        if (c.win.kw == 1) {
            c.tap_stride = ky_stride;
        } else if (ky_stride != c.tap_stride * (ptrdiff_t)c.win.kw) {
            return false;
        }
    }
    if ((op->scale && op->channels != c.y.c) || !krn_epilogue_supports(m, op, &c.y)) {
        return false;
    }
    *ret = c;
    return true;
}

void krn_conv_pack(const struct mdl_model *m, const struct mdl_op *op, const struct krn_conv *c,
                   const struct krn_conv_order *order, float *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);

    for (size_t o = 0; o < c->y.c; o++) {
        float *out = dst + o / c->og * order->group + o % c->og * order->o;
        float scale = op->scale ? op->scale[o] : 1.0f;

        for (size_t i = 0; i < c->cg; i++) {
            ptrdiff_t at = (ptrdiff_t)o * w->stride[0] + (ptrdiff_t)i * w->stride[1];

            for (size_t t = 0; t < c->taps; t++) {
                out[i * order->c + t * order->tap] =
                    scale * krn_load_unaligned(src, at + (ptrdiff_t)t * c->tap_stride);
            }
        }
    }
}

bool krn_product_shape_of(const struct mdl_model *m, const struct mdl_op *op,
                          struct krn_product *ret)
{
    bool gemm = op->kind == MDL_OP_GEMM;
    const struct mdl_tensor *b;
    struct krn_img x, y;
    size_t k = gemm && op->attr.gemm.trans_b ? 1 : 0;

    if ((!gemm && op->kind != MDL_OP_MATMUL) || (gemm && op->attr.gemm.trans_a)) {
        return false;
    }
    b = &m->tensors[op->in[1]];
    if (b->rank != 2 || b->dim[0] == 0 || b->dim[1] == 0 ||
        !krn_rows_of(&m->tensors[op->in[0]], &x) || !krn_rows_of(&m->tensors[op->out[0]], &y) ||
        x.w != y.w || x.c != b->dim[k] || y.c != b->dim[1 - k]) {
        return false;
    }
    *ret = (struct krn_product){.m = x.w,
                                .n = y.c,
                                .k = x.c,
                                .lda = x.pixel,
                                .ldy = y.pixel,
                                .b_k = b->stride[k],
                                .b_n = b->stride[1 - k],
                                .alpha = gemm ? op->attr.gemm.alpha : 1.0f,
                                .y_as_pixels = y};
    return true;
}

bool krn_product_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_product *ret)
{
    struct krn_product p;

    if (!krn_product_shape_of(m, op, &p) || op->in[2] != MDL_NONE ||
        m->tensors[op->in[0]].dtype != MDL_F32 || m->tensors[op->in[1]].dtype != MDL_F32 ||
        m->tensors[op->out[0]].dtype != MDL_F32) {
        return false;
    }
    p.b_const = krn_is_const_f32(m, op->in[1]);
    if (((op->scale || op->shift) && (!p.b_const || op->channels != p.n)) ||
        !krn_epilogue_supports(m, op, &p.y_as_pixels)) {
        return false;
    }
    *ret = p;
    return true;
}

void krn_product_take_frames(struct krn_product *p, size_t frames)
{
    if (frames > 1) {
        p->m = frames;
        p->lda = p->k;
        p->ldy = p->n;
        p->y_as_pixels = krn_rows_image(frames, p->n, p->n);
    }
}

bool krn_product_frames(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_product p;

    return krn_product_of(m, op, &p) && p.b_const && p.m == 1 && op->residual == MDL_RESIDUAL_NONE;
}

void krn_product_pack(const struct mdl_model *m, const struct mdl_op *op,
                      const struct krn_product *p, struct krn_range outputs, float *dst)
{
    const uint8_t *b = krn_const_ptr(m, op->in[1]);

    for (size_t n = outputs.begin; n < outputs.end; n++) {
        float scale = p->alpha * (op->scale ? op->scale[n] : 1.0f);

        for (size_t k = 0; k < p->k; k++) {
            *dst++ = scale * krn_load_unaligned(b, (ptrdiff_t)n * p->b_n + (ptrdiff_t)k * p->b_k);
        }
    }
}

struct krn_conv krn_product_as_conv(const struct krn_product *p)
{
    return (struct krn_conv){
        .x = krn_rows_image(p->m, p->k, p->lda),
        .y = p->y_as_pixels,
        .win = {.kh = 1, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1},
        .groups = 1,
        .cg = p->k,
        .og = p->n,
        .taps = 1,
    };
}
