/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution over oneDNN. The team shares output rows (pixels where the window is one pixel,
 * images where there are several), each share with primitives of its own shape and padding; all
 * read the weights that were packed once, in the layout that oneDNN prefers for the whole image.
 * What it does not take as it lies (a part of a concat, a layout of its own for Winograd) is copied
 * through scratch by its reorders.
 *
 * Winograd's F(m x m, 3 x 3) is less exact than a sum: its transforms have coefficients up to 8
 * (m = 4) whose errors do not shrink with the result. Bound: Lavin and Gray, "Fast Algorithms for
 * Convolutional Neural Networks", table 2, measure up to 2.3e-5 for values up to 1 and 512
 * channels.
 */
#include <pthread.h>
#include <string.h>

#include "base.h"
#include "kernels/onednn.h"

#define WIDTH_MAX 64u /* wider teams run the shares of that many members */

enum flavour { DIRECT, WINOGRAD, BF16 };

struct problem {
    const struct mdl_model *m;
    const struct mdl_op *op;
    enum flavour flavour;
    struct krn_conv c;
    struct krn_img res; /* the residual */
    bool res_in_place;  /* it lies exactly where y is written */
    bool pointwise;     /* y's pixels are x's */
    bool x_dense, y_dense;
    size_t shares_max;
};

/* What differs between shares. */
struct shape {
    struct krn_img x, y;
    size_t top, bottom, left, right;
};

/* What the convolution primitive does by itself; the rest is left to the epilogue. */
enum fused { FUSED_ALL, FUSED_BIAS };

struct pieces {
    struct krn_dnnl in, conv, out;
    enum fused fused;
    size_t x_bytes, y_bytes, pad_bytes; /* scratch: copy of x, of y, scratchpad */
};

static bool dense(const struct krn_img *i)
{
    return i->pixel == i->c && krn_img_flat(i);
}

static bool problem_of(const struct mdl_model *m, const struct mdl_op *op, enum flavour flavour,
                       struct problem *ret)
{
    struct problem p = {.m = m, .op = op, .flavour = flavour};
    const struct mdl_tensor *y, *r;
    const struct krn_win *w = &p.c.win;

    if (!krn_conv_of(m, op, &p.c) || (flavour == BF16 && !krn_dnnl_has_bf16())) {
        return false;
    }
    if (op->residual != MDL_RESIDUAL_NONE) {
        y = &m->tensors[op->out[0]];
        r = &m->tensors[op->residual_in];
        p.res_in_place = krn_img_of(r, &p.res) && y->storage == r->storage &&
                         y->offset == r->offset && p.res.pixel == p.c.y.pixel;
        if (krn_epilogue_aliased(m, op) && !p.res_in_place) {
            return false;
        }
    }
    p.pointwise = p.c.taps == 1 && w->sh == 1 && w->sw == 1 && w->top == 0 && w->left == 0 &&
                  krn_img_flat(&p.c.x) && p.c.x.h == p.c.y.h && p.c.x.w == p.c.y.w;
    p.x_dense = dense(&p.c.x);
    p.y_dense = dense(&p.c.y);
    p.shares_max = p.pointwise ? p.c.y.n * p.c.y.h * p.c.y.w : p.c.y.n > 1 ? p.c.y.n : p.c.y.h;
    *ret = p;
    return true;
}

/* one row of pixels */
static struct krn_img pixels_of(const struct krn_img *i, size_t pixels)
{
    return (struct krn_img){.n = 1,
                            .h = 1,
                            .w = pixels,
                            .c = i->c,
                            .pixel = i->pixel,
                            .row = pixels * i->pixel,
                            .batch = pixels * i->pixel};
}

static size_t padding_end(size_t out, size_t stride, size_t span, size_t begin, size_t size)
{
    size_t needed = (out - 1) * stride + span;

    return needed > begin + size ? needed - begin - size : 0;
}

/* The share @at of the outermost dim (pixels, images or rows). @ret_x: offset of its input in
 * elements. Return: false if it would have no input. */
