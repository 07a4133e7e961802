/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First layers: a convolution of three input channels, alone, with the change from NCHW before it,
 * or with the max pooling after it.
 *
 * Each part copies the input rows that it needs, one after the other and each once, into a ring of
 * as many padded rows as the window has. The copy also interleaves the planes of an NCHW tensor, or
 * converts the pixels of an image by the code of preprocessing. Before a pooling, the rows of the
 * convolution go to another ring, as high as the pooling's window: they never leave the cache.
 * Parts share output rows; next to another part's rows they compute a few rows of the convolution
 * again.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/pool_common.h"
#include "kernels/common/vec_arith.h"
#include "kernels/f32/igemm.h"
#include "kernels/f32/input_rows.h"
#include "kernels/f32/stem.h"

#define POOL_ROWS_MAX 8u
#define POOL_LANES (4u * KRN_VL)

struct plan {
    struct krn_conv c;
    bool pooled;
    struct krn_pool pool;
    size_t row;         /* floats of a padded input row, rounded up to cache lines */
    size_t pool_row;    /* floats of a row of the convolution, if pooled */
    size_t part_floats; /* scratch of one part */
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const size_t line = BASE_CACHE_LINE_BYTES / sizeof(float);

    if (!krn_conv_of(m, op, &p->c) || !KRN_ISA_FN(krn_stem_supports)(&p->c)) {
        return false;
    }
    p->pooled = false;
    p->row = ((p->c.y.w - 1) * p->c.win.sw + p->c.win.kw) * KRN_STEM_CHANNELS;
    p->row = base_align_up(p->row, line);
    p->pool_row = 0;
    p->part_floats = p->row * p->c.win.kh;
    return true;
}

static bool pool_plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_win *win = &p->pool.win;

    if (op[1].kind != MDL_OP_MAX_POOL || op[1].in[0] != op->out[0] ||
        op->residual != MDL_RESIDUAL_NONE || !plan_of(m, op, p) ||
        !krn_pool_of(m, op + 1, &p->pool) || !p->pool.max || p->pool.epilogue ||
        !krn_img_same(&p->c.y, &p->pool.x) || win->dh != 1 || win->dw != 1 ||
        win->kh > POOL_ROWS_MAX) {
        return false;
    }
    p->pooled = true;
    p->pool_row = base_align_up(p->c.y.w * p->c.og, BASE_CACHE_LINE_BYTES / sizeof(float));
    p->part_floats += p->pool_row * win->kh;
    return true;
}

struct job {
    const struct krn_call *call; /* of the convolution */
    struct plan p;
    struct krn_input_rows rows;
    struct krn_stem stem;
    size_t parts;
};

/* A part's place: image, rows of the convolution, and what its rings hold. */
struct part {
    const struct job *j;
    float *rows, *conv_rows;
    size_t n;
    size_t filled, done; /* padded input rows and rows of the convolution before these are there */
};

/* writes row @y of the padded image n */
static void fill_row(const struct part *t, size_t y, float *dst)
{
    const struct job *j = t->j;
    const struct krn_conv *c = &j->p.c;
    ptrdiff_t iy = (ptrdiff_t)y - c->win.top;
    struct krn_range kx = krn_taps(-c->win.left, j->p.row / KRN_STEM_CHANNELS, 1, c->x.w);
    size_t pixels = kx.end - kx.begin;

    if (iy < 0 || iy >= (ptrdiff_t)c->x.h || pixels == 0) {
        memset(dst, 0, j->p.row * sizeof(float));
        return;
    }
    memset(dst, 0, kx.begin * KRN_STEM_CHANNELS * sizeof(float));
    memset(dst + kx.end * KRN_STEM_CHANNELS, 0,
           (j->p.row - kx.end * KRN_STEM_CHANNELS) * sizeof(float));
    krn_input_row(&j->rows, t->n, (size_t)iy, pixels, dst + kx.begin * KRN_STEM_CHANNELS);
}

/* computes row @oy of the convolution of image n; rows of one image come in order */
static void conv_row(struct part *t, size_t oy, float *y)
{
    const struct krn_conv *c = &t->j->p.c;
    size_t first = oy * c->win.sh, kh = c->win.kh;
    const float *rows[KRN_STEM_ROWS_MAX];

    for (size_t r = base_max(t->filled, first); r < first + kh; r++) {
        fill_row(t, r, t->rows + r % kh * t->j->p.row);
    }
    t->filled = first + kh;
    for (size_t u = 0; u < kh; u++) {
        rows[u] = t->rows + (first + u) % kh * t->j->p.row;
    }
    KRN_ISA_FN(krn_stem_row)(&t->j->stem, rows, (t->n * c->y.h + oy) * c->y.w, y);
}

/* y[c] = max over rows and columns; @vectors is a constant where this is inlined */
KRN_INLINE void pool_vectors(const float *const *rows, struct krn_range ky, size_t at,
                             size_t columns, size_t pixel, float *y, size_t n, const size_t vectors)
{
    vf acc[4];

#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++) {
        acc[v] = vf_set(-INFINITY);
    }
    for (size_t r = ky.begin; r < ky.end; r++) {
        const float *x = rows[r] + at;

        for (size_t k = 0; k < columns; k++, x += pixel) {
#pragma GCC unroll 4
            for (size_t v = 0; v < vectors; v++) {
                acc[v] =
                    vf_nan_max(acc[v], vectors > 1 ? vf_load(x + v * KRN_VL) : vf_load_any(x, n));
            }
        }
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++) {
        if (vectors > 1) {
            vf_store(y + v * KRN_VL, acc[v]);
        } else {
            vf_store_any(y, acc[v], n);
        }
    }
}

