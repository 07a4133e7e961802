/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/i8/quant_rows.h"

#include "base/base.h"
#include "kernels/i8/quant_epilogue.h"

#define BLOCK 8u /* pixels whose constants are read once */

/* channels of the first and of the second vector of a pair: vq_channel() */
#define LANES(l) (l), (l) + 1, (l) + 2, (l) + 3
#if KRN_VL == 16
#define FIRST LANES(0), LANES(8), LANES(16), LANES(24)
#define SECOND LANES(4), LANES(12), LANES(20), LANES(28)
#elif KRN_VL == 8
#define FIRST LANES(0), LANES(8)
#define SECOND LANES(4), LANES(12)
#else
#define FIRST LANES(0)
#define SECOND LANES(4)
#endif

void KRN_ISA_FN(krn_quant_table)(uint8_t *dst, const int32_t *bias, const float *scale,
                                 size_t channels)
{
    size_t padded = krn_quant_table_bytes(channels) / (sizeof(int32_t) + sizeof(float));
    int32_t *to_bias = (int32_t *)(void *)dst;
    float *to_scale = (float *)(void *)(to_bias + padded);

    memset(dst, 0, krn_quant_table_bytes(channels));
    for (size_t c = 0; c < channels; c += KRN_QUANT_LANES) {
        size_t used = base_min(channels - c, (size_t)KRN_QUANT_LANES);

        for (size_t l = 0; l < KRN_QUANT_LANES; l++) {
            size_t from = used <= KRN_VL ? l : vq_channel(l / KRN_VL, l % KRN_VL);

            if (from < used) {
                to_bias[c + l] = bias[c + from];
                to_scale[c + l] = scale[c + from];
            }
        }
    }
}

struct panel {
    const struct krn_quant_rows *r;
    const int32_t *sums, *bias; /* of the first pixel; of the panel */
    const float *scale;
    size_t channels; /* to be stored */
    uint8_t *y;
    const uint8_t *res; /* or NULL */
};

/* some pixels from @first on; @pixels and @vectors are constants wherever this is inlined */
KRN_INLINE void run_pixels(const struct panel *p, size_t first, const size_t pixels,
                           const size_t vectors)
{
    const struct krn_quant_epilogue *e = &p->r->epilogue;
    const int32_t *sums = p->sums + first * p->r->channels;
    const size_t y_pixel = p->r->y_pixel * (e->y_type == MDL_F32 ? sizeof(float) : 1);
    uint8_t *y = p->y + first * y_pixel;
    const uint8_t *res = p->res ? p->res + first * e->res_pixel : NULL;
    vi acc[BLOCK][2], b0 = vi_load(p->bias), b1 = vectors > 1 ? vi_load(p->bias + KRN_VL) : b0;

#pragma GCC unroll 8
    for (size_t i = 0; i < pixels; i++, sums += p->r->channels) {
        vi s0 = vi_load(sums), s1 = vectors > 1 ? vi_load(sums + KRN_VL) : s0;

        acc[i][0] = b0 + (vectors > 1 ? __builtin_shufflevector(s0, s1, FIRST) : s0);
        acc[i][1] = vectors > 1 ? b1 + __builtin_shufflevector(s0, s1, SECOND) : acc[i][0];
    }
    struct krn_quant_pixels s = {p->scale, res, y, y_pixel};

    krn_quant_finish(e, &s, acc, pixels, vectors, p->channels);
}

KRN_INLINE void run_panel(const struct panel *p, size_t pixels, const size_t vectors)
{
    size_t i = 0;

    for (; i + BLOCK <= pixels; i += BLOCK) {
        run_pixels(p, i, BLOCK, vectors);
    }
    for (; i < pixels; i++) {
        run_pixels(p, i, 1, vectors);
    }
}

static __attribute__((noinline)) void panel_1(const struct panel *p, size_t pixels)
{
    run_panel(p, pixels, 1);
}
static __attribute__((noinline)) void panel_2(const struct panel *p, size_t pixels)
{
    run_panel(p, pixels, 2);
}

void KRN_ISA_FN(krn_quant_rows)(const struct krn_quant_rows *r, const int32_t *sums, size_t first,
                                size_t pixels)
{
    const struct krn_quant_epilogue *e = &r->epilogue;
    size_t padded = krn_quant_table_bytes(r->channels) / (sizeof(int32_t) + sizeof(float));
    const int32_t *bias = (const int32_t *)(const void *)r->table;
    const float *scale = (const float *)(const void *)(bias + padded);

    for (size_t c = 0; c < r->channels; c += KRN_QUANT_LANES) {
        struct panel p = {.r = r,
                          .sums = sums + c,
                          .bias = bias + c,
                          .scale = scale + c,
                          .channels = base_min(r->channels - c, (size_t)KRN_QUANT_LANES),
                          .y = r->y + (first * r->y_pixel + c) * mdl_dtype_bytes(e->y_type),
                          .res = e->res ? e->res + first * e->res_pixel + c : NULL};

        (p.channels > KRN_VL ? panel_2 : panel_1)(&p, pixels);
    }
}

void KRN_ISA_FN(krn_quant_bytes)(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                                 uint8_t flip)
{
    for (size_t i = 0; i < n; i++) {
        dst[i] = src[i] ^ flip;
    }
}