static bool shape_of(const struct problem *p, struct krn_range at, struct shape *ret, size_t *ret_x)
{
    const struct krn_win *w = &p->c.win;
    size_t count = at.end - at.begin;
    size_t span_h = (w->kh - 1) * w->dh + 1, span_w = (w->kw - 1) * w->dw + 1;
    struct shape s = {.x = p->c.x, .y = p->c.y, .left = (size_t)w->left, .top = (size_t)w->top};

    if (p->pointwise) {
        *ret = (struct shape){.x = pixels_of(&p->c.x, count), .y = pixels_of(&p->c.y, count)};
        *ret_x = at.begin * p->c.x.pixel;
        return true;
    }
    s.right = padding_end(s.y.w, w->sw, span_w, s.left, s.x.w);
    if (p->c.y.n > 1) {
        s.x.n = s.y.n = count;
        s.bottom = padding_end(s.y.h, w->sh, span_h, s.top, s.x.h);
        *ret_x = at.begin * s.x.batch;
    } else {
        /* with the rows that the last stride passes over: strided 1x1 kernels want them */
        size_t first = at.begin * w->sh, end = (at.end - 1) * w->sh + base_max(span_h, w->sh);
        size_t begin = first > s.top ? first - s.top : 0;

        if (end <= s.top || begin >= s.x.h) {
            return false;
        }
        end = base_min(end - s.top, s.x.h);
        s.top = first < s.top ? s.top - first : 0;
        *ret_x = begin * s.x.row;
        s.x.h = end - begin;
        s.y.h = count;
        s.x.batch = s.x.h * s.x.row;
        s.y.batch = s.y.h * s.y.row;
        s.bottom = padding_end(s.y.h, w->sh, span_h, s.top, s.x.h);
    }
    *ret = s;
    return true;
}

/* ---- the library's descriptors ---- */

static void image_md(const struct krn_img *i, dnnl_format_tag_t tag, dnnl_memory_desc_t *ret)
{
    dnnl_dims_t dims = {(dnnl_dim_t)i->n, (dnnl_dim_t)i->c, (dnnl_dim_t)i->h, (dnnl_dim_t)i->w};

    dnnl_memory_desc_init_by_tag(ret, 4, dims, dnnl_f32, tag);
}

static void weights_md(const struct problem *p, bool plain, dnnl_memory_desc_t *ret)
{
    const struct krn_conv *c = &p->c;
    dnnl_dim_t o = (dnnl_dim_t)c->y.c, g = (dnnl_dim_t)c->groups, og = (dnnl_dim_t)c->og;
    dnnl_dim_t cg = (dnnl_dim_t)c->cg, kh = (dnnl_dim_t)c->win.kh, kw = (dnnl_dim_t)c->win.kw;

    if (c->groups > 1) {
        dnnl_memory_desc_init_by_tag(ret, 5, (dnnl_dims_t){g, og, cg, kh, kw}, dnnl_f32,
                                     plain ? dnnl_goihw : dnnl_format_tag_any);
    } else {
        dnnl_memory_desc_init_by_tag(ret, 4, (dnnl_dims_t){o, cg, kh, kw}, dnnl_f32,
                                     plain ? dnnl_oihw : dnnl_format_tag_any);
    }
}

/* Element functions that oneDNN computes as exactly as the epilogue does. */
static bool append_act(const struct mdl_op *op, dnnl_post_ops_t post)
{
    switch (op->act) {
    case MDL_ACT_NONE:
        return true;
    case MDL_ACT_RELU:
        return dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0) == dnnl_success;
    case MDL_ACT_LEAKY_RELU:
        return dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, op->act_a, 0) ==
               dnnl_success;
    case MDL_ACT_CLIP:
        return dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_clip, op->act_a, op->act_b) ==
               dnnl_success;
    case MDL_ACT_HARD_SWISH:
        return dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_hardswish, 0, 0) == dnnl_success;
    default:
        return false;
    }
}