/* computes row @py of the pooling of image n */
static void pool_row(struct part *t, size_t py)
{
    const struct job *j = t->j;
    const struct krn_pool *p = &j->p.pool;
    const size_t channels = j->p.c.og, kh = p->win.kh;
    ptrdiff_t top = (ptrdiff_t)(py * p->win.sh) - p->win.top;
    struct krn_range ky = krn_taps(top, kh, 1, p->x.h);
    float *y = (float *)j->call->next->out[0] + (t->n * p->y.h + py) * p->y.w * p->y.pixel;
    const float *rows[POOL_ROWS_MAX];

    for (size_t u = ky.begin; u < ky.end; u++) {
        size_t oy = (size_t)(top + (ptrdiff_t)u);
        float *row = t->conv_rows + oy % kh * j->p.pool_row;

        if (oy >= t->done) {
            conv_row(t, oy, row);
            t->done = oy + 1;
        }
        rows[u] = row;
    }
    for (size_t px = 0; px < p->y.w; px++, y += p->y.pixel) {
        ptrdiff_t left = (ptrdiff_t)(px * p->win.sw) - p->win.left;
        struct krn_range kx = krn_taps(left, p->win.kw, 1, p->x.w);
        size_t columns = kx.end - kx.begin, c = 0;
        size_t at = columns ? (size_t)(left + (ptrdiff_t)kx.begin) * channels : 0;

        for (; c + POOL_LANES <= channels; c += POOL_LANES) {
            pool_vectors(rows, ky, at + c, columns, channels, y + c, KRN_VL, 4);
        }
        for (; c < channels; c += KRN_VL) {
            pool_vectors(rows, ky, at + c, columns, channels, y + c,
                         base_min(channels - c, (size_t)KRN_VL), 1);
        }
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_img *y = j->p.pooled ? &j->p.pool.y : &j->p.c.y;
    struct krn_range share = krn_share(y->n * y->h, 1, part, j->parts);
    struct part t = {.j = j, .rows = (float *)(void *)j->call->scratch + part * j->p.part_floats};

    t.conv_rows = t.rows + j->p.row * j->p.c.win.kh;
    for (size_t r = share.begin; r < share.end; r++) {
        if (r == share.begin || r % y->h == 0) {
            t.n = r / y->h;
            t.filled = t.done = 0;
        }
        if (j->p.pooled) {
            pool_row(&t, r % y->h);
        } else {
            conv_row(&t, r % y->h, (float *)j->call->out[0] + r * y->w * y->pixel);
        }
    }
}

/* @j: call, plan */
static void run_job(struct job *j, const void *packed, const struct krn_planes *planes)
{
    const struct krn_conv *c = &j->p.c;

    krn_input_rows_init(&j->rows, j->call, &c->x, planes);
    j->parts = base_max(j->call->width, 1u);
    j->stem = (struct krn_stem){.kh = c->win.kh,
                                .len = c->win.kw * KRN_STEM_CHANNELS,
                                .stride = c->win.sw,
                                .width = c->y.w,
                                .out = c->og,
                                .packed = packed,
                                .y_pixel = j->p.pooled ? c->og : c->y.pixel,
                                .epilogue = krn_epilogue_of(j->call)};
    krn_parallel(j->call->pool, j->parts, part_run, j);
}

/* the convolution alone */

KRN_SUPPORTS_BY(struct plan, plan_of)
KRN_PACKED_BYTES_BY(struct plan, plan_of, krn_stem_packed(&p.c) * sizeof(float))
KRN_SCRATCH_BYTES_BY(struct plan, plan_of, p.part_floats * sizeof(float))

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    struct plan p;

    if (plan_of(m, op, &p)) {
        krn_igemm_pack_group(m, op, &p.c, 0, dst);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call};

    if (plan_of(call->model, call->op, &j.p)) {
        run_job(&j, call->packed, &(struct krn_planes){0});
    }
}

KRN_ISA_PRIMITIVE(conv_f32_nhwc_stem, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,
                  .from_image = supports, .run = run);

/* with the pooling after it */

KRN_SUPPORTS_AS(pool_supports, struct plan, pool_plan_of)
KRN_SCRATCH_BYTES_AS(pool_scratch_bytes, struct plan, pool_plan_of, p.part_floats * sizeof(float))

static void pool_run(const struct krn_call *call)
{
    struct job j = {.call = call};

    if (pool_plan_of(call->model, call->op, &j.p)) {
        run_job(&j, call->packed, &(struct krn_planes){0});
    }
}

KRN_ISA_PRIMITIVE(conv_f32_nhwc_stem_pool, MDL_OP_CONV, KRN_ISA_NEEDS, .fused = true,
                  .supports = pool_supports, .packed_bytes = packed_bytes, .pack = pack,
                  .scratch_bytes = pool_scratch_bytes, .from_image = pool_supports,
                  .run = pool_run);

/* with the change from NCHW before it */

static bool planes_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_planes planes;

    return krn_planes_of(m, op, &planes) && supports(m, op + 1);
}

KRN_BYTES_OF_NEXT()

static void planes_run(const struct krn_call *call)
{
    struct job j = {.call = call->next};
    struct krn_planes planes;

    if (krn_planes_of(call->model, call->op, &planes) && plan_of(call->model, call->op + 1, &j.p)) {
        planes.x = call->in[0];
        run_job(&j, call->packed, &planes);
    }
}

KRN_ISA_PRIMITIVE(copy_conv_f32_stem, MDL_OP_COPY, KRN_ISA_NEEDS, .fused = true,
                  .supports = planes_supports, .packed_bytes = next_packed_bytes, .pack = next_pack,
                  .scratch_bytes = next_scratch_bytes, .from_image = planes_supports,
                  .run = planes_run);
