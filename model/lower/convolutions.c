/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, ConvTranspose, pools, LRN, MaxUnpool and Col2Im. */
#include "model/lower/lowering.h"

void mdl_lower_bias(struct mdl_lower *l, size_t i, struct mdl_ir_op *op, size_t channels)
{
    size_t b = mdl_l_in(l, i);
    const struct mdl_ir_value *v = mdl_l_value(l, b);
    float *shift;

    if (b == MDL_NONE) {
        return;
    }
    mdl_l_f32(l, i);
    mdl_bad_if(l, v->rank != 1 || v->dim[0] != channels, "the bias has %zu values for %zu channels",
               mdl_ir_elements(v), channels);
    if (!mdl_ir_is_const(l->ir, op->op.in[1]) || !v->data) {
        op->op.in[2] = b;
        return;
    }
    shift = mdl_ir_alloc(l->ir, channels, sizeof(*shift));
    memcpy(shift, v->data, channels * sizeof(*shift));
    op->op.shift = shift;
    op->op.channels = channels;
}

static void check_shapes(struct mdl_lower *l, const struct mdl_ir_value *x,
                         const struct mdl_ir_value *w, size_t *ret_groups)
{
    int64_t groups = mdl_l_int(l, "group", 1);

    mdl_unserved_if(
        l, x->rank < 3 || x->rank > 5 || w->rank != x->rank,
        "the input has rank %zu and the weights have rank %zu; both must be equal, 3 to 5", x->rank,
        w->rank);
    mdl_unserved_if(l, x->dim[1] == 0, "the input has no channels");
    mdl_bad_if(l, groups < 1 || (uint64_t)groups > x->dim[1] || x->dim[1] % (size_t)groups,
               "group %lld does not divide %zu channels", (long long)groups, x->dim[1]);
    mdl_bad_if(l, w->dim[0] == 0 || w->dim[1] == 0, "the weights are empty");
    *ret_groups = (size_t)groups;
}

static double window_volume(const struct mdl_window *w)
{
    double n = 1;

    for (size_t i = 0; i < w->rank; i++) {
        n *= (double)w->kernel[i];
    }
    return n;
}

void mdl_lower_conv_of(struct mdl_lower *l, size_t xv, size_t wv, struct mdl_ir_op *ret_op,
                       size_t ret_dim[MDL_RANK_MAX])
{
    struct mdl_window *win = &ret_op->op.attr.conv.window;
    const struct mdl_ir_value *x = mdl_l_value(l, xv), *w = mdl_l_value(l, wv);
    size_t groups;

    check_shapes(l, x, w, &groups);
    mdl_bad_if(l, w->dim[1] != x->dim[1] / groups || w->dim[0] % groups,
               "weights [%zu][%zu] do not fit %zu input channels in %zu groups", w->dim[0],
               w->dim[1], x->dim[1], groups);
    mdl_window_of(l, x->rank - 2, w->dim + 2, false, x->dim + 2, win, ret_dim + 2, NULL);
    ret_dim[0] = x->dim[0];
    ret_dim[1] = w->dim[0];
    ret_op->op.attr.conv.groups = groups;
    ret_op->op.in[0] = xv;
    ret_op->op.in[1] = wv;
    ret_op->op.macs = (double)w->dim[1] * window_volume(win);
    for (size_t i = 0; i < x->rank; i++) {
        ret_op->op.macs *= (double)ret_dim[i];
    }
}

static size_t lower_conv(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CONV);
    size_t dim[MDL_RANK_MAX];

    mdl_lower_conv_of(l, l->in[0], l->in[1], &op, dim);
    mdl_lower_bias(l, 2, &op, dim[1]);
    return mdl_ir_emit(l->ir, &op, MDL_F32, mdl_l_value(l, l->in[0])->rank, dim);
}

/* Sizes as in the operator's text: out = stride (in - 1) + output_padding + extent - pads; with an
 * output_shape (or SAME: in * stride) the pads follow from it. Where the windows do not reach as
 * far as SAME asks, there are none, and no zeros are added: so do ONNX's shape inference and ONNX
 * Runtime, though the text could be read otherwise. */
static void transpose_size(struct mdl_lower *l, struct mdl_window *w, size_t i, int auto_pad,
                           int64_t wanted, size_t in, size_t *output_padding, size_t *ret)
{
    int64_t full = (int64_t)w->stride[i] * ((int64_t)in - 1) + (int64_t)*output_padding +
                   (int64_t)((w->kernel[i] - 1) * w->dilation[i] + 1);
    int64_t out = full - (int64_t)w->pad_begin[i] - (int64_t)w->pad_end[i];

    if (wanted < 0 && (auto_pad == MDL_PAD_SAME_UPPER || auto_pad == MDL_PAD_SAME_LOWER)) {
        wanted = base_min((int64_t)(in * w->stride[i]), full);
    }
    if (wanted >= 0) {
        size_t total = full > wanted ? (size_t)(full - wanted) : 0;

        out = wanted;
        if (wanted > full) {
            *output_padding += (size_t)(wanted - full);
        }
        w->pad_begin[i] = auto_pad == MDL_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        w->pad_end[i] = total - w->pad_begin[i];
    }
    mdl_bad_if(l, out < 1 || out > INT32_MAX, "the output size %lld is out of range",
               (long long)out);
    *ret = (size_t)out;
}

