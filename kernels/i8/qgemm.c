/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/i8/qgemm.h"

#include "base/base.h"
#include "kernels/i8/quant_epilogue.h"

/* w - zero of one element */
static int32_t weight_at(const struct krn_qgemm_weights *w, size_t o, size_t t, size_t c)
{
    const uint8_t *p = w->w + (ptrdiff_t)o * w->so + (ptrdiff_t)t * w->st +
                       (ptrdiff_t)(c % w->inner) * w->sc + (ptrdiff_t)(c / w->inner) * w->si;

    return (w->is_signed ? (int8_t)*p : *p) - (w->zero ? w->zero[o] : 0);
}

/* Packs one output's weights into its lane. Return: their sum. */
static int32_t pack_lane(uint8_t *lane, size_t lanes, const struct krn_qgemm_weights *w, size_t o)
{
    size_t groups = krn_qgemm_groups(w->len);
    uint32_t sum = 0;

    for (size_t t = 0; t < w->taps; t++) {
        for (size_t c = 0; c < w->len; c++) {
            int32_t v = weight_at(w, o, t, c);
            krn_qel e = (krn_qel)v;
            size_t size = w->narrow ? 1 : sizeof(e), at = (t * groups + c / KRN_QGROUP) * lanes;
            int8_t byte = (int8_t)v;

            memcpy(lane + (at * KRN_QGROUP + c % KRN_QGROUP) * size,
                   w->narrow ? (const void *)&byte : &e, size);
            sum += (uint32_t)v;
        }
    }
    return (int32_t)sum;
}

void KRN_ISA_FN(krn_qgemm_pack)(uint8_t *dst, const struct krn_qgemm_weights *w)
{
    size_t groups = krn_qgemm_groups(w->len);
    size_t panel_bytes = krn_qgemm_panel_bytes(w->taps, groups, w->out, w->narrow);
    size_t padded = krn_panel_count(w->out) * KRN_TILE_LANES;
    int32_t *bias = (int32_t *)(void *)(dst + panel_bytes);
    float *scale = (float *)(void *)(bias + padded);
    size_t bytes = w->narrow ? 2 : 4; /* of a group of one lane */

    memset(dst, 0, krn_qgemm_packed(w->taps, groups, w->out, w->narrow));
    for (size_t o0 = 0; o0 < w->out; o0 += KRN_TILE_LANES) {
        size_t used = base_min(w->out - o0, (size_t)KRN_TILE_LANES);
        bool single = used <= KRN_VL;
        size_t lanes = single ? KRN_VL : KRN_TILE_LANES;

        for (size_t l = 0; l < lanes; l++) {
            size_t o = single ? l : vq_channel(l / KRN_VL, l % KRN_VL);
            int32_t sum;

            if (o >= used) {
                continue;
            }
            o += o0;
            sum = pack_lane(dst + l * bytes, lanes, w, o);
            bias[o0 + l] = w->bias ? w->bias[o] : 0;
            scale[o0 + l] = w->scale[o];
#if KRN_QDOT
            bias[o0 + l] =
                (int32_t)((uint32_t)bias[o0 + l] -
                          (uint32_t)(w->x_zero + krn_qdot_shift(w->x_signed)) * (uint32_t)sum);
#else
            (void)sum;
#endif
        }
        dst += w->taps * groups * lanes * bytes;
    }
}

void KRN_ISA_FN(krn_qgemm_widen)(krn_qel *restrict dst, const uint8_t *restrict src, size_t n,
                                 bool is_signed, int32_t zero)
{
#if KRN_QDOT
    uint8_t flip = krn_qdot_shift(is_signed) ? 0x80 : 0;

    for (size_t i = 0; i < n; i++) {
        dst[i] = src[i] ^ flip;
    }
#else
    int16_t z = (int16_t)zero;

    if (is_signed) {
        for (size_t i = 0; i < n; i++) {
            dst[i] = (int16_t)((int8_t)src[i] - z);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            dst[i] = (int16_t)(src[i] - z);
        }
    }
#endif
}

void KRN_ISA_FN(krn_qgemm_pad)(krn_qel *dst, size_t n, bool is_signed, int32_t zero)
{
#if KRN_QDOT
    memset(dst, (uint8_t)(zero + krn_qdot_shift(is_signed)), n);
#else
    memset(dst, 0, n * sizeof(*dst));
#endif
}

