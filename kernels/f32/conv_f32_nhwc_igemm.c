/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution by indirect GEMM: a chunk of output pixels gets a table of row pointers, then all
 * panels of weights pass over it while its input stays in cache. 1x1 convolutions of stride 1 need
 * no pointers.
 *
 * First layers have few channels and would spend their time on pointers. So the rows under a chunk
 * are first copied into a zero-padded band, in which the kx and c of one ky are contiguous, and a
 * tap is a whole row of the window. The copy can also read an NCHW input: the primitive
 * copy_conv_f32_planes fuses such a layer with the layout conversion before it. Or it reads the
 * pixels of an image and normalises them, by the code of preprocessing.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/igemm_tile.h"
#include "kernels/f32/input_rows.h"

#define CHUNK_BYTES (256u * 1024u) /* input under a chunk; fits L2 with a panel of weights */
#define CHUNK_POINTERS 8192u
#define BAND_BYTES (64u * 1024u)
#define BAND_CHANNELS 8u         /* fewer channels go through a band */
#define NEAR_BYTES (16u * 1024u) /* of weights */

struct plan {
    struct krn_conv c;
    bool band;
    bool dense;       /* one tap, whose pixels are at equal distances: no pointers */
    size_t taps, len; /* of the GEMM */
    size_t tiles_max; /* per chunk without a band */
    size_t band_rows; /* output rows per chunk with a band */
    size_t band_w, band_h;
    size_t part_bytes; /* scratch of one part */
};

/* pixels of a tile */
static size_t rows_of(const struct plan *p)
{
    return p->dense ? KRN_IGEMM_DENSE_ROWS : KRN_IGEMM_ROWS;
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    size_t tile_pointers;

    if (!krn_conv_of(m, op, &p->c)) {
        return false;
    }
    p->band = p->c.groups == 1 && p->c.cg < BAND_CHANNELS && p->c.win.kw > 1 && p->c.win.dw == 1;
    p->taps = p->band ? p->c.win.kh : p->c.taps;
    p->len = p->band ? p->c.win.kw * p->c.cg : p->c.cg;
    p->dense = p->c.taps == 1 && p->c.win.sh == 1 && p->c.win.sw == 1 && p->c.win.top == 0 &&
               p->c.win.left == 0 && p->c.x.h == p->c.y.h && p->c.x.w == p->c.y.w &&
               krn_img_flat(&p->c.x);
    tile_pointers = p->dense ? 0 : p->taps * KRN_IGEMM_ROWS;
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

        p->tiles_max = base_max(pixels / rows_of(p), 4u);
        if (!p->dense) {
            p->tiles_max = base_min(p->tiles_max, CHUNK_POINTERS / tile_pointers);
            p->tiles_max = base_max(p->tiles_max, 1u);
        }
    }
    p->part_bytes =
        base_align_up(p->tiles_max * tile_pointers * sizeof(float *), BASE_CACHE_LINE_BYTES) +
        base_align_up(p->band_w * p->band_h * sizeof(float), BASE_CACHE_LINE_BYTES);
    return true;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

static size_t group_floats(const struct plan *p)
{
    return krn_igemm_packed(p->c.taps * p->c.cg, p->c.og);
}

/* the panels of every group, then a row of zeros for the taps in the padding */
KRN_PACKED_BYTES_BY(struct plan, plan_of, (p.c.groups * group_floats(&p) + p.c.cg) * sizeof(float))

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    struct plan p;
    float *out = dst;

    if (!plan_of(m, op, &p)) {
        return;
    }
    for (size_t g = 0; g < p.c.groups; g++, out += group_floats(&p)) {
        krn_igemm_pack_group(m, op, &p.c, g, out);
    }
    memset(out, 0, p.c.cg * sizeof(float));
}

struct job {
    const struct krn_call *call; /* of the convolution */
    struct plan p;
    struct krn_input_rows rows; /* for the band */
    struct krn_igemm g;
    const float *zeros;
    size_t parts;
    bool by_panels; /* parts share the panels, not the pixels */
};

/* a window, or one tap, that lies wholly inside the image */
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
    const float **rows = (const float **)scratch, *x = j->call->in[0];
    const size_t pixel = j->p.c.x.pixel;
    struct krn_igemm g = j->g;

    for (size_t group = 0; group < j->p.c.groups; group++) {
        for (size_t first = pixels.begin; first < pixels.end;) {
            size_t left = pixels.end - first, max = j->p.tiles_max * rows_of(&j->p);
            size_t chunks = (left + max - 1) / max, now = (left + chunks - 1) / chunks;

            if (j->p.dense) {
                KRN_ISA_FN(krn_igemm_dense)
                (&g, x + first * pixel, (ptrdiff_t)pixel, first, now, panels);
            } else {
                point(j, group, first, now, rows);
                KRN_ISA_FN(krn_igemm_block)(&g, rows, first, now, panels);
            }
            first += now;
        }
        g.packed += group_floats(&j->p);
        g.channel += j->p.c.og;
        x += j->p.c.cg;
    }
}

