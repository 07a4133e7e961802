/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/nhwc.h - tensors seen as NHWC images
 *
 * The strides that vectorised primitives rely on, checked once in supports(): channel stride 1, no
 * broadcast, no negative stride. A rank-3 tensor is an image of one row; a rank-2 tensor is an
 * image of one pixel.
 */
#pragma once

#include "kernels/common/parallel.h"
#include "model/model.h"

struct krn_img {
    size_t n, h, w, c;
    size_t batch, row, pixel; /* strides in elements; dims of size 1 get the dense stride */
};

/* the window of an image op; a 1-D window is one row high */
struct krn_win {
    size_t kh, kw, sh, sw, dh, dw;
    ptrdiff_t top, left; /* pad_begin */
};

/** krn_img_of() - Return: whether @t is a non-empty f32 image as above; if so, *ret is set. */
bool krn_img_of(const struct mdl_tensor *t, struct krn_img *ret);
/** krn_img_any() - the same for any element type */
bool krn_img_any(const struct mdl_tensor *t, struct krn_img *ret);
/** krn_rows_image() - Return: @rows rows, @ld elements apart, as an image of one row of pixels */
static inline struct krn_img krn_rows_image(size_t rows, size_t columns, size_t ld)
{
    return (struct krn_img){
        .n = 1, .h = 1, .w = rows, .c = columns, .pixel = ld, .row = rows * ld, .batch = rows * ld};
}
/** krn_rows_of() - Return: whether the dims of @t but the last merge to rows at one distance, dense
 * inside, of any element type; if so, *ret is set. */
bool krn_rows_of(const struct mdl_tensor *t, struct krn_img *ret);
/** krn_img_for() - Return: whether tensor @tensor is an image to @op, of any element type: rows if
 * @op is a product, else as krn_img_any(); if so, *ret is set. */
bool krn_img_for(const struct mdl_model *m, const struct mdl_op *op, size_t tensor,
                 struct krn_img *ret);
/** krn_img_flat() - Return: whether one stride (pixel) reaches all pixels of all rows and images.
 */
bool krn_img_flat(const struct krn_img *i);
/** krn_img_same() - Return: whether the dims are equal */
bool krn_img_same(const struct krn_img *a, const struct krn_img *b);
/** krn_win_of() - Return: whether @w is a 1-D or 2-D window for tensors of rank @rank. */
bool krn_win_of(const struct mdl_window *w, size_t rank, struct krn_win *ret);
/** krn_win_fits() - Return: whether y's spatial dims follow from x's, the window and its pads */
bool krn_win_fits(const struct mdl_window *w, const struct krn_img *x, const struct krn_img *y);

/* The taps [begin, end) of a window that fall inside the image. */
static inline struct krn_range krn_taps(ptrdiff_t first, size_t taps, size_t dilation, size_t size)
{
    size_t begin = first >= 0 ? 0 : ((size_t)-first + dilation - 1) / dilation;
    size_t end;

    if (first >= (ptrdiff_t)size) {
        return (struct krn_range){0, 0};
    }
    end = (size_t)((ptrdiff_t)size - 1 - first) / dilation + 1;
    end = end < taps ? end : taps;
    return (struct krn_range){begin < end ? begin : end, end};
}
