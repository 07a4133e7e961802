/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESIZE of height and width by cubic interpolation, or with antialias: each output row is first
 * mixed from input rows, as wide as the input, then resized along the row. The taps of all columns
 * are tabled once.
 */
#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/planned.h"
#include "kernels/common/resize.h"

struct shape {
    struct krn_img x, y;
    size_t taps_h, taps_w; /* at most as many along each dim */
};

/* Whether images and channels stay where they are. */
static bool keeps_channels(const struct mdl_op *op)
{
    return op->attr.resize.coord != MDL_COORD_TF_HALF_PIXEL_NN &&
           op->attr.resize.coord != MDL_COORD_TF_CROP_AND_RESIZE &&
           op->attr.resize.scale[0] == 1.0f && op->attr.resize.scale[1] == 1.0f;
}

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct shape *s)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (x->rank != 4 || y->rank != 4 || !krn_resize_is_wide(op) || !keeps_channels(op) ||
        !krn_img_of(x, &s->x) || !krn_img_of(y, &s->y) || !krn_img_flat(&s->y) ||
        s->x.n != s->y.n || s->x.c != s->y.c || !(op->attr.resize.scale[2] > 0) ||
        !(op->attr.resize.scale[3] > 0) || op->shift || op->scale ||
        !krn_epilogue_supports(m, op, &s->y)) {
        return false;
    }
    s->taps_h = krn_resize_taps_max(op, 2);
    s->taps_w = krn_resize_taps_max(op, 3);
    return true;
}

KRN_SUPPORTS_BY(struct shape, shape_of)

/* An element and its weight. */
struct tap {
    size_t at;
    float weight;
};

/* A member's scratch. */
struct scratch {
    size_t *counts;   /* [y.w]: of a column's taps */
    struct tap *taps; /* [y.w][taps_w] */
    struct tap *row;  /* [taps_h] */
    float *mixed;     /* [x.w][x.c]: one output row before it is resized along */
    size_t bytes;
};

static struct scratch scratch_of(const struct shape *s, uint8_t *base)
{
    size_t taps = base_align_up(s->y.w * sizeof(size_t), BASE_CACHE_LINE_BYTES);
    size_t row =
        taps + base_align_up(s->y.w * s->taps_w * sizeof(struct tap), BASE_CACHE_LINE_BYTES);
    size_t mixed = row + base_align_up(s->taps_h * sizeof(struct tap), BASE_CACHE_LINE_BYTES);

    return (struct scratch){
        .counts = (size_t *)(void *)base,
        .taps = (struct tap *)(void *)(base + taps),
        .row = (struct tap *)(void *)(base + row),
        .mixed = (float *)(void *)(base + mixed),
        .bytes = mixed + base_align_up(s->x.w * s->x.c * sizeof(float), BASE_CACHE_LINE_BYTES),
    };
}

static size_t part_bytes(const struct shape *s)
{
    static uint8_t nothing[1];

    return scratch_of(s, nothing).bytes;
}

struct job {
    const struct krn_call *call;
    struct shape s;
    struct krn_epilogue epilogue;
    size_t parts;
};

static size_t list_taps(const struct krn_call *call, size_t d, size_t i, size_t stride,
                        struct tap *ret)
{
    struct krn_resize_taps t = krn_resize_taps(call, d, i);
    size_t count = 0;

    for (size_t k = 0; k < t.count; k++) {
        struct krn_resize_tap tap = krn_resize_tap(&t, k);

        if (tap.weight != 0) {
            ret[count++] = (struct tap){tap.at * stride, (float)tap.weight};
        }
    }
    return count;
}

/* @n elements of the sum of weighted rows of @x */
static void mix_rows(const float *x, const struct tap *tap, size_t count, size_t n, float *y)
{
    for (size_t i = 0; i < n; i += KRN_VL) {
        size_t lanes = base_min(n - i, (size_t)KRN_VL);
        vf sum = vf_set(0.0f);

        for (size_t k = 0; k < count; k++) {
            sum += vf_load_n(x + tap[k].at + i, lanes) * tap[k].weight;
        }
        vf_store_n(y + i, sum, lanes);
    }
}

static void resize_along(const struct job *j, const struct scratch *own, size_t row)
{
    const struct krn_epilogue *e = &j->epilogue;

    for (size_t ox = 0; ox < j->s.y.w; ox++) {
        const struct tap *tap = own->taps + ox * j->s.taps_w;
        size_t pixel = row * j->s.y.w + ox;
        float *y = (float *)j->call->out[0] + pixel * j->s.y.pixel;

        for (size_t c = 0; c < j->s.y.c; c += KRN_VL) {
            size_t n = base_min(j->s.y.c - c, (size_t)KRN_VL);
            vf sum = vf_set(0.0f), r = vf_set(0.0f);

            for (size_t k = 0; k < own->counts[ox]; k++) {
                sum += vf_load_n(own->mixed + tap[k].at + c, n) * tap[k].weight;
            }
            if (e->res) {
                r = vf_load_n(e->res + pixel * e->res_pixel + c, n);
            }
            vf_store_n(y + c, krn_epilogue_vec(e, sum, vf_set(0.0f), r), n);
        }
    }
}

static void mix_row(const struct job *j, const struct scratch *own, size_t row)
{
    const struct krn_img *x = &j->s.x;
    const float *image = (const float *)j->call->in[0] + row / j->s.y.h * x->batch;
    size_t count = list_taps(j->call, 2, row % j->s.y.h, x->row, own->row);

    if (x->pixel == x->c) {
        mix_rows(image, own->row, count, x->w * x->c, own->mixed);
        return;
    }
    for (size_t i = 0; i < x->w; i++) {
        mix_rows(image + i * x->pixel, own->row, count, x->c, own->mixed + i * x->c);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct scratch own = scratch_of(&j->s, j->call->scratch + part * part_bytes(&j->s));
    struct krn_range share = krn_share(j->s.y.n * j->s.y.h, 1, part, j->parts);

    for (size_t i = 0; i < j->s.y.w && share.begin < share.end; i++) {
        own.counts[i] = list_taps(j->call, 3, i, j->s.x.c, own.taps + i * j->s.taps_w);
    }
    for (size_t r = share.begin; r < share.end; r++) {
        mix_row(j, &own, r);
        resize_along(j, &own, r);
    }
}

KRN_SCRATCH_BYTES_BY(struct shape, shape_of, part_bytes(&p))

KRN_RUN_PARTS_BY(struct job, shape_of, s, part_run, .epilogue = krn_epilogue_of(call))

KRN_ISA_PRIMITIVE(resize_f32_nhwc_wide, MDL_OP_RESIZE, KRN_ISA_NEEDS, .supports = supports,
                  .scratch_bytes = scratch_bytes, .run = run);
