/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of bytes: vectors of adjacent channels, two taps at a time as the halves of
 * one 16-bit product. Taps outside the image read a row of zero points, so that the zero point adds
 * the same constant to every sum, which packing puts into the bias.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/i8/quant_epilogue.h"

#define LANES KRN_QUANT_LANES
#define TAPS_MAX 64u

struct plan {
    struct krn_conv c;
    size_t pairs, padded; /* of taps; channels in whole vectors */
    bool x_signed;
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    if (!krn_quant_conv_of(m, op, &p->c) || p->c.groups != p->c.x.c || p->c.cg != 1 ||
        p->c.og != 1 || p->c.taps > TAPS_MAX) {
        return false;
    }
    p->pairs = (p->c.taps + 1) / 2;
    p->padded = base_align_up(p->c.x.c, LANES);
    p->x_signed = m->tensors[op->in[0]].dtype == MDL_I8;
    return true;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

/* Packed: [block of channels][pair][lane] as pairs of 16 bits, biases and scales by lane, a row of
 * the zero point. */
KRN_PACKED_BYTES_BY(struct plan, plan_of, p.padded *(p.pairs * 4 + 4 + 4 + 1))

/* behind the weights; a row of the zero point follows */
static struct krn_quant_lanes lanes_of(const struct plan *p, const void *packed)
{
    return krn_quant_lanes_at((const int32_t *)packed + p->padded * p->pairs, p->padded);
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    const uint8_t *w = krn_const_ptr(m, op->in[1]);
    const struct mdl_quant *q = op->quant;
    bool is_signed = m->tensors[op->in[1]].dtype == MDL_I8;
    struct krn_quant_lanes lanes;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return;
    }
    lanes = lanes_of(&p, dst);
    memset(dst, 0, packed_bytes(m, op));
    memset(lanes.end, (uint8_t)q->x_zero, p.padded);
    for (size_t lane = 0; lane < p.padded; lane++) {
        size_t block = lane / LANES, l = lane % LANES;
        size_t o = block * LANES + vq_channel(l / KRN_VL, l % KRN_VL);
        int32_t sum = 0;

        if (o >= p.c.x.c) {
            continue;
        }
        for (size_t t = 0; t < p.c.taps; t++) {
            uint8_t byte = w[o * p.c.taps + t];
            int16_t v =
                (int16_t)((is_signed ? (int8_t)byte : byte) - (q->w_zero ? q->w_zero[o] : 0));
            size_t at = (block * p.pairs + t / 2) * LANES + l;

            memcpy((uint8_t *)dst + at * 4 + t % 2 * 2, &v, sizeof(v));
            sum += v;
        }
        lanes.bias[lane] =
            (int32_t)((uint32_t)(q->bias ? q->bias[o] : 0) - (uint32_t)(q->x_zero * sum));
        lanes.scale[lane] = op->scale[o];
    }
}

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_quant_epilogue e;
    size_t parts;
};

/* one block of channels of one pixel; @taps: where channel 0 of each tap lies, 2 @pairs of them */
KRN_INLINE void block(const struct job *j, const uint8_t *const *taps, size_t c,
                      const bool is_signed, const size_t pairs, const struct krn_quant_pixels *s,
                      size_t channels)
{
    const int32_t *w = (const int32_t *)j->call->packed + c * pairs;
    const int32_t *bias = lanes_of(&j->p, j->call->packed).bias + c;
    vi acc[2] = {vi_load(bias), vi_load(bias + KRN_VL)};

#pragma GCC unroll 5
    for (size_t k = 0; k < pairs; k++, w += LANES) {
        vh a = vh_load(taps[2 * k] + c, is_signed);
        vh b = vh_load(taps[2 * k + 1] + c, is_signed);

        acc[0] += vi_madd(vh_zip_low(a, b), vi_load(w));
        acc[1] += vi_madd(vh_zip_high(a, b), vi_load(w + KRN_VL));
    }
    krn_quant_finish(&j->e, s, &acc, 1, 2, channels);
}

/* the last channels, for which whole vectors would reach past the pixel */
static __attribute__((noinline)) void rest(const struct job *j, const uint8_t *const *taps,
                                           size_t c, const struct krn_quant_pixels *s,
                                           size_t channels)
{
    uint8_t copy[TAPS_MAX + 1][LANES];
    const uint8_t *at[TAPS_MAX + 1];

    for (size_t k = 0; k < 2 * j->p.pairs; k++) {
        memset(copy[k], 0, LANES);
        memcpy(copy[k], taps[k] + c, channels);
        at[k] = copy[k] - c;
    }
    block(j, at, c, j->p.x_signed, j->p.pairs, s, channels);
}

