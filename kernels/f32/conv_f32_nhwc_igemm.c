/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution on the indirect GEMM: a chunk of output pixels gets its table of row pointers, then
 * all panels of weights pass over it while its input stays in cache.
 *
 * First layers (few channels) would spend their time on pointers: there the rows under a chunk are
 * copied into a zero-padded band first, in which the kx and c of one ky lie side by side, so that a
 * tap is a whole row of the window. That copy may as well read the planes of an NCHW input: the row
 * copy_conv_f32_planes is the change of layout before such a layer and the layer as one. Or it
 * reads the pixels of an image and normalises them, by the code that would do so into memory.
 */
#include "base.h"
#include "kernels/f32/tile_finish.h"
#include "kernels/image/pixels.h"

#define CHUNK_BYTES (256u * 1024u) /* of input under a chunk: with a panel of weights inside L2 */
#define CHUNK_POINTERS 8192u
#define BAND_BYTES (64u * 1024u)
#define NEAR_BYTES (16u * 1024u) /* of weights */
#define BAND_CHANNELS 8u         /* fewer than these go through a band */

struct plan {
    struct krn_conv c;
    bool band;
    size_t taps, len; /* as the GEMM sees them */
    size_t tiles_max; /* of a chunk with pointers */
    size_t band_rows; /* output rows of a chunk with a band */
    size_t band_w, band_h;
    size_t part_bytes; /* scratch of one part */
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    size_t tile_pointers;

    if (!krn_conv_of(m, op, &p->c)) {
        return false;
    }
    p->band = p->c.groups == 1 && p->c.cg < BAND_CHANNELS && p->c.win.kw > 1 && p->c.win.dw == 1;
    p->taps = p->band ? p->c.win.kh : p->c.taps;
    p->len = p->band ? p->c.win.kw * p->c.cg : p->c.cg;
    tile_pointers = p->taps * KRN_IGEMM_ROWS;
    p->band_rows = p->band_w = p->band_h = 0;
    if (p->band) {
        p->band_w = ((p->c.y.w - 1) * p->c.win.sw + p->c.win.kw) * p->c.cg;
        p->band_rows = BAND_BYTES / sizeof(float) / p->band_w / p->c.win.sh;
        p->band_rows = base_min(base_max(p->band_rows, 1u), p->c.y.h);
        p->band_h = (p->band_rows - 1) * p->c.win.sh + (p->c.win.kh - 1) * p->c.win.dh + 1;
        p->tiles_max = 0;
    } else {
        size_t pixel_bytes = p->c.x.c * sizeof(float) * base_min(p->c.win.sh, p->c.win.kh) *
                             base_min(p->c.win.sw, p->c.win.kw);
        size_t pixels = CHUNK_BYTES / pixel_bytes;

        p->tiles_max = base_max(pixels / KRN_IGEMM_ROWS, 4u);
        p->tiles_max = base_min(p->tiles_max, CHUNK_POINTERS / tile_pointers);
        p->tiles_max = base_max(p->tiles_max, 1u);
    }
    p->part_bytes =
        base_align_up(p->tiles_max * tile_pointers * sizeof(float *), BASE_CACHE_LINE_BYTES) +
        base_align_up(p->band_w * p->band_h * sizeof(float), BASE_CACHE_LINE_BYTES);
    return true;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct plan p;

    return plan_of(m, op, &p);
}

static size_t group_floats(const struct plan *p)
{
    return krn_igemm_packed(p->c.taps * p->c.cg, p->c.og);
}

/* the panels of every group, then a row of zeros for the taps in the padding */
static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return 0;
    }
    return (p.c.groups * group_floats(&p) + p.c.cg) * sizeof(float);
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);
    float *out = dst;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return;
    }
    for (size_t g = 0; g < p.c.groups; g++) {
        const uint8_t *group = src + (ptrdiff_t)(g * p.c.og) * w->stride[0] * 4;
        const float *scale = op->scale ? op->scale + g * p.c.og : NULL;

        KRN_ISA_FN(krn_igemm_pack)
        (out, group, p.c.taps, p.c.cg, p.c.og, w->stride[0], p.c.tap_stride, w->stride[1], scale,
         1.0f);
        out += group_floats(&p);
    }
    memset(out, 0, p.c.cg * sizeof(float));
}

/* an image of planes: floats at any address, channel and row distances in elements */
struct planes {
    const uint8_t *x; /* NULL: the image is NHWC */
    ptrdiff_t batch, channel, row;
};

