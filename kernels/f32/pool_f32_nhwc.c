/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pools and a mean over height and width (REDUCE): vectors of adjacent channels. A
 * team shares output rows, or channels if there are fewer rows than members (global pools).
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/planned.h"
#include "kernels/common/pool_common.h"

#define LANES (4u * KRN_VL) /* channels summed together: whole cache lines of a pixel */

static bool pool_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *ret)
{
    return (op->kind == MDL_OP_REDUCE ? krn_pool_mean_of : krn_pool_of)(m, op, ret);
}

KRN_SUPPORTS_BY(struct krn_pool, pool_of)

struct job {
    const struct krn_call *call;
    struct krn_pool p;
    struct krn_epilogue epilogue;
    size_t parts;
};

/* @x: the first tap. @factor: of the sum. @vectors, 4 or 1, and @max are constants where this is
 * inlined; a single vector may have fewer channels, @n */
KRN_INLINE void pool_vectors(const struct krn_pool_window *w, const float *x, float factor,
                             float *y, size_t n, const size_t vectors, const bool max)
{
    vf acc[4];

#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; i++) {
        acc[i] = vf_set(max ? -INFINITY : 0.0f);
    }
    for (size_t r = 0; r < w->rows; r++, x += w->row) {
        const float *at = x;

        for (size_t k = 0; k < w->columns; k++, at += w->column) {
#pragma GCC unroll 4
            for (size_t i = 0; i < vectors; i++) {
                vf v = vectors > 1 ? vf_load(at + i * KRN_VL) : vf_load_any(at, n);

                acc[i] = max ? vf_nan_max(acc[i], v) : acc[i] + v;
            }
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; i++) {
        vf v = max ? acc[i] : acc[i] * factor;

        if (vectors > 1) {
            vf_store(y + i * KRN_VL, v);
        } else {
            vf_store_n(y, v, n);
        }
    }
}

KRN_INLINE void pool_channels(const struct krn_pool_window *w, const float *x, float *y,
                              size_t channels, const bool max)
{
    const float factor = !max && w->count != 0 ? 1.0f / (float)w->count : 0.0f;
    size_t c = 0;

    for (; c + LANES <= channels; c += LANES) {
        pool_vectors(w, x + c, factor, y + c, KRN_VL, 4, max);
    }
    for (; c < channels; c += KRN_VL) {
        pool_vectors(w, x + c, factor, y + c, base_min(channels - c, (size_t)KRN_VL), 1, max);
    }
}

static void pool_pixel(const struct job *j, size_t n, size_t oy, size_t ox, struct krn_range c)
{
    const struct krn_pool *p = &j->p;
    struct krn_pool_window w = krn_pool_window_of(p, n, oy, ox);
    const float *x = (const float *)j->call->in[0] + w.x + c.begin;
    float *y = (float *)j->call->out[0] + ((n * p->y.h + oy) * p->y.w + ox) * p->y.pixel + c.begin;

    if (p->max) {
        pool_channels(&w, x, y, c.end - c.begin, true);
    } else {
        pool_channels(&w, x, y, c.end - c.begin, false);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_pool *p = &j->p;
    struct krn_pool_share s = krn_pool_share(p, LANES, part, j->parts);
    struct krn_range c = s.channels;

    for (size_t r = s.rows.begin; r < s.rows.end; r++) {
        for (size_t ox = 0; ox < p->y.w; ox++) {
            pool_pixel(j, r / p->y.h, r % p->y.h, ox, c);
        }
        if (p->epilogue) {
            krn_epilogue_run(&j->epilogue,
                             (float *)j->call->out[0] + r * p->y.w * p->y.pixel + c.begin,
                             p->y.pixel, r * p->y.w, p->y.w, c.begin, c.end - c.begin);
        }
    }
}

KRN_RUN_PARTS_BY(struct job, pool_of, p, part_run, .epilogue = krn_epilogue_of(call))

KRN_ISA_PRIMITIVE(max_pool_f32_nhwc, MDL_OP_MAX_POOL, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);

KRN_ISA_PRIMITIVE(avg_pool_f32_nhwc, MDL_OP_AVG_POOL, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);

KRN_ISA_PRIMITIVE(reduce_f32_nhwc_mean, MDL_OP_REDUCE, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);
