/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/lower/lowering.h"
#include "model/lower/window.h"

/* Operators that undo a pooling or an im2col. */

static size_t lower_max_unpool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_MAX_UNPOOL, 2);
    struct mdl_window win;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *indices = mdl_l_value(l, l->in[1]);
    int64_t shape[MDL_RANK_MAX];
    size_t dim[MDL_RANK_MAX], count;
    int auto_pad;
    bool given;

    if (x->rank < 3 || x->rank > 5 || indices->dtype != MDL_I64 || !mdl_ir_same_dims(x, indices)) {
        return mdl_l_refuse(l, -EBADMSG,
                            "input 0 must have rank 3 to 5, and input 1 an i64 index for each "
                            "of its elements");
    }
    if (mdl_window_read(l, x->rank - 2, NULL, &win, &auto_pad) != 0) {
        return MDL_NONE;
    }
    given = mdl_l_const_ints(l, 2, shape, MDL_RANK_MAX, &count);
    for (size_t i = 0; i < x->rank; i++) {
        double size = (double)x->dim[i];

        if (given) {
            size = count == x->rank ? (double)shape[i] : -1;
        } else if (i >= 2) {
            size = (size - 1) * (double)win.stride[i - 2] + (double)win.kernel[i - 2] -
                   (double)win.pad_begin[i - 2] - (double)win.pad_end[i - 2];
        }
        if (!(size >= 1) || size > INT32_MAX || (i < 2 && size != (double)x->dim[i])) {
            return mdl_l_refuse(l, -EBADMSG, "dimension %zu of the output is %g", i, size);
        }
        dim[i] = (size_t)size;
    }
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim);
}

/* The window of Col2Im, and how many blocks lie along each dim. */
static int read_blocks(struct mdl_lower *l, struct mdl_ir_op *op, size_t *ret_dim, size_t *ret_taps,
                       size_t *ret_blocks)
{
    int64_t image[3], block[3];
    size_t rank, count, kernel[3];

    if (!mdl_l_const_ints(l, 1, image, 3, &rank) || !mdl_l_const_ints(l, 2, block, 3, &count)) {
        return l->ir->failure;
    }
    for (size_t d = 0; d < rank; d++) {
        if (count != rank || image[d] < 1 || image[d] > INT32_MAX || block[d] < 1 ||
            block[d] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "image_shape and block_shape do not fit");
        }
        ret_dim[d] = (size_t)image[d];
        kernel[d] = (size_t)block[d];
    }
    if (mdl_window_of(l, rank, kernel, false, ret_dim, &op->op.attr.col2im.window,
                      op->op.attr.col2im.blocks, NULL) != 0) {
        return l->ir->failure;
    }
    *ret_taps = *ret_blocks = 1;
    for (size_t d = 0; d < rank; d++) {
        if (!base_mul(*ret_taps, kernel[d], ret_taps) ||
            !base_mul(*ret_blocks, op->op.attr.col2im.blocks[d], ret_blocks)) {
            return mdl_ir_refuse(l->ir, -E2BIG, "image_shape and block_shape are too large");
        }
    }
    return 0;
}

static size_t lower_col2im(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_COL2IM, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX], taps = 1, blocks = 1;

    if (read_blocks(l, &op, dim + 2, &taps, &blocks) != 0) {
        return MDL_NONE;
    }
    if (x->rank != 3 || x->dim[1] % taps || x->dim[2] != blocks) {
        return mdl_l_refuse(l, -EBADMSG, "the input must be [N][C x %zu][%zu] for these blocks",
                            taps, blocks);
    }
    dim[0] = x->dim[0];
    dim[1] = x->dim[1] / taps;
    return mdl_ir_emit(l->ir, &op, MDL_F32, op.op.attr.col2im.window.rank + 2, dim);
}

const struct mdl_lower_row mdl_lower_unpools[] = {
    {"Col2Im", lower_col2im, 3, 1},
    {"MaxUnpool", lower_max_unpool, 2, 1},
    {0},
};
