/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/nhwc.h"

#include "base/base.h"

bool krn_img_of(const struct mdl_tensor *t, struct krn_img *ret)
{
    return t->dtype == MDL_F32 && krn_img_any(t, ret);
}

bool krn_img_any(const struct mdl_tensor *t, struct krn_img *ret)
{
    struct krn_img i;
    size_t w = t->rank - 1, h = t->rank - 2;

    if (t->rank < 2 || t->rank > 4) {
        return false;
    }
    for (size_t d = 0; d < t->rank; d++) {
        if (t->dim[d] == 0 || (t->dim[d] > 1 && t->stride[d] <= 0)) {
            return false;
        }
    }
    i.n = t->dim[0];
    i.c = t->dim[1];
    i.h = t->rank == 4 ? t->dim[h] : 1;
    i.w = t->rank >= 3 ? t->dim[w] : 1;
    if (i.c > 1 && t->stride[1] != 1) {
        return false;
    }
    i.pixel = i.w > 1   ? (size_t)t->stride[w]
              : i.h > 1 ? (size_t)t->stride[h]
              : i.n > 1 ? (size_t)t->stride[0]
                        : i.c;
    i.row = i.h > 1 ? (size_t)t->stride[h] : i.w * i.pixel;
    i.batch = i.n > 1 ? (size_t)t->stride[0] : i.h * i.row;
    /* pixels, rows and images in ascending order, without overlap */
    if (i.pixel < i.c || i.row < (i.w - 1) * i.pixel + i.c ||
        i.batch < (i.h - 1) * i.row + (i.w - 1) * i.pixel + i.c) {
        return false;
    }
    *ret = i;
    return true;
}

bool krn_rows_of(const struct mdl_tensor *t, struct krn_img *ret)
{
    size_t rows = 1, ld = 0, last = t->rank - 1;

    if (t->rank < 2 || t->dim[last] == 0 || (t->dim[last] > 1 && t->stride[last] != 1)) {
        return false;
    }
    for (size_t d = last; d-- > 0;) {
        if (t->dim[d] == 0) {
            return false;
        }
        if (t->dim[d] == 1) {
            continue;
        }
        if (t->stride[d] <= 0 || (ld != 0 && (size_t)t->stride[d] != rows * ld)) {
            return false;
        }
        ld = ld != 0 ? ld : (size_t)t->stride[d];
        rows *= t->dim[d];
    }
    *ret = krn_rows_image(rows, t->dim[last], ld != 0 ? ld : t->dim[last]);
    return ret->pixel >= ret->c;
}

bool krn_img_for(const struct mdl_model *m, const struct mdl_op *op, size_t tensor,
                 struct krn_img *ret)
{
    const struct mdl_tensor *t = &m->tensors[tensor];
    bool product = op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL;

    return product ? krn_rows_of(t, ret) : krn_img_any(t, ret);
}

bool krn_img_flat(const struct krn_img *i)
{
    return i->row == i->w * i->pixel && i->batch == i->h * i->row;
}

bool krn_img_same(const struct krn_img *a, const struct krn_img *b)
{
    return a->n == b->n && a->h == b->h && a->w == b->w && a->c == b->c;
}

bool krn_win_of(const struct mdl_window *w, size_t rank, struct krn_win *ret)
{
    if (w->rank + 2 != rank || w->rank < 1 || w->rank > 2) {
        return false;
    }
    for (size_t d = 0; d < w->rank; d++) {
        if (w->kernel[d] == 0 || w->stride[d] == 0 || w->dilation[d] == 0) {
            return false;
        }
    }
    if (w->rank == 1) {
        *ret = (struct krn_win){1, w->kernel[0],   1, w->stride[0],
                                1, w->dilation[0], 0, (ptrdiff_t)w->pad_begin[0]};
    } else {
        *ret = (struct krn_win){w->kernel[0],
                                w->kernel[1],
                                w->stride[0],
                                w->stride[1],
                                w->dilation[0],
                                w->dilation[1],
                                (ptrdiff_t)w->pad_begin[0],
                                (ptrdiff_t)w->pad_begin[1]};
    }
    return true;
}

static bool dim_fits(const struct mdl_window *w, size_t d, size_t in, size_t out)
{
    size_t span = (w->kernel[d] - 1) * w->dilation[d] + 1;
    size_t padded = in + w->pad_begin[d] + w->pad_end[d];

    return span <= padded && out == (padded - span) / w->stride[d] + 1;
}

bool krn_win_fits(const struct mdl_window *w, const struct krn_img *x, const struct krn_img *y)
{
    return w->rank == 1 ? x->h == 1 && y->h == 1 && dim_fits(w, 0, x->w, y->w)
                        : dim_fits(w, 0, x->h, y->h) && dim_fits(w, 1, x->w, y->w);
}
