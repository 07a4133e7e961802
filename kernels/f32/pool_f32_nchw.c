/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pools on NCHW images, in two steps per output row: the input rows of its windows
 * are reduced to one padded line, vector by vector; then the windows move along that line. A team
 * shares channels.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/pool_common.h"
#include "kernels/common/vec_arith.h"

struct plan {
    struct krn_pool p;
    size_t line;   /* floats of a padded line, plus what vectors read past it */
    size_t counts; /* floats, one for each output column */
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *ret)
{
    const struct krn_pool *p = &ret->p;

    if (!krn_pool_of(m, op, &ret->p) || p->epilogue) {
        return false;
    }
    ret->line = base_max((size_t)p->win.left + p->x.w,
                         (p->y.w - 1) * p->win.sw + (p->win.kw - 1) * p->win.dw + 1);
    ret->line = base_align_up(ret->line + (p->win.sw + 1) * KRN_VL, (size_t)16);
    ret->counts = base_align_up(p->y.w + KRN_VL, (size_t)16);
    return true;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

KRN_SCRATCH_BYTES_BY(struct plan, plan_of, (p.line + p.counts) * sizeof(float))

struct job {
    const struct krn_call *call;
    struct plan plan;
    size_t parts;
};

/* one row's windows and their divisors */
struct row {
    const float *x; /* first input row that exists */
    size_t rows, step;
    float count; /* of taps, top to bottom */
};

#if KRN_VL == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#elif KRN_VL == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#else
#define EVEN 0, 2, 4, 6
#endif

KRN_INLINE vf gather(const float *p, size_t step)
{
    vf x = {0};

    if (step == 1) {
        return vf_load(p);
    }
    if (step == 2) {
        return __builtin_shufflevector(vf_load(p), vf_load(p + KRN_VL), EVEN);
    }
    for (size_t i = 0; i < KRN_VL; i++) {
        x[i] = p[i * step];
    }
    return x;
}

KRN_INLINE vf join(vf acc, vf x, const bool max)
{
    return max ? vf_nan_max(acc, x) : acc + x;
}

/* top to bottom */
KRN_INLINE void into_line(const struct row *r, size_t width, float *line, const bool max)
{
    for (size_t i = 0; i < width; i += KRN_VL) {
        size_t n = base_min(width - i, (size_t)KRN_VL);
        vf acc = vf_set(max ? -INFINITY : 0.0f);

        for (size_t k = 0; k < r->rows; k++) {
            const float *x = r->x + k * r->step + i;

            acc = join(acc, vf_load_any(x, n), max);
        }
        vf_store_any(line + i, acc, n);
    }
}

/* left to right; the lanes past the last column read the line's slack */
KRN_INLINE void along_line(const struct krn_pool *p, const struct row *r, const float *line,
                           const float *counts, float *y, const size_t step, const bool max)
{
    for (size_t ox = 0; ox < p->y.w; ox += KRN_VL) {
        vf acc = vf_set(max ? -INFINITY : 0.0f);

        for (size_t k = 0; k < p->win.kw; k++) {
            acc = join(acc, gather(line + ox * step + k * p->win.dw, step), max);
        }
        if (!max) {
            vf count = r->count * vf_load(counts + ox);

            acc = vf_select(count > 0.0f, acc / count, vf_set(0.0f));
        }
        vf_store_any(y + ox, acc, base_min(p->y.w - ox, (size_t)KRN_VL));
    }
}

KRN_INLINE void pool_row(const struct krn_pool *p, const struct row *r, float *line,
                         const float *counts, float *y, const bool max)
{
    into_line(r, p->x.w, line + p->win.left, max);
    if (p->win.sw == 1) {
        along_line(p, r, line, counts, y, 1, max);
    } else if (p->win.sw == 2) {
        along_line(p, r, line, counts, y, 2, max);
    } else {
        along_line(p, r, line, counts, y, p->win.sw, max);
    }
}

static void pool_plane(const struct krn_pool *p, const float *x, float *line, const float *counts,
                       float *y)
{
    for (size_t oy = 0; oy < p->y.h; oy++, y += p->y.w) {
        ptrdiff_t iy = (ptrdiff_t)(oy * p->win.sh) - p->win.top;
        struct krn_range ky = krn_taps(iy, p->win.kh, p->win.dh, p->x.h);
        struct row r = {.x = x, .rows = ky.end - ky.begin, .step = p->win.dh * p->x.w};

        if (r.rows > 0) {
            r.x += (size_t)(iy + (ptrdiff_t)(ky.begin * p->win.dh)) * p->x.w;
        }
        r.count =
            (float)(p->fixed ? krn_pool_within(oy * p->win.sh, p->win.kh, p->win.dh, p->extent_h)
                             : r.rows);
        if (p->max) {
            pool_row(p, &r, line, counts, y, true);
        } else {
            pool_row(p, &r, line, counts, y, false);
        }
    }
}

/* the divisor of each column, left to right */
static void count_columns(const struct krn_pool *p, float *counts)
{
    for (size_t ox = 0; ox < p->y.w; ox++) {
        struct krn_range in =
            krn_taps((ptrdiff_t)(ox * p->win.sw) - p->win.left, p->win.kw, p->win.dw, p->x.w);

        counts[ox] =
            (float)(p->fixed ? krn_pool_within(ox * p->win.sw, p->win.kw, p->win.dw, p->extent_w)
                             : in.end - in.begin);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_pool *p = &j->plan.p;
    struct krn_range planes = krn_share_run(p->x.n * p->x.c, 1, part, j->parts);
    float *line = (float *)j->call->scratch + part * (j->plan.line + j->plan.counts);
    float *counts = line + j->plan.line;

    for (size_t i = 0; i < j->plan.line; i++) {
        line[i] = p->max ? -INFINITY : 0.0f;
    }
    memset(counts, 0, j->plan.counts * sizeof(*counts));
    count_columns(p, counts);
    for (size_t i = planes.begin; i < planes.end; i++) {
        pool_plane(p, (const float *)j->call->in[0] + i * p->x.h * p->x.w, line, counts,
                   (float *)j->call->out[0] + i * p->y.h * p->y.w);
    }
}

KRN_RUN_PARTS_BY(struct job, plan_of, plan, part_run)

KRN_ISA_PRIMITIVE(max_pool_f32_nchw, MDL_OP_MAX_POOL, KRN_ISA_NEEDS, .nchw_in = true,
                  .nchw_out = true, .supports = supports, .scratch_bytes = scratch_bytes,
                  .run = run);

KRN_ISA_PRIMITIVE(avg_pool_f32_nchw, MDL_OP_AVG_POOL, KRN_ISA_NEEDS, .nchw_in = true,
                  .nchw_out = true, .supports = supports, .scratch_bytes = scratch_bytes,
                  .run = run);
