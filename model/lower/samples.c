/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "model/lower/lowering.h"
#include "model/lower/window.h"

/* Operators that read an image between its pixels: GridSample and its grids, regions, and
 * deformable convolutions. */

/* ---- GridSample, AffineGrid ---- */

static int read_grid_mode(struct mdl_lower *l, struct mdl_ir_op *op)
{
    /* opset 16 says bilinear and bicubic, opset 20 linear and cubic */
    const char *mode = mdl_l_string(l, "mode", l->opset < 20 ? "bilinear" : "linear");
    const char *padding = mdl_l_string(l, "padding_mode", "zeros");

    op->op.attr.grid.align_corners = mdl_l_int(l, "align_corners", 0) != 0;
    if (strcmp(mode, "nearest") == 0) {
        op->op.attr.grid.mode = MDL_RESIZE_NEAREST;
    } else if (strcmp(mode, "bilinear") == 0 || strcmp(mode, "linear") == 0) {
        op->op.attr.grid.mode = MDL_RESIZE_LINEAR;
    } else if (strcmp(mode, "bicubic") == 0 || strcmp(mode, "cubic") == 0) {
        op->op.attr.grid.mode = MDL_RESIZE_CUBIC;
    } else {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "mode %s is not supported", mode);
    }
    if (strcmp(padding, "zeros") == 0) {
        op->op.attr.grid.padding = MDL_GRID_ZEROS;
    } else if (strcmp(padding, "border") == 0) {
        op->op.attr.grid.padding = MDL_GRID_BORDER;
    } else if (strcmp(padding, "reflection") == 0) {
        op->op.attr.grid.padding = MDL_GRID_REFLECTION;
    } else {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "padding_mode %s is not supported", padding);
    }
    return l->error;
}

/* f32 inputs 0 to @count - 1 */
static int need_f32(struct mdl_lower *l, size_t count)
{
    int r = mdl_l_need(l, count);

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = mdl_l_f32(l, i);
    }
    return r;
}

static int check_image(struct mdl_lower *l, size_t rank_min, size_t rank_max)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    if (x->rank < rank_min || x->rank > rank_max) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "input of rank %zu is not supported (%zu to %zu are)", x->rank,
                             rank_min, rank_max);
    }
    for (size_t d = 2; d < x->rank; d++) {
        if (x->dim[d] == 0 || x->dim[d] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "a spatial dimension of the input is %zu",
                                 x->dim[d]);
        }
    }
    return 0;
}

static int lower_grid_sample(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_GRID_SAMPLE);
    const struct mdl_ir_value *x, *grid;
    size_t dim[MDL_RANK_MAX];
    int r = need_f32(l, 2);

    r = r < 0 ? r : check_image(l, 3, l->opset < 20 ? 4 : 5);
    r = r < 0 ? r : read_grid_mode(l, &op);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    grid = mdl_l_value(l, l->in[1]);
    if (grid->rank != x->rank || grid->dim[0] != x->dim[0] ||
        grid->dim[grid->rank - 1] != x->rank - 2) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "the grid of rank %zu does not fit the input of rank %zu", grid->rank,
                             x->rank);
    }
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    for (size_t d = 2; d < x->rank; d++) {
        dim[d] = grid->dim[d - 1];
    }
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[1];
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim, &l->out[0]);
}

/* Position @i of @n along a dim, -1 to 1 */
static float grid_position(size_t i, size_t n, bool align_corners)
{
    double at = align_corners ? (n == 1 ? 0 : 2 * (double)i / (double)(n - 1) - 1)
                              : (2 * (double)i + 1) / (double)n - 1;

    return (float)at;
}