static bool append_residual(const struct problem *p, const struct shape *s, dnnl_post_ops_t post)
{
    dnnl_memory_desc_t md;

    if (p->res_in_place) {
        return p->y_dense && dnnl_post_ops_append_sum(post, 1) == dnnl_success;
    }
    /* the library's other kernels find the second operand of a binary post-op at wrong places */
    image_md(&s->y, dnnl_nhwc, &md);
    return p->pointwise && dense(&p->res) &&
           dnnl_post_ops_append_binary(post, dnnl_binary_add, &md) == dnnl_success;
}

static bool append_all(const struct problem *p, const struct shape *s, dnnl_post_ops_t post)
{
    enum mdl_residual r = p->op->residual;

    if (p->flavour == WINOGRAD && r != MDL_RESIDUAL_NONE) {
        return false; /* y is in another layout */
    }
    return (r != MDL_RESIDUAL_BEFORE_ACT || append_residual(p, s, post)) &&
           append_act(p->op, post) && (r != MDL_RESIDUAL_AFTER_ACT || append_residual(p, s, post));
}

static bool slow(const_dnnl_primitive_desc_t pd)
{
    const char *name = "ref";

    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strncmp(name, "ref", 3) == 0;
}

/* @weights: as packed, or NULL for the library's choice. Return: a descriptor, or NULL. */
static dnnl_primitive_desc_t conv_pd(const struct problem *p, const struct shape *s,
                                     const dnnl_memory_desc_t *weights, enum fused fused)
{
    const struct krn_win *w = &p->c.win;
    dnnl_format_tag_t tag = p->flavour == WINOGRAD ? dnnl_format_tag_any : dnnl_nhwc;
    dnnl_memory_desc_t x, any, bias, y;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    dnnl_primitive_desc_t pd = NULL;

    image_md(&s->x, tag, &x);
    image_md(&s->y, tag, &y);
    weights_md(p, false, &any);
    dnnl_memory_desc_init_by_tag(&bias, 1, (dnnl_dims_t){(dnnl_dim_t)p->c.y.c}, dnnl_f32, dnnl_a);
    if (dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_inference,
            p->flavour == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct, &x,
            weights ? weights : &any, p->op->shift ? &bias : NULL, &y,
            (dnnl_dims_t){(dnnl_dim_t)w->sh, (dnnl_dim_t)w->sw},
            (dnnl_dims_t){(dnnl_dim_t)w->dh - 1, (dnnl_dim_t)w->dw - 1},
            (dnnl_dims_t){(dnnl_dim_t)s->top, (dnnl_dim_t)s->left},
            (dnnl_dims_t){(dnnl_dim_t)s->bottom, (dnnl_dim_t)s->right}) != dnnl_success) {
        return NULL;
    }
    if (dnnl_primitive_attr_create(&attr) == dnnl_success &&
        dnnl_post_ops_create(&post) == dnnl_success) {
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
        dnnl_primitive_attr_set_fpmath_mode(attr, p->flavour == BF16 ? dnnl_fpmath_mode_bf16
                                                                     : dnnl_fpmath_mode_strict);
        if ((fused == FUSED_BIAS || append_all(p, s, post)) &&
            dnnl_primitive_attr_set_post_ops(attr, post) == dnnl_success &&
            dnnl_primitive_desc_create(&pd, &desc, attr, krn_dnnl_engine(), NULL) != dnnl_success) {
            pd = NULL;
        }
    }
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    if (pd && slow(pd)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    return pd;
}

/* with everything in it if the library has that, else with the bias alone */
static dnnl_primitive_desc_t best_pd(const struct problem *p, const struct shape *s,
                                     const dnnl_memory_desc_t *weights, enum fused *ret_fused)
{
    dnnl_primitive_desc_t pd = conv_pd(p, s, weights, FUSED_ALL);

    *ret_fused = FUSED_ALL;
    if (!pd && !p->res_in_place) { /* else the sum would be gone before the epilogue reads it */
        *ret_fused = FUSED_BIAS;
        pd = conv_pd(p, s, weights, FUSED_BIAS);
    }
    return pd;
}