struct tile {
    const krn_qel *const *rows;
    const uint8_t *panel;
    const int32_t *bias; /* of the panel, in the order of lanes */
    const float *scale;
    size_t taps, groups;
    const struct krn_quant_epilogue *e;
    uint8_t *y;         /* first pixel, first channel of the panel */
    size_t y_pixel;     /* bytes */
    const uint8_t *res; /* likewise, or NULL */
    size_t channels;    /* to be stored */
};

/* @height and @vectors are constants wherever this is inlined, so the accumulators are registers */
KRN_INLINE void run_tile(const struct tile *t, const size_t height, const size_t vectors,
                         const bool narrow)
{
    vi acc[KRN_TILE_ROWS][2];
    const int32_t *panel = (const int32_t *)(const void *)t->panel;

#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        acc[i][0] = vi_load(t->bias);
        acc[i][1] = vectors > 1 ? vi_load(t->bias + KRN_VL) : acc[i][0];
    }
    for (size_t tap = 0; tap < t->taps; tap++) {
        const krn_qel *a[KRN_TILE_ROWS];

#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            a[i] = t->rows[tap * KRN_TILE_ROWS + i];
        }
        for (size_t g = 0; g < t->groups; g++) {
            vi b0, b1;

            if (narrow) {
                b0 = b1 = (vi)vh_load((const uint8_t *)panel, true);
                b1 = vectors > 1 ? (vi)vh_load((const uint8_t *)panel + 2 * KRN_VL, true) : b0;
            } else {
                b0 = vi_load(panel);
                b1 = vectors > 1 ? vi_load(panel + KRN_VL) : b0;
            }
            panel += vectors * KRN_VL / (narrow ? 2 : 1);
#pragma GCC unroll 16
            for (size_t i = 0; i < height; i++) {
                vi x = vi_group(a[i] + g * KRN_QGROUP);

                acc[i][0] = vi_dot(acc[i][0], x, b0);
                if (vectors > 1) {
                    acc[i][1] = vi_dot(acc[i][1], x, b1);
                }
            }
        }
    }
    struct krn_quant_pixels s = {t->scale, t->res, t->y, t->y_pixel};

    krn_quant_finish(t->e, &s, acc, height, vectors, t->channels);
}

KRN_TILE_TABLE(tiles, const struct tile, run_tile, KRN_TILE_HEIGHTS, KRN_TILE_ROWS, false)
#if !KRN_QDOT
KRN_TILE_TABLE(narrow_tiles, const struct tile, run_tile, KRN_TILE_HEIGHTS, KRN_TILE_ROWS, true)
#else
#define narrow_tiles_of tiles_of /* weights of dot products are bytes as they are */
#endif

void KRN_ISA_FN(krn_qgemm_block)(const struct krn_qgemm *g, const krn_qel *const *rows,
                                 size_t first, size_t pixels, struct krn_range panels)
{
    size_t count = krn_tile_count(pixels), size = mdl_dtype_bytes(g->epilogue.y_type);
    size_t height = pixels / count, higher = pixels % count;
    const int32_t *bias =
        (const int32_t *)(const void *)(g->packed + krn_qgemm_panel_bytes(g->taps, g->groups,
                                                                          g->out, g->narrow));
    const float *scale = (const float *)(bias + krn_panel_count(g->out) * KRN_TILE_LANES);
    struct tile t = {
        .taps = g->taps, .groups = g->groups, .e = &g->epilogue, .y_pixel = g->y_pixel * size};

    for (size_t p = panels.begin; p < panels.end; p++) {
        size_t o = p * KRN_TILE_LANES, from = first, left = 0;

        t.channels = base_min(g->out - o, (size_t)KRN_TILE_LANES);
        t.panel = g->packed + o * g->taps * g->groups * (g->narrow ? 2 : 4);
        t.bias = bias + o;
        t.scale = scale + o;
        t.rows = rows;
        for (size_t i = 0; i < count; i++) {
            size_t now = height;

            /* as krn_tile_first() */
            left += higher;
            if (left >= count) {
                left -= count;
                now++;
            }
            t.y = g->y + (from * g->y_pixel + g->channel + o) * size;
            t.res = g->epilogue.res
                        ? g->epilogue.res + from * g->epilogue.res_pixel + g->channel + o
                        : NULL;
            (g->narrow ? narrow_tiles_of : tiles_of)[now - 1][t.channels > KRN_VL](&t);
            from += now;
            t.rows += g->taps * KRN_TILE_ROWS;
        }
    }
}
