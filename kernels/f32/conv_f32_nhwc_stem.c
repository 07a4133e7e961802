/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First layers: a convolution of few input channels, alone, with the change from NCHW before it, or
 * with the max pooling after it.
 *
 * Each part copies the input rows that it needs, one after the other and each once, into a ring of
 * as many padded rows as the window has. The copy also interleaves the planes of an NCHW tensor, or
 * converts the pixels of an image by the code of preprocessing. Before a pooling, the rows of the
 * convolution go to another ring, as high as the pooling's window: they never leave the cache.
 * Parts share output rows; next to another part's rows they compute a few rows of the convolution
 * again.
 *
 * A row of the window is one run of floats, its columns times the channels, and the step from
 * window to window the stride times the channels: no pointer per tap, and no product with zero but
 * in the padding. Of three channels and strides of 1, 2 and 4 the step is a constant of the code,
 * and so are the distances between the windows of a register tile: one pointer reaches all of them.
 * Weights lie in panels [panel][u][k][lanes], as those of igemm.h.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/pool_common.h"
#include "kernels/common/vec_arith.h"
#include "kernels/f32/igemm_tile.h"
#include "kernels/f32/input_rows.h"

#define CHANNELS_MAX 7u
#define CHANNELS 3u              /* of steps that are constants */
#define ROWS_MAX 16u             /* of a window */
#define NEAR_BYTES (16u * 1024u) /* of weights */
#define POOL_ROWS_MAX 8u
#define POOL_LANES (4u * KRN_VL)

/* Adjacent output pixels in a row: window i begins @at + i step in each row of the window. */
struct strip {
    const float *const *rows;
    size_t at;
    const float *panel;
    size_t kh, len, step;
    struct krn_tile_out out;
};

/* @height and @vectors are constants wherever this is inlined */
KRN_INLINE void run_any(const struct strip *s, const size_t height, const size_t vectors)
{
    const float *panel = s->panel, *a[KRN_TILE_ROWS];
    vf acc[KRN_TILE_ROWS][2];

    krn_tile_zero(acc, height);
    for (size_t u = 0; u < s->kh; u++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            a[i] = s->rows[u] + s->at + i * s->step;
        }
#pragma GCC unroll 1
        for (size_t k = 0; k < s->len; k++, panel += vectors * KRN_VL) {
            krn_tile_step(acc, a, k, NULL, panel, height, vectors);
        }
    }
    krn_tile_store(&s->out, height, vectors, acc);
}

/* the same for windows of CHANNELS; @step is a constant, too */
KRN_INLINE void run_strip(const struct strip *s, const size_t height, const size_t vectors,
                          const size_t step)
{
    const float *panel = s->panel;
    vf acc[KRN_TILE_ROWS][2];

    krn_tile_zero(acc, height);
    for (size_t u = 0; u < s->kh; u++) {
        const float *a = s->rows[u] + s->at;

#pragma GCC unroll 1
        for (const float *end = a + s->len; a < end; a += CHANNELS) {
#pragma GCC unroll 3
            for (size_t k = 0; k < CHANNELS; k++, panel += vectors * KRN_VL) {
                /* Windows overlap, so the next steps read the same floats. The compiler would keep
                 * all of them in registers, and spill the sums. */
                __asm__("" : "+r"(a));
                vf b0 = vf_load(panel), b1 = vectors > 1 ? vf_load(panel + KRN_VL) : b0;

#pragma GCC unroll 16
                for (size_t i = 0; i < height; i++) {
                    vf x = vf_set(a[i * step + k]);

                    acc[i][0] += x * b0;
                    if (vectors > 1) {
                        acc[i][1] += x * b1;
                    }
                }
            }
        }
    }
    krn_tile_store(&s->out, height, vectors, acc);
}

/* Tiles of a row have nearly equal heights: at least half of the highest. */
/* clang-format off */
#if KRN_VL == 16
#define LOWEST 6u
#define STEM_HEIGHTS(X, ...)                                                                       \
    X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__)     \
    X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#else
#define LOWEST 3u
#define STEM_HEIGHTS(X, ...)                                                                       \
    X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#endif
/* clang-format on */
#define HEIGHTS (KRN_TILE_ROWS - LOWEST + 1)
KRN_TILE_TABLE(strips_any, const struct strip, run_any, KRN_TILE_HEIGHTS, KRN_TILE_ROWS)
KRN_TILE_TABLE(strips_3, const struct strip, run_strip, STEM_HEIGHTS, HEIGHTS, 3)
KRN_TILE_TABLE(strips_6, const struct strip, run_strip, STEM_HEIGHTS, HEIGHTS, 6)
KRN_TILE_TABLE(strips_12, const struct strip, run_strip, STEM_HEIGHTS, HEIGHTS, 12)