/* the layout of the packed weights. Return: whether the whole image can be run */
static bool packed_md(const struct problem *p, dnnl_memory_desc_t *ret)
{
    dnnl_primitive_desc_t pd;
    struct shape s;
    enum fused fused;
    size_t x;

    if (!krn_dnnl_alone() || !krn_dnnl_engine() ||
        !shape_of(p, (struct krn_range){0, p->shares_max}, &s, &x)) {
        return false;
    }
    pd = best_pd(p, &s, NULL, &fused);
    if (!pd) {
        return false;
    }
    *ret = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl_primitive_desc_destroy(pd);
    return true;
}

/* ---- shares ---- */

static size_t align(size_t bytes)
{
    return base_align_up(bytes, BASE_CACHE_LINE_BYTES);
}

static void pieces_deinit(struct pieces *p)
{
    krn_dnnl_deinit(&p->in);
    krn_dnnl_deinit(&p->conv);
    krn_dnnl_deinit(&p->out);
}

/* reorders around the convolution where its x or y is not as ours lies */
static int copies_init(const struct problem *p, const struct shape *s, const dnnl_memory_desc_t *x,
                       const dnnl_memory_desc_t *y, struct pieces *ret)
{
    dnnl_memory_desc_t mine;
    int r = 0;

    krn_dnnl_image(&s->x, &mine);
    if (!p->x_dense || p->flavour == WINOGRAD) {
        ret->x_bytes = align(dnnl_memory_desc_get_size(x));
        r = krn_dnnl_reorder(&ret->in, &mine, x);
    }
    krn_dnnl_image(&s->y, &mine);
    if (r == 0 && (!p->y_dense || p->flavour == WINOGRAD)) {
        ret->y_bytes = align(dnnl_memory_desc_get_size(y));
        r = krn_dnnl_reorder(&ret->out, y, &mine);
    }
    return r;
}

static int pieces_init(const struct problem *p, const struct shape *s,
                       const dnnl_memory_desc_t *weights, struct pieces *ret)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS};
    const dnnl_memory_desc_t *mds[KRN_DNNL_ARGS_MAX];
    int arg[KRN_DNNL_ARGS_MAX];
    dnnl_primitive_desc_t pd = best_pd(p, s, weights, &ret->fused);
    size_t count = base_array_count(args);
    int r;

    if (!pd) {
        return -EOPNOTSUPP;
    }
    memcpy(arg, args, sizeof(args));
    mds[0] = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
    mds[1] = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
    mds[2] = weights;
    if (p->op->shift) {
        arg[count] = DNNL_ARG_BIAS;
        mds[count++] = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1);
    }
    if (ret->fused == FUSED_ALL && p->op->residual != MDL_RESIDUAL_NONE && !p->res_in_place) {
        bool behind = p->op->residual == MDL_RESIDUAL_AFTER_ACT && p->op->act != MDL_ACT_NONE;

        arg[count] = DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)behind) | DNNL_ARG_SRC_1;
        mds[count++] = mds[1];
    }
    r = krn_dnnl_init(&ret->conv, pd, count, arg, mds);
    if (r == 0) {
        r = copies_init(p, s, mds[0], mds[1], ret);
    }
    dnnl_primitive_desc_destroy(pd);
    ret->pad_bytes =
        align(base_max(krn_dnnl_scratch(&ret->conv),
                       base_max(krn_dnnl_scratch(&ret->in), krn_dnnl_scratch(&ret->out))));
    if (r < 0) {
        pieces_deinit(ret);
    }
    return r;
}

struct share {
    struct krn_range at;
    size_t x; /* element of its first input */
    struct shape shape;
    struct pieces *pieces; /* borrowed from the share that owns them */
    bool owner;
};

