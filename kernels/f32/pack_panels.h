/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/pack_panels.h - packs a matrix that is computed per frame into the panels of the
 * indirect GEMM (igemm.h)
 *
 * krn_igemm_pack() is for weights: it reads any alignment and multiplies by a scale. This one is
 * fast where rows or columns are dense. Any thread; never allocates.
 */
#pragma once

#include "base/base.h"
#include "kernels/common/layout.h"
#include "kernels/f32/igemm.h"

/* one panel of @used columns in rows of @lanes, zeros beyond; strides in elements */
KRN_INLINE void krn_pack_panel(float *dst, const float *src, size_t k, size_t used, size_t lanes,
                               ptrdiff_t k_step, ptrdiff_t n_step)
{
    if (n_step == 1) {
        for (size_t i = 0; i < k; i++) {
            const float *x = src + (ptrdiff_t)i * k_step;

            for (size_t c = 0; c < lanes; c += KRN_VL) {
                vf v = c + KRN_VL <= used ? vf_load(x + c)
                       : c < used         ? vf_load_n(x + c, used - c)
                                          : vf_set(0.0f);

                vf_store(dst + i * lanes + c, v);
            }
        }
        return;
    }
    if (k_step == 1) {
        KRN_ISA_FN(krn_transpose_run)
        (&(struct krn_transpose){.y = (uint8_t *)dst,
                                 .x = (const uint8_t *)src,
                                 .y_row = (ptrdiff_t)lanes,
                                 .x_column = n_step,
                                 .rows = k,
                                 .columns = used});
    } else {
        for (size_t i = 0; i < k; i++) {
            for (size_t c = 0; c < used; c++) {
                dst[i * lanes + c] = src[(ptrdiff_t)i * k_step + (ptrdiff_t)c * n_step];
            }
        }
    }
    for (size_t i = 0; i < k && used < lanes; i++) {
        for (size_t c = used; c < lanes; c++) {
            dst[i * lanes + c] = 0;
        }
    }
}

/* @dst: krn_igemm_packed(k, n) floats; @src: element (0, 0) of [k][n] */
KRN_INLINE void krn_pack_panels(float *dst, const float *src, size_t k, size_t n, ptrdiff_t k_step,
                                ptrdiff_t n_step)
{
    for (size_t from = 0; from < n; from += KRN_TILE_LANES) {
        size_t used = base_min(n - from, (size_t)KRN_TILE_LANES), lanes = krn_panel_lanes(used);

        krn_pack_panel(dst, src + (ptrdiff_t)from * n_step, k, used, lanes, k_step, n_step);
        dst += k * lanes;
    }
}

/* Element offset of matrix @batch of @t, whose dims before the last two count in row-major order of
 * @like; a dim that @t lacks is repeated. */
static inline ptrdiff_t krn_matrix_at(const struct mdl_tensor *t, const struct mdl_tensor *like,
                                      size_t batch)
{
    size_t missing = like->rank - t->rank;
    ptrdiff_t at = 0;

    for (size_t d = like->rank - 2; d-- > 0;) {
        size_t i = batch % like->dim[d];

        batch /= like->dim[d];
        at += d >= missing ? (ptrdiff_t)i * t->stride[d - missing] : 0;
    }
    return at;
}
