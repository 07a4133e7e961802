/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESIZE of height and width, nearest and bilinear: a table of the columns' neighbours, then pixels
 * of whole channels.
 */
#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/planned.h"
#include "kernels/common/resize.h"

struct shape {
    struct krn_img x, y;
};

/* TF_HALF_PIXEL_NN shifts by half an element even along dims that are not resized: only rounding
 * down keeps images and channels in place. */
static bool keeps_channels(const struct mdl_op *op)
{
    return op->attr.resize.coord != MDL_COORD_TF_HALF_PIXEL_NN ||
           (op->attr.resize.mode == MDL_RESIZE_NEAREST &&
            (op->attr.resize.round == MDL_ROUND_FLOOR ||
             op->attr.resize.round == MDL_ROUND_PREFER_FLOOR));
}

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct shape *s)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->rank == 4 && y->rank == 4 && !krn_resize_is_wide(op) &&
           op->attr.resize.coord != MDL_COORD_TF_CROP_AND_RESIZE && keeps_channels(op) &&
           krn_img_of(x, &s->x) && krn_img_of(y, &s->y) && krn_img_flat(&s->y) &&
           s->x.n == s->y.n && s->x.c == s->y.c && op->attr.resize.scale[0] == 1.0f &&
           op->attr.resize.scale[1] == 1.0f && op->attr.resize.scale[2] > 0 &&
           op->attr.resize.scale[3] > 0 && !op->shift && !op->scale &&
           krn_epilogue_supports(m, op, &s->y);
}

KRN_SUPPORTS_BY(struct shape, shape_of)

struct column {
    size_t left, right;
    float weight;
};

static size_t part_bytes(const struct shape *s)
{
    return base_align_up(s->y.w * sizeof(struct column), BASE_CACHE_LINE_BYTES);
}

struct job {
    const struct krn_call *call;
    struct shape s;
    struct krn_epilogue epilogue;
    size_t parts;
};

KRN_INLINE vf mix(vf a, vf b, vf weight)
{
    return a * (1.0f - weight) + b * weight;
}

static void resize_pixel(const struct job *j, const float *const *rows, const struct column *col,
                         float weight, size_t pixel)
{
    bool linear = j->call->op->attr.resize.mode == MDL_RESIZE_LINEAR;
    float *y = (float *)j->call->out[0] + pixel * j->s.y.pixel;
    const struct krn_epilogue *e = &j->epilogue;
    vf wy = vf_set(weight), wx = vf_set(col->weight);

    for (size_t c = 0; c < j->s.y.c; c += KRN_VL) {
        size_t n = base_min(j->s.y.c - c, (size_t)KRN_VL);
        vf v = vf_load_n(rows[0] + col->left + c, n), r = vf_set(0.0f);

        if (linear) {
            vf top = mix(v, vf_load_n(rows[0] + col->right + c, n), wx);
            vf bottom = mix(vf_load_n(rows[1] + col->left + c, n),
                            vf_load_n(rows[1] + col->right + c, n), wx);

            v = mix(top, bottom, wy);
        }
        if (e->res) {
            r = vf_load_n(e->res + pixel * e->res_pixel + c, n);
        }
        vf_store_n(y + c, krn_epilogue_vec(e, v, vf_set(0.0f), r), n);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_call *call = j->call;
    struct column *columns = (struct column *)(call->scratch + part * part_bytes(&j->s));
    struct krn_range share = krn_share(j->s.y.n * j->s.y.h, 1, part, j->parts);

    for (size_t i = 0; i < j->s.y.w && share.begin < share.end; i++) {
        struct krn_resize_pair p = krn_resize_neighbours(call, 3, i);

        columns[i] = (struct column){(size_t)p.at[0], (size_t)p.at[1], (float)p.weight};
    }
    for (size_t r = share.begin; r < share.end; r++) {
        size_t n = r / j->s.y.h, oy = r % j->s.y.h;
        struct krn_resize_pair p = krn_resize_neighbours(call, 2, oy);
        const float *image = (const float *)call->in[0] + n * j->s.x.batch;
        const float *rows[2] = {image + p.at[0], image + p.at[1]};

        for (size_t ox = 0; ox < j->s.y.w; ox++) {
            resize_pixel(j, rows, &columns[ox], (float)p.weight, r * j->s.y.w + ox);
        }
    }
}

KRN_SCRATCH_BYTES_BY(struct shape, shape_of, part_bytes(&p))

KRN_RUN_PARTS_BY(struct job, shape_of, s, part_run, .epilogue = krn_epilogue_of(call))

KRN_ISA_PRIMITIVE(resize_f32_nhwc, MDL_OP_RESIZE, KRN_ISA_NEEDS, .supports = supports,
                  .scratch_bytes = scratch_bytes, .run = run);
