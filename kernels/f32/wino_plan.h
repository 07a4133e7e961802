/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/wino_plan.h - how a square convolution of stride 1 is cut into tiles, blocks of input
 * channels and panels of outputs, for the vectors of one instruction set. Any thread.
 */
#pragma once

#include "kernels/common/tiles.h"
#include "kernels/f32/wino_team.h"

#define KRN_WINO_CHANNELS_MIN 8u
#define KRN_WINO_TILES_MAX 56u /* of a block */

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
 * krn_wino_plan() - cuts the convolution p->c, set by the caller, into tiles of @size x @size
 * results
 * @side: of its filters, in taps
 * @x_bytes, @v_bytes: of an element of the input and of v
 * @channels: limit per block, a multiple of the channels in a cache line of v
 *
 * Return: whether it is a convolution of stride 1 with such filters and enough channels; if so, all
 * of @p but u_bytes is set.
 */
static inline bool krn_wino_plan(struct krn_wino_plan *p, size_t size, size_t side, size_t x_bytes,
                                 size_t v_bytes, size_t channels)
{
    const struct krn_win *w = &p->c.win;

    if (w->kh != side || w->kw != side || w->sh != 1 || w->sw != 1 || w->dh != 1 || w->dw != 1 ||
        p->c.groups != 1 || p->c.cg < KRN_WINO_CHANNELS_MIN || p->c.og < KRN_WINO_CHANNELS_MIN) {
        return false;
    }
    p->size = size;
    p->span = size + side - 1;
    p->points = p->span * p->span;
    p->rows = (p->c.y.h + size - 1) / size;
    p->cols = (p->c.y.w + size - 1) / size;
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
        .tiles_max = KRN_WINO_TILES_MAX,
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