struct job {
    const struct krn_call *call; /* of the convolution */
    struct plan p;
    struct planes planes;
    const struct krn_image *image; /* NULL: planes, or NHWC */
    struct krn_pixel_sink pixels;  /* how it becomes rows of the band */
    struct krn_igemm g;
    const float *zeros;
    size_t parts;
    bool by_panels; /* parts take panels of all pixels instead of pixels of all panels */
};

/* a window that lies wholly inside the image, or one tap that does */
static inline void point_inside(const struct krn_conv *c, const float *x, const float **p)
{
    for (size_t y = 0; y < c->win.kh; y++) {
        const float *at = x + y * c->win.dh * c->x.row;

        for (size_t k = 0; k < c->win.kw; k++, p += KRN_IGEMM_ROWS) {
            *p = at + k * c->win.dw * c->x.pixel;
        }
    }
}

static void point_edge(const struct job *j, const float *image, ptrdiff_t iy, ptrdiff_t ix,
                       const float **p)
{
    const struct krn_conv *c = &j->p.c;
    struct krn_range ky = krn_taps(iy, c->win.kh, c->win.dh, c->x.h);
    struct krn_range kx = krn_taps(ix, c->win.kw, c->win.dw, c->x.w);

    for (size_t y = 0; y < c->win.kh; y++) {
        bool in_y = y >= ky.begin && y < ky.end;
        ptrdiff_t at =
            (iy + (ptrdiff_t)(y * c->win.dh)) * (ptrdiff_t)c->x.row + ix * (ptrdiff_t)c->x.pixel;

        for (size_t k = 0; k < c->win.kw; k++, p += KRN_IGEMM_ROWS) {
            bool in = in_y && k >= kx.begin && k < kx.end;

            *p = in ? image + at + (ptrdiff_t)(k * c->win.dw * c->x.pixel) : j->zeros;
        }
    }
}

/* pointers for the pixels [first, first + pixels) of group @group */
static void point(const struct job *j, size_t group, size_t first, size_t pixels,
                  const float **rows)
{
    const struct krn_conv *c = &j->p.c;
    const float *image = (const float *)j->call->in[0] + group * c->cg;
    size_t tiles = krn_igemm_tiles(pixels), next = 0;
    size_t ox = first % c->y.w, oy = first / c->y.w % c->y.h, n = first / c->y.w / c->y.h;
    size_t span_h = (c->win.kh - 1) * c->win.dh, span_w = (c->win.kw - 1) * c->win.dw;

    image += n * c->x.batch;
    for (size_t t = 0; t < tiles; t++, rows += j->p.taps * KRN_IGEMM_ROWS) {
        size_t from = next;

        next = krn_igemm_tile_first(pixels, tiles, t + 1);
        for (size_t i = 0; i < next - from; i++) {
            ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh) - c->win.top;
            ptrdiff_t ix = (ptrdiff_t)(ox * c->win.sw) - c->win.left;

            if (iy >= 0 && ix >= 0 && (size_t)iy + span_h < c->x.h &&
                (size_t)ix + span_w < c->x.w) {
                point_inside(c, image + (size_t)iy * c->x.row + (size_t)ix * c->x.pixel, rows + i);
            } else {
                point_edge(j, image, iy, ix, rows + i);
            }
            if (++ox == c->y.w) {
                ox = 0;
                if (++oy == c->y.h) {
                    oy = 0;
                    image += c->x.batch;
                }
            }
        }
    }
}

static void run_pixels(const struct job *j, struct krn_range pixels, struct krn_range panels,
                       uint8_t *scratch)
{
    const float **rows = (const float **)scratch;
    struct krn_igemm g = j->g;

    for (size_t group = 0; group < j->p.c.groups; group++) {
        for (size_t first = pixels.begin; first < pixels.end;) {
            size_t left = pixels.end - first, max = j->p.tiles_max * KRN_IGEMM_ROWS;
            size_t chunks = (left + max - 1) / max, now = (left + chunks - 1) / chunks;

            point(j, group, first, now, rows);
            KRN_ISA_FN(krn_igemm_block)(&g, rows, first, now, panels);
            first += now;
        }
        g.packed += group_floats(&j->p);
        g.channel += j->p.c.og;
    }
}

