/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution with few channels per group.
 *
 * If a group has as many outputs as inputs, and fewer than a vector has lanes, a vector spans
 * several groups: lane j of step c takes channel group(j) cg + c, a permutation of one vector of
 * the image. Otherwise a vector lies within one group, and all its lanes take the same channel.
 * Either way, one load of a pixel serves all windows of the output row that contain it (three for
 * 3x3), and the sums of a strip of that row stay in registers.
 *
 * First the rows under a block of output rows are copied into a zero-padded band, for the channels
 * of one vector or group only: in the image, pixels are so far apart that a window's columns
 * compete for few cache sets. A team shares vectors (or groups) or, if these do not divide evenly,
 * output rows.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/uneven.h"
#include "kernels/f32/igemm_tile.h"

#define BLOCK_BYTES (256u * 1024u) /* input under a block of rows, all channels: fits L2 */
#define BAND_BYTES (20u * 1024u)   /* inside L1 with the weights */
#define CHANNELS_MAX 16u           /* per group; with more, the indirect GEMM is faster */
#define LINE (BASE_CACHE_LINE_BYTES / sizeof(float))
/* 12 sums, three vectors of weights and one of the image fill 16 registers; 10 leave room for
 * addresses, which would be spilled otherwise. */
/* clang-format off */
#define STRIPS_TO_10(X, ...)                                                                       \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__)      \
    X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__)
#if KRN_VL == 16
#define STRIP 14u
#define STRIPS(X, ...)                                                                             \
    STRIPS_TO_10(X, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__)          \
    X(14, __VA_ARGS__)
#else
#define STRIP 10u
#define STRIPS(X, ...) STRIPS_TO_10(X, __VA_ARGS__)
#endif
/* clang-format on */

struct plan {
    struct krn_conv c;
    size_t span;      /* groups of a vector */
    size_t per_group; /* vectors of a group where span is 1 */
    size_t units;     /* vectors, or groups where span is 1: what has a band */
    size_t inputs;    /* channels of a band */
    size_t strips;    /* of an output row */
    size_t band_w;    /* pixels */
    size_t block;     /* output rows that a band serves, at most */
    size_t part_bytes;
};

static size_t band_height(const struct krn_conv *c, size_t rows)
{
    return (rows - 1) * c->win.sh + (c->win.kh - 1) * c->win.dh + 1;
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_conv *c = &p->c;
    size_t row_bytes, rows;

    if (!krn_conv_of(m, op, &p->c) || c->groups == 1 || c->cg > CHANNELS_MAX ||
        krn_conv_is_depthwise(c)) {
        return false;
    }
    p->span = c->og == c->cg && c->og < KRN_VL && KRN_VL % c->og == 0 ? KRN_VL / c->og : 1;
    p->per_group = (c->og + KRN_VL - 1) / KRN_VL;
    p->units = (c->groups + p->span - 1) / p->span;
    p->inputs = p->span > 1 ? KRN_VL : c->cg;
    p->strips = (c->y.w + STRIP - 1) / STRIP;
    p->band_w = (c->y.w - 1) * c->win.sw + (c->win.kw - 1) * c->win.dw + 1;
    row_bytes = p->band_w * p->inputs * sizeof(float);
    rows = base_min(BAND_BYTES / row_bytes / c->win.sh,
                    BLOCK_BYTES / (c->x.w * c->x.c * sizeof(float)) / c->win.sh);
    p->block = base_min(base_max(rows, 1u), c->y.h);
    p->part_bytes = base_align_up(band_height(c, p->block) * row_bytes, BASE_CACHE_LINE_BYTES);
    return true;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

static size_t unit_vectors(const struct plan *p)
{
    return p->span > 1 ? 1 : p->per_group;
}

/* the channels that vector @v computes */
static struct krn_range outputs_of(const struct plan *p, size_t v)
{
    size_t within = v % p->per_group * KRN_VL, group = v / p->per_group * p->c.og;

    if (p->span > 1) {
        return (struct krn_range){v * KRN_VL, base_min((v + 1) * KRN_VL, p->c.y.c)};
    }
    return (struct krn_range){group + within, group + base_min(within + KRN_VL, p->c.og)};
}

/* floats of packed weights of a vector: [ky][c][kx][lane] */
static size_t vector_floats(const struct plan *p)
{
    return p->c.taps * p->c.cg * KRN_VL;
}

KRN_PACKED_BYTES_BY(struct plan, plan_of,
                    sizeof(float) * p.units * unit_vectors(&p) * vector_floats(&p))

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);
    float *out = dst;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return;
    }
    for (size_t i = 0; i < p.units * unit_vectors(&p) * vector_floats(&p); i++) {
        size_t lane = i % KRN_VL, kx = i / KRN_VL % p.c.win.kw;
        size_t c = i / KRN_VL / p.c.win.kw % p.c.cg;
        size_t ky = i / KRN_VL / p.c.win.kw / p.c.cg % p.c.win.kh;
        struct krn_range o = outputs_of(&p, i / vector_floats(&p));
        size_t to = o.begin + lane;

        out[i] = to >= o.end
                     ? 0.0f
                     : (op->scale ? op->scale[to] : 1.0f) *
                           krn_load_unaligned(
                               src, (ptrdiff_t)to * w->stride[0] + (ptrdiff_t)c * w->stride[1] +
                                        (ptrdiff_t)(ky * p.c.win.kw + kx) * p.c.tap_stride);
    }
}