struct split {
    size_t count, share_bytes; /* scratch of one share */
    struct share shares[];
};

struct object {
    struct problem p;
    dnnl_memory_desc_t weights;
    pthread_mutex_t lock;                          /* of making splits */
    _Atomic(struct split *) splits[WIDTH_MAX + 1]; /* [width], owned */
};

static struct split *split_free(struct split *s)
{
    for (size_t i = 0; s && i < s->count; i++) {
        if (s->shares[i].owner) {
            pieces_deinit(s->shares[i].pieces);
            free(s->shares[i].pieces);
        }
    }
    free(s);
    return NULL;
}

static int share_init(const struct problem *p, const dnnl_memory_desc_t *weights, struct split *s,
                      size_t i)
{
    struct share *share = &s->shares[i];
    int r;

    if (!shape_of(p, share->at, &share->shape, &share->x)) {
        return -EOPNOTSUPP;
    }
    for (size_t k = 0; k < i && !share->pieces; k++) {
        if (memcmp(&s->shares[k].shape, &share->shape, sizeof(share->shape)) == 0) {
            share->pieces = s->shares[k].pieces;
        }
    }
    if (!share->pieces) {
        share->pieces = calloc(1, sizeof(*share->pieces));
        if (!share->pieces) {
            return -ENOMEM;
        }
        share->owner = true;
        r = pieces_init(p, &share->shape, weights, share->pieces);
        if (r < 0) {
            return r;
        }
    }
    s->share_bytes = base_max(s->share_bytes, share->pieces->x_bytes + share->pieces->y_bytes +
                                                  share->pieces->pad_bytes);
    return 0;
}

static int split_new(const struct problem *p, const dnnl_memory_desc_t *weights, size_t width,
                     struct split **ret)
{
    size_t count = base_min(width, p->shares_max);
    struct split *s = calloc(1, sizeof(*s) + count * sizeof(s->shares[0]));
    int r = 0;

    if (!s) {
        return -ENOMEM;
    }
    s->count = count;
    for (size_t i = 0; i < count && r == 0; i++) {
        s->shares[i].at = krn_share(p->shares_max, 1, i, count);
        r = share_init(p, weights, s, i);
    }
    if (r < 0) {
        split_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

/* ---- the row ---- */

static bool supports(const struct mdl_model *m, const struct mdl_op *op, enum flavour flavour)
{
    struct problem p;
    dnnl_memory_desc_t md;

    return problem_of(m, op, flavour, &p) && packed_md(&p, &md);
}

static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op, enum flavour flavour)
{
    struct problem p;
    dnnl_memory_desc_t md;

    return problem_of(m, op, flavour, &p) && packed_md(&p, &md) ? dnnl_memory_desc_get_size(&md)
                                                                : 0;
}

/* [o][c][tap] with the scale in it */
static void plain_weights(const struct problem *p, float *dst)
{
    const struct mdl_tensor *w = &p->m->tensors[p->op->in[1]];
    const uint8_t *src = krn_const_ptr(p->m, p->op->in[1]);

    for (size_t o = 0; o < p->c.y.c; o++) {
        float scale = p->op->scale ? p->op->scale[o] : 1.0f;

        for (size_t c = 0; c < p->c.cg; c++) {
            ptrdiff_t at = (ptrdiff_t)o * w->stride[0] + (ptrdiff_t)c * w->stride[1];

            for (size_t t = 0; t < p->c.taps; t++) {
                *dst++ = scale * krn_load_unaligned(src, at + (ptrdiff_t)t * p->c.tap_stride);
            }
        }
    }
}

static int pack(const struct problem *p, const dnnl_memory_desc_t *weights, void *dst)
{
    struct krn_dnnl reorder = {0};
    dnnl_memory_desc_t plain;
    uint8_t *pad = NULL;
    float *src;
    int r;

    weights_md(p, true, &plain);
    src = malloc(dnnl_memory_desc_get_size(&plain));
    r = src ? krn_dnnl_reorder(&reorder, &plain, weights) : -ENOMEM;
    if (r == 0) {
        pad = aligned_alloc(BASE_CACHE_LINE_BYTES, align(krn_dnnl_scratch(&reorder) + 1));
        r = pad ? 0 : -ENOMEM;
    }
    if (r == 0) {
        plain_weights(p, src);
        krn_dnnl_run(&reorder, (void *[]){src, dst, pad});
    }
    krn_dnnl_deinit(&reorder);
    free(pad);
    free(src);
    return r;
}

static void release(struct krn_prepared *p)
{
    struct object *o = p->object;

    for (size_t w = 0; o && w <= WIDTH_MAX; w++) {
        split_free(atomic_load(&o->splits[w]));
    }
    if (o) {
        pthread_mutex_destroy(&o->lock);
    }
    free(o);
    *p = (struct krn_prepared){0};
}

static int object_new(const struct mdl_model *m, const struct mdl_op *op, void *packed,
                      enum flavour flavour, struct krn_prepared *p)
{
    struct object *o = calloc(1, sizeof(*o));
    int r;