/* functions for the tiles of a row: [height - lowest][vectors - 1] */
typedef void strip_fn(const struct strip *s);
struct strips {
    strip_fn *const (*of)[2];
    size_t lowest;
};

static struct strips strips_of(size_t step, size_t len, size_t width)
{
    bool known = width >= KRN_TILE_ROWS && len % CHANNELS == 0;

    return known && step == 3    ? (struct strips){strips_3_of, LOWEST}
           : known && step == 6  ? (struct strips){strips_6_of, LOWEST}
           : known && step == 12 ? (struct strips){strips_12_of, LOWEST}
                                 : (struct strips){strips_any_of, 1};
}

/* one output row */
struct stem {
    size_t kh, len;      /* rows of the window; floats of one */
    size_t step;         /* floats from window to window */
    size_t width;        /* of the output */
    size_t out;          /* output channels */
    const float *packed; /* krn_igemm_pack_group() */
    size_t y_pixel;      /* floats between pixels of y */
    struct krn_epilogue epilogue;
    struct strips strips;
};

/* A row of pixels in tiles of height `low`; some are one higher: krn_tile_first() without
 * divisions, which would take as long as a small tile. */
struct split {
    size_t tiles, low, higher;
};
struct place {
    size_t first, left; /* pixel; remainder */
};

/* Computes @tiles tiles from @p of the panel at channel @o of y. Return: the place after them. */
static struct place run_panel(const struct stem *s, struct strip *t, float *y, size_t o,
                              size_t tiles, struct place p, struct split row)
{
    const size_t begin = t->out.first;

    t->panel = s->packed + o * s->kh * s->len;
    t->out.channel = o;
    t->out.channels = base_min(s->out - o, (size_t)KRN_TILE_LANES);
    for (; tiles > 0; tiles--) {
        size_t height = row.low;

        p.left += row.higher;
        if (p.left >= row.tiles) {
            p.left -= row.tiles;
            height++;
        }
        t->at = p.first * s->step;
        t->out.first = begin + p.first;
        t->out.y = y + p.first * s->y_pixel + o;
        s->strips.of[height - s->strips.lowest][t->out.channels > KRN_VL](t);
        p.first += height;
    }
    t->out.first = begin;
    return p;
}

/* Computes one output row: y[i][o] = epilogue( sum_{u,k} rows[u][i step + k] w[u][k][o] ).
 * @rows: kh pointers to padded rows     @first: the row's first pixel among all pixels, for the
 * residual     @y: [width][y_pixel], of which the first `out` floats of each pixel are written
 * Tile by tile if all weights stay in the first-level cache, so that lines are written in order;
 * else panel by panel. */
static void stem_row(const struct stem *s, const float *const *rows, size_t first, float *y)
{
    size_t tiles = krn_tile_count(s->width), weights = s->kh * s->len * s->out;
    size_t step = weights * sizeof(float) <= NEAR_BYTES ? 1 : tiles;
    struct split row = {tiles, s->width / tiles, s->width % tiles};
    struct strip t = {
        .rows = rows, .kh = s->kh, .len = s->len, .step = s->step, .out = {.y_pixel = s->y_pixel}};
    struct place here = {0, 0};

    krn_tile_finish_of(&s->epilogue, &t.out);
    t.out.first = first;
    for (size_t i = 0; i < tiles; i += step) {
        struct place next = here;

        for (size_t o = 0; o < s->out; o += KRN_TILE_LANES) {
            next = run_panel(s, &t, y, o, step, here, row);
        }
        here = next;
    }
}

struct plan {
    struct krn_conv c;
    bool pooled, planar; /* before a pooling; behind a change from NCHW */
    struct krn_pool pool;
    struct krn_planes planes;
    size_t row;         /* floats of a padded input row, rounded up to cache lines */
    size_t height;      /* rows under the window */
    size_t pool_row;    /* floats of a row of the convolution, if pooled */
    size_t part_floats; /* scratch of one part */
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const size_t line = BASE_CACHE_LINE_BYTES / sizeof(float);

    if (!krn_conv_of(m, op, &p->c) || p->c.groups != 1 || p->c.cg > CHANNELS_MAX ||
        p->c.win.dw != 1 || p->c.win.kh > ROWS_MAX || p->c.win.kw < 2) {
        return false;
    }
    p->pooled = p->planar = false;
    p->planes = (struct krn_planes){0};
    p->row = ((p->c.y.w - 1) * p->c.win.sw + p->c.win.kw) * p->c.cg;
    p->row = base_align_up(p->row, line);
    p->pool_row = 0;
    p->height = (p->c.win.kh - 1) * p->c.win.dh + 1;
    p->part_floats = p->row * p->height;
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

/* of a COPY and the convolution behind it */
static bool planes_plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    struct krn_planes planes;