/* adjacent pixels of an output row, one vector of channels */
struct strip {
    const float *x;          /* of the band, first row and column of the windows */
    size_t row;              /* elements between rows of the windows */
    size_t pixel;            /* elements between pixels of the band */
    size_t kh, kw;           /* of the windows */
    size_t column, step, cg; /* any window: elements between its columns, and between windows */
    const float *w;
    struct krn_tile_out out;
};

/* the lanes' values of a pixel in step @c, with @group channels per group; 0: all lanes the same */
KRN_INLINE vf take(const float *x, const size_t group, const size_t c)
{
#define LANE(j) (int32_t)((j) / group * group + c)
    if (group == 0) {
        return vf_set(*x);
    }
#if KRN_VL == 16
    return vf_pick(vf_load(x), (vi){LANE(0), LANE(1), LANE(2), LANE(3), LANE(4), LANE(5), LANE(6),
                                    LANE(7), LANE(8), LANE(9), LANE(10), LANE(11), LANE(12),
                                    LANE(13), LANE(14), LANE(15)});
#elif KRN_VL == 8
    return vf_pick(vf_load(x),
                   (vi){LANE(0), LANE(1), LANE(2), LANE(3), LANE(4), LANE(5), LANE(6), LANE(7)});
#else
    return vf_pick(vf_load(x), (vi){LANE(0), LANE(1), LANE(2), LANE(3)});
#endif
#undef LANE
}

/* Step @c of one row of windows that are three columns wide, @sw apart. */
KRN_INLINE void add_three(vf (*acc)[2], const struct strip *s, const float *x, const float *w,
                          const size_t pixels, const size_t sw, const size_t group, const size_t c)
{
    const size_t pixel = group ? KRN_VL : s->pixel;
    vf weight[3];

#pragma GCC unroll 3
    for (size_t k = 0; k < 3; k++) {
        weight[k] = vf_load(w + k * KRN_VL);
    }
#pragma GCC unroll 32
    for (size_t i = 0; i < (pixels - 1) * sw + 3; i++) {
        vf v = take(x, group, c);

#pragma GCC unroll 3
        for (size_t k = 0; k < 3; k++) {
            if (i >= k && (i - k) % sw == 0 && (i - k) / sw < pixels) {
                acc[(i - k) / sw][0] += v * weight[k];
            }
        }
        x += pixel;
    }
}

/* The same for any window. */
KRN_INLINE void add_any(vf (*acc)[2], const struct strip *s, const float *x, const float *w,
                        const size_t pixels, const size_t group, const size_t c)
{
#pragma GCC unroll 1
    for (size_t k = 0; k < s->kw; k++, x += s->column, w += KRN_VL) {
        vf weight = vf_load(w);
        const float *at = x;

#pragma GCC unroll 16
        for (size_t i = 0; i < pixels; i++) {
            acc[i][0] += take(at, group, c) * weight;
            at += s->step;
        }
    }
}

