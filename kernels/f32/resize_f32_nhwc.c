/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESIZE of height and width. Nearest and bilinear: a table of the columns' neighbours, then pixels
 * of whole channels. Wide (cubic, or with antialias): each output row is first mixed from input
 * rows, as wide as the input, then resized along the row; the taps of all columns are tabled once.
 */
#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/planned.h"
#include "kernels/common/resize.h"

struct shape {
    struct krn_img x, y;
    size_t taps_h, taps_w; /* wide: at most as many along each dim */
};

/* Whether images and channels stay where they are. TF_HALF_PIXEL_NN shifts by half an element even
 * along dims that are not resized: only rounding down keeps them in place. */
static bool keeps_channels(const struct mdl_op *op)
{
    bool down = op->attr.resize.mode == MDL_RESIZE_NEAREST &&
                (op->attr.resize.round == MDL_ROUND_FLOOR ||
                 op->attr.resize.round == MDL_ROUND_PREFER_FLOOR);

    return op->attr.resize.coord != MDL_COORD_TF_CROP_AND_RESIZE &&
           (op->attr.resize.coord != MDL_COORD_TF_HALF_PIXEL_NN || down) &&
           op->attr.resize.scale[0] == 1.0f && op->attr.resize.scale[1] == 1.0f;
}

static bool any_of(const struct mdl_model *m, const struct mdl_op *op, struct shape *s)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->rank == 4 && y->rank == 4 && keeps_channels(op) && krn_img_of(x, &s->x) &&
           krn_img_of(y, &s->y) && krn_img_flat(&s->y) && s->x.n == s->y.n && s->x.c == s->y.c &&
           op->attr.resize.scale[2] > 0 && op->attr.resize.scale[3] > 0 && !op->shift &&
           !op->scale && krn_epilogue_supports(m, op, &s->y);
}

static bool near_of(const struct mdl_model *m, const struct mdl_op *op, struct shape *s)
{
    return !krn_resize_is_wide(op) && any_of(m, op, s);
}

static bool wide_of(const struct mdl_model *m, const struct mdl_op *op, struct shape *s)
{
    if (!krn_resize_is_wide(op) || op->attr.resize.coord == MDL_COORD_TF_HALF_PIXEL_NN ||
        !any_of(m, op, s)) {
        return false;
    }
    s->taps_h = krn_resize_taps_max(op, 2);
    s->taps_w = krn_resize_taps_max(op, 3);
    return true;
}

struct job {
    const struct krn_call *call;
    struct shape s;
    struct krn_epilogue epilogue;
    size_t parts;
};

/* finishes and stores @n channels of a pixel, from @c on */
KRN_INLINE void store(const struct job *j, size_t pixel, size_t c, size_t n, vf v)
{
    const struct krn_epilogue *e = &j->epilogue;
    vf r = e->res ? vf_load_n(e->res + pixel * e->res_pixel + c, n) : vf_set(0.0f);

    vf_store_n((float *)j->call->out[0] + pixel * j->s.y.pixel + c,
               krn_epilogue_vec(e, v, vf_set(0.0f), r), n);
}

/* ---- nearest and bilinear ---- */

struct column {
    size_t left, right;
    float weight;
};

static size_t near_bytes(const struct shape *s)
{
    return base_align_up(s->y.w * sizeof(struct column), BASE_CACHE_LINE_BYTES);
}

KRN_INLINE vf mix(vf a, vf b, vf weight)
{
    return a * (1.0f - weight) + b * weight;
}

static void resize_pixel(const struct job *j, const float *const *rows, const struct column *col,
                         float weight, size_t pixel)
{
    bool linear = j->call->op->attr.resize.mode == MDL_RESIZE_LINEAR;
    vf wy = vf_set(weight), wx = vf_set(col->weight);

    for (size_t c = 0; c < j->s.y.c; c += KRN_VL) {
        size_t n = base_min(j->s.y.c - c, (size_t)KRN_VL);
        vf v = vf_load_n(rows[0] + col->left + c, n);

        if (linear) {
            vf top = mix(v, vf_load_n(rows[0] + col->right + c, n), wx);
            vf bottom = mix(vf_load_n(rows[1] + col->left + c, n),
                            vf_load_n(rows[1] + col->right + c, n), wx);

            v = mix(top, bottom, wy);
        }
        store(j, pixel, c, n, v);
    }
}

static void near_part(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_call *call = j->call;
    struct column *columns = (struct column *)(call->scratch + part * near_bytes(&j->s));
    struct krn_range share = krn_share_run(j->s.y.n * j->s.y.h, 1, part, j->parts);

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

KRN_SUPPORTS_AS(near_supports, struct shape, near_of)
KRN_SCRATCH_BYTES_AS(near_scratch, struct shape, near_of, near_bytes(&p))
KRN_RUN_PARTS_AS(near_run, struct job, near_of, s, near_part, .epilogue = krn_epilogue_of(call))

KRN_ISA_PRIMITIVE(resize_f32_nhwc, MDL_OP_RESIZE, KRN_ISA_NEEDS, .supports = near_supports,
                  .scratch_bytes = near_scratch, .run = near_run);

/* ---- wide ---- */

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

static size_t wide_bytes(const struct shape *s)
{
    static uint8_t nothing[1];

    return scratch_of(s, nothing).bytes;
}

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
    for (size_t ox = 0; ox < j->s.y.w; ox++) {
        const struct tap *tap = own->taps + ox * j->s.taps_w;
        size_t pixel = row * j->s.y.w + ox;

        for (size_t c = 0; c < j->s.y.c; c += KRN_VL) {
            size_t n = base_min(j->s.y.c - c, (size_t)KRN_VL);
            vf sum = vf_set(0.0f);

            for (size_t k = 0; k < own->counts[ox]; k++) {
                sum += vf_load_n(own->mixed + tap[k].at + c, n) * tap[k].weight;
            }
            store(j, pixel, c, n, sum);
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

static void wide_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct scratch own = scratch_of(&j->s, j->call->scratch + part * wide_bytes(&j->s));
    struct krn_range share = krn_share_run(j->s.y.n * j->s.y.h, 1, part, j->parts);

    for (size_t i = 0; i < j->s.y.w && share.begin < share.end; i++) {
        own.counts[i] = list_taps(j->call, 3, i, j->s.x.c, own.taps + i * j->s.taps_w);
    }
    for (size_t r = share.begin; r < share.end; r++) {
        mix_row(j, &own, r);
        resize_along(j, &own, r);
    }
}

KRN_SUPPORTS_AS(wide_supports, struct shape, wide_of)
KRN_SCRATCH_BYTES_AS(wide_scratch, struct shape, wide_of, wide_bytes(&p))
KRN_RUN_PARTS_AS(wide_run, struct job, wide_of, s, wide_part, .epilogue = krn_epilogue_of(call))

KRN_ISA_PRIMITIVE(resize_f32_nhwc_wide, MDL_OP_RESIZE, KRN_ISA_NEEDS, .supports = wide_supports,
                  .scratch_bytes = wide_scratch, .run = wide_run);
