/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/winograd.h"

#include "kernels/common/epilogue_vec.h"
#include "kernels/f32/wino_product.h"

KRN_INLINE void filter(const size_t p, const size_t r, const float *w, size_t w_tap,
                       size_t channels, size_t lanes, float *u, size_t u_point)
{
    const size_t span = 2 * p + 2;

    for (size_t at = 0; at < channels * lanes; at += KRN_VL) {
        vf t[KRN_WINO_SIDE_MAX][KRN_WINO_SPAN_MAX]; /* [column][row] */

#pragma GCC unroll 8
        for (size_t x = 0; x < r; x++) {
            vf g[KRN_WINO_SIDE_MAX];

#pragma GCC unroll 8
            for (size_t y = 0; y < r; y++) {
                g[y] = vf_load(w + (y * r + x) * w_tap + at);
            }
            krn_wino_g(p, r, g, t[x]);
        }
#pragma GCC unroll 8
        for (size_t y = 0; y < span; y++) {
            vf g[KRN_WINO_SIDE_MAX], row[KRN_WINO_SPAN_MAX];

#pragma GCC unroll 8
            for (size_t x = 0; x < r; x++) {
                g[x] = t[x][y];
            }
            krn_wino_g(p, r, g, row);
#pragma GCC unroll 8
            for (size_t x = 0; x < span; x++) {
                vf_store(u + (y * span + x) * u_point + at, row[x]);
            }
        }
    }
}

/* one vector of channels, the first @n of which exist */
KRN_INLINE void input_vector(const size_t p, const void *const *at, size_t c, size_t n, float *v,
                             size_t v_point)
{
    const size_t span = 2 * p + 2;
    vf t[KRN_WINO_SPAN_MAX][KRN_WINO_SPAN_MAX];

    for (size_t x = 0; x < span; x++) {
        vf d[KRN_WINO_SPAN_MAX];

#pragma GCC unroll 8
        for (size_t y = 0; y < span; y++) {
            d[y] = vf_load_any((const float *)at[y * span + x] + c, n);
        }
        krn_wino_b(p, d);
#pragma GCC unroll 8
        for (size_t y = 0; y < span; y++) {
            t[y][x] = d[y];
        }
    }
    for (size_t y = 0; y < span; y++) {
        vf d[KRN_WINO_SPAN_MAX];

#pragma GCC unroll 8
        for (size_t x = 0; x < span; x++) {
            d[x] = t[y][x];
        }
        krn_wino_b(p, d);
#pragma GCC unroll 8
        for (size_t x = 0; x < span; x++) {
            vf_store(v + (y * span + x) * v_point, d[x]);
        }
    }
}

KRN_INLINE void input(const size_t p, const void *const *at, size_t channels, float *v,
                      size_t v_point)
{
    const size_t piece = KRN_WINO_CHANNELS, next = KRN_TILE_ROWS * piece;
    size_t c = 0;

    for (; c + KRN_VL <= channels; c += KRN_VL) {
        input_vector(p, at, c, KRN_VL, v + c / piece * next + c % piece, v_point);
    }
    if (c < channels) {
        input_vector(p, at, c, channels - c, v + c / piece * next + c % piece, v_point);
    }
}

/* How the results of a panel are finished. */
struct finish {
    const struct krn_wino_output *o;
    bool clamp; /* shift, residual and clamping to [low, high] only */
    vf low, high;
};

static struct finish finish_of(const struct krn_wino_output *o)
{
    const struct krn_epilogue *e = o->epilogue;

    return (struct finish){
        .o = o,
        .clamp = e->act <= MDL_ACT_CLIP && e->residual != MDL_RESIDUAL_AFTER_ACT,
        .low = vf_set(e->act == MDL_ACT_RELU   ? 0.0f
                      : e->act == MDL_ACT_CLIP ? e->a
                                               : -__builtin_inff()),
        .high = vf_set(e->act == MDL_ACT_CLIP ? e->b : __builtin_inff()),
    };
}

#define AHEAD 4u /* pixels prefetched before they are written */

