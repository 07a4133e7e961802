/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/conv_f32_dnnl.h"

bool krn_dnnl_is_dense(const struct krn_img *i)
{
    return i->pixel == i->c && krn_img_flat(i);
}

static int image_md(const struct krn_img *i, dnnl_format_tag_t tag, struct krn_dnnl_md *ret)
{
    dnnl_dims_t dims = {(dnnl_dim_t)i->n, (dnnl_dim_t)i->c, (dnnl_dim_t)i->h, (dnnl_dim_t)i->w};

    return krn_dnnl_md_tag(ret, 4, dims, dnnl_f32, tag);
}

int krn_dnnl_f32_weights_md(const struct krn_conv *c, bool plain, struct krn_dnnl_md *ret)
{
    dnnl_dim_t g = (dnnl_dim_t)c->groups, og = (dnnl_dim_t)c->og, cg = (dnnl_dim_t)c->cg;
    dnnl_dim_t kh = (dnnl_dim_t)c->win.kh, kw = (dnnl_dim_t)c->win.kw;

    return c->groups > 1 ? krn_dnnl_md_tag(ret, 5, (dnnl_dims_t){g, og, cg, kh, kw}, dnnl_f32,
                                           plain ? dnnl_goihw : dnnl_format_tag_any)
                         : krn_dnnl_md_tag(ret, 4, (dnnl_dims_t){og, cg, kh, kw}, dnnl_f32,
                                           plain ? dnnl_oihw : dnnl_format_tag_any);
}

static bool append_residual(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                            dnnl_post_ops_t post)
{
    krn_dnnl_auto_md md = {0};

    if (p->res_in_place) {
        return p->y_dense && krn_dnnl_append_sum(post);
    }
    /* the library's other kernels misplace the second operand of a binary post-op */
    return p->team.pointwise && krn_dnnl_is_dense(&p->res) &&
           image_md(&s->y, dnnl_nhwc, &md) == 0 && krn_dnnl_append_add(post, &md);
}

static bool append_all(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                       dnnl_post_ops_t post)
{
    enum mdl_residual r = p->op->residual;

    if (p->flavour == KRN_DNNL_WINOGRAD && r != MDL_RESIDUAL_NONE) {
        return false; /* y is in another layout */
    }
    return (r != MDL_RESIDUAL_BEFORE_ACT || append_residual(p, s, post)) &&
           krn_dnnl_append_act(post, p->op) &&
           (r != MDL_RESIDUAL_AFTER_ACT || append_residual(p, s, post));
}

static void window_of(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                      struct krn_dnnl_window *ret)
{
    const struct krn_win *w = &p->c.win;

    *ret = (struct krn_dnnl_window){
        .strides = {(dnnl_dim_t)w->sh, (dnnl_dim_t)w->sw},
        .dilates = {(dnnl_dim_t)w->dh - 1, (dnnl_dim_t)w->dw - 1},
        .pad_begin = {(dnnl_dim_t)s->top, (dnnl_dim_t)s->left},
        .pad_end = {(dnnl_dim_t)s->bottom, (dnnl_dim_t)s->right},
    };
}

/* Return: a description with @attr, or NULL. Weights are as packed, or, if not packed yet, in the
 * library's preferred layout. */
static dnnl_primitive_desc_t pd_with(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                                     const_dnnl_primitive_attr_t attr)
{
    dnnl_format_tag_t tag = p->flavour == KRN_DNNL_WINOGRAD ? dnnl_format_tag_any : dnnl_nhwc;
    krn_dnnl_auto_md x = {0};
    krn_dnnl_auto_md any = {0};
    krn_dnnl_auto_md bias = {0};
    krn_dnnl_auto_md y = {0};
    struct krn_dnnl_window w;

    if (image_md(&s->x, tag, &x) < 0 || image_md(&s->y, tag, &y) < 0 ||
        krn_dnnl_f32_weights_md(&p->c, false, &any) < 0 ||
        krn_dnnl_md_tag(&bias, 1, (dnnl_dims_t){(dnnl_dim_t)p->c.y.c}, dnnl_f32, dnnl_a) < 0) {
        return NULL;
    }
    window_of(p, s, &w);
    return krn_dnnl_if_fast(krn_dnnl_conv_pd(
        p->flavour == KRN_DNNL_WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct,
        &(struct krn_dnnl_tensors){&x, krn_dnnl_md_bytes(&p->weights) ? &p->weights : &any,
                                   p->op->shift ? &bias : NULL, &y},
        &w, attr));
}

static dnnl_primitive_desc_t conv_pd(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                                     enum krn_dnnl_fused fused)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_primitive_desc_t pd = NULL;

    if (dnnl_post_ops_create(&post) != dnnl_success) {
        return NULL;
    }
    if (fused == KRN_DNNL_FUSED_BIAS || append_all(p, s, post)) {
        attr = krn_dnnl_attr(post, p->flavour == KRN_DNNL_BF16 ? dnnl_fpmath_mode_bf16
                                                               : dnnl_fpmath_mode_strict);
        pd = attr ? pd_with(p, s, attr) : NULL;
        dnnl_primitive_attr_destroy(attr);
    }
    dnnl_post_ops_destroy(post);
    return pd;
}

dnnl_primitive_desc_t krn_dnnl_f32_pd(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                                      int *ret_fused)
{
    dnnl_primitive_desc_t pd = conv_pd(p, s, KRN_DNNL_FUSED_ALL);

    *ret_fused = KRN_DNNL_FUSED_ALL;
    if (!pd && !p->res_in_place) { /* else the residual would be overwritten before the epilogue
                                    * reads it */
        *ret_fused = KRN_DNNL_FUSED_BIAS;
        pd = conv_pd(p, s, KRN_DNNL_FUSED_BIAS);
    }
    return pd;
}