static void read_extra(struct mdl_lower *l, const char *name, size_t spatial, int64_t fallback,
                       int64_t *ret)
{
    int64_t value[5];
    size_t count;

    for (size_t i = 0; i < spatial; i++) {
        ret[i] = fallback;
    }
    if (!mdl_l_ints(l, name, value, 5, &count) || count == 0) {
        return;
    }
    /* output_shape may hold N and C too */
    mdl_bad_if(l, count != spatial && count != spatial + 2,
               "%s has %zu values for %zu spatial dims", name, count, spatial);
    for (size_t i = 0; i < spatial; i++) {
        ret[i] = value[count - spatial + i];
        mdl_bad_if(l, ret[i] < 0 || ret[i] > INT32_MAX, "%s %lld is out of range", name,
                   (long long)ret[i]);
    }
}

static size_t lower_conv_transpose(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_CONV_TRANSPOSE, 2);
    struct mdl_window *win = &op.op.attr.conv.window;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *w = mdl_l_value(l, l->in[1]);
    int64_t shape[3], padding[3];
    size_t dim[MDL_RANK_MAX], groups;
    int auto_pad;

    check_shapes(l, x, w, &groups);
    mdl_bad_if(l, w->dim[0] != x->dim[1], "weights for %zu channels, input has %zu", w->dim[0],
               x->dim[1]);
    mdl_window_read(l, x->rank - 2, w->dim + 2, win, &auto_pad);
    read_extra(l, "output_shape", x->rank - 2, -1, shape);
    read_extra(l, "output_padding", x->rank - 2, 0, padding);
    op.op.macs = (double)w->dim[1] * window_volume(win) * (double)mdl_ir_elements(x);
    dim[0] = x->dim[0];
    mdl_large_if(l, !base_mul(w->dim[1], groups, &dim[1]), "the output has too many channels");
    for (size_t i = 0; i < win->rank; i++) {
        mdl_bad_if(l, x->dim[i + 2] == 0 || x->dim[i + 2] > INT32_MAX,
                   "a spatial dimension of the input is %zu", x->dim[i + 2]);
        op.op.attr.conv.output_padding[i] = (size_t)padding[i];
        transpose_size(l, win, i, auto_pad, shape[i], x->dim[i + 2],
                       &op.op.attr.conv.output_padding[i], &dim[i + 2]);
    }
    op.op.attr.conv.groups = groups;
    mdl_lower_bias(l, 2, &op, dim[1]);
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim);
}

static size_t lower_pool(struct mdl_lower *l, int kind)
{
    struct mdl_ir_op op = mdl_l_op(l, kind, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX];

    mdl_window_pool(l, &op, dim);
    op.op.attr.pool.count_include_pad = mdl_l_int(l, "count_include_pad", 0) != 0;
    op.op.attr.pool.indices_row_major = mdl_l_int(l, "storage_order", 0) == 0;
    if (kind == MDL_OP_MAX_POOL && mdl_l_wants(l, 1)) {
        op.op.out[1] = mdl_ir_value_new(l->ir, MDL_I64, x->rank, dim);
        l->out[1] = op.op.out[1];
    }
    return mdl_ir_emit(l->ir, &op, x->dtype, x->rank, dim);
}

size_t mdl_lower_whole_pool(struct mdl_lower *l, int kind, size_t x)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, kind);
    struct mdl_window *w = &op.op.attr.pool.window;
    struct mdl_ir_value v = *mdl_l_value(l, x);

    w->rank = v.rank - 2;
    for (size_t i = 0; i < w->rank; i++) {
        w->kernel[i] = v.dim[i + 2];
        w->stride[i] = w->dilation[i] = 1;
        v.dim[i + 2] = 1;
    }
    op.op.in[0] = x;
    return mdl_ir_emit(l->ir, &op, MDL_F32, v.rank, v.dim);
}

static size_t lower_global_pool(struct mdl_lower *l, int kind)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    mdl_window_image(l, 3, 5);
    for (size_t i = 2; i < x->rank; i++) {
        mdl_bad_if(l, x->dim[i] == 0, "dimension %zu of the input is 0", i);
    }
    return mdl_lower_whole_pool(l, kind, l->in[0]);
}

