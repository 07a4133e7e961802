/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution over oneDNN, shared by a team as kernels/lib/onednn_team.h says. All shares read the
 * same packed weights, in the layout that oneDNN prefers for the whole image. Tensors that it
 * cannot use in place (a part of a concat, its own layout for Winograd) are copied through scratch
 * by its reorders.
 *
 * Winograd's F(m x m, 3 x 3) is less exact than a sum: its transforms have coefficients up to 8
 * (m = 4) whose errors do not shrink with the result. Bound: Lavin and Gray, "Fast Algorithms for
 * Convolutional Neural Networks", table 2, measure up to 2.3e-5 for values up to 1 and 512
 * channels.
 */
#include "kernels/common/planned.h"
#include "kernels/lib/onednn_team.h"

enum flavour { DIRECT, WINOGRAD, BF16 };

struct problem {
    const struct mdl_model *m; /* borrowed, as op */
    const struct mdl_op *op;
    enum flavour flavour;
    struct krn_conv c;
    struct krn_img res; /* the residual */
    bool res_in_place;  /* it has the same address and strides as y */
    bool x_dense, y_dense;
    struct krn_dnnl_team team;
    struct krn_dnnl_md weights; /* as packed; {0}: not packed yet */
};

/* What the library's primitive includes; the epilogue does the rest. */
enum fused { FUSED_ALL, FUSED_BIAS };

/* ---- descriptions ---- */

/* no gaps between its pixels */
static bool is_dense(const struct krn_img *i)
{
    return i->pixel == i->c && krn_img_flat(i);
}

static int image_md(const struct krn_img *i, dnnl_format_tag_t tag, struct krn_dnnl_md *ret)
{
    dnnl_dims_t dims = {(dnnl_dim_t)i->n, (dnnl_dim_t)i->c, (dnnl_dim_t)i->h, (dnnl_dim_t)i->w};

    return krn_dnnl_md_tag(ret, 4, dims, dnnl_f32, tag);
}

static int strides_md(const struct krn_img *i, struct krn_dnnl_md *ret)
{
    dnnl_dims_t dims = {(dnnl_dim_t)i->n, (dnnl_dim_t)i->c, (dnnl_dim_t)i->h, (dnnl_dim_t)i->w};
    dnnl_dims_t strides = {(dnnl_dim_t)i->batch, 1, (dnnl_dim_t)i->row, (dnnl_dim_t)i->pixel};

    return krn_dnnl_md_strides(ret, 4, dims, dnnl_f32, strides);
}

/* @plain: as krn_conv_pack() writes them in [group][output][channel][tap], else as the library
 * likes */
static int weights_md(const struct krn_conv *c, bool plain, struct krn_dnnl_md *ret)
{
    dnnl_dim_t g = (dnnl_dim_t)c->groups, og = (dnnl_dim_t)c->og, cg = (dnnl_dim_t)c->cg;
    dnnl_dim_t kh = (dnnl_dim_t)c->win.kh, kw = (dnnl_dim_t)c->win.kw;

    return c->groups > 1 ? krn_dnnl_md_tag(ret, 5, (dnnl_dims_t){g, og, cg, kh, kw}, dnnl_f32,
                                           plain ? dnnl_goihw : dnnl_format_tag_any)
                         : krn_dnnl_md_tag(ret, 4, (dnnl_dims_t){og, cg, kh, kw}, dnnl_f32,
                                           plain ? dnnl_oihw : dnnl_format_tag_any);
}

static bool append_residual(const struct problem *p, const struct krn_dnnl_shape *s,
                            dnnl_post_ops_t post)
{
    krn_dnnl_auto_md md = {0};

    if (p->res_in_place) {
        return p->y_dense && krn_dnnl_append_sum(post);
    }
    /* the library's other kernels misplace the second operand of a binary post-op */
    return p->team.pointwise && is_dense(&p->res) && image_md(&s->y, dnnl_nhwc, &md) == 0 &&
           dnnl_post_ops_append_binary(post, dnnl_binary_add, KRN_DNNL_MD(&md)) == dnnl_success;
}

/* Appends the element function. Return: false if the library computes it less exactly than the
 * epilogue. */
