/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's descriptions of int8 convolutions: whole images, and bands of rows. */
#include "kernels/lib/conv_i8_dnnl.h"

#include <string.h>

#include "kernels/i8/quant_rows.h"

#define SUM_BYTES (256u * 1024u)  /* of a band, with its input inside L2 */
#define SUM_MAX ((1 << 24) / 255) /* of an output's weights of one sign */
#define WEIGHT_MAX 64

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_dnnl_i8 *p)
{
    struct krn_product r;

    if (op->kind == MDL_OP_CONV) {
        if (!krn_quant_conv_of(m, op, &p->c)) {
            return false;
        }
        p->w_o = (ptrdiff_t)(p->c.cg * p->c.taps);
        p->w_c = (ptrdiff_t)p->c.taps;
        return p->c.cg > 1; /* a depthwise one is not for dot products */
    }
    if (!krn_quant_product_of(m, op, &r)) {
        return false;
    }
    p->c = krn_product_as_conv(&r);
    p->w_o = r.b_n;
    p->w_c = r.b_k;
    return true;
}

bool krn_dnnl_i8_problem(const struct mdl_model *m, const struct mdl_op *op,
                         struct krn_dnnl_i8 *ret)
{
    struct krn_dnnl_i8 p = {.m = m, .op = op};
    const struct krn_conv *c = &p.c;
    const struct krn_win *w = &p.c.win;
    bool is_signed = m->tensors[op->in[0]].dtype == MDL_I8, dense, inside;
    size_t span_h, span_w;

    if (!shape_of(m, op, &p) || !krn_quant_weights_fit(m, op)) {
        return false;
    }
    span_h = (w->kh - 1) * w->dh + 1;
    span_w = (w->kw - 1) * w->dw + 1;
    p.flip = is_signed ? 0x80 : 0;
    p.zero = (uint8_t)(op->quant->x_zero + (is_signed ? 128 : 0));
    p.pixels = krn_conv_is_pointwise(c) && krn_img_flat(&c->x);
    p.gathered = c->taps == 1 && !p.pixels;
    dense = c->x.pixel == c->x.c && !p.flip;
    inside = w->top == 0 && w->left == 0 && (c->y.h - 1) * w->sh + span_h <= c->x.h &&
             c->x.w >= span_w && (c->x.w - span_w) / w->sw + 1 == c->y.w;
    p.direct = dense && (p.pixels || (!p.gathered && inside && c->x.row == c->x.w * c->x.c));
    p.images = p.pixels ? 1 : c->y.n;
    p.units = p.pixels ? c->y.n * c->y.h * c->y.w : c->y.h;
    *ret = p;
    return true;
}

int8_t krn_dnnl_i8_weight(const struct krn_dnnl_i8 *p, const uint8_t *w, size_t o, size_t c,
                          size_t t)
{
    uint8_t flip = p->m->tensors[p->op->in[1]].dtype == MDL_I8 ? 0 : 0x80;

    return (int8_t)(w[(ptrdiff_t)o * p->w_o + (ptrdiff_t)c * p->w_c + (ptrdiff_t)t] ^ flip);
}

bool krn_dnnl_i8_is_exact(const struct krn_dnnl_i8 *p, bool dot)
{
    const uint8_t *w = krn_const_ptr(p->m, p->op->in[1]);

    for (size_t o = 0; o < p->c.y.c; o++) {
        int32_t up = 0, down = 0;

        for (size_t c = 0; c < p->c.cg; c++) {
            for (size_t t = 0; t < p->c.taps; t++) {
                int32_t v = krn_dnnl_i8_weight(p, w, o, c, t);

                if (!dot && (v > WEIGHT_MAX || v < -WEIGHT_MAX)) {
                    return false;
                }
                up += v > 0 ? v : 0;
                down -= v < 0 ? v : 0;
            }
            if (up > SUM_MAX || down > SUM_MAX) {
                return false;
            }
        }
    }
    return true;
}

int krn_dnnl_i8_weights_md(const struct krn_dnnl_i8 *p, dnnl_format_tag_t tag,
                           struct krn_dnnl_md *ret)
{
    const struct krn_conv *c = &p->c;
    dnnl_dims_t dims = {(dnnl_dim_t)c->groups, (dnnl_dim_t)c->og, (dnnl_dim_t)c->cg,
                        (dnnl_dim_t)c->win.kh, (dnnl_dim_t)c->win.kw};
    size_t first = c->groups == 1;

    if (tag != dnnl_format_tag_any) {
        tag = c->groups == 1 ? dnnl_oihw : dnnl_goihw;
    }
    return krn_dnnl_md_tag(ret, (int)(5 - first), dims + first, dnnl_s8, tag);
}

size_t krn_dnnl_i8_band_width(const struct krn_dnnl_i8 *p)
{
    const struct krn_win *w = &p->c.win;

    return p->direct     ? p->c.x.w
           : p->gathered ? p->c.y.w
                         : (p->c.y.w - 1) * w->sw + (w->kw - 1) * w->dw + 1;
}