    if (!krn_planes_of(m, op, &planes) || !plan_of(m, op + 1, p)) {
        return false;
    }
    p->planar = true;
    p->planes = planes;
    return true;
}

struct job {
    const struct krn_call *call; /* of the convolution */
    struct plan p;
    struct krn_input_rows rows;
    struct stem stem;
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
    struct krn_range kx = krn_taps(-c->win.left, j->p.row / c->cg, 1, c->x.w);
    size_t pixels = kx.end - kx.begin;

    if (iy < 0 || iy >= (ptrdiff_t)c->x.h || pixels == 0) {
        memset(dst, 0, j->p.row * sizeof(float));
        return;
    }
    memset(dst, 0, kx.begin * c->cg * sizeof(float));
    memset(dst + kx.end * c->cg, 0, (j->p.row - kx.end * c->cg) * sizeof(float));
    krn_input_row(&j->rows, t->n, (size_t)iy, pixels, dst + kx.begin * c->cg);
}

/* computes row @oy of the convolution of image n; rows of one image come in order */
static void conv_row(struct part *t, size_t oy, float *y)
{
    const struct krn_conv *c = &t->j->p.c;
    size_t first = oy * c->win.sh, height = t->j->p.height;
    const float *rows[ROWS_MAX];

    for (size_t r = base_max(t->filled, first); r < first + height; r++) {
        fill_row(t, r, t->rows + r % height * t->j->p.row);
    }
    t->filled = first + height;
    for (size_t u = 0; u < c->win.kh; u++) {
        rows[u] = t->rows + (first + u * c->win.dh) % height * t->j->p.row;
    }
    stem_row(&t->j->stem, rows, (t->n * c->y.h + oy) * c->y.w, y);
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
    struct krn_range share = krn_share_run(y->n * y->h, 1, part, j->parts);
    struct part t = {.j = j, .rows = (float *)(void *)j->call->scratch + part * j->p.part_floats};

    t.conv_rows = t.rows + j->p.row * j->p.height;
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

/* @of: of the primitive */
static void run_by(const struct krn_call *call,
                   bool (*of)(const struct mdl_model *m, const struct mdl_op *op, struct plan *p))
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};
    const struct krn_conv *c = &j.p.c;

    if (!of(call->model, call->op, &j.p)) {
        return;
    }
    if (j.p.planar) {
        j.call = call->next;
        j.p.planes.x = call->in[0];
    }
    krn_input_rows_init(&j.rows, j.call, &c->x, &j.p.planes);
    j.stem = (struct stem){.kh = c->win.kh,
                           .len = c->win.kw * c->cg,
                           .step = c->win.sw * c->cg,
                           .width = c->y.w,
                           .out = c->og,
                           .packed = call->packed,
                           .y_pixel = j.p.pooled ? c->og : c->y.pixel,
                           .epilogue = krn_epilogue_of(j.call),
                           .strips = strips_of(c->win.sw * c->cg, c->win.kw * c->cg, c->y.w)};
    krn_parallel(call->pool, j.parts, part_run, &j);
}

#define PRIMITIVE(what, kind, of, fuses)                                                           \
    KRN_SUPPORTS_AS(what##_supports, struct plan, of)                                              \
    KRN_PACKED_BYTES_AS(what##_packed_bytes, struct plan, of,                                      \
                        krn_igemm_packed(p.c.taps *p.c.cg, p.c.og) * sizeof(float))                \
    KRN_PACK_AS(what##_pack, struct plan, of,                                                      \
                krn_igemm_pack_group(m, op + p.planar, &p.c, 0, dst))                              \
    KRN_SCRATCH_BYTES_AS(what##_scratch_bytes, struct plan, of, p.part_floats * sizeof(float))     \
    static void what##_run(const struct krn_call *call)                                            \
    {                                                                                              \
        run_by(call, of);                                                                          \
    }                                                                                              \
    KRN_ISA_PRIMITIVE(what, kind, KRN_ISA_NEEDS, .fused = fuses, .supports = what##_supports,      \
                      .packed_bytes = what##_packed_bytes, .pack = what##_pack,                    \
                      .scratch_bytes = what##_scratch_bytes, .from_image = what##_supports,        \
                      .run = what##_run)

PRIMITIVE(conv_f32_nhwc_stem, MDL_OP_CONV, plan_of, false);
PRIMITIVE(conv_f32_nhwc_stem_pool, MDL_OP_CONV, pool_plan_of, true);
PRIMITIVE(copy_conv_f32_stem, MDL_OP_COPY, planes_plan_of, true);
