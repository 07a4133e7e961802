/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/pool_common.h - shape, windows, divisor and shares of pooling operators
 *
 * krn_pool_of() checks an op once; the other functions are for ops that it accepts. Any thread.
 */
#pragma once

#include "kernels/common/epilogue.h"

struct krn_pool {
    struct krn_img x, y;
    struct krn_win win;
    bool max;
    bool fixed; /* divide by the taps in the padded extent, not only those in the image */
    size_t extent_h, extent_w; /* padded size, in pixels */
    bool epilogue;             /* whether there is an epilogue */
};

/** krn_pool_shape_of() - Return: whether @op is a pool of NHWC images of any type, without indices;
 * if so, sets all of *ret but the epilogue. */
bool krn_pool_shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *ret);
/** krn_pool_of() - Return: whether @op is such a pool of f32 images with an epilogue that the fast
 * code supports; if so, *ret is set. */
bool krn_pool_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *ret);

/** krn_pool_mean_of() - the same for a mean (REDUCE) over exactly the spatial dims, which is the
 * average pool of the full window */
bool krn_pool_mean_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *ret);

/** krn_pool_within() - Return: how many taps of a window that starts at @padded_first (padding
 * included) lie before @extent. */
size_t krn_pool_within(size_t padded_first, size_t taps, size_t dilation, size_t extent);

/* The taps of one window that lie in an NHWC image. */
struct krn_pool_window {
    size_t x; /* element of the first tap's channel 0; without taps, of the image's */
    size_t rows, columns;
    size_t row, column; /* elements from one row, one column to the next */
    size_t count;       /* divisor of an average; may be 0 */
};

/* the window of pixel (@oy, @ox) of image @n of y */
static inline struct krn_pool_window krn_pool_window_of(const struct krn_pool *p, size_t n,
                                                        size_t oy, size_t ox)
{
    ptrdiff_t iy = (ptrdiff_t)(oy * p->win.sh) - p->win.top;
    ptrdiff_t ix = (ptrdiff_t)(ox * p->win.sw) - p->win.left;
    struct krn_range ky = krn_taps(iy, p->win.kh, p->win.dh, p->x.h);
    struct krn_range kx = krn_taps(ix, p->win.kw, p->win.dw, p->x.w);
    struct krn_pool_window w = {.x = n * p->x.batch,
                                .rows = ky.end - ky.begin,
                                .columns = kx.end - kx.begin,
                                .row = p->win.dh * p->x.row,
                                .column = p->win.dw * p->x.pixel};

    w.count = w.rows * w.columns;
    if (w.count != 0) {
        w.x += (size_t)(iy + (ptrdiff_t)(ky.begin * p->win.dh)) * p->x.row +
               (size_t)(ix + (ptrdiff_t)(kx.begin * p->win.dw)) * p->x.pixel;
    } else {
        w.rows = 0;
    }
    if (p->fixed) {
        w.count = krn_pool_within(oy * p->win.sh, p->win.kh, p->win.dh, p->extent_h) *
                  krn_pool_within(ox * p->win.sw, p->win.kw, p->win.dw, p->extent_w);
    }
    return w;
}

/* The rows of y (of all images) and the channels of one part: a share of the rows, or, if there are
 * fewer rows than parts, all rows of a share of the channels, in steps of @step. */
struct krn_pool_share {
    struct krn_range rows, channels;
};
static inline struct krn_pool_share krn_pool_share(const struct krn_pool *p, size_t step,
                                                   size_t part, size_t parts)
{
    struct krn_pool_share s = {{0, p->y.n * p->y.h}, {0, p->y.c}};

    if (s.rows.end >= parts) {
        s.rows = krn_share_run(s.rows.end, 1, part, parts);
    } else {
        s.channels = krn_share_run(s.channels.end, step, part, parts);
        s.rows.end = s.channels.begin < s.channels.end ? s.rows.end : 0;
    }
    return s;
}
