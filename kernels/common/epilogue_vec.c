/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/epilogue_vec.h"

#include "base/base.h"

#define AT_ONCE 8u /* vectors */

/* A row of neighbouring elements in memory. */
struct row {
    float *y;
    const float *shift, *res; /* or NULL */
    bool one_shift;           /* for the whole row */
    size_t len;
};

static void run_row(const struct krn_epilogue *e, const struct row *r)
{
    const vf zero = {0}, one = r->one_shift && r->shift ? vf_set(*r->shift) : zero;
    const float *shift = r->one_shift ? NULL : r->shift;
    const bool before = r->res && e->residual == MDL_RESIDUAL_BEFORE_ACT;
    const bool after = r->res && e->residual == MDL_RESIDUAL_AFTER_ACT;

    for (size_t i = 0; i < r->len; i += AT_ONCE * KRN_VL) {
        size_t n = base_min(r->len - i, (size_t)AT_ONCE * KRN_VL), count = 0;
        vf v[AT_ONCE];

        for (size_t k = i; k < i + n; k += KRN_VL, count++) {
            size_t left = base_min(i + n - k, (size_t)KRN_VL);
            vf t = vf_load_any(r->y + k, left) + (shift ? vf_load_any(shift + k, left) : one);

            v[count] = before ? t + vf_load_any(r->res + k, left) : t;
        }
        krn_act_vecs(e->act, e->a, e->b, v, count);
        count = 0;
        for (size_t k = i; k < i + n; k += KRN_VL, count++) {
            size_t left = base_min(i + n - k, (size_t)KRN_VL);

            vf_store_any(r->y + k, after ? v[count] + vf_load_any(r->res + k, left) : v[count],
                         left);
        }
    }
}

void KRN_ISA_FN(krn_epilogue_run)(const struct krn_epilogue *e, float *y, size_t y_pixel,
                                  size_t first, size_t pixels, size_t channel, size_t channels)
{
    for (size_t p = 0; p < pixels; p++) {
        struct row r = {
            .y = y + p * y_pixel,
            .shift = e->shift ? e->shift + channel : NULL,
            .res = e->res ? e->res + (first + p) * e->res_pixel + channel : NULL,
            .len = channels,
        };

        run_row(e, &r);
    }
}

void KRN_ISA_FN(krn_epilogue_planes_run)(const struct krn_epilogue *e,
                                         const struct krn_epilogue_planes *p)
{
    for (size_t c = 0; c < p->channels; c++) {
        struct row r = {
            .y = p->y + c * p->plane,
            .shift = e->shift ? e->shift + p->channel + c : NULL,
            .one_shift = true,
            .res = e->res ? p->room + c * p->pixels : NULL,
            .len = p->pixels,
        };

        run_row(e, &r);
    }
}