/* [rank + 1][positions]: x, y (, z) and 1 of each position */
static int base_grid(struct mdl_lower *l, const size_t *size, size_t rank, size_t *ret)
{
    bool align = mdl_l_int(l, "align_corners", 0) != 0;
    size_t count = 1, bytes, dim[2];
    void *data;
    float *g;
    int r;

    for (size_t d = 0; d < rank; d++) {
        if (!base_mul(count, size[d], &count)) {
            return mdl_ir_refuse(l->ir, -E2BIG, "the grid is too large");
        }
    }
    if (!base_mul(count, (rank + 1) * sizeof(float), &bytes)) {
        return mdl_ir_refuse(l->ir, -E2BIG, "the grid is too large");
    }
    r = l->error < 0 ? l->error : mdl_ir_fold_alloc(l->ir, bytes, &data);
    if (r < 0) {
        return r;
    }
    g = data;
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;

        for (size_t d = rank; d-- > 0; rest /= size[d]) { /* the last dim is x, the first row */
            g[(rank - 1 - d) * count + i] = grid_position(rest % size[d], size[d], align);
        }
        g[rank * count + i] = 1;
    }
    dim[0] = rank + 1;
    dim[1] = count;
    return mdl_ir_const_new(l->ir, MDL_F32, 2, dim, data, false, ret);
}

/* AffineGrid: theta times the positions of a grid that is constant. */
static int lower_affine_grid(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op like = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    int64_t size[MDL_RANK_MAX];
    size_t count, rank, n, base, y, dim[MDL_RANK_MAX] = {0}, positions = 1;
    const struct mdl_ir_value *theta;
    int r = need_f32(l, 1);

    if (r < 0 || !mdl_l_const_ints(l, 1, size, MDL_RANK_MAX, &count)) {
        return r < 0 ? r : l->error < 0 ? l->error : mdl_l_need(l, 2);
    }
    theta = mdl_l_value(l, l->in[0]);
    rank = count - 2;
    if ((count != 4 && count != 5) || theta->rank != 3 || theta->dim[1] != rank ||
        theta->dim[2] != rank + 1 || size[0] < 0 || theta->dim[0] != (size_t)size[0]) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "theta does not fit a size of %zu dimensions", count);
    }
    n = theta->dim[0];
    for (size_t d = 0; d < rank; d++) {
        if (size[d + 2] < 1 || size[d + 2] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "size %lld is out of range",
                                 (long long)size[d + 2]);
        }
        dim[d + 1] = (size_t)size[d + 2];
    }
    r = base_grid(l, dim + 1, rank, &base);
    for (size_t d = 0; r == 0 && d < rank; d++) {
        positions *= dim[d + 1];
    }
    r = r < 0 ? r : mdl_ir_reshape(l->ir, l->in[0], 2, (size_t[]){n * rank, rank + 1}, &y);
    r = r < 0 ? r : mdl_lower_product(l, y, base, &like, MDL_F32, &y);
    r = r < 0 ? r : mdl_ir_reshape(l->ir, y, 3, (size_t[]){n, rank, positions}, &y);
    r = r < 0 ? r : mdl_ir_permute(l->ir, y, (size_t[]){0, 2, 1}, &y);
    dim[0] = n;
    dim[rank + 1] = rank;
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, rank + 2, dim, &l->out[0]);
}

/* ---- regions ---- */

static int read_size(struct mdl_lower *l, const char *name, int64_t fallback, size_t *ret)
{
    int64_t n = mdl_l_int(l, name, fallback);

    if (l->error == 0 && (n < 1 || n > INT32_MAX)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "%s %lld is out of range", name, (long long)n);
    }
    *ret = (size_t)n;
    return l->error;
}

static int check_rois(struct mdl_lower *l, size_t columns, float scale)
{
    const struct mdl_ir_value *rois = mdl_l_value(l, l->in[1]);

    if (rois->rank != 2 || rois->dim[1] != columns) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the regions must be [number][%zu]", columns);
    }
    return isfinite(scale) ? 0
                           : mdl_ir_refuse(l->ir, -EBADMSG, "spatial_scale is not a finite number");
}

/* more would only be time */
#define ROI_SAMPLES_MAX 64

