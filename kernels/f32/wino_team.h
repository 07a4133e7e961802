/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/wino_team.h - how a team computes a convolution of floats or bytes by Winograd's
 * algorithm
 *
 * The team transforms a block of tiles for a block of input channels (v). While v is in cache, each
 * panel of outputs is computed: its weights are transformed unless packing did so (u), all points
 * are multiplied (m), and after the last block of channels the results are transformed back. The
 * team shares the tiles. If there are few tiles, it transforms the input together and then shares
 * the panels.
 *
 *   v  transformed input    [point][group of tiles][channel / piece][row of the group][piece]
 *   u  transformed weights  of one panel, as the primitive lays them out
 *   m  products             [point][tile][lane] of one panel, 4 bytes each
 *
 * v, u and m follow each other in scratch; a piece is a cache line. The primitive supplies the
 * transforms and products; wino_team.c decides their order and shares. It is compiled once, so the
 * plan holds what depends on the instruction set. Nothing is kept between runs.
 */
#pragma once

#include "base/base.h"
#include "kernels/common/conv_common.h"
#include "kernels/common/tiles.h"

#define KRN_WINO_POINTS_MAX 64u /* F(6x6) */

struct krn_wino_work {
    size_t tiles;          /* of all images */
    size_t blocks, panels; /* of input channels; of output channels */
    size_t rows;           /* tiles per group; shares of tiles begin at a group */
    size_t tiles_max;      /* of a block */
};

/* Which F(m x m, r x r), or F(m, r) along rows or columns; m + r - 1 = 2 p + 2. */
struct krn_wino_form {
    size_t pairs; /* p */
    size_t side;  /* r */
    bool line;    /* filters are 1 x r or r x 1 */
};

/* m of F(m,r) with p pairs of points */
static inline size_t krn_wino_size(size_t pairs, size_t side)
{
    return 2 * pairs + 3 - side;
}

/* How a convolution is cut; set by krn_wino_plan(). A pair is of rows and of columns. */
struct krn_wino_plan {
    struct krn_conv c;
    struct krn_wino_form form;
    size_t size[2];    /* results of a tile */
    size_t span[2];    /* pixels that it reads */
    size_t points;     /* of these */
    size_t rows, cols; /* of tiles, per image */
    size_t x_bytes;    /* of an element of the input */
    size_t piece;      /* channels per cache line of v; blocks of channels begin at a multiple */
    size_t channels;   /* limit per block */
    size_t panel;      /* lanes of a whole panel */
    size_t lanes;      /* of all panels */
    /* of u, for one panel and the largest block of channels; 0: packing transforms the weights. Set
     * by the primitive */
    size_t u_bytes;
    struct krn_wino_work work;
};

/* channels of block @block */
static inline struct krn_range krn_wino_block(const struct krn_wino_plan *p, size_t block)
{
    return krn_share(p->c.cg, p->piece, block, p->work.blocks);
}

/* Elements per point of v and m, for one block. Not a multiple of a page, or all points would share
 * one cache set. */
static inline size_t krn_wino_v_point(const struct krn_wino_plan *p, size_t tiles, size_t channels)
{
    size_t pieces = (channels + p->piece - 1) / p->piece;
    size_t groups = (tiles + p->work.rows - 1) / p->work.rows;

    return (groups * p->work.rows * pieces + 1) * p->piece;
}
static inline size_t krn_wino_m_point(const struct krn_wino_plan *p, size_t tiles)
{
    return tiles * p->panel + BASE_CACHE_LINE_BYTES / 4;
}

/* Products of a block of channels and a panel: of units of 4 bytes, at these strides */
struct krn_wino_product {
    size_t points, tiles, units, lanes;
    const void *v, *u;
    void *m;
    size_t v_point, u_point, m_point;
    bool add; /* add to the contents of m */
};

/* Where the results of tile @t go: the first pixel of y, and how many rows and columns lie in y. */
struct krn_wino_place {
    size_t pixel, rows, cols;
};
struct krn_wino_place krn_wino_place(const struct krn_wino_plan *p, size_t t);

/** krn_wino_scratch() - Return: scratch for a team of @width, in bytes */
size_t krn_wino_scratch(const struct krn_wino_plan *p, size_t width);

struct krn_wino_job {
    const struct krn_call *call; /* all borrowed for the run */
    const struct krn_wino_plan *plan;
    const void *zeros; /* [plan.channels] elements that represent padding */
    /* transforms some channels of a tile. @at: its pixels, row by row, at the first channel. @v: of
     * point 0, channel 0, this tile. @v_point: elements between points */
    void (*transform)(const struct krn_wino_job *j, const void *const *at, size_t channels, void *v,
                      size_t v_point);
    /* adds a block of channels to the products of a panel; the first one sets them */
    void (*multiply)(const struct krn_wino_job *j, size_t block, size_t panel, size_t tiles,
                     const void *v, void *u, void *m);
    /* transforms back and finishes @tiles from tile @first on */
    void (*output)(const struct krn_wino_job *j, size_t panel, size_t first, size_t tiles,
                   const void *m);
};

/** krn_wino_run() - computes the whole convolution. Threads: the team's leader; never allocates. */
void krn_wino_run(const struct krn_wino_job *j);

/* ---- plans, for the vectors of one instruction set; not for wino_team.c; any thread ---- */

