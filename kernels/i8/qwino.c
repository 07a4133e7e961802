/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/i8/qwino.h"

#define SPAN KRN_QWINO_SPAN
#define HALVES (2u * KRN_VL) /* lanes of a vector of 16 bits */

typedef uint32_t vu __attribute__((vector_size(4 * KRN_VL))); /* sums that wrap */
typedef int16_t vh_mem __attribute__((vector_size(4 * KRN_VL), aligned(2), may_alias));

static const uint32_t inverse_of_9 = 954437177u;

KRN_INLINE void vh_store(int16_t *p, vh x)
{
    *(vh_mem *)p = x;
}

/* transforms 3 factors of a row or column to 6 */
KRN_INLINE void filter_row(const vh *g, vh *r)
{
    vh even = g[0] + g[2], wide = g[0] + (g[2] << 2), odd = g[1] << 1;

    r[0] = g[0];
    r[1] = even + g[1];
    r[2] = even - g[1];
    r[3] = wide + odd;
    r[4] = wide - odd;
    r[5] = g[2];
}

void KRN_ISA_FN(krn_qwino_filter)(const void *w, bool narrow, size_t w_tap, size_t count,
                                  int16_t *u, size_t u_point)
{
    const uint8_t *bytes = w;
    const int16_t *halves = w;

    for (size_t at = 0; at < count; at += HALVES) {
        vh t[3][SPAN]; /* [column][row] */

#pragma GCC unroll 4
        for (size_t x = 0; x < 3; x++) {
            vh g[3];

#pragma GCC unroll 4
            for (size_t y = 0; y < 3; y++) {
                size_t from = (y * 3 + x) * w_tap + at;

                if (narrow) {
                    g[y] = vh_load(bytes + from, true);
                } else {
                    memcpy(&g[y], halves + from, sizeof(g[y]));
                }
            }
            filter_row(g, t[x]);
        }
#pragma GCC unroll 8
        for (size_t y = 0; y < SPAN; y++) {
            vh g[3] = {t[0][y], t[1][y], t[2][y]}, r[SPAN];

            filter_row(g, r);
#pragma GCC unroll 8
            for (size_t x = 0; x < SPAN; x++) {
                vh_store(u + (y * SPAN + x) * u_point + at, r[x]);
            }
        }
    }
}

/* B^T d in place */
KRN_INLINE void input_row(vh *d)
{
    vh a = d[4] - (d[2] << 2), b = d[3] - (d[1] << 2);
    vh c = d[4] - d[2], e = (d[3] - d[1]) << 1;
    vh first = a - d[2] + (d[0] << 2);

    d[5] = d[5] - d[3] - (e << 1);
    d[0] = first;
    d[1] = a + b;
    d[2] = a - b;
    d[3] = c + e;
    d[4] = c - e;
}

/* one vector of channels, the first @n of which exist */
KRN_INLINE void input_vector(const void *const *at, bool is_signed, vh zero, size_t c,
                             const size_t n, int16_t *v, size_t v_point)
{
    vh t[SPAN][SPAN];

    for (size_t x = 0; x < SPAN; x++) {
        vh d[SPAN];

#pragma GCC unroll 8
        for (size_t y = 0; y < SPAN; y++) {
            const uint8_t *from = (const uint8_t *)at[y * SPAN + x] + c;
            uint8_t part[HALVES] = {0};

            if (n < HALVES) {
                memcpy(part, from, n);
                from = part;
            }
            d[y] = vh_load(from, is_signed) - zero;
        }
        input_row(d);
#pragma GCC unroll 8
        for (size_t y = 0; y < SPAN; y++) {
            t[y][x] = d[y];
        }
    }
    for (size_t y = 0; y < SPAN; y++) {
        input_row(t[y]);
#pragma GCC unroll 8
        for (size_t x = 0; x < SPAN; x++) {
            vh_store(v + (y * SPAN + x) * v_point, t[y][x]);
        }
    }
}

KRN_INLINE void input(const void *const *at, const bool is_signed, int32_t zero, size_t channels,
                      int16_t *v, size_t v_point)
{
    const size_t piece = KRN_QWINO_CHANNELS, next = KRN_TILE_ROWS * piece;
    const vh z = (int16_t)zero - (vh){0};
    size_t c = 0;

    for (; c + HALVES <= channels; c += HALVES) {
        input_vector(at, is_signed, z, c, HALVES, v + c / piece * next + c % piece, v_point);
    }
    if (c < channels) {
        input_vector(at, is_signed, z, c, channels - c, v + c / piece * next + c % piece, v_point);
    }
}