static int roi_align_attributes(struct mdl_lower *l, struct mdl_ir_op *op)
{
    const char *mode = mdl_l_string(l, "mode", "avg");
    const char *coord = mdl_l_string(l, "coordinate_transformation_mode",
                                     l->opset < 16 ? "output_half_pixel" : "half_pixel");
    int64_t samples = mdl_l_int(l, "sampling_ratio", 0);

    op->op.attr.roi.scale = mdl_l_float(l, "spatial_scale", 1);
    if (l->error < 0) {
        return l->error;
    }
    if (samples < 0 || samples > ROI_SAMPLES_MAX) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "sampling_ratio %lld is not supported (0 to %d)",
                             (long long)samples, ROI_SAMPLES_MAX);
    }
    op->op.attr.roi.samples = (size_t)samples;
    op->op.attr.roi.max = strcmp(mode, "max") == 0;
    op->op.attr.roi.half_pixel = strcmp(coord, "half_pixel") == 0;
    if ((!op->op.attr.roi.max && strcmp(mode, "avg") != 0) ||
        (!op->op.attr.roi.half_pixel && strcmp(coord, "output_half_pixel") != 0)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "mode %s with coordinate_transformation_mode %s is not supported",
                             mode, coord);
    }
    return check_rois(l, 4, op->op.attr.roi.scale);
}

static int lower_roi_align(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_ROI_ALIGN);
    const struct mdl_ir_value *x, *image;
    size_t dim[4];
    int r = need_f32(l, 2);

    r = r < 0 ? r : mdl_l_need(l, 3);
    r = r < 0 ? r : check_image(l, 4, 4);
    r = r < 0 ? r : roi_align_attributes(l, &op);
    r = r < 0 ? r : read_size(l, "output_height", 1, &dim[2]);
    r = r < 0 ? r : read_size(l, "output_width", 1, &dim[3]);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    image = mdl_l_value(l, l->in[2]);
    dim[0] = mdl_l_value(l, l->in[1])->dim[0];
    dim[1] = x->dim[1];
    if (image->rank != 1 || image->dim[0] != dim[0] ||
        (image->dtype != MDL_I64 && image->dtype != MDL_I32)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "batch_indices must be one integer for each region");
    }
    for (size_t i = 0; i < 3; i++) {
        op.op.in[i] = l->in[i];
    }
    return mdl_ir_emit(l->ir, &op, MDL_F32, 4, dim, &l->out[0]);
}

static int lower_max_roi_pool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_MAX_ROI_POOL);
    int64_t shape[2];
    size_t count, dim[4];
    int r = need_f32(l, 2);

    op.op.attr.roi.scale = mdl_l_float(l, "spatial_scale", 1);
    r = r < 0 ? r : check_image(l, 4, 4);
    r = r < 0 ? r : check_rois(l, 5, op.op.attr.roi.scale);
    if (r < 0 || l->error < 0) {
        return r < 0 ? r : l->error;
    }
    if (!mdl_l_ints(l, "pooled_shape", shape, 2, &count) || count != 2 || shape[0] < 1 ||
        shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX) {
        return l->error < 0
                   ? l->error
                   : mdl_ir_refuse(l->ir, -EBADMSG, "pooled_shape must be two sizes of at least 1");
    }
    dim[0] = mdl_l_value(l, l->in[1])->dim[0];
    dim[1] = mdl_l_value(l, l->in[0])->dim[1];
    dim[2] = (size_t)shape[0];
    dim[3] = (size_t)shape[1];
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[1];
    return mdl_ir_emit(l->ir, &op, MDL_F32, 4, dim, &l->out[0]);
}

/* ---- DeformConv ---- */

/* Input @i is [N][@channels][rows][columns] of the result. */
static int check_field(struct mdl_lower *l, size_t i, size_t n, size_t channels, const size_t *out)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

    if (v->rank == 4 && v->dim[0] == n && v->dim[1] == channels && v->dim[2] == out[0] &&
        v->dim[3] == out[1]) {
        return 0;
    }
    return mdl_ir_refuse(l->ir, -EBADMSG, "input %zu must be [%zu][%zu][%zu][%zu]", i, n, channels,
                         out[0], out[1]);
}

