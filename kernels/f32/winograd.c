/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/winograd.h"

#include "kernels/common/epilogue_vec.h"
#include "kernels/f32/wino_product.h"

KRN_INLINE void filter(const size_t p, const size_t r, const bool line, const float *w,
                       size_t w_tap, size_t channels, size_t lanes, float *u, size_t u_point)
{
    const size_t span = 2 * p + 2, taps = line ? 1 : r, rows = line ? 1 : span;

    for (size_t at = 0; at < channels * lanes; at += KRN_VL) {
        vf t[KRN_WINO_SIDE_MAX][KRN_WINO_SPAN_MAX]; /* [column][row] */

#pragma GCC unroll 10
        for (size_t x = 0; x < r; x++) {
            vf g[KRN_WINO_SIDE_MAX];

#pragma GCC unroll 10
            for (size_t y = 0; y < taps; y++) {
                g[y] = vf_load(w + (y * r + x) * w_tap + at);
            }
            if (line) {
                t[x][0] = g[0];
            } else {
                krn_wino_g(p, r, g, t[x]);
            }
        }
#pragma GCC unroll 10
        for (size_t y = 0; y < rows; y++) {
            vf g[KRN_WINO_SIDE_MAX], row[KRN_WINO_SPAN_MAX];

#pragma GCC unroll 10
            for (size_t x = 0; x < r; x++) {
                g[x] = t[x][y];
            }
            krn_wino_g(p, r, g, row);
#pragma GCC unroll 10
            for (size_t x = 0; x < span; x++) {
                vf_store(u + (y * span + x) * u_point + at, row[x]);
            }
        }
    }
}

/* one vector of channels, the first @n of which exist */
KRN_INLINE void input_vector(const size_t p, const bool line, const void *const *at, size_t c,
                             size_t n, float *v, size_t v_point)
{
    const size_t span = 2 * p + 2, rows = line ? 1 : span;
    vf t[KRN_WINO_SPAN_MAX][KRN_WINO_SPAN_MAX];

    for (size_t x = 0; x < span; x++) {
        vf d[KRN_WINO_SPAN_MAX];

#pragma GCC unroll 10
        for (size_t y = 0; y < rows; y++) {
            d[y] = vf_load_any((const float *)at[y * span + x] + c, n);
        }
        if (!line) {
            krn_wino_b(p, d);
        }
#pragma GCC unroll 10
        for (size_t y = 0; y < rows; y++) {
            t[y][x] = d[y];
        }
    }
    for (size_t y = 0; y < rows; y++) {
        vf d[KRN_WINO_SPAN_MAX];

#pragma GCC unroll 10
        for (size_t x = 0; x < span; x++) {
            d[x] = t[y][x];
        }
        krn_wino_b(p, d);
#pragma GCC unroll 10
        for (size_t x = 0; x < span; x++) {
            vf_store(v + (y * span + x) * v_point, d[x]);
        }
    }
}

KRN_INLINE void input(const size_t p, const bool line, const void *const *at, size_t channels,
                      float *v, size_t v_point)
{
    const size_t piece = KRN_WINO_CHANNELS, next = KRN_TILE_ROWS * piece;
    size_t c = 0;

    for (; c + KRN_VL <= channels; c += KRN_VL) {
        input_vector(p, line, at, c, KRN_VL, v + c / piece * next + c % piece, v_point);
    }
    if (c < channels) {
        input_vector(p, line, at, c, channels - c, v + c / piece * next + c % piece, v_point);
    }
}

/* How the results of a panel are finished. */
struct finish {
    const struct krn_wino_output *o;
    size_t step; /* pixels from one to the next */
    bool clamp;  /* shift, residual and clamping to [low, high] only */
    vf low, high;
};

static struct finish finish_of(const struct krn_wino_output *o, size_t step)
{
    const struct krn_epilogue *e = o->epilogue;

    return (struct finish){
        .o = o,
        .step = step,
        .clamp = e->act <= MDL_ACT_CLIP && e->residual != MDL_RESIDUAL_AFTER_ACT,
        .low = vf_set(e->act == MDL_ACT_RELU   ? 0.0f
                      : e->act == MDL_ACT_CLIP ? e->a
                                               : -__builtin_inff()),
        .high = vf_set(e->act == MDL_ACT_CLIP ? e->b : __builtin_inff()),
    };
}

#define AHEAD 4u /* pixels prefetched before they are written */