static size_t lower_lrn(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_LRN, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    int64_t size = mdl_l_int(l, "size", 0);

    mdl_window_image(l, 3, 5);
    mdl_bad_if(l, size < 1 || size > INT32_MAX, "size %lld is out of range", (long long)size);
    op.op.attr.lrn.size = (size_t)size;
    op.op.attr.lrn.alpha = mdl_l_float(l, "alpha", 1e-4f);
    op.op.attr.lrn.beta = mdl_l_float(l, "beta", 0.75f);
    op.op.attr.lrn.bias = mdl_l_float(l, "bias", 1.0f);
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, x->dim);
}

/* ---- what undoes a pooling or an im2col ---- */

static size_t lower_max_unpool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_MAX_UNPOOL, 2);
    struct mdl_window win;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *indices = mdl_l_value(l, l->in[1]);
    int64_t shape[MDL_RANK_MAX];
    size_t dim[MDL_RANK_MAX], count;
    int auto_pad;
    bool given;

    mdl_bad_if(
        l, x->rank < 3 || x->rank > 5 || indices->dtype != MDL_I64 || !mdl_ir_same_dims(x, indices),
        "input 0 must have rank 3 to 5, and input 1 an i64 index for each "
        "of its elements");
    mdl_window_read(l, x->rank - 2, NULL, &win, &auto_pad);
    given = mdl_l_const_ints(l, 2, shape, MDL_RANK_MAX, &count);
    for (size_t i = 0; i < x->rank; i++) {
        double size = (double)x->dim[i];

        if (given) {
            size = count == x->rank ? (double)shape[i] : -1;
        } else if (i >= 2) {
            size = (size - 1) * (double)win.stride[i - 2] + (double)win.kernel[i - 2] -
                   (double)win.pad_begin[i - 2] - (double)win.pad_end[i - 2];
        }
        mdl_bad_if(l, !(size >= 1) || size > INT32_MAX || (i < 2 && size != (double)x->dim[i]),
                   "dimension %zu of the output is %g", i, size);
        dim[i] = (size_t)size;
    }
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim);
}

/* The window of Col2Im, and how many blocks lie along each dim. */
static void read_blocks(struct mdl_lower *l, struct mdl_ir_op *op, size_t *ret_dim,
                        size_t *ret_taps, size_t *ret_blocks)
{
    int64_t image[3], block[3];
    size_t rank, count, kernel[3];

    if (!mdl_l_const_ints(l, 1, image, 3, &rank) || !mdl_l_const_ints(l, 2, block, 3, &count)) {
        return;
    }
    for (size_t d = 0; d < rank; d++) {
        mdl_bad_if(l,
                   count != rank || image[d] < 1 || image[d] > INT32_MAX || block[d] < 1 ||
                       block[d] > INT32_MAX,
                   "image_shape and block_shape do not fit");
        ret_dim[d] = (size_t)image[d];
        kernel[d] = (size_t)block[d];
    }
    mdl_window_of(l, rank, kernel, false, ret_dim, &op->op.attr.col2im.window,
                  op->op.attr.col2im.blocks, NULL);
    *ret_taps = *ret_blocks = 1;
    for (size_t d = 0; d < rank; d++) {
        mdl_large_if(l,
                     !base_mul(*ret_taps, kernel[d], ret_taps) ||
                         !base_mul(*ret_blocks, op->op.attr.col2im.blocks[d], ret_blocks),
                     "image_shape and block_shape are too large");
    }
}

static size_t lower_col2im(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_COL2IM, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX], taps = 1, blocks = 1;

    read_blocks(l, &op, dim + 2, &taps, &blocks);
    mdl_bad_if(l, x->rank != 3 || x->dim[1] % taps || x->dim[2] != blocks,
               "the input must be [N][C x %zu][%zu] for these blocks", taps, blocks);
    dim[0] = x->dim[0];
    dim[1] = x->dim[1] / taps;
    return mdl_ir_emit(l->ir, &op, MDL_F32, op.op.attr.col2im.window.rank + 2, dim);
}

const struct mdl_lower_row mdl_lower_spatial[] = {
    {"Conv", lower_conv, 2, 2},
    {"ConvTranspose", lower_conv_transpose, 2, 2},
    {"MaxPool", lower_pool, 1, 0, MDL_OP_MAX_POOL},
    {"AveragePool", lower_pool, 1, 1, MDL_OP_AVG_POOL},
    {"GlobalMaxPool", lower_global_pool, 1, 1, MDL_OP_MAX_POOL},
    {"GlobalAveragePool", lower_global_pool, 1, 1, MDL_OP_AVG_POOL},
    {"LRN", lower_lrn, 1, 1},
    {"Col2Im", lower_col2im, 3, 1},
    {"MaxUnpool", lower_max_unpool, 2, 1},
    {0},
};