/* All but @s are constants after inlining. @sw: windows three columns wide, or 0: any. */
KRN_INLINE void add(vf (*acc)[2], const struct strip *s, const float *x, const float *w,
                    const size_t pixels, const size_t sw, const size_t group, const size_t c)
{
    if (sw) {
        add_three(acc, s, x, w, pixels, sw, group, c);
    } else {
        add_any(acc, s, x, w, pixels, group, c);
    }
}

KRN_INLINE void run_strip(const struct strip *s, const size_t pixels, const size_t sw,
                          const size_t group)
{
    const size_t step = (sw ? 3 : s->kw) * KRN_VL;
    const float *x = s->x, *w = s->w;
    vf acc[STRIP][2];

#pragma GCC unroll 16
    for (size_t i = 0; i < pixels; i++) {
        acc[i][0] = acc[i][1] = vf_set(0.0f);
    }
    for (size_t y = 0; y < s->kh; y++, x += s->row) {
#pragma GCC unroll 8
        for (size_t c = 0; c < group; c++, w += step) {
            add(acc, s, x, w, pixels, sw, group, c);
        }
        for (size_t c = 0; group == 0 && c < s->cg; c++, w += step) {
            add(acc, s, x + c, w, pixels, sw, group, 0);
        }
    }
    krn_tile_store(&s->out, pixels, 1, acc);
}

/* Sizes of groups that a vector spans: those below KRN_VL. */
#if KRN_VL == 16
#define GROUPS(X) X(0) X(2) X(4) X(8)
#elif KRN_VL == 8
#define GROUPS(X) X(0) X(2) X(4)
#else
#define GROUPS(X) X(0) X(2)
#endif
#define RUNNER(pixels, sw, group)                                                                  \
    static __attribute__((noinline)) void run_##sw##_##group##_##pixels(const struct strip *s)     \
    {                                                                                              \
        run_strip(s, pixels, sw, group);                                                           \
    }
#define RUNNERS(group) STRIPS(RUNNER, 0, group) STRIPS(RUNNER, 1, group) STRIPS(RUNNER, 2, group)
GROUPS(RUNNERS)

typedef void runner_fn(const struct strip *s);

/* for strips of 1, 2, ... pixels */
static runner_fn *const *runners_of(const struct plan *p)
{
#define ENTRY(pixels, sw, group) run_##sw##_##group##_##pixels,
#define ENTRIES(group)                                                                             \
    {{STRIPS(ENTRY, 0, group)}, {STRIPS(ENTRY, 1, group)}, {STRIPS(ENTRY, 2, group)}},
    static runner_fn *const runners[][3][STRIP] = {GROUPS(ENTRIES)};
    const struct krn_win *w = &p->c.win;
    size_t size = 0;

    for (size_t g = 2; p->span > 1 && g <= p->c.cg; g *= 2) {
        size++;
    }
    return runners[size][w->kw == 3 && w->dw == 1 && w->sw <= 2 ? w->sw : 0];
}

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_epilogue epilogue;
    size_t parts;
};

/* @n floats of @pixels neighbours */
static void copy_pixels(float *dst, size_t dst_pixel, const float *src, size_t src_pixel,
                        size_t pixels, size_t n)
{
    for (size_t k = 0; k < pixels; k++, dst += dst_pixel, src += src_pixel) {
        size_t c = 0;

        for (; c + KRN_VL <= n; c += KRN_VL) {
            vf_store(dst + c, vf_load(src + c));
        }
        if (c < n) {
            vf_store_n(dst + c, vf_load_n(src + c, n - c), n - c);
        }
    }
}