size_t krn_dnnl_i8_band_height(const struct krn_dnnl_i8 *p, size_t units)
{
    const struct krn_win *w = &p->c.win;

    return p->gathered ? units : (units - 1) * w->sh + (w->kh - 1) * w->dh + 1;
}

static int image_md(size_t c, size_t h, size_t w, dnnl_data_type_t type, struct krn_dnnl_md *ret)
{
    dnnl_dims_t dims = {1, (dnnl_dim_t)c, (dnnl_dim_t)h, (dnnl_dim_t)w};

    return krn_dnnl_md_tag(ret, 4, dims, type, dnnl_nhwc);
}

static int band_md(const struct krn_dnnl_i8 *p, size_t units, struct krn_dnnl_md *x,
                   struct krn_dnnl_md *y)
{
    size_t c = p->c.x.c, o = p->c.y.c;
    int r;

    if (p->pixels) {
        r = image_md(c, 1, units, dnnl_u8, x);
        return r < 0 ? r : image_md(o, 1, units, dnnl_s32, y);
    }
    r = image_md(c, krn_dnnl_i8_band_height(p, units), krn_dnnl_i8_band_width(p), dnnl_u8, x);
    return r < 0 ? r : image_md(o, units, p->c.y.w, dnnl_s32, y);
}

bool krn_dnnl_i8_has_dot(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";

    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strstr(name, "vnni") || strstr(name, "amx");
}

/* @weights: as packed. Return: a description, or NULL. */
static dnnl_primitive_desc_t band_pd(const struct krn_dnnl_i8 *p, size_t units,
                                     const struct krn_dnnl_md *weights)
{
    const struct krn_win *w = &p->c.win;
    bool plain = p->pixels || p->gathered;
    struct krn_dnnl_window window = {
        .strides = {plain ? 1 : (dnnl_dim_t)w->sh, plain ? 1 : (dnnl_dim_t)w->sw},
        .dilates = {(dnnl_dim_t)w->dh - 1, (dnnl_dim_t)w->dw - 1},
    };
    krn_dnnl_auto_md x = {0}, y = {0};
    struct krn_dnnl_tensors tensors = {.x = &x, .weights = weights, .y = &y};
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;

    if (band_md(p, units, &x, &y) < 0) {
        return NULL;
    }
    attr = krn_dnnl_attr(NULL, dnnl_fpmath_mode_strict);
    pd = attr ? krn_dnnl_conv_pd(dnnl_convolution_direct, &tensors, &window, attr) : NULL;
    dnnl_primitive_attr_destroy(attr);
    return krn_dnnl_if_fast(pd);
}

void krn_dnnl_i8_bands(const struct krn_dnnl_i8 *p, size_t width, struct krn_dnnl_i8_split *s)
{
    size_t unit_bytes = (p->pixels ? 1 : p->c.y.w) * p->c.y.c * sizeof(int32_t);
    size_t most = base_max(SUM_BYTES / unit_bytes, 1u), bands = (p->units + most - 1) / most;

    if (p->images < 4 * width) {
        bands = (bands + width - 1) / width * width;
    }
    s->units = (p->units + bands - 1) / bands;
    s->bands = (p->units + s->units - 1) / s->units;
}

dnnl_primitive_desc_t krn_dnnl_i8_pd(const struct krn_dnnl_i8 *p, const struct krn_dnnl_md *weights,
                                     struct krn_dnnl_i8_split *s)
{
    dnnl_primitive_desc_t pd = band_pd(p, s->units, weights);
    size_t pixels = s->units * (p->pixels ? 1 : p->c.y.w);
    krn_dnnl_auto_md pad = {0}, x = {0};

    if (!pd) {
        return NULL;
    }
    if (krn_dnnl_md_arg(&pad, pd, DNNL_ARG_SCRATCHPAD) < 0 ||
        krn_dnnl_md_arg(&x, pd, DNNL_ARG_SRC) < 0) {
        dnnl_primitive_desc_destroy(pd);
        return NULL;
    }
    s->x_bytes = p->direct ? 0 : krn_dnnl_align(krn_dnnl_md_bytes(&x));
    s->sum_bytes = krn_dnnl_align(pixels * p->c.y.c * sizeof(int32_t) + KRN_QUANT_ROWS_SLACK);
    s->part_bytes = s->x_bytes + s->sum_bytes + krn_dnnl_align(krn_dnnl_md_bytes(&pad));
    return pd;
}

bool krn_dnnl_i8_packed_md(const struct krn_dnnl_i8 *p, struct krn_dnnl_md *ret)
{
    krn_dnnl_auto_md any = {0};
    struct krn_dnnl_i8_split s = {0};
    dnnl_primitive_desc_t pd;
    bool ok;

    if (!krn_dnnl_alone() || !krn_dnnl_engine() ||
        krn_dnnl_i8_weights_md(p, dnnl_format_tag_any, &any) < 0) {
        return false;
    }
    krn_dnnl_i8_bands(p, 1, &s);
    pd = krn_dnnl_i8_pd(p, &any, &s);
    ok = pd && krn_dnnl_i8_is_exact(p, krn_dnnl_i8_has_dot(pd)) &&
         krn_dnnl_md_arg(ret, pd, DNNL_ARG_WEIGHTS) == 0;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}