/* a row or a column of a tile: @count pixels from pixel @first on, vector @from of the panel */
KRN_INLINE void finish_row(const struct finish *f, const vf *y, size_t first, size_t count,
                           size_t from, size_t n, vf shift)
{
    const struct krn_wino_output *o = f->o;
    const struct krn_epilogue *e = o->epilogue;
    size_t c = o->channel + from, y_step = f->step * o->y_pixel, res_step = f->step * e->res_pixel;
    float *out = o->y + first * o->y_pixel + c;
    const float *res = e->res ? e->res + first * e->res_pixel + c : NULL;

    if (f->clamp && n == KRN_VL) {
        for (size_t x = 0; x < count; x++) {
            vf r = y[x] + shift;

            __builtin_prefetch(out + (x + AHEAD) * y_step, 1);
            if (res) {
                r += vf_load(res + x * res_step);
            }
            vf_store(out + x * y_step, vf_min(f->high, vf_max(f->low, r)));
        }
        return;
    }
    for (size_t x = 0; x < count; x++) {
        vf r = res ? vf_load_n(res + x * res_step, n) : vf_set(0.0f);

        vf_store_n(out + x * y_step, krn_epilogue_vec(e, y[x], shift, r), n);
    }
}

KRN_INLINE void output(const size_t p, const size_t r, const bool line,
                       const struct krn_wino_output *o, const float *m, size_t first, size_t rows,
                       size_t cols)
{
    const size_t span = 2 * p + 2, size = krn_wino_size(p, r);
    const struct krn_epilogue *e = o->epilogue;
    const struct finish f = finish_of(o, line && rows > 1 ? o->y_width : 1);

    for (size_t from = 0; from < o->channels; from += KRN_VL) {
        size_t n = base_min(o->channels - from, (size_t)KRN_VL);
        vf t[KRN_WINO_SIZE_MAX][KRN_WINO_SPAN_MAX], u[KRN_WINO_SPAN_MAX], y[KRN_WINO_SIZE_MAX];
        vf shift = e->shift ? vf_load_n(e->shift + o->channel + from, n) : vf_set(0.0f);

        if (line) {
#pragma GCC unroll 10
            for (size_t i = 0; i < span; i++) {
                u[i] = vf_load(m + i * o->m_point + from);
            }
            krn_wino_a(p, r, u, y);
            finish_row(&f, y, first, rows * cols, from, n, shift);
            continue;
        }
        for (size_t x = 0; x < span; x++) {
#pragma GCC unroll 10
            for (size_t i = 0; i < span; i++) {
                u[i] = vf_load(m + (i * span + x) * o->m_point + from);
            }
            krn_wino_a(p, r, u, y);
#pragma GCC unroll 10
            for (size_t i = 0; i < size; i++) {
                t[i][x] = y[i];
            }
        }
        for (size_t i = 0; i < rows; i++) {
            krn_wino_a(p, r, t[i], y);
            finish_row(&f, y, first + i * o->y_width, cols, from, n, shift);
        }
    }
}

/* Calls fn with constants, so that the transforms are straight-line code. */
#define IF_FORM(p, r, is_line, form, fn, ...)                                                      \
    if ((form).pairs == (p) && (form).side == (r) && (form).line == (is_line)) {                   \
        fn(p, r, is_line, __VA_ARGS__);                                                            \
    }

void KRN_ISA_FN(krn_wino_filter)(struct krn_wino_form form, const float *w, size_t w_tap,
                                 size_t channels, size_t lanes, float *u, size_t u_point)
{
    KRN_WINO_FORMS(IF_FORM, form, filter, w, w_tap, channels, lanes, u, u_point)
}

void KRN_ISA_FN(krn_wino_input)(struct krn_wino_form form, const void *const *at, size_t channels,
                                float *v, size_t v_point)
{
    if (form.line && form.pairs == 2) {
        input(2, true, at, channels, v, v_point);
    } else if (form.line && form.pairs == 3) {
        input(3, true, at, channels, v, v_point);
    } else if (form.line) {
        input(4, true, at, channels, v, v_point);
    } else if (form.pairs == 1) {
        input(1, false, at, channels, v, v_point);
    } else if (form.pairs == 2) {
        input(2, false, at, channels, v, v_point);
    } else {
        input(3, false, at, channels, v, v_point);
    }
}

void KRN_ISA_FN(krn_wino_output)(const struct krn_wino_output *o, const float *m, size_t first,
                                 size_t rows, size_t cols)
{
    KRN_WINO_FORMS(IF_FORM, o->form, output, o, m, first, rows, cols)
}
