/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AFFINE and LRN over channels that lie side by side.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/parallel.h"
#include "kernels/common/planned.h"

struct job {
    const struct krn_call *call;
    struct krn_img x, y;
    struct krn_epilogue epilogue;
    size_t parts;
};

static bool images_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    return krn_img_of(&m->tensors[op->in[0]], &j->x) &&
           krn_img_of(&m->tensors[op->out[0]], &j->y) && krn_img_same(&j->x, &j->y) &&
           krn_img_flat(&j->x) && krn_epilogue_supports(m, op, &j->y);
}

KRN_INLINE vf shift_of(const struct krn_epilogue *e, size_t c, size_t n)
{
    return e->shift ? vf_load_n(e->shift + c, n) : vf_set(0.0f);
}

KRN_INLINE vf residual_of(const struct krn_epilogue *e, size_t pixel, size_t c, size_t n)
{
    return e->res ? vf_load_n(e->res + pixel * e->res_pixel + c, n) : vf_set(0.0f);
}

static void affine_part(void *arg, size_t part)
{
    const struct job *j = arg;
    const float *scale = j->call->op->scale;
    struct krn_range pixels = krn_share_run(j->y.n * j->y.h * j->y.w, 1, part, j->parts);

    for (size_t p = pixels.begin; p < pixels.end; p++) {
        const float *x = (const float *)j->call->in[0] + p * j->x.pixel;
        float *y = (float *)j->call->out[0] + p * j->y.pixel;

        for (size_t c = 0; c < j->y.c; c += KRN_VL) {
            size_t n = base_min(j->y.c - c, (size_t)KRN_VL);
            vf v = vf_load_n(x + c, n);

            if (scale) {
                v = v * vf_load_n(scale + c, n);
            }
            vf_store_n(y + c,
                       krn_epilogue_vec(&j->epilogue, v, shift_of(&j->epilogue, c, n),
                                        residual_of(&j->epilogue, p, c, n)),
                       n);
        }
    }
}

static bool affine_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    return images_of(m, op, &j) && (!op->scale || op->channels == j.y.c);
}

/* squares of one pixel's channels, with zeros beyond both ends for the window */
static size_t lrn_scratch_floats(const struct mdl_op *op, size_t channels)
{
    return base_align_up(channels + op->attr.lrn.size + KRN_VL, 16);
}

static void lrn_part(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct mdl_op *op = j->call->op;
    size_t size = op->attr.lrn.size, before = (size - 1) / 2;
    size_t floats = lrn_scratch_floats(op, j->y.c);
    float *squares = (float *)j->call->scratch + part * floats;
    float alpha = op->attr.lrn.alpha / (float)size, beta = op->attr.lrn.beta;
    struct krn_range pixels = krn_share_run(j->y.n * j->y.h * j->y.w, 1, part, j->parts);

    memset(squares, 0, floats * sizeof(float));
    for (size_t p = pixels.begin; p < pixels.end; p++) {
        const float *x = (const float *)j->call->in[0] + p * j->x.pixel;
        float *y = (float *)j->call->out[0] + p * j->y.pixel;

        for (size_t c = 0; c < j->y.c; c += KRN_VL) {
            size_t n = base_min(j->y.c - c, (size_t)KRN_VL);
            vf v = vf_load_n(x + c, n);

            vf_store_n(squares + before + c, v * v, n);
        }
        for (size_t c = 0; c < j->y.c; c += KRN_VL) {
            size_t n = base_min(j->y.c - c, (size_t)KRN_VL);
            vf sum = vf_set(0.0f), base;

            for (size_t k = 0; k < size; k++) {
                sum += vf_load(squares + c + k);
            }
            base = op->attr.lrn.bias + alpha * sum;
            if (beta == 0.75f) {
                vf root = vf_sqrt(base);

                base = root * vf_sqrt(root);
            } else if (beta == 0.5f) {
                base = vf_sqrt(base);
            }
            vf_store_n(y + c,
                       krn_epilogue_vec(&j->epilogue, vf_load_n(x + c, n) / base,
                                        shift_of(&j->epilogue, c, n),
                                        residual_of(&j->epilogue, p, c, n)),
                       n);
        }
    }
}

static bool lrn_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    return images_of(m, op, &j) && !op->shift && !op->scale && op->attr.lrn.size > 0 &&
           op->attr.lrn.size <= 1024 &&
           (op->attr.lrn.beta == 0.75f || op->attr.lrn.beta == 0.5f || op->attr.lrn.beta == 1.0f);
}

static size_t lrn_scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    return base_max(width, 1u) * sizeof(float) *
           lrn_scratch_floats(op, m->tensors[op->out[0]].dim[1]);
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (images_of(call->model, call->op, &j)) {
        j.epilogue = krn_epilogue_of(call);
        krn_parallel(call->pool, j.parts, call->op->kind == MDL_OP_LRN ? lrn_part : affine_part,
                     &j);
    }
}

KRN_ISA_PRIMITIVE(affine_f32_nhwc, MDL_OP_AFFINE, KRN_ISA_NEEDS, .supports = affine_supports,
                  .run = run);

KRN_ISA_PRIMITIVE(lrn_f32_nhwc, MDL_OP_LRN, KRN_ISA_NEEDS, .supports = lrn_supports,
                  .scratch_bytes = lrn_scratch_bytes, .run = run);