/* the first @pixels of row @iy of image @n, channels side by side */
static void interleave(const struct job *j, size_t n, size_t iy, size_t pixels, float *dst)
{
    const struct planes *s = &j->planes;
    const uint8_t *x =
        s->x + ((ptrdiff_t)n * s->batch + (ptrdiff_t)iy * s->row) * (ptrdiff_t)sizeof(float);
    const size_t channels = j->p.c.cg;

    if (channels == 3) { /* the usual: one pass that writes in order */
        const uint8_t *g = x + s->channel * (ptrdiff_t)sizeof(float);
        const uint8_t *b = g + s->channel * (ptrdiff_t)sizeof(float);

        for (size_t k = 0; k < pixels; k++) {
            dst[3 * k] = krn_load_unaligned(x, (ptrdiff_t)k);
            dst[3 * k + 1] = krn_load_unaligned(g, (ptrdiff_t)k);
            dst[3 * k + 2] = krn_load_unaligned(b, (ptrdiff_t)k);
        }
        return;
    }
    for (size_t c = 0; c < channels; c++, x += s->channel * (ptrdiff_t)sizeof(float)) {
        for (size_t k = 0; k < pixels; k++) {
            dst[k * channels + c] = krn_load_unaligned(x, (ptrdiff_t)k);
        }
    }
}

/* the same of an NHWC input */
static void copy_pixels(const struct job *j, size_t n, size_t iy, size_t pixels, float *dst)
{
    const struct krn_conv *c = &j->p.c;
    const float *src = (const float *)j->call->in[0] + n * c->x.batch + iy * c->x.row;

    if (c->x.pixel == c->cg) {
        memcpy(dst, src, pixels * c->cg * sizeof(float));
        return;
    }
    for (size_t k = 0; k < pixels; k++, src += c->x.pixel, dst += c->cg) {
        memcpy(dst, src, c->cg * sizeof(float));
    }
}

/* the input rows under output rows [oy, ...) of image n, padded with zeros; the first @have of them
 * are there already */
static void fill_band(const struct job *j, size_t n, size_t oy, size_t rows, size_t have,
                      float *band)
{
    const struct krn_conv *c = &j->p.c;
    size_t height = (rows - 1) * c->win.sh + (c->win.kh - 1) * c->win.dh + 1;
    size_t width = j->p.band_w / c->cg;
    struct krn_range kx = krn_taps(-c->win.left, width, 1, c->x.w);
    size_t pixels = kx.end - kx.begin;

    band += have * j->p.band_w;
    for (size_t y = have; y < height; y++, band += j->p.band_w) {
        ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh + y) - c->win.top;
        float *dst = band + kx.begin * c->cg;

        if (iy < 0 || iy >= (ptrdiff_t)c->x.h) {
            memset(band, 0, j->p.band_w * sizeof(float));
            continue;
        }
        memset(band, 0, kx.begin * c->cg * sizeof(float));
        memset(band + kx.end * c->cg, 0, (width - kx.end) * c->cg * sizeof(float));
        if (j->image) { /* every n is made from it */
            krn_pixels_copy_row(&j->pixels, dst, j->image, 0, (uint32_t)iy, pixels);
        } else if (j->planes.x) {
            interleave(j, n, (size_t)iy, pixels, dst);
        } else {
            copy_pixels(j, n, (size_t)iy, pixels, dst);
        }
    }
}

/* Rows that two chunks, one behind the other, both read move from the end of the band to its
 * start. Return: how many. */
static size_t keep_rows(const struct job *j, float *band)
{
    size_t step = j->p.band_rows * j->p.c.win.sh;

    if (step >= j->p.band_h) {
        return 0;
    }
    memmove(band, band + step * j->p.band_w, (j->p.band_h - step) * j->p.band_w * sizeof(*band));
    return j->p.band_h - step;
}

/* Output pixels side by side in a row, over a band: window i begins at at + i step, and each tap of
 * it, a row, one tap_step behind the one before. */
struct strip {
    const float *at, *panel;
    size_t step, tap_step, taps, len;
    struct krn_tile_out out;
};

KRN_INLINE void run_strip(const struct strip *s, const size_t height, const size_t vectors)
{
    const float *panel = s->panel, *a[KRN_IGEMM_ROWS];
    const size_t len = s->len, tap_step = s->tap_step;
    vf acc[KRN_IGEMM_ROWS][2];

    krn_tile_zero(acc, height);
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        a[i] = s->at + i * s->step;
    }
    for (size_t tap = s->taps; tap > 0; tap--) {
#pragma GCC unroll 1
        for (size_t c = 0; c < len; c++, panel += vectors * KRN_VL) {
            krn_tile_step(acc, a, c, NULL, panel, height, vectors);
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < height; i++) {
            a[i] += tap_step;
        }
    }
    krn_tile_store(&s->out, height, vectors, acc);
}