    if (!o) {
        return -ENOMEM;
    }
    pthread_mutex_init(&o->lock, NULL);
    *p = (struct krn_prepared){.object = o, .bytes = sizeof(*o)};
    r = problem_of(m, op, flavour, &o->p) && packed_md(&o->p, &o->weights) ? 0 : -EOPNOTSUPP;
    if (r == 0) {
        r = pack(&o->p, &o->weights, packed);
    }
    if (r < 0) {
        release(p);
    }
    return r;
}

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *p, enum flavour flavour)
{
    bool first = p->object == NULL;
    int r = first ? object_new(m, op, packed, flavour, p) : 0;
    struct object *o = p->object;
    struct split *split;

    if (r < 0) {
        return r;
    }
    width = base_min(base_max(width, 1u), (size_t)WIDTH_MAX);
    pthread_mutex_lock(&o->lock);
    if (!atomic_load(&o->splits[width])) {
        krn_dnnl_alone();
        r = split_new(&o->p, &o->weights, width, &split);
        if (r == 0) {
            atomic_store(&o->splits[width], split);
        }
    }
    pthread_mutex_unlock(&o->lock);
    if (r < 0 && first) {
        release(p);
    }
    return r;
}

/* Bytes of a team's scratch. The shares are made for that and forgotten, as this is asked before
 * anything is prepared. */
static size_t split_scratch(const struct problem *p, const dnnl_memory_desc_t *weights,
                            size_t width)
{
    struct split *s;
    size_t bytes = 0;

    if (split_new(p, weights, width, &s) == 0) {
        bytes = s->count * s->share_bytes;
        split_free(s);
    }
    return bytes;
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width,
                            enum flavour flavour)
{
    struct problem p;
    dnnl_memory_desc_t md;
    size_t alone;

    if (!problem_of(m, op, flavour, &p) || !packed_md(&p, &md)) {
        return 0;
    }
    alone = split_scratch(&p, &md, 1); /* what runs where the width could not be prepared */
    width = base_min(width, (size_t)WIDTH_MAX);
    return width > 1 ? base_max(alone, split_scratch(&p, &md, width)) : alone;
}

struct job {
    const struct krn_call *call;
    const struct object *object;
    const struct split *split;
    struct krn_epilogue epilogue;
};

static void conv_run(const struct job *j, const struct share *s, float *x, float *y, float *res,
                     void *pad)
{
    void *handles[KRN_DNNL_ARGS_MAX] = {x, y, (void *)(uintptr_t)j->call->packed};
    size_t count = 3;

    if (j->call->op->shift) {
        handles[count++] = (void *)(uintptr_t)j->call->op->shift;
    }
    if (count + 1 < s->pieces->conv.count) {
        handles[count++] = res;
    }
    handles[count] = pad;
    krn_dnnl_run(&s->pieces->conv, handles);
}

