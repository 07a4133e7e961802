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
#include "kernels/lib/conv_f32_dnnl.h"

/* ---- shares ---- */

/* a reorder between @i as it lies and argument @arg of @pd. @ret_bytes: scratch for that */
static int copy_init(const struct krn_img *i, const_dnnl_primitive_desc_t pd, int arg,
                     struct krn_dnnl *ret, size_t *ret_bytes)
{
    krn_dnnl_auto_md mine = {0};
    krn_dnnl_auto_md its = {0};
    int r = krn_dnnl_image(i, dnnl_f32, &mine);

    r = r < 0 ? r : krn_dnnl_md_arg(&its, pd, arg);
    if (r < 0) {
        return r;
    }
    *ret_bytes = base_align_up(krn_dnnl_md_bytes(&its), BASE_CACHE_LINE_BYTES);
    return arg == DNNL_ARG_SRC ? krn_dnnl_reorder(ret, &mine, &its)
                               : krn_dnnl_reorder(ret, &its, &mine);
}

static int pieces_make(const void *of, const struct krn_dnnl_shape *s, struct krn_dnnl_pieces *ret)
{
    const struct krn_dnnl_f32 *p = of;
    int arg[KRN_DNNL_ARGS_MAX] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS}, r;
    dnnl_primitive_desc_t pd = krn_dnnl_f32_pd(p, s, &ret->fused);
    size_t count = 3;

    if (!pd) {
        return -EOPNOTSUPP;
    }
    if (p->op->shift) {
        arg[count++] = DNNL_ARG_BIAS;
    }
    if (ret->fused == KRN_DNNL_FUSED_ALL && p->op->residual != MDL_RESIDUAL_NONE &&
        !p->res_in_place) {
        bool behind = p->op->residual == MDL_RESIDUAL_AFTER_ACT && p->op->act != MDL_ACT_NONE;

        arg[count++] = DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)behind) | DNNL_ARG_SRC_1;
    }
    r = krn_dnnl_init(&ret->conv, pd, count, arg);
    if (r == 0 && (!p->x_dense || p->flavour == KRN_DNNL_WINOGRAD)) {
        r = copy_init(&s->x, pd, DNNL_ARG_SRC, &ret->in, &ret->x_bytes);
    }
    if (r == 0 && (!p->y_dense || p->flavour == KRN_DNNL_WINOGRAD)) {
        r = copy_init(&s->y, pd, DNNL_ARG_DST, &ret->out, &ret->y_bytes);
    }
    dnnl_primitive_desc_destroy(pd);
    return krn_dnnl_pieces_done(ret, r);
}

/* ---- the primitive ---- */

static bool residual_of(struct krn_dnnl_f32 *p)
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
static bool weights_of(struct krn_dnnl_f32 *p)
{
    dnnl_primitive_desc_t pd;
    struct krn_dnnl_shape s;
    int fused;
    bool ok;

    if (!krn_dnnl_alone() || !krn_dnnl_engine() || !krn_dnnl_team_whole(&p->team, &s)) {
        return false;
    }
    pd = krn_dnnl_f32_pd(p, &s, &fused);
    ok = pd && krn_dnnl_md_arg(&p->weights, pd, DNNL_ARG_WEIGHTS) == 0;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static void problem_deinit(struct krn_dnnl_f32 *p)
{
    krn_dnnl_team_deinit(&p->team);
    krn_dnnl_md_deinit(&p->weights);
}

/* Return: whether the primitive supports @op; if so, deinitialise @p */
static bool problem_init(struct krn_dnnl_f32 *p, const struct mdl_model *m, const struct mdl_op *op,
                         enum krn_dnnl_flavour flavour)
{
    *p = (struct krn_dnnl_f32){.m = m, .op = op, .flavour = flavour};
    if (!krn_conv_of(m, op, &p->c) || !residual_of(p)) {
        return false;
    }
    p->x_dense = krn_dnnl_is_dense(&p->c.x);
    p->y_dense = krn_dnnl_is_dense(&p->c.y);
    krn_dnnl_team_init(&p->team, &p->c, pieces_make);
    if (!weights_of(p)) {
        problem_deinit(p);
        return false;
    }
    return true;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op,
                     enum krn_dnnl_flavour flavour)
{
    struct krn_dnnl_f32 p;
    bool takes = problem_init(&p, m, op, flavour);

    if (takes) {
        problem_deinit(&p);
    }
    return takes;
}

static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op,
                           enum krn_dnnl_flavour flavour)
{
    struct krn_dnnl_f32 p;
    size_t bytes = 0;