static bool append_act(dnnl_post_ops_t post, const struct mdl_op *op)
{
    switch (op->act) {
    case MDL_ACT_NONE:
        return true;
    case MDL_ACT_RELU:
        return krn_dnnl_append_eltwise(post, dnnl_eltwise_relu, 0, 0);
    case MDL_ACT_LEAKY_RELU:
        return krn_dnnl_append_eltwise(post, dnnl_eltwise_relu, op->act_a, 0);
    case MDL_ACT_CLIP:
        return krn_dnnl_append_eltwise(post, dnnl_eltwise_clip, op->act_a, op->act_b);
    case MDL_ACT_HARD_SWISH:
        return krn_dnnl_append_eltwise(post, dnnl_eltwise_hardswish, 0, 0);
    default:
        return false;
    }
}

static bool append_all(const struct problem *p, const struct krn_dnnl_shape *s,
                       dnnl_post_ops_t post)
{
    enum mdl_residual r = p->op->residual;

    if (p->flavour == WINOGRAD && r != MDL_RESIDUAL_NONE) {
        return false; /* y is in another layout */
    }
    return (r != MDL_RESIDUAL_BEFORE_ACT || append_residual(p, s, post)) &&
           append_act(post, p->op) && (r != MDL_RESIDUAL_AFTER_ACT || append_residual(p, s, post));
}

static void window_of(const struct problem *p, const struct krn_dnnl_shape *s,
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
static dnnl_primitive_desc_t pd_with(const struct problem *p, const struct krn_dnnl_shape *s,
                                     const_dnnl_primitive_attr_t attr)
{
    dnnl_format_tag_t tag = p->flavour == WINOGRAD ? dnnl_format_tag_any : dnnl_nhwc;
    krn_dnnl_auto_md x = {0};
    krn_dnnl_auto_md any = {0};
    krn_dnnl_auto_md bias = {0};
    krn_dnnl_auto_md y = {0};
    struct krn_dnnl_window w;

    if (image_md(&s->x, tag, &x) < 0 || image_md(&s->y, tag, &y) < 0 ||
        weights_md(&p->c, false, &any) < 0 ||
        krn_dnnl_md_tag(&bias, 1, (dnnl_dims_t){(dnnl_dim_t)p->c.y.c}, dnnl_f32, dnnl_a) < 0) {
        return NULL;
    }
    window_of(p, s, &w);
    return krn_dnnl_if_fast(krn_dnnl_conv_pd(
        p->flavour == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct,
        &(struct krn_dnnl_tensors){&x, krn_dnnl_md_bytes(&p->weights) ? &p->weights : &any,
                                   p->op->shift ? &bias : NULL, &y},
        &w, attr));
}

static dnnl_primitive_desc_t conv_pd(const struct problem *p, const struct krn_dnnl_shape *s,
                                     enum fused fused)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_primitive_desc_t pd = NULL;

    if (dnnl_post_ops_create(&post) != dnnl_success) {
        return NULL;
    }
    if (fused == FUSED_BIAS || append_all(p, s, post)) {
        attr = krn_dnnl_attr(post,
                             p->flavour == BF16 ? dnnl_fpmath_mode_bf16 : dnnl_fpmath_mode_strict);
        pd = attr ? pd_with(p, s, attr) : NULL;
        dnnl_primitive_attr_destroy(attr);
    }
    dnnl_post_ops_destroy(post);
    return pd;
}

/* With the whole epilogue if the library supports it, else with the bias only; *ret_fused says
 * which. Return: owned; NULL: the library only has its reference. */
static dnnl_primitive_desc_t shape_pd(const struct problem *p, const struct krn_dnnl_shape *s,
                                      int *ret_fused)
{
    dnnl_primitive_desc_t pd = conv_pd(p, s, FUSED_ALL);

    *ret_fused = FUSED_ALL;
    if (!pd && !p->res_in_place) { /* else the residual would be overwritten before the epilogue
                                    * reads it */
        *ret_fused = FUSED_BIAS;
        pd = conv_pd(p, s, FUSED_BIAS);
    }
    return pd;
}

/* ---- shares ---- */