static void share_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct share *s = &j->split->shares[part];
    const struct problem *p = &j->object->p;
    struct pieces *k = s->pieces;
    size_t each = p->pointwise ? 1 : p->c.y.n > 1 ? p->c.y.h * p->c.y.w : p->c.y.w;
    size_t first = s->at.begin * each, pixels = (s->at.end - s->at.begin) * each;
    uint8_t *scratch = j->call->scratch + part * j->split->share_bytes;
    float *x = (float *)(uintptr_t)j->call->in[0] + s->x, *y = (float *)j->call->out[0];
    float *res = (float *)(uintptr_t)j->epilogue.res, *to;
    void *pad = scratch + k->x_bytes + k->y_bytes;

    y += first * p->c.y.pixel;
    if (k->in.primitive) {
        krn_dnnl_run(&k->in, (void *[]){x, scratch, pad});
        x = (float *)scratch;
    }
    to = k->out.primitive ? (float *)(scratch + k->x_bytes) : y;
    conv_run(j, s, x, to, res ? res + first * j->epilogue.res_pixel : NULL, pad);
    if (k->out.primitive) {
        krn_dnnl_run(&k->out, (void *[]){to, y, pad});
    }
    if (k->fused != FUSED_ALL && !krn_epilogue_empty(&j->epilogue)) {
        struct krn_epilogue e = j->epilogue;

        e.shift = NULL;
        krn_epilogue_run(&e, y, p->c.y.pixel, first, pixels, 0, p->c.y.c);
    }
}

static void run(const struct krn_call *call)
{
    struct object *o = call->prepared;
    struct job j = {.call = call, .object = o, .epilogue = krn_epilogue_of(call)};

    j.split = atomic_load_explicit(&o->splits[base_min(call->width, (size_t)WIDTH_MAX)],
                                   memory_order_acquire);
    if (!j.split) {
        j.split = atomic_load(&o->splits[1]);
    }
    krn_parallel(call->pool, j.split->count, share_run, &j);
}

/* The rows differ in the flavour alone, which their functions have no argument for. */
#define ROW(row, suffix, which, cpu, rounds)                                                       \
    static bool supports_##which(const struct mdl_model *m, const struct mdl_op *op)               \
    {                                                                                              \
        return supports(m, op, which);                                                             \
    }                                                                                              \
    static size_t packed_bytes_##which(const struct mdl_model *m, const struct mdl_op *op)         \
    {                                                                                              \
        return packed_bytes(m, op, which);                                                         \
    }                                                                                              \
    static int prepare_##which(const struct mdl_model *m, const struct mdl_op *op, void *packed,   \
                               size_t width, struct krn_prepared *p)                               \
    {                                                                                              \
        return prepare(m, op, packed, width, p, which);                                            \
    }                                                                                              \
    static size_t scratch_bytes_##which(const struct mdl_model *m, const struct mdl_op *op,        \
                                        size_t width)                                              \
    {                                                                                              \
        return scratch_bytes(m, op, width, which);                                                 \
    }                                                                                              \
    const struct krn_variant row = {                                                               \
        .name = "conv_f32_nhwc" suffix "__dnnl",                                                   \
        .kind = MDL_OP_CONV,                                                                       \
        .needs = cpu,                                                                              \
        .inexact = rounds,                                                                         \
        .supports = supports_##which,                                                              \
        .packed_bytes = packed_bytes_##which,                                                      \
        .prepare = prepare_##which,                                                                \
        .release = release,                                                                        \
        .scratch_bytes = scratch_bytes_##which,                                                    \
        .run = run,                                                                                \
    }

ROW(krn_conv_f32_nhwc__dnnl, "", DIRECT, 0, false);
ROW(krn_conv_f32_nhwc_wino__dnnl, "_wino", WINOGRAD, KRN_CPU_AVX512, false);
ROW(krn_conv_f32_nhwc_bf16__dnnl, "_bf16", BF16, KRN_CPU_AVX512, true);