#define STRIP(height)                                                                              \
    static __attribute__((noinline)) void strip_##height##_1(const struct strip *s)                \
    {                                                                                              \
        run_strip(s, height, 1);                                                                   \
    }                                                                                              \
    static __attribute__((noinline)) void strip_##height##_2(const struct strip *s)                \
    {                                                                                              \
        run_strip(s, height, 2);                                                                   \
    }
KRN_TILE_HEIGHTS(STRIP)

#define PAIR(height) {strip_##height##_1, strip_##height##_2},
static void (*const strips_of[KRN_IGEMM_ROWS][2])(const struct strip *) = {KRN_TILE_HEIGHTS(PAIR)};

/* A tile of a row: where its windows begin, its first pixel, and what krn_igemm_tile_first() has
 * left over before it. */
struct place {
    const float *at;
    size_t first, left;
};

/* A row of pixels in so many tiles: low of them, and of some one more. */
struct split {
    size_t tiles, low, higher;
};

/* @tiles tiles from @p on of the panel at channel @o. Return: the place behind them. */
KRN_INLINE struct place run_panel(const struct job *j, struct strip *s, size_t o, size_t tiles,
                                  struct place p, struct split row)
{
    s->panel = j->g.packed + o * j->p.taps * j->p.len;
    s->out.channel = o;
    s->out.channels = base_min(j->p.c.og - o, (size_t)KRN_IGEMM_LANES);
    for (size_t now; tiles > 0; tiles--) {
        p.left += row.higher;
        now = row.low + (p.left >= row.tiles);
        p.left -= p.left >= row.tiles ? row.tiles : 0;
        s->at = p.at;
        s->out.first = p.first;
        s->out.y = j->g.y + p.first * s->out.y_pixel + o;
        strips_of[now - 1][s->out.channels > KRN_VL](s);
        p.at += now * s->step;
        p.first += now;
    }
    return p;
}

/* One row of output, whose first pixel is @first, from where its windows begin in the band: tile by
 * tile where all weights stay in the first-level cache, so that lines are written one behind the
 * other, else panel by panel. */
static void run_row(const struct job *j, size_t first, const float *at)
{
    const struct krn_conv *c = &j->p.c;
    size_t tiles = krn_igemm_tiles(c->y.w), weights = c->og * j->p.taps * j->p.len;
    size_t step = weights * sizeof(float) <= NEAR_BYTES ? 1 : tiles;
    struct split row = {tiles, c->y.w / tiles, c->y.w % tiles};
    struct place here = {.at = at, .first = first};
    struct strip s = {.step = c->win.sw * c->cg,
                      .tap_step = c->win.dh * j->p.band_w,
                      .taps = j->p.taps,
                      .len = j->p.len,
                      .out = {.y_pixel = j->g.y_pixel}};

    krn_tile_finish_of(&j->g.epilogue, &s.out);
    for (size_t t = 0; t < tiles; t += step) {
        struct place next = here;

        for (size_t o = 0; o < c->og; o += KRN_IGEMM_LANES) {
            next = run_panel(j, &s, o, step, here, row);
        }
        here = next;
    }
}