    if (problem_init(&p, m, op, flavour)) {
        bytes = krn_dnnl_md_bytes(&p.weights);
        problem_deinit(&p);
    }
    return bytes;
}

static int pack(const struct krn_dnnl_f32 *p, void *dst)
{
    const struct krn_conv *c = &p->c;
    size_t line = c->cg * c->taps;
    krn_dnnl_auto_md plain = {0};
    float *src;
    int r = krn_dnnl_f32_weights_md(c, true, &plain);

    if (r < 0) {
        return r;
    }
    src = malloc(krn_dnnl_md_bytes(&plain));
    if (!src) {
        return -ENOMEM;
    }
    krn_conv_pack(p->m, p->op, c, &(struct krn_conv_order){c->og * line, line, c->taps, 1}, src);
    r = krn_dnnl_reorder_once(&plain, src, &p->weights, dst);
    free(src);
    return r;
}

KRN_RELEASE_BY(problem_deinit)

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *ret, enum krn_dnnl_flavour flavour)
{
    bool first = ret->object == NULL;
    struct krn_dnnl_f32 *p = first ? malloc(sizeof(*p)) : ret->object;
    int r = 0;

    if (!p) {
        return -ENOMEM;
    }
    if (first) {
        if (!problem_init(p, m, op, flavour)) {
            free(p);
            return -EOPNOTSUPP;
        }
        *ret = (struct krn_prepared){.object = p, .bytes = sizeof(*p)};
        r = pack(p, packed);
    }
    r = r < 0 ? r : krn_dnnl_team_prepare(&p->team, p, width);
    if (r < 0 && first) {
        release(ret);
    }
    return r;
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width,
                            enum krn_dnnl_flavour flavour)
{
    struct krn_dnnl_f32 p;
    size_t bytes = 0;

    if (problem_init(&p, m, op, flavour)) {
        bytes = krn_dnnl_team_scratch(&p.team, &p, width);
        problem_deinit(&p);
    }
    return bytes;
}

struct job {
    const struct krn_call *call;
    const struct krn_dnnl_f32 *problem;
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

static void share_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_dnnl_share *s = &j->split->shares[part];
    const struct krn_dnnl_f32 *p = j->problem;
    struct krn_dnnl_pieces *k = s->pieces;
    size_t each = p->team.pixels_each;
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
    if (k->fused != KRN_DNNL_FUSED_ALL && !krn_epilogue_empty(&j->epilogue)) {
        struct krn_epilogue e = j->epilogue;

        e.shift = NULL;
        krn_epilogue_run(&e, y, p->c.y.pixel, first, pixels, 0, p->c.y.c);
    }
}

static void run(const struct krn_call *call)
{
    struct krn_dnnl_f32 *p = call->prepared;
    struct job j = {.call = call,
                    .problem = p,
                    .split = krn_dnnl_team_split(&p->team, call->width),
                    .epilogue = krn_epilogue_of(call)};

    krn_parallel(call->pool, j.split->count, share_run, &j);
}

/* The primitives differ only in the flavour, for which their functions have no argument. */
#define PRIMITIVE(what, which, cpu, rounds)                                                        \
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
    KRN_PRIMITIVE(what, MDL_OP_CONV, .needs = cpu, .inexact = rounds,                              \
                  .supports = supports_##which, .packed_bytes = packed_bytes_##which,              \
                  .prepare = prepare_##which, .release = release,                                  \
                  .scratch_bytes = scratch_bytes_##which, .run = run)

PRIMITIVE(conv_f32_nhwc__dnnl, KRN_DNNL_DIRECT, KRN_DNNL_CONV_NEEDS, false);
PRIMITIVE(conv_f32_nhwc_wino__dnnl, KRN_DNNL_WINOGRAD, KRN_CPU_AVX512, false);
/* without bf16 instructions, the library computes in f32 or slower */
PRIMITIVE(conv_f32_nhwc_bf16__dnnl, KRN_DNNL_BF16,
          KRN_CPU_AVX512 | KRN_CPU_AVX512VNNI | KRN_CPU_AVX512BF16, true);
