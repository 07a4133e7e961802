/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pools and a mean over height and width (REDUCE): channels side by side in
 * vectors. Work is shared by output rows, or by channels where there are fewer rows than members
 * (global pools).
 */
#include <math.h>

#include "base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/pool_common.h"

#define LANES (4u * KRN_VL) /* channels that are summed together: whole cache lines of a pixel */

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_pool p;

    return krn_pool_of(m, op, &p);
}

/* REDUCE mean over exactly the spatial dims is the average pool of the full window */
static bool mean_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *p)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (op->attr.reduce.which != MDL_RED_MEAN || op->attr.reduce.axes[0] ||
        op->attr.reduce.axes[1] || x->rank < 3 || x->rank > 4 || y->rank != x->rank) {
        return false;
    }
    for (size_t d = 2; d < x->rank; d++) {
        if (!op->attr.reduce.axes[d] || y->dim[d] != 1) {
            return false;
        }
    }
    if (!krn_img_of(x, &p->x) || !krn_img_of(y, &p->y) || p->x.n != p->y.n || p->x.c != p->y.c ||
        op->shift || op->scale || !krn_epilogue_supports(m, op, &p->y) ||
        krn_epilogue_aliased(m, op)) {
        return false;
    }
    p->win = (struct krn_win){p->x.h, p->x.w, 1, 1, 1, 1, 0, 0};
    p->max = p->fixed = false;
    p->extent_h = p->x.h;
    p->extent_w = p->x.w;
    p->epilogue = op->act != MDL_ACT_NONE || op->residual != MDL_RESIDUAL_NONE;
    return true;
}

static bool mean_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_pool p;

    return mean_of(m, op, &p);
}

struct job {
    const struct krn_call *call;
    struct krn_pool p;
    struct krn_epilogue epilogue;
    size_t parts;
};

struct window {
    const float *x; /* first tap that exists */
    size_t rows, columns;
    size_t row, column; /* steps in elements */
    float factor;       /* of the sum */
};

KRN_INLINE void pool_full(const struct window *w, float *y, const bool max)
{
    vf acc[4];

#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        acc[i] = vf_set(max ? -INFINITY : 0.0f);
    }
    for (size_t r = 0; r < w->rows; r++) {
        const float *x = w->x + r * w->row;

        for (size_t k = 0; k < w->columns; k++, x += w->column) {
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++) {
                vf v = vf_load(x + i * KRN_VL);

                acc[i] = max ? vf_max(acc[i], v) : acc[i] + v;
            }
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        vf_store(y + i * KRN_VL, max ? acc[i] : acc[i] * w->factor);
    }
}

KRN_INLINE void pool_rest(const struct window *w, float *y, size_t n, const bool max)
{
    vf acc = vf_set(max ? -INFINITY : 0.0f);

    for (size_t r = 0; r < w->rows; r++) {
        const float *x = w->x + r * w->row;

        for (size_t k = 0; k < w->columns; k++, x += w->column) {
            vf v = n == KRN_VL ? vf_load(x) : vf_load_n(x, n);

            acc = max ? vf_max(acc, v) : acc + v;
        }
    }
    vf_store_n(y, max ? acc : acc * w->factor, n);
}

KRN_INLINE void pool_channels(const struct window *w, float *y, size_t channels, const bool max)
{
    struct window at = *w;
    size_t c = 0;

    for (; c + LANES <= channels; c += LANES) {
        at.x = w->x + c;
        pool_full(&at, y + c, max);
    }
    for (; c < channels; c += KRN_VL) {
        at.x = w->x + c;
        pool_rest(&at, y + c, base_min(channels - c, (size_t)KRN_VL), max);
    }
}

static void pool_pixel(const struct job *j, size_t n, size_t oy, size_t ox, struct krn_range c)
{
    const struct krn_pool *p = &j->p;
    ptrdiff_t iy = (ptrdiff_t)(oy * p->win.sh) - p->win.top;
    ptrdiff_t ix = (ptrdiff_t)(ox * p->win.sw) - p->win.left;
    struct krn_range ky = krn_taps(iy, p->win.kh, p->win.dh, p->x.h);
    struct krn_range kx = krn_taps(ix, p->win.kw, p->win.dw, p->x.w);
    float *y = (float *)j->call->out[0] + ((n * p->y.h + oy) * p->y.w + ox) * p->y.pixel + c.begin;
    struct window w = {.x = j->call->in[0],
                       .rows = ky.end - ky.begin,
                       .columns = kx.end - kx.begin,
                       .row = p->win.dh * p->x.row,
                       .column = p->win.dw * p->x.pixel};
    size_t count = w.rows * w.columns;

    if (count != 0) {
        w.x += n * p->x.batch + (size_t)(iy + (ptrdiff_t)(ky.begin * p->win.dh)) * p->x.row +
               (size_t)(ix + (ptrdiff_t)(kx.begin * p->win.dw)) * p->x.pixel + c.begin;
    }
    if (p->max) {
        pool_channels(&w, y, c.end - c.begin, true);
        return;
    }
    if (p->fixed) {
        count = krn_pool_within(oy * p->win.sh, p->win.kh, p->win.dh, p->extent_h) *
                krn_pool_within(ox * p->win.sw, p->win.kw, p->win.dw, p->extent_w);
    }
    w.factor = count != 0 ? 1.0f / (float)count : 0.0f;
    pool_channels(&w, y, c.end - c.begin, false);
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_pool *p = &j->p;
    struct krn_range rows = {0, p->y.n * p->y.h}, c = {0, p->y.c};

    if (rows.end >= j->parts) {
        rows = krn_share(rows.end, 1, part, j->parts);
    } else {
        c = krn_share(c.end, LANES, part, j->parts);
    }
    for (size_t r = rows.begin; r < rows.end && c.begin < c.end; r++) {
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

static void start(struct job *j)
{
    j->epilogue = krn_epilogue_of(j->call);
    j->parts = base_max(j->call->width, 1u);
    krn_parallel(j->call->pool, j->parts, part_run, j);
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call};

    if (krn_pool_of(call->model, call->op, &j.p)) {
        start(&j);
    }
}

static void mean_run(const struct krn_call *call)
{
    struct job j = {.call = call};

    if (mean_of(call->model, call->op, &j.p)) {
        start(&j);
    }
}

const struct krn_variant KRN_ISA_FN(krn_max_pool_f32_nhwc) = {
    .name = "max_pool_f32_nhwc__" KRN_ISA_TEXT,
    .kind = MDL_OP_MAX_POOL,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .run = run,
};

const struct krn_variant KRN_ISA_FN(krn_avg_pool_f32_nhwc) = {
    .name = "avg_pool_f32_nhwc__" KRN_ISA_TEXT,
    .kind = MDL_OP_AVG_POOL,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .run = run,
};

const struct krn_variant KRN_ISA_FN(krn_reduce_f32_nhwc_mean) = {
    .name = "reduce_f32_nhwc_mean__" KRN_ISA_TEXT,
    .kind = MDL_OP_REDUCE,
    .needs = KRN_ISA_NEEDS,
    .supports = mean_supports,
    .run = mean_run,
};
