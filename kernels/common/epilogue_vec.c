/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/epilogue_vec.h"

KRN_INLINE vf piece(const struct krn_epilogue *e, vf y, const float *shift, const float *res,
                    size_t n)
{
    vf s = {0}, r = {0};

    if (shift) {
        s = n == KRN_VL ? vf_load(shift) : vf_load_n(shift, n);
    }
    if (res) {
        r = n == KRN_VL ? vf_load(res) : vf_load_n(res, n);
    }
    return krn_epilogue_vec(e, y, s, r);
}

void KRN_ISA_FN(krn_epilogue_run)(const struct krn_epilogue *e, float *y, size_t y_pixel,
                                  size_t first, size_t pixels, size_t channel, size_t channels)
{
    const float *shift = e->shift ? e->shift + channel : NULL;

    for (size_t p = 0; p < pixels; p++) {
        float *row = y + p * y_pixel;
        const float *res = e->res ? e->res + (first + p) * e->res_pixel + channel : NULL;
        size_t c = 0;

        for (; c + KRN_VL <= channels; c += KRN_VL) {
            vf_store(row + c, piece(e, vf_load(row + c), shift ? shift + c : NULL,
                                    res ? res + c : NULL, KRN_VL));
        }
        if (c < channels) {
            size_t n = channels - c;

            vf_store_n(
                row + c,
                piece(e, vf_load_n(row + c, n), shift ? shift + c : NULL, res ? res + c : NULL, n),
                n);
        }
    }
}

void KRN_ISA_FN(krn_epilogue_planes_run)(const struct krn_epilogue *e,
                                         const struct krn_epilogue_planes *p)
{
    for (size_t c = 0; c < p->channels; c++) {
        float *row = p->y + c * p->plane;
        const float *res = e->res ? p->room + c * p->pixels : NULL;
        vf shift = vf_set(e->shift ? e->shift[p->channel + c] : 0.0f), zero = {0};
        size_t i = 0;

        for (; i + KRN_VL <= p->pixels; i += KRN_VL) {
            vf_store(row + i,
                     krn_epilogue_vec(e, vf_load(row + i), shift, res ? vf_load(res + i) : zero));
        }
        if (i < p->pixels) {
            size_t n = p->pixels - i;

            vf_store_n(row + i,
                       krn_epilogue_vec(e, vf_load_n(row + i, n), shift,
                                        res ? vf_load_n(res + i, n) : zero),
                       n);
        }
    }
}