/* a row of a tile: @cols pixels from pixel @first on, vector @from of the panel */
KRN_INLINE void finish_row(const struct finish *f, const vf *y, size_t first, size_t cols,
                           size_t from, size_t n, vf shift)
{
    const struct krn_wino_output *o = f->o;
    const struct krn_epilogue *e = o->epilogue;
    size_t c = o->channel + from;
    float *out = o->y + first * o->y_pixel + c;
    const float *res = e->res ? e->res + first * e->res_pixel + c : NULL;

    if (f->clamp && n == KRN_VL) {
        for (size_t x = 0; x < cols; x++) {
            vf r = y[x] + shift;

            __builtin_prefetch(out + (x + AHEAD) * o->y_pixel, 1);
            if (res) {
                r += vf_load(res + x * e->res_pixel);
            }
            vf_store(out + x * o->y_pixel, vf_min(f->high, vf_max(f->low, r)));
        }
        return;
    }
    for (size_t x = 0; x < cols; x++) {
        vf r = res ? vf_load_n(res + x * e->res_pixel, n) : vf_set(0.0f);

        vf_store_n(out + x * o->y_pixel, krn_epilogue_vec(e, y[x], shift, r), n);
    }
}

KRN_INLINE void output(const size_t p, const size_t r, const struct krn_wino_output *o,
                       const float *m, size_t first, size_t rows, size_t cols)
{
    const size_t span = 2 * p + 2, size = krn_wino_size(p, r);
    const struct krn_epilogue *e = o->epilogue;
    const struct finish f = finish_of(o);

    for (size_t from = 0; from < o->channels; from += KRN_VL) {
        size_t n = base_min(o->channels - from, (size_t)KRN_VL);
        vf t[KRN_WINO_SIZE_MAX][KRN_WINO_SPAN_MAX];
        vf shift = e->shift ? vf_load_n(e->shift + o->channel + from, n) : vf_set(0.0f);

        for (size_t x = 0; x < span; x++) {
            vf u[KRN_WINO_SPAN_MAX], y[KRN_WINO_SIZE_MAX];

#pragma GCC unroll 8
            for (size_t i = 0; i < span; i++) {
                u[i] = vf_load(m + (i * span + x) * o->m_point + from);
            }
            krn_wino_a(p, r, u, y);
#pragma GCC unroll 8
            for (size_t i = 0; i < size; i++) {
                t[i][x] = y[i];
            }
        }
        for (size_t i = 0; i < rows; i++) {
            vf y[KRN_WINO_SIZE_MAX];

            krn_wino_a(p, r, t[i], y);
            finish_row(&f, y, first + i * o->y_width, cols, from, n, shift);
        }
    }
}

/* Calls fn with constant sizes, so that the transforms are straight-line code. */
#define BY_FORM(form, fn, ...)                                                                     \
    do {                                                                                           \
        if ((form).side == 5) {                                                                    \
            fn(2, 5, __VA_ARGS__);                                                                 \
        } else if ((form).pairs == 1) {                                                            \
            fn(1, 3, __VA_ARGS__);                                                                 \
        } else if ((form).pairs == 2) {                                                            \
            fn(2, 3, __VA_ARGS__);                                                                 \
        } else {                                                                                   \
            fn(3, 3, __VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)

void KRN_ISA_FN(krn_wino_filter)(struct krn_wino_form form, const float *w, size_t w_tap,
                                 size_t channels, size_t lanes, float *u, size_t u_point)
{
    BY_FORM(form, filter, w, w_tap, channels, lanes, u, u_point);
}

void KRN_ISA_FN(krn_wino_input)(size_t pairs, const void *const *at, size_t channels, float *v,
                                size_t v_point)
{
    if (pairs == 1) {
        input(1, at, channels, v, v_point);
    } else if (pairs == 2) {
        input(2, at, channels, v, v_point);
    } else {
        input(3, at, channels, v, v_point);
    }
}

void KRN_ISA_FN(krn_wino_output)(const struct krn_wino_output *o, const float *m, size_t first,
                                 size_t rows, size_t cols)
{
    BY_FORM(o->form, output, o, m, first, rows, cols);
}