static int deform_columns(struct mdl_lower *l, size_t groups, size_t taps, size_t *ret_dim,
                          size_t *ret)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_DEFORM_COLUMNS);
    struct mdl_window *win = &op.op.attr.deform.window;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *w = mdl_l_value(l, l->in[1]);
    int64_t offsets = mdl_l_int(l, "offset_group", 1);
    size_t ignored[3];
    int auto_pad, r = mdl_window_read(l, 2, w->dim + 2, win, &auto_pad);

    r = r < 0 ? r : mdl_window_resolve(l, win, auto_pad, false, x->dim + 2, ret_dim + 2, ignored);
    if (r < 0) {
        return r;
    }
    if (offsets < 1 || (uint64_t)offsets > x->dim[1] || x->dim[1] % (size_t)offsets) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "offset_group %lld does not divide %zu channels",
                             (long long)offsets, x->dim[1]);
    }
    ret_dim[0] = x->dim[0];
    if (!base_mul(x->dim[1], taps, &ret_dim[1]) || ret_dim[1] > INT32_MAX) {
        return mdl_ir_refuse(l->ir, -E2BIG, "the kernel is too large");
    }
    op.op.attr.deform.groups = groups;
    op.op.attr.deform.offset_groups = (size_t)offsets;
    r = check_field(l, 2, x->dim[0], 2 * (size_t)offsets * taps, ret_dim + 2);
    if (r == 0 && mdl_l_in(l, 4) != MDL_NONE) {
        r = mdl_l_f32(l, 4);
        r = r < 0 ? r : check_field(l, 4, x->dim[0], (size_t)offsets * taps, ret_dim + 2);
    }
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[2];
    op.op.in[2] = mdl_l_in(l, 4);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_F32, 4, ret_dim, ret);
}

/* [O][C/G][k][k] to [O][k k C/G][1][1], as the columns come */
static int deform_weights(struct mdl_lower *l, size_t *ret)
{
    struct mdl_ir_value w = *mdl_l_value(l, l->in[1]);
    size_t y, dim[4] = {w.dim[0], w.dim[1] * w.dim[2] * w.dim[3], 1, 1};
    int r = mdl_ir_permute(l->ir, l->in[1], (size_t[]){0, 2, 3, 1}, &y);

    return r < 0 ? r : mdl_ir_reshape(l->ir, y, 4, dim, ret);
}

/* The elements that the taps read become columns, which a 1x1 convolution multiplies. */
static int lower_deform_conv(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CONV);
    struct mdl_window *win = &op.op.attr.conv.window;
    struct mdl_ir_value x, w;
    int64_t groups = mdl_l_int(l, "group", 1);
    size_t dim[4];
    int r = need_f32(l, 3);

    r = r < 0 ? r : check_image(l, 4, 4);
    if (r < 0 || l->error < 0) {
        return r < 0 ? r : l->error;
    }
    x = *mdl_l_value(l, l->in[0]);
    w = *mdl_l_value(l, l->in[1]);
    if (groups < 1 || (uint64_t)groups > x.dim[1] || x.dim[1] % (size_t)groups) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "group %lld does not divide %zu channels",
                             (long long)groups, x.dim[1]);
    }
    if (w.rank != 4 || !mdl_ir_elements(&w) || w.dim[1] != x.dim[1] / (size_t)groups ||
        w.dim[0] % (size_t)groups) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "the weights do not fit %zu input channels in %lld groups", x.dim[1],
                             (long long)groups);
    }
    r = deform_columns(l, (size_t)groups, w.dim[2] * w.dim[3], dim, &op.op.in[0]);
    r = r < 0 ? r : deform_weights(l, &op.op.in[1]);
    if (r < 0) {
        return r;
    }
    *win = (struct mdl_window){.rank = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    op.op.attr.conv.groups = (size_t)groups;
    dim[1] = w.dim[0];
    op.op.macs = (double)mdl_ir_elements(&w) * (double)dim[0] * (double)dim[2] * (double)dim[3];
    r = mdl_lower_bias(l, 3, &op, dim[1]);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_F32, 4, dim, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_samples[] = {
    {"GridSample", lower_grid_sample, 0}, {"AffineGrid", lower_affine_grid, 0},
    {"RoiAlign", lower_roi_align, 0},     {"MaxRoiPool", lower_max_roi_pool, 0},
    {"DeformConv", lower_deform_conv, 0}, {0},
};