void KRN_ISA_FN(krn_qwino_input)(const void *const *at, bool is_signed, int32_t zero,
                                 size_t channels, int16_t *v, size_t v_point)
{
    if (is_signed) {
        input(at, true, zero, channels, v, v_point);
    } else {
        input(at, false, zero, channels, v, v_point);
    }
}

KRN_INLINE vu vu_load(const int32_t *p)
{
    return (vu)vi_load(p);
}
KRN_INLINE void vu_store(int32_t *p, vu x)
{
    *(vi_mem *)p = (vi)x;
}

/* acc + the products of a pair of 16-bit factors */
KRN_INLINE vu dot_pair(vu acc, vi a, vi b)
{
#if defined(__AVX512VNNI__)
    return (vu)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVXVNNI__)
    return (vu)_mm256_dpwssd_avx_epi32((__m256i)acc, (__m256i)a, (__m256i)b);
#else
    return acc + (vu)vi_madd(a, b);
#endif
}

#define WINO_PRODUCT krn_qwino_product
typedef int32_t wino_unit;
typedef vi wino_row;
typedef vu wino_sums;

#define wino_row_load vi_load
#define wino_row_set vi_set
#define wino_load vu_load
#define wino_store vu_store
#define wino_mac dot_pair
#include "kernels/f32/wino_product.h"

/* 24 A^T m: 6 products to 4 */
KRN_INLINE void output_row(const vu *m, vu *y)
{
    vu a = (m[1] + m[2]) << 2, b = (m[1] - m[2]) << 2, c = m[3] + m[4], d = (m[3] - m[4]) << 1;
    vu f = m[0] << 1, l = m[5] << 3;

    y[0] = (f << 1) + f - a + c;
    y[1] = d - b;
    y[2] = (c << 2) - a;
    y[3] = (d << 2) - b + (l << 1) + l;
}

/* the sums of a tile, vector @v of the panel */
KRN_INLINE void sums_of(const int32_t *m, size_t m_point, vu centre, vi bias, vi (*sums)[2],
                        size_t v)
{
    vu t[KRN_QWINO_SIZE][SPAN];

#pragma GCC unroll 8
    for (size_t x = 0; x < SPAN; x++) {
        vu u[SPAN], y[KRN_QWINO_SIZE];

#pragma GCC unroll 8
        for (size_t i = 0; i < SPAN; i++) {
            u[i] = vu_load(m + (i * SPAN + x) * m_point);
        }
        output_row(u, y);
#pragma GCC unroll 4
        for (size_t i = 0; i < KRN_QWINO_SIZE; i++) {
            t[i][x] = y[i];
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < KRN_QWINO_SIZE; i++) {
        vu y[KRN_QWINO_SIZE];

        output_row(t[i], y);
#pragma GCC unroll 4
        for (size_t x = 0; x < KRN_QWINO_SIZE; x++) {
            sums[i * KRN_QWINO_SIZE + x][v] =
                (vi)((vu)((vi)(y[x] * inverse_of_9 + centre) >> 6) + (vu)bias);
        }
    }
}

void KRN_ISA_FN(krn_qwino_output)(const struct krn_qwino_output *o, const int32_t *m, size_t first,
                                  size_t rows, size_t cols)
{
    const struct krn_quant_epilogue *e = o->epilogue;
    const size_t vectors = o->lanes / KRN_VL;
    const size_t size = e->y_type == MDL_F32 ? sizeof(float) : 1;
    vi sums[KRN_QWINO_SIZE * KRN_QWINO_SIZE][2];

    for (size_t v = 0; v < vectors; v++) {
        sums_of(m + v * KRN_VL, o->m_point, vu_load(o->centre + v * KRN_VL),
                vi_load(o->bias + v * KRN_VL), sums, v);
    }
    for (size_t i = 0; i < rows; i++, first += o->y_width) {
        vi(*row)[2] = sums + i * KRN_QWINO_SIZE;
        struct krn_quant_pixels p = {.scale = o->scale,
                                     .res = o->res ? o->res + first * e->res_pixel : NULL,
                                     .y = o->y + first * o->y_pixel * size,
                                     .y_pixel = o->y_pixel * size};

        if (vectors > 1) {
            krn_quant_finish(e, &p, row, cols, 2, o->channels);
        } else {
            krn_quant_finish(e, &p, row, cols, 1, o->channels);
        }
    }
}