/* a reorder between @i as it lies and argument @arg of @pd. @ret_bytes: scratch for that */
static int copy_init(const struct krn_img *i, const_dnnl_primitive_desc_t pd, int arg,
                     struct krn_dnnl *ret, size_t *ret_bytes)
{
    krn_dnnl_auto_md mine = {0};
    krn_dnnl_auto_md its = {0};
    int r = strides_md(i, &mine);

    r = r < 0 ? r : krn_dnnl_md_arg(&its, pd, arg);
    if (r < 0) {
        return r;
    }
    *ret_bytes = krn_dnnl_align(krn_dnnl_md_bytes(&its));
    return arg == DNNL_ARG_SRC ? krn_dnnl_reorder(ret, &mine, &its)
                               : krn_dnnl_reorder(ret, &its, &mine);
}

static int pieces_make(const struct krn_dnnl_team *t, const struct krn_dnnl_shape *s,
                       struct krn_dnnl_pieces *ret)
{
    const struct problem *p = base_container_of(t, const struct problem, team);
    int arg[KRN_DNNL_ARGS_MAX] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS}, r;
    dnnl_primitive_desc_t pd = shape_pd(p, s, &ret->fused);
    size_t count = 3;

    if (!pd) {
        return -EOPNOTSUPP;
    }
    if (p->op->shift) {
        arg[count++] = DNNL_ARG_BIAS;
    }
    if (ret->fused == FUSED_ALL && p->op->residual != MDL_RESIDUAL_NONE && !p->res_in_place) {
        bool behind = p->op->residual == MDL_RESIDUAL_AFTER_ACT && p->op->act != MDL_ACT_NONE;

        arg[count++] = DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)behind) | DNNL_ARG_SRC_1;
    }
    r = krn_dnnl_init(&ret->conv, pd, count, arg);
    if (r == 0 && (!p->x_dense || p->flavour == WINOGRAD)) {
        r = copy_init(&s->x, pd, DNNL_ARG_SRC, &ret->in, &ret->x_bytes);
    }
    if (r == 0 && (!p->y_dense || p->flavour == WINOGRAD)) {
        r = copy_init(&s->y, pd, DNNL_ARG_DST, &ret->out, &ret->y_bytes);
    }
    dnnl_primitive_desc_destroy(pd);
    return r;
}

/* ---- the primitive ---- */

static bool residual_of(struct problem *p)
{
    const struct mdl_tensor *y = &p->m->tensors[p->op->out[0]], *r;

    if (p->op->residual == MDL_RESIDUAL_NONE) {
        return true;
    }
    r = &p->m->tensors[p->op->residual_in];
    p->res_in_place = krn_img_of(r, &p->res) && y->storage == r->storage &&
                      y->offset == r->offset && p->res.pixel == p->c.y.pixel;
    return p->res_in_place || !krn_epilogue_aliased(p->m, p->op);
}

/* asks for the layout of the packed weights. Return: whether the whole image can be run */
static bool weights_of(struct problem *p)
{
    dnnl_primitive_desc_t pd;
    struct krn_dnnl_shape s;
    int fused;
    bool ok;

    if (!krn_dnnl_alone() || !krn_dnnl_engine() || !krn_dnnl_team_whole(&p->team, &s)) {
        return false;
    }
    pd = shape_pd(p, &s, &fused);
    ok = pd && krn_dnnl_md_arg(&p->weights, pd, DNNL_ARG_WEIGHTS) == 0;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static void problem_deinit(struct problem *p)
{
    krn_dnnl_team_deinit(&p->team);
    krn_dnnl_md_deinit(&p->weights);
}

#define auto_problem base_cleanup(problem_deinit) struct problem

/* Return: whether the primitive supports @op; deinitialise @p in any case */
static bool problem_init(struct problem *p, const struct mdl_model *m, const struct mdl_op *op,
                         enum flavour flavour)
{
    *p = (struct problem){.m = m, .op = op, .flavour = flavour};
    if (!krn_conv_of(m, op, &p->c) || !residual_of(p)) {
        return false;
    }
    p->x_dense = is_dense(&p->c.x);
    p->y_dense = is_dense(&p->c.y);
    krn_dnnl_team_init(&p->team, &p->c, pieces_make);
    return weights_of(p);
}

static int pack(const struct problem *p, void *dst)
{
    const struct krn_conv *c = &p->c;
    size_t line = c->cg * c->taps;
    krn_dnnl_auto_md plain = {0};
    base_autofree float *src = NULL;
    int r = weights_md(c, true, &plain);

    if (r < 0) {
        return r;
    }
    src = malloc(krn_dnnl_md_bytes(&plain));
    if (!src) {
        return -ENOMEM;
    }
    krn_conv_pack(p->m, p->op, c, &(struct krn_conv_order){c->og * line, line, c->taps, 1}, src);
    return krn_dnnl_reorder_once(&plain, src, &p->weights, dst);
}

KRN_RELEASE_BY(problem_deinit)

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *ret, enum flavour flavour)
{
    bool first = ret->object == NULL;
    struct problem *p = first ? malloc(sizeof(*p)) : ret->object;
    int r = 0;

    if (!p) {
        return -ENOMEM;
    }
    if (first) {
        *ret = (struct krn_prepared){.object = p, .bytes = sizeof(*p)};
        r = problem_init(p, m, op, flavour) ? pack(p, packed) : -EOPNOTSUPP;
    }
    r = r < 0 ? r : krn_dnnl_team_prepare(&p->team, width);
    if (r < 0 && first) {
        release(ret);
    }
    return r;
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width,
                            enum flavour flavour)
{
    auto_problem p;