KRN_INLINE void run_pixel(const struct job *j, const uint8_t *const *taps, size_t pixel,
                          const bool is_signed, const size_t pairs)
{
    const struct krn_conv *v = &j->p.c;
    size_t size = j->e.y_type == MDL_F32 ? sizeof(float) : 1, channels = v->x.c;
    const uint8_t *res = j->e.res ? j->e.res + pixel * j->e.res_pixel : NULL;
    struct krn_quant_pixels s = {.scale = lanes_of(&j->p, j->call->packed).scale,
                                 .res = res,
                                 .y = (uint8_t *)j->call->out[0] + pixel * v->y.pixel * size};
    size_t c = 0;

    for (; c + LANES <= channels; c += LANES) {
        block(j, taps, c, is_signed, pairs, &s, LANES);
        s.scale += LANES;
        s.res = res ? s.res + LANES : NULL;
        s.y += LANES * size;
    }
    if (c < channels) {
        rest(j, taps, c, &s, channels - c);
    }
}

/* the taps of output (@oy, @ox); those outside the image read zeros */
static void point(const struct job *j, const uint8_t *image, size_t oy, size_t ox,
                  const uint8_t **taps)
{
    const struct krn_conv *v = &j->p.c;
    const uint8_t *zeros = lanes_of(&j->p, j->call->packed).end;

    for (size_t t = 0; t < v->taps; t++) {
        size_t iy = oy * v->win.sh + t / v->win.kw * v->win.dh - (size_t)v->win.top;
        size_t ix = ox * v->win.sw + t % v->win.kw * v->win.dw - (size_t)v->win.left;

        /* below zero has wrapped to a huge number */
        taps[t] = iy < v->x.h && ix < v->x.w ? image + iy * v->x.row + ix * v->x.pixel : zeros;
    }
    taps[2 * j->p.pairs - 1] = v->taps % 2 ? zeros : taps[2 * j->p.pairs - 1];
}

KRN_INLINE void run_row(const struct job *j, size_t n, size_t oy, const bool is_signed,
                        const size_t pairs)
{
    const struct krn_conv *v = &j->p.c;
    const uint8_t *image = (const uint8_t *)j->call->in[0] + n * v->x.batch;
    const uint8_t *zeros = lanes_of(&j->p, j->call->packed).end;
    const uint8_t *taps[TAPS_MAX + 1];
    size_t pixel = (n * v->y.h + oy) * v->y.w, wide = (v->win.kw - 1) * v->win.dw;
    size_t step[TAPS_MAX + 1];
    bool within = false;

    for (size_t ox = 0; ox < v->y.w; ox++) {
        size_t ix = ox * v->win.sw - (size_t)v->win.left;
        bool now = ix < v->x.w && ix + wide < v->x.w;

        if (within && now) { /* as the last one, further to the right */
            for (size_t k = 0; k < 2 * pairs; k++) {
                taps[k] += step[k];
            }
        } else {
            point(j, image, oy, ox, taps);
            for (size_t k = 0; k < 2 * pairs; k++) {
                step[k] = taps[k] == zeros ? 0 : v->win.sw * v->x.pixel;
            }
        }
        within = now;
        run_pixel(j, taps, pixel + ox, is_signed, pairs);
    }
}

#define PAIRS_OF_9 5u

static void rows_run(const struct job *j, struct krn_range rows)
{
    size_t h = j->p.c.y.h;

    for (size_t row = rows.begin; row < rows.end; row++) {
        if (j->p.pairs != PAIRS_OF_9) {
            run_row(j, row / h, row % h, j->p.x_signed, j->p.pairs);
        } else if (j->p.x_signed) {
            run_row(j, row / h, row % h, true, PAIRS_OF_9);
        } else {
            run_row(j, row / h, row % h, false, PAIRS_OF_9);
        }
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;

    rows_run(j, krn_share_run(j->p.c.y.n * j->p.c.y.h, 1, part, j->parts));
}

KRN_RUN_PARTS_BY(struct job, plan_of, p, part_run, .e = krn_quant_epilogue_of(call))

KRN_ISA_PRIMITIVE(conv_i8_nhwc_dw, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .run = run);