#define KRN_WINO_CHANNELS_MIN 8u
#define KRN_WINO_TILES_MAX 56u  /* of a block */
#define KRN_WINO_LINES_MAX 168u /* if tiles are lines */

/* outputs of a panel, and their lanes */
static inline size_t krn_wino_panel_used(const struct krn_wino_plan *p, size_t panel)
{
    return base_min(p->c.og - panel * KRN_TILE_LANES, (size_t)KRN_TILE_LANES);
}
static inline size_t krn_wino_panel_lanes(const struct krn_wino_plan *p, size_t panel)
{
    return krn_panel_lanes(krn_wino_panel_used(p, panel));
}

/**
 * krn_wino_plan() - cuts the convolution p->c, set by the caller, into tiles of @form
 * @x_bytes, @v_bytes: of an element of the input and of v
 * @channels: limit per block, a multiple of the channels in a cache line of v
 *
 * Return: whether it is a convolution of stride 1 with filters of @form and enough channels; if so,
 * all of @p but u_bytes is set.
 */
static inline bool krn_wino_plan(struct krn_wino_plan *p, struct krn_wino_form form, size_t x_bytes,
                                 size_t v_bytes, size_t channels)
{
    const struct krn_win *w = &p->c.win;
    const size_t taps[] = {w->kh, w->kw};

    if (base_max(w->kh, w->kw) != form.side ||
        base_min(w->kh, w->kw) != (form.line ? 1 : form.side) || w->sh != 1 || w->sw != 1 ||
        w->dh != 1 || w->dw != 1 || p->c.groups != 1 || p->c.cg < KRN_WINO_CHANNELS_MIN ||
        p->c.og < KRN_WINO_CHANNELS_MIN) {
        return false;
    }
    p->form = form;
    for (size_t d = 0; d < 2; d++) {
        p->size[d] = taps[d] == 1 ? 1 : krn_wino_size(form.pairs, form.side);
        p->span[d] = p->size[d] + taps[d] - 1;
    }
    p->points = p->span[0] * p->span[1];
    p->rows = (p->c.y.h + p->size[0] - 1) / p->size[0];
    p->cols = (p->c.y.w + p->size[1] - 1) / p->size[1];
    p->x_bytes = x_bytes;
    p->piece = BASE_CACHE_LINE_BYTES / v_bytes;
    p->channels = base_min(p->c.cg, channels);
    p->panel = KRN_TILE_LANES;
    p->lanes = krn_panels_lanes(p->c.og);
    p->work = (struct krn_wino_work){
        .tiles = p->c.y.n * p->rows * p->cols,
        .blocks = (p->c.cg + channels - 1) / channels,
        .panels = krn_panel_count(p->c.og),
        .rows = KRN_TILE_ROWS,
        .tiles_max = form.line ? KRN_WINO_LINES_MAX : KRN_WINO_TILES_MAX,
    };
    return true;
}

/** krn_wino_frames() - Return: several frames at once gain: the images of one frame have fewer
 * tiles than a block takes, while weights are transformed for each block */
static inline bool krn_wino_frames(const struct krn_wino_plan *p, const struct mdl_op *op)
{
    return p->u_bytes > 0 && p->c.y.n == 1 && krn_img_flat(&p->c.x) &&
           op->residual == MDL_RESIDUAL_NONE && p->work.tiles < p->work.tiles_max;
}

/** krn_wino_take_frames() - makes a plan for one frame that of @frames frames at once, whose images
 * follow each other; 0 and 1 change nothing */
static inline void krn_wino_take_frames(struct krn_wino_plan *p, size_t frames)
{
    struct krn_img *x = &p->c.x;

    if (frames > 1) {
        x->n = p->c.y.n = frames;
        x->batch = x->h * x->w * x->pixel;
        p->work.tiles = frames * p->rows * p->cols;
    }
}

/** krn_wino_frames_scratch() - Return: as krn_wino_scratch(), for up to @frames frames at once */
static inline size_t krn_wino_frames_scratch(struct krn_wino_plan *p, size_t width, size_t frames)
{
    size_t most = 0;

    for (size_t k = 1; k <= frames; k++) {
        krn_wino_take_frames(p, k);
        most = base_max(most, krn_wino_scratch(p, width));
    }
    return most;
}

/** KRN_WINO_SCRATCH() - defines WHAT_scratch(), WHAT_frames() and WHAT_frames_scratch(), which are
 * functions of struct krn_primitive. OF fills a TYPE whose member w is the plan, as in
 * kernels/common/planned.h */
#define KRN_WINO_SCRATCH(WHAT, TYPE, OF)                                                           \
    static size_t WHAT##_frames_scratch(const struct mdl_model *m, const struct mdl_op *op,        \
                                        size_t width, size_t frames)                               \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) ? krn_wino_frames_scratch(&p.w, width, frames) : 0;                   \
    }                                                                                              \
    static size_t WHAT##_scratch(const struct mdl_model *m, const struct mdl_op *op, size_t width) \
    {                                                                                              \
        return WHAT##_frames_scratch(m, op, width, 1);                                             \
    }                                                                                              \
    static bool WHAT##_frames(const struct mdl_model *m, const struct mdl_op *op)                  \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) && krn_wino_frames(&p.w, op);                                         \
    }