    return problem_init(&p, m, op, flavour) ? krn_dnnl_team_scratch(&p.team, width) : 0;
}

struct job {
    const struct krn_call *call;
    struct problem *problem;
    const struct krn_dnnl_split *split;
    struct krn_epilogue epilogue;
};

static void conv_run(const struct job *j, const struct krn_dnnl_share *s, float *x, float *y,
                     float *res, void *pad)
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

static void share_run(const struct job *j, const struct krn_dnnl_share *s, uint8_t *scratch)
{
    const struct problem *p = j->problem;
    struct krn_dnnl_pieces *k = s->pieces;
    size_t each = p->team.pixels_each;
    size_t first = s->at.begin * each, pixels = (s->at.end - s->at.begin) * each;
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

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    size_t all = krn_parts_end(part, j->split->count), end;

    for (; part < all; part = end) {
        const struct krn_dnnl_share *s;

        end = all;
        s = krn_dnnl_team_next(&j->problem->team, j->split, part, &end);
        share_run(j, s, j->call->scratch + part * j->split->share_bytes);
    }
}

static void run(const struct krn_call *call)
{
    struct problem *p = call->prepared;
    struct job j = {.call = call,
                    .problem = p,
                    .split = krn_dnnl_widths_get(&p->team.widths, call->width),
                    .epilogue = krn_epilogue_of(call)};

    krn_parallel(call->pool, j.split->count, part_run, &j);
}

/* The primitives differ only in the flavour, for which their functions have no argument. */
#define PRIMITIVE(what, which, cpu, rounds)                                                        \
    static bool which##_of(const struct mdl_model *m, const struct mdl_op *op, struct problem *p)  \
    {                                                                                              \
        return problem_init(p, m, op, which);                                                      \
    }                                                                                              \
    KRN_SUPPORTS_AS(supports_##which, auto_problem, which##_of)                                    \
    KRN_PACKED_BYTES_AS(packed_bytes_##which, auto_problem, which##_of,                            \
                        krn_dnnl_md_bytes(&p.weights))                                             \
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
    KRN_PRIMITIVE(what, MDL_OP_CONV, .needs = cpu, .inexact = rounds, .whole = which == WINOGRAD,  \
                  .supports = supports_##which, .packed_bytes = packed_bytes_##which,              \
                  .prepare = prepare_##which, .release = release,                                  \
                  .scratch_bytes = scratch_bytes_##which, .run = run)

PRIMITIVE(conv_f32_nhwc__dnnl, DIRECT, KRN_DNNL_CONV_NEEDS, false);
PRIMITIVE(conv_f32_nhwc_wino__dnnl, WINOGRAD, KRN_CPU_AVX512, false);
/* without bf16 instructions, the library computes in f32 or slower */
PRIMITIVE(conv_f32_nhwc_bf16__dnnl, BF16, KRN_CPU_AVX512 | KRN_CPU_AVX512VNNI | KRN_CPU_AVX512BF16,
          true);