/* fills the band with channels from @c of the rows under output rows [oy, oy + rows) of image @n */
static void fill_band(const struct job *j, size_t n, size_t oy, size_t rows, size_t c, float *band)
{
    const struct krn_conv *v = &j->p.c;
    const size_t inputs = j->p.inputs, there = base_min(inputs, v->x.c - c);
    const size_t height = band_height(v, rows), row = j->p.band_w * inputs;
    const struct krn_range in = krn_taps(-v->win.left, j->p.band_w, 1, v->x.w);
    const float *image = (const float *)j->call->in[0] + n * v->x.batch + c;

    for (size_t y = 0; y < height; y++, band += row) {
        ptrdiff_t iy = (ptrdiff_t)(oy * v->win.sh + y) - v->win.top;

        if (iy < 0 || iy >= (ptrdiff_t)v->x.h || there < inputs) {
            memset(band, 0, row * sizeof(float));
        }
        if (iy >= 0 && iy < (ptrdiff_t)v->x.h) {
            const float *src = image + (size_t)iy * v->x.row;

            memset(band, 0, in.begin * inputs * sizeof(float));
            memset(band + in.end * inputs, 0, (j->p.band_w - in.end) * inputs * sizeof(float));
            copy_pixels(band + in.begin * inputs, inputs, src, v->x.pixel, in.end - in.begin,
                        there);
        }
    }
}

/* Vector @v of the output row whose first pixel is @pixel. */
static void run_row(const struct job *j, size_t pixel, size_t v, const float *band,
                    runner_fn *const *runners)
{
    const struct krn_conv *c = &j->p.c;
    const struct krn_range o = outputs_of(&j->p, v);
    const size_t inputs = j->p.inputs;
    struct strip s = {
        .row = c->win.dh * j->p.band_w * inputs,
        .pixel = inputs,
        .kh = c->win.kh,
        .kw = c->win.kw,
        .column = c->win.dw * inputs,
        .step = c->win.sw * inputs,
        .cg = c->cg,
        .w = (const float *)j->call->packed + v * vector_floats(&j->p),
        .out = {.y_pixel = c->y.pixel, .channel = o.begin, .channels = o.end - o.begin}};

    krn_tile_finish_of(&j->epilogue, &s.out);
    for (size_t i = 0, ox = 0, end; i < j->p.strips; i++, ox = end) {
        end = krn_tile_first(c->y.w, j->p.strips, i + 1);
        s.x = band + ox * s.step;
        s.out.first = pixel + ox;
        s.out.y = (float *)j->call->out[0] + s.out.first * c->y.pixel + o.begin;
        runners[end - ox - 1](&s);
    }
}

static void run_block(const struct job *j, struct krn_range rows, size_t unit, float *band)
{
    const struct krn_conv *c = &j->p.c;
    const size_t vectors = unit_vectors(&j->p), n = rows.begin / c->y.h;
    runner_fn *const *runners = runners_of(&j->p);

    fill_band(j, n, rows.begin % c->y.h, rows.end - rows.begin, unit * j->p.inputs, band);
    for (size_t v = unit * vectors; v < (unit + 1) * vectors; v++) {
        for (size_t row = rows.begin; row < rows.end; row++) {
            run_row(j, row * c->y.w, v,
                    band + (row - rows.begin) * c->win.sh * j->p.band_w * j->p.inputs, runners);
        }
    }
}

/* number of units that fill whole cache lines of the output */
static size_t unit_step(const struct plan *p)
{
    return base_max(LINE / base_min(p->span * p->c.og, LINE), 1u);
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const size_t height = j->p.c.y.h;
    float *band = (float *)(void *)(j->call->scratch + part * j->p.part_bytes);
    struct krn_range rows = {0, j->p.c.y.n * height}, units = {0, j->p.units};
    const size_t step = unit_step(&j->p), shares = (units.end + step - 1) / step;
    const size_t members = krn_uneven_members(j->parts);

    if (shares % members == 0 || shares >= 4 * members) {
        units = krn_share_run(units.end, step, part, j->parts);
    } else {
        rows = krn_share_run(rows.end, 1, part, j->parts);
    }
    for (size_t first = rows.begin; first < rows.end;) {
        size_t left = base_min(rows.end - first, height - first % height);
        size_t blocks = (left + j->p.block - 1) / j->p.block;
        size_t end = first + (left + blocks - 1) / blocks;

        for (size_t unit = units.begin; unit < units.end; unit++) {
            run_block(j, (struct krn_range){first, end}, unit, band);
        }
        first = end;
    }
}

KRN_RUN_PARTS_BY(struct job, plan_of, p, part_run, .epilogue = krn_epilogue_of(call))
KRN_SCRATCH_BYTES_BY(struct plan, plan_of, p.part_bytes)

KRN_ISA_PRIMITIVE(conv_f32_nhwc_grouped, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,
                  .run = run);