/* ---- few channels: bands ---- */

/* fills in the input rows under output rows [oy, ...) of image n, padded with zeros; the first
 * @have are there already */
static void fill_band(const struct job *j, size_t n, size_t oy, size_t rows, size_t have,
                      float *band)
{
    const struct krn_conv *c = &j->p.c;
    size_t height = (rows - 1) * c->win.sh + (c->win.kh - 1) * c->win.dh + 1;
    size_t width = j->p.band_w / c->cg;
    struct krn_range kx = krn_taps(-c->win.left, width, 1, c->x.w);

    band += have * j->p.band_w;
    for (size_t y = have; y < height; y++, band += j->p.band_w) {
        ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh + y) - c->win.top;

        if (iy < 0 || iy >= (ptrdiff_t)c->x.h) {
            memset(band, 0, j->p.band_w * sizeof(float));
            continue;
        }
        memset(band, 0, kx.begin * c->cg * sizeof(float));
        memset(band + kx.end * c->cg, 0, (width - kx.end) * c->cg * sizeof(float));
        krn_input_row(&j->rows, n, (size_t)iy, kx.end - kx.begin, band + kx.begin * c->cg);
    }
}

/* Moves rows that the next chunk also reads from the end of the band to its start. Return: how
 * many. */
static size_t keep_rows(const struct job *j, float *band)
{
    size_t step = j->p.band_rows * j->p.c.win.sh;

    if (step >= j->p.band_h) {
        return 0;
    }
    memmove(band, band + step * j->p.band_w, (j->p.band_h - step) * j->p.band_w * sizeof(*band));
    return j->p.band_h - step;
}

/* Adjacent output pixels in a row, over a band: window i begins at at + i step; its taps, which are
 * rows, are tap_step apart. */
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

KRN_TILE_TABLE(strips, const struct strip, run_strip, KRN_TILE_HEIGHTS, KRN_IGEMM_ROWS)

/* A tile of a row: where its windows begin, its first pixel, and the remainder of
 * krn_igemm_tile_first(). */
struct place {
    const float *at;
    size_t first, left;
};

/* A row of pixels in tiles of height low; some are one higher. */
struct split {
    size_t tiles, low, higher;
};

/* Computes @tiles tiles from @p of the panel at channel @o. Return: the place after them. */
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

/* Computes one row of output, whose first pixel is @first, from the start of its windows in the
 * band: tile by tile if all weights stay in the first-level cache, so that lines are written in
 * order, else panel by panel. */
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

/* computes chunks of output rows, each from a band of its own; @band: scratch for one */
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
        run_pixels(j, krn_share(pixels, rows_of(&j->p), part, j->parts),
                   (struct krn_range){0, panels}, scratch);
    }
}

static void run_call(const struct krn_call *call, const void *packed,
                     const struct krn_planes *planes)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};
    size_t tiles;

    if (!plan_of(call->model, call->op, &j.p)) {
        return;
    }
    krn_input_rows_init(&j.rows, call, &j.p.c.x, planes);
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
    run_call(call, call->packed, &(struct krn_planes){0});
}

KRN_SCRATCH_BYTES_BY(struct plan, plan_of, p.part_bytes)

static bool from_image(const struct mdl_model *m, const struct mdl_op *op)
{
    struct plan p;

    return plan_of(m, op, &p) && p.band;
}

KRN_ISA_PRIMITIVE(conv_f32_nhwc_igemm, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes,
                  .from_image = from_image, .run = run);

/* COPY from NCHW, then a convolution that takes a band */

static bool planes_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_planes planes;

    return krn_planes_of(m, op, &planes) && from_image(m, op + 1);
}

KRN_BYTES_OF_NEXT()

static void planes_run(const struct krn_call *call)
{
    struct krn_planes planes;

    if (krn_planes_of(call->model, call->op, &planes)) {
        planes.x = call->in[0];
        run_call(call->next, call->packed, &planes);
    }
}

KRN_ISA_PRIMITIVE(copy_conv_f32_planes, MDL_OP_COPY, KRN_ISA_NEEDS, .fused = true,
                  .supports = planes_supports, .packed_bytes = next_packed_bytes, .pack = next_pack,
                  .scratch_bytes = next_scratch_bytes, .from_image = planes_supports,
                  .run = planes_run);
