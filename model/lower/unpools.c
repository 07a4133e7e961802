/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/lower/lowering.h"
#include "model/lower/window.h"

/* Operators that undo a pooling or an im2col. */

static int lower_max_unpool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_MAX_UNPOOL);
    struct mdl_window win;
    const struct mdl_ir_value *x, *indices;
    int64_t shape[MDL_RANK_MAX];
    size_t dim[MDL_RANK_MAX], count;
    int auto_pad, r = mdl_l_need(l, 2);
    bool given;

    r = r < 0 ? r : mdl_l_f32(l, 0);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    indices = mdl_l_value(l, l->in[1]);
    if (x->rank < 3 || x->rank > 5 || indices->dtype != MDL_I64 || !mdl_ir_same_dims(x, indices)) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "input 0 must have rank 3 to 5, and input 1 an i64 index for each "
                             "of its elements");
    }
    r = mdl_window_read(l, x->rank - 2, NULL, &win, &auto_pad);
    if (r < 0) {
        return r;
    }
    given = mdl_l_const_ints(l, 2, shape, MDL_RANK_MAX, &count);
    if (l->error < 0) {
        return l->error;
    }
    for (size_t i = 0; i < x->rank; i++) {
        double size = (double)x->dim[i];

        if (given) {
            size = count == x->rank ? (double)shape[i] : -1;
        } else if (i >= 2) {
            size = (size - 1) * (double)win.stride[i - 2] + (double)win.kernel[i - 2] -
                   (double)win.pad_begin[i - 2] - (double)win.pad_end[i - 2];
        }
        if (!(size >= 1) || size > INT32_MAX || (i < 2 && size != (double)x->dim[i])) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of the output is %g", i, size);
        }
        dim[i] = (size_t)size;
    }
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[1];
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim, &l->out[0]);
}

/* The window of Col2Im, and how many blocks lie along each dim. */
static int read_blocks(struct mdl_lower *l, struct mdl_ir_op *op, size_t *ret_dim, size_t *ret_taps,
                       size_t *ret_blocks)
{
    int64_t image[3], block[3];
    size_t rank, count, kernel[3], ignored[3];
    int auto_pad, r;

    if (!mdl_l_const_ints(l, 1, image, 3, &rank) || !mdl_l_const_ints(l, 2, block, 3, &count)) {
        return l->error;
    }
    for (size_t d = 0; d < rank; d++) {
        if (count != rank || image[d] < 1 || image[d] > INT32_MAX || block[d] < 1 ||
            block[d] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "image_shape and block_shape do not fit");
        }
        ret_dim[d] = (size_t)image[d];
        kernel[d] = (size_t)block[d];
    }
    r = mdl_window_read(l, rank, kernel, &op->op.attr.col2im.window, &auto_pad);
    r = r < 0 ? r
              : mdl_window_resolve(l, &op->op.attr.col2im.window, auto_pad, false, ret_dim,
                                   op->op.attr.col2im.blocks, ignored);
    *ret_taps = *ret_blocks = 1;
    for (size_t d = 0; r == 0 && d < rank; d++) {
        if (!base_mul(*ret_taps, kernel[d], ret_taps) ||
            !base_mul(*ret_blocks, op->op.attr.col2im.blocks[d], ret_blocks)) {
            return mdl_ir_refuse(l->ir, -E2BIG, "image_shape and block_shape are too large");
        }
    }
    return r;
}

static int lower_col2im(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_COL2IM);
    const struct mdl_ir_value *x;
    size_t dim[MDL_RANK_MAX], taps = 1, blocks = 1;
    int r = mdl_l_need(l, 3);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    r = r < 0 ? r : read_blocks(l, &op, dim + 2, &taps, &blocks);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if (x->rank != 3 || x->dim[1] % taps || x->dim[2] != blocks) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "the input must be [N][C x %zu][%zu] for these blocks", taps, blocks);
    }
    dim[0] = x->dim[0];
    dim[1] = x->dim[1] / taps;
    op.op.in[0] = l->in[0];
    return mdl_ir_emit(l->ir, &op, MDL_F32, op.op.attr.col2im.window.rank + 2, dim, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_unpools[] = {
    {"Col2Im", lower_col2im, 0},
    {"MaxUnpool", lower_max_unpool, 0},
    {0},
};