static void run_bands(const struct job *j, struct krn_range chunks, float *band)
{
    const struct krn_conv *c = &j->p.c;
    size_t each = (c->y.h + j->p.band_rows - 1) / j->p.band_rows;

    for (size_t chunk = chunks.begin; chunk < chunks.end; chunk++) {
        size_t n = chunk / each, oy = chunk % each * j->p.band_rows;
        size_t height = base_min(j->p.band_rows, c->y.h - oy);
        size_t have = chunk > chunks.begin && oy > 0 ? keep_rows(j, band) : 0;

        fill_band(j, n, oy, height, have, band);
        for (size_t y = 0; y < height; y++) {
            run_row(j, (n * c->y.h + oy + y) * c->y.w, band + y * c->win.sh * j->p.band_w);
        }
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_conv *c = &j->p.c;
    size_t pixels = c->y.n * c->y.h * c->y.w, panels = krn_igemm_panels(c->og);
    uint8_t *scratch = j->call->scratch + part * j->p.part_bytes;

    if (j->p.band) {
        size_t each = (c->y.h + j->p.band_rows - 1) / j->p.band_rows;

        run_bands(j, krn_share(c->y.n * each, 1, part, j->parts), (float *)scratch);
    } else if (j->by_panels) {
        struct krn_range share = krn_share(panels, 1, part, j->parts);

        if (share.begin < share.end) {
            run_pixels(j, (struct krn_range){0, pixels}, share, scratch);
        }
    } else {
        run_pixels(j, krn_share(pixels, KRN_IGEMM_ROWS, part, j->parts),
                   (struct krn_range){0, panels}, scratch);
    }
}

static void run_call(const struct krn_call *call, const void *packed, const struct planes *planes)
{
    struct job j = {
        .call = call, .planes = *planes, .image = call->image, .parts = base_max(call->width, 1u)};
    size_t tiles;

    if (!plan_of(call->model, call->op, &j.p)) {
        return;
    }
    if (j.image) {
        krn_pixels_sink_init(&j.pixels, &call->model->preproc, MDL_F32, j.p.c.cg, sizeof(float),
                             (ptrdiff_t)(j.p.c.cg * sizeof(float)));
    }
    j.g = (struct krn_igemm){
        .taps = j.p.taps,
        .len = j.p.len,
        .out = j.p.c.og,
        .packed = packed,
        .epilogue = krn_epilogue_of(call),
        .y = call->out[0],
        .y_pixel = j.p.c.y.pixel,
    };
    j.g.zeros = j.zeros = (const float *)packed + j.p.c.groups * group_floats(&j.p);
    tiles = krn_igemm_tiles(j.p.c.y.n * j.p.c.y.h * j.p.c.y.w);
    j.by_panels = tiles < 4 * j.parts && krn_igemm_panels(j.p.c.og) >= j.parts;
    krn_parallel(call->pool, j.parts, part_run, &j);
}

static void run(const struct krn_call *call)
{
    run_call(call, call->packed, &(struct planes){0});
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    struct plan p;

    return plan_of(m, op, &p) ? base_max(width, 1u) * p.part_bytes : 0;
}

static bool from_image(const struct mdl_model *m, const struct mdl_op *op)
{
    struct plan p;

    return plan_of(m, op, &p) && p.band;
}

const struct krn_variant KRN_ISA_FN(krn_conv_f32_nhwc_igemm) = {
    .name = "conv_f32_nhwc_igemm__" KRN_ISA_TEXT,
    .kind = MDL_OP_CONV,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .from_image = from_image,
    .run = run,
};

/* COPY from planes, then a convolution that takes a band */
static bool planes_of(const struct mdl_model *m, const struct mdl_op *op, struct planes *ret)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    struct plan p;

    if (op->act != MDL_ACT_NONE || op->residual != MDL_RESIDUAL_NONE || op->scale || op->shift ||
        x->dtype != MDL_F32 || x->rank != 4 || y->rank != 4 || op[1].kind != MDL_OP_CONV ||
        op[1].in[0] != op->out[0] || !plan_of(m, op + 1, &p) || !p.band) {
        return false;
    }
    for (size_t d = 0; d < 4; d++) {
        if (x->dim[d] != y->dim[d]) {
            return false;
        }
    }
    *ret = (struct planes){.batch = x->stride[0], .channel = x->stride[1], .row = x->stride[2]};
    return x->stride[3] == 1;
}

static bool planes_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct planes planes;

    return planes_of(m, op, &planes);
}

static size_t planes_packed_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    return packed_bytes(m, op + 1);
}

static void planes_pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    pack(m, op + 1, dst);
}

static size_t planes_scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    return scratch_bytes(m, op + 1, width);
}

static void planes_run(const struct krn_call *call)
{
    struct planes planes;

    if (planes_of(call->model, call->op, &planes)) {
        planes.x = call->in[0];
        run_call(call->next, call->packed, &planes);
    }
}

const struct krn_variant KRN_ISA_FN(krn_copy_conv_f32_planes) = {
    .name = "copy_conv_f32_planes__" KRN_ISA_TEXT,
    .kind = MDL_OP_COPY,
    .needs = KRN_ISA_NEEDS,
    .fused = true,
    .supports = planes_supports,
    .packed_bytes = planes_packed_bytes,
    .pack = planes_pack,
    .scratch_bytes = planes_scratch_bytes,
    .from_image = planes_supports,
    .run = planes_run,
};
