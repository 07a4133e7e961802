/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/wino_plan.h - how a 3x3 convolution of stride 1 is cut into tiles, blocks of input
 * channels and panels of outputs, for floats and for bytes; what kernels/wino_team.h goes through
 */
#pragma once

#include "base.h"
#include "kernels/common/conv_common.h"
#include "kernels/tiles.h"
#include "kernels/wino_team.h"

#define KRN_WINO_TAPS 9u
#define KRN_WINO_CHANNELS_MIN 8u
#define KRN_WINO_TILES_MAX 56u /* of a block */

struct krn_wino_plan {
    struct krn_conv c;
    size_t size;       /* of a tile's results on a side; it reads size + 2 pixels */
    size_t rows, cols; /* of tiles, per image */
    size_t piece;      /* blocks of channels begin at a multiple of it */
    size_t lanes;      /* of all panels */
    struct krn_wino_work work;
};

static inline size_t krn_wino_panel_used(const struct krn_wino_plan *p, size_t panel)
{
    return base_min(p->c.og - panel * KRN_TILE_LANES, (size_t)KRN_TILE_LANES);
}

static inline size_t krn_wino_panel_lanes(const struct krn_wino_plan *p, size_t panel)
{
    return krn_wino_panel_used(p, panel) <= KRN_VL ? KRN_VL : KRN_TILE_LANES;
}

/* channels of block @block */
static inline struct krn_range krn_wino_block(const struct krn_wino_plan *p, size_t block)
{
    return krn_share(p->c.cg, p->piece, block, p->work.blocks);
}

/** krn_wino_plan() - @p->c is set; blocks have at most @channels_max channels, a multiple of
 * @piece. Return: whether it is such a convolution; then all of @p is set. */
static inline bool krn_wino_plan(struct krn_wino_plan *p, size_t size, size_t piece,
                                 size_t channels_max)
{
    const struct krn_win *w = &p->c.win;

    if (w->kh != 3 || w->kw != 3 || w->sh != 1 || w->sw != 1 || w->dh != 1 || w->dw != 1 ||
        p->c.groups != 1 || p->c.cg < KRN_WINO_CHANNELS_MIN || p->c.og < KRN_WINO_CHANNELS_MIN) {
        return false;
    }
    p->size = size;
    p->rows = (p->c.y.h + size - 1) / size;
    p->cols = (p->c.y.w + size - 1) / size;
    p->piece = piece;
    p->work = (struct krn_wino_work){
        .tiles = p->c.y.n * p->rows * p->cols,
        .blocks = (p->c.cg + channels_max - 1) / channels_max,
        .panels = (p->c.og + KRN_TILE_LANES - 1) / KRN_TILE_LANES,
        .rows = KRN_TILE_ROWS,
        .tiles_max = KRN_WINO_TILES_MAX,
    };
    p->lanes = (p->work.panels - 1) * KRN_TILE_LANES + krn_wino_panel_lanes(p, p->work.panels - 1);
    return true;
}

/* Where tile t lies: its image, and its corner in y. */
struct krn_wino_corner {
    size_t n, y, x;
};
static inline struct krn_wino_corner krn_wino_corner(const struct krn_wino_plan *p, size_t t)
{
    return (struct krn_wino_corner){.n = t / p->cols / p->rows,
                                    .y = t / p->cols % p->rows * p->size,
                                    .x = t % p->cols * p->size};
}

/** krn_wino_pixels() - addresses of the pixels of tile @t, row by row, at channel @channel
 * @span: size + 2; a constant where it can be one. @in: the image, of elements of @bytes. @zeros:
 * stands for the padding. @ret: [@span^2] */
static inline void krn_wino_pixels(const struct krn_wino_plan *p, const size_t span, const void *in,
                                   const size_t bytes, const void *zeros, size_t t, size_t channel,
                                   const void **ret)
{
    const struct krn_img *x = &p->c.x;
    struct krn_wino_corner at = krn_wino_corner(p, t);
    ptrdiff_t iy = (ptrdiff_t)at.y - p->c.win.top, ix = (ptrdiff_t)at.x - p->c.win.left;
    struct krn_range in_y = krn_taps(iy, span, 1, x->h), in_x = krn_taps(ix, span, 1, x->w);
    const uint8_t *from = (const uint8_t *)in + (at.n * x->batch + channel) * bytes;

    for (size_t y = 0; y < span; y++) {
        ptrdiff_t row = (iy + (ptrdiff_t)y) * (ptrdiff_t)x->row + ix * (ptrdiff_t)x->pixel;
        bool inside = y >= in_y.begin && y < in_y.end;

        for (size_t k = 0; k < span; k++) {
            *ret++ = inside && k >= in_x.begin && k < in_x.end
                         ? from + (row + (ptrdiff_t)(k * x->pixel)) * (ptrdiff_t)bytes
                         : zeros;
        }
    }
}

/* Where the results of tile t go: the first pixel of y, and how many rows and columns lie in y. */
struct krn_wino_place {
    size_t pixel, rows, cols;
};
static inline struct krn_wino_place krn_wino_place(const struct krn_wino_plan *p, size_t t)
{
    const struct krn_img *y = &p->c.y;
    struct krn_wino_corner at = krn_wino_corner(p, t);

    return (struct krn_wino_place){.pixel = (at.n * y->h + at.y) * y->w + at.x,
                                   .rows = base_min(p->size, y->h - at.y),
                                   .cols = base_min(p->size, y->w - at.x)};
}
