/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that read an image between its pixels: GridSample and its grids, regions, and
 * deformable convolutions. */
#include <math.h>

#include "model/lower/lowering.h"

/* ---- GridSample, AffineGrid ---- */

/* opset 16 says bilinear and bicubic, opset 20 linear and cubic */
static const struct mdl_l_word grid_modes[] = {
    {"nearest", MDL_RESIZE_NEAREST}, {"bilinear", MDL_RESIZE_LINEAR}, {"linear", MDL_RESIZE_LINEAR},
    {"bicubic", MDL_RESIZE_CUBIC},   {"cubic", MDL_RESIZE_CUBIC},     {0},
};
static const struct mdl_l_word grid_paddings[] = {
    {"zeros", MDL_GRID_ZEROS},
    {"border", MDL_GRID_BORDER},
    {"reflection", MDL_GRID_REFLECTION},
    {0},
};

static void check_image(struct mdl_lower *l, size_t rank_min, size_t rank_max)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    mdl_window_image(l, rank_min, rank_max);
    for (size_t d = 2; d < x->rank; d++) {
        mdl_bad_if(l, x->dim[d] == 0 || x->dim[d] > INT32_MAX,
                   "a spatial dimension of the input is %zu", x->dim[d]);
    }
}

static size_t lower_grid_sample(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_GRID_SAMPLE, 2);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *grid = mdl_l_value(l, l->in[1]);
    const char *linear = l->opset < 20 ? "bilinear" : "linear";
    size_t dim[MDL_RANK_MAX];

    check_image(l, 3, l->opset < 20 ? 4 : 5);
    op.op.attr.grid.align_corners = mdl_l_int(l, "align_corners", 0) != 0;
    op.op.attr.grid.mode = (enum mdl_resize_mode)mdl_l_word(l, "mode", linear, grid_modes);
    op.op.attr.grid.padding =
        (enum mdl_grid_padding)mdl_l_word(l, "padding_mode", "zeros", grid_paddings);
    mdl_bad_if(l,
               grid->rank != x->rank || grid->dim[0] != x->dim[0] ||
                   grid->dim[grid->rank - 1] != x->rank - 2,
               "the grid of rank %zu does not fit the input of rank %zu", grid->rank, x->rank);
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    for (size_t d = 2; d < x->rank; d++) {
        dim[d] = grid->dim[d - 1];
    }
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim);
}

/* Position @i of @n along a dim, -1 to 1 */
static float grid_position(size_t i, size_t n, bool align_corners)
{
    double at = align_corners ? (n == 1 ? 0 : 2 * (double)i / (double)(n - 1) - 1)
                              : (2 * (double)i + 1) / (double)n - 1;

    return (float)at;
}

/* [rank + 1][positions]: x, y (, z) and 1 of each position */
static size_t base_grid(struct mdl_lower *l, const size_t *size, size_t rank)
{
    bool align = mdl_l_int(l, "align_corners", 0) != 0;
    size_t count = 1, bytes;
    float *g;

    for (size_t d = 0; d < rank; d++) {
        mdl_large_if(l, !base_mul(count, size[d], &count), "the grid is too large");
    }
    mdl_large_if(l, !base_mul(count, (rank + 1) * sizeof(float), &bytes), "the grid is too large");
    g = mdl_ir_fold_alloc(l->ir, bytes);
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;

        for (size_t d = rank; d-- > 0; rest /= size[d]) { /* the last dim is x, the first row */
            g[(rank - 1 - d) * count + i] = grid_position(rest % size[d], size[d], align);
        }
        g[rank * count + i] = 1;
    }
    return mdl_ir_const_new(l->ir, MDL_F32, 2, (size_t[]){rank + 1, count}, g, false);
}

/* AffineGrid: theta times the positions of a grid that is constant. */
static size_t lower_affine_grid(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op like = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    const struct mdl_ir_value *theta = mdl_l_value(l, l->in[0]);
    int64_t size[MDL_RANK_MAX] = {0};
    size_t count, rank, n = theta->dim[0], base, y, dim[MDL_RANK_MAX] = {0}, positions = 1;

    mdl_l_const_ints(l, 1, size, MDL_RANK_MAX, &count);
    rank = count - 2;
    mdl_bad_if(l,
               (count != 4 && count != 5) || theta->rank != 3 || theta->dim[1] != rank ||
                   theta->dim[2] != rank + 1 || size[0] < 0 || n != (size_t)size[0],
               "theta does not fit a size of %zu dimensions", count);
    for (size_t d = 0; d < rank; d++) {
        mdl_bad_if(l, size[d + 2] < 1 || size[d + 2] > INT32_MAX, "size %lld is out of range",
                   (long long)size[d + 2]);
        dim[d + 1] = (size_t)size[d + 2];
    }
    base = base_grid(l, dim + 1, rank);
    for (size_t d = 0; d < rank; d++) {
        positions *= dim[d + 1];
    }
    y = mdl_ir_reshape(l->ir, l->in[0], 2, (size_t[]){n * rank, rank + 1});
    y = mdl_lower_product(l, y, base, &like, MDL_F32);
    y = mdl_ir_reshape(l->ir, y, 3, (size_t[]){n, rank, positions});
    y = mdl_ir_permute(l->ir, y, (size_t[]){0, 2, 1});
    dim[0] = n;
    dim[rank + 1] = rank;
    return mdl_ir_reshape(l->ir, y, rank + 2, dim);
}

/* ---- regions ---- */

static size_t read_size(struct mdl_lower *l, const char *name, int64_t fallback)
{
    int64_t n = mdl_l_int(l, name, fallback);

    mdl_bad_if(l, n < 1 || n > INT32_MAX, "%s %lld is out of range", name, (long long)n);
    return (size_t)n;
}

static void check_rois(struct mdl_lower *l, size_t columns, float scale)
{
    const struct mdl_ir_value *rois = mdl_l_value(l, l->in[1]);

    mdl_bad_if(l, rois->rank != 2 || rois->dim[1] != columns, "the regions must be [number][%zu]",
               columns);
    mdl_bad_if(l, !isfinite(scale), "spatial_scale is not a finite number");
}

/* more would only be time */
#define ROI_SAMPLES_MAX 64

static void roi_align_attributes(struct mdl_lower *l, struct mdl_ir_op *op)
{
    const char *mode = mdl_l_string(l, "mode", "avg");
    const char *coord = mdl_l_string(l, "coordinate_transformation_mode",
                                     l->opset < 16 ? "output_half_pixel" : "half_pixel");
    int64_t samples = mdl_l_int(l, "sampling_ratio", 0);

    op->op.attr.roi.scale = mdl_l_float(l, "spatial_scale", 1);
    mdl_unserved_if(l, samples < 0 || samples > ROI_SAMPLES_MAX,
                    "sampling_ratio %lld is not supported (0 to %d)", (long long)samples,
                    ROI_SAMPLES_MAX);
    op->op.attr.roi.samples = (size_t)samples;
    op->op.attr.roi.max = strcmp(mode, "max") == 0;
    op->op.attr.roi.half_pixel = strcmp(coord, "half_pixel") == 0;
    mdl_unserved_if(l,
                    (!op->op.attr.roi.max && strcmp(mode, "avg") != 0) ||
                        (!op->op.attr.roi.half_pixel && strcmp(coord, "output_half_pixel") != 0),
                    "mode %s with coordinate_transformation_mode %s is not supported", mode, coord);
    check_rois(l, 4, op->op.attr.roi.scale);
}

static size_t lower_roi_align(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_ROI_ALIGN, 3);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *image = mdl_l_value(l, l->in[2]);
    size_t dim[4] = {mdl_l_value(l, l->in[1])->dim[0], x->dim[1], read_size(l, "output_height", 1),
                     read_size(l, "output_width", 1)};

    check_image(l, 4, 4);
    roi_align_attributes(l, &op);
    mdl_bad_if(l,
               image->rank != 1 || image->dim[0] != dim[0] ||
                   (image->dtype != MDL_I64 && image->dtype != MDL_I32),
               "batch_indices must be one integer for each region");
    return mdl_ir_emit(l->ir, &op, MDL_F32, 4, dim);
}

static size_t lower_max_roi_pool(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_MAX_ROI_POOL, 2);
    int64_t shape[2];
    size_t count, dim[4];

    op.op.attr.roi.scale = mdl_l_float(l, "spatial_scale", 1);
    check_image(l, 4, 4);
    check_rois(l, 5, op.op.attr.roi.scale);
    mdl_bad_if(l,
               !mdl_l_ints(l, "pooled_shape", shape, 2, &count) || count != 2 || shape[0] < 1 ||
                   shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX,
               "pooled_shape must be two sizes of at least 1");
    dim[0] = mdl_l_value(l, l->in[1])->dim[0];
    dim[1] = mdl_l_value(l, l->in[0])->dim[1];
    dim[2] = (size_t)shape[0];
    dim[3] = (size_t)shape[1];
    return mdl_ir_emit(l->ir, &op, MDL_F32, 4, dim);
}

/* ---- DeformConv ---- */

/* Input @i is [N][@channels][rows][columns] of the result. */
static void check_field(struct mdl_lower *l, size_t i, size_t n, size_t channels, const size_t *out)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

    mdl_bad_if(l,
               v->rank != 4 || v->dim[0] != n || v->dim[1] != channels || v->dim[2] != out[0] ||
                   v->dim[3] != out[1],
               "input %zu must be [%zu][%zu][%zu][%zu]", i, n, channels, out[0], out[1]);
}

static size_t deform_columns(struct mdl_lower *l, size_t groups, size_t taps, size_t *ret_dim)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_DEFORM_COLUMNS);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]), *w = mdl_l_value(l, l->in[1]);
    int64_t offsets = mdl_l_int(l, "offset_group", 1);

    mdl_window_of(l, 2, w->dim + 2, false, x->dim + 2, &op.op.attr.deform.window, ret_dim + 2,
                  NULL);
    mdl_bad_if(l, offsets < 1 || (uint64_t)offsets > x->dim[1] || x->dim[1] % (size_t)offsets,
               "offset_group %lld does not divide %zu channels", (long long)offsets, x->dim[1]);
    ret_dim[0] = x->dim[0];
    mdl_large_if(l, !base_mul(x->dim[1], taps, &ret_dim[1]) || ret_dim[1] > INT32_MAX,
                 "the kernel is too large");
    op.op.attr.deform.groups = groups;
    op.op.attr.deform.offset_groups = (size_t)offsets;
    check_field(l, 2, x->dim[0], 2 * (size_t)offsets * taps, ret_dim + 2);
    mdl_l_f32(l, 4);
    if (mdl_l_in(l, 4) != MDL_NONE) {
        check_field(l, 4, x->dim[0], (size_t)offsets * taps, ret_dim + 2);
    }
    op.op.in[0] = l->in[0];
    op.op.in[1] = l->in[2];
    op.op.in[2] = mdl_l_in(l, 4);
    return mdl_ir_emit(l->ir, &op, MDL_F32, 4, ret_dim);
}

/* [O][C/G][k][k] to [O][k k C/G][1][1], as the columns come */
static size_t deform_weights(struct mdl_lower *l)
{
    struct mdl_ir_value w = *mdl_l_value(l, l->in[1]);
    size_t dim[4] = {w.dim[0], w.dim[1] * w.dim[2] * w.dim[3], 1, 1};

    return mdl_ir_reshape(l->ir, mdl_ir_permute(l->ir, l->in[1], (size_t[]){0, 2, 3, 1}), 4, dim);
}

/* The elements that the taps read become columns, which a 1x1 convolution multiplies. */
static size_t lower_deform_conv(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_CONV);
    struct mdl_window *win = &op.op.attr.conv.window;
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]), w = *mdl_l_value(l, l->in[1]);
    int64_t groups = mdl_l_int(l, "group", 1);
    size_t dim[4];

    check_image(l, 4, 4);
    mdl_bad_if(l, groups < 1 || (uint64_t)groups > x.dim[1] || x.dim[1] % (size_t)groups,
               "group %lld does not divide %zu channels", (long long)groups, x.dim[1]);
    mdl_bad_if(l,
               w.rank != 4 || !mdl_ir_elements(&w) || w.dim[1] != x.dim[1] / (size_t)groups ||
                   w.dim[0] % (size_t)groups,
               "the weights do not fit %zu input channels in %lld groups", x.dim[1],
               (long long)groups);
    op.op.in[0] = deform_columns(l, (size_t)groups, w.dim[2] * w.dim[3], dim);
    op.op.in[1] = deform_weights(l);
    *win = (struct mdl_window){.rank = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    op.op.attr.conv.groups = (size_t)groups;
    dim[1] = w.dim[0];
    op.op.macs = (double)mdl_ir_elements(&w) * (double)dim[0] * (double)dim[2] * (double)dim[3];
    mdl_lower_bias(l, 3, &op, dim[1]);
    return mdl_ir_emit(l->ir, &op, MDL_F32, 4, dim);
}

const struct mdl_lower_row mdl_lower_samples[] = {
    {"GridSample", lower_grid_sample, 2, 2}, {"AffineGrid", lower_affine_grid, 2, 1},
    {"RoiAlign", lower_roi_align, 3, 2},     {"MaxRoiPool", lower_max_roi_pool, 2, 2},
    {"DeformConv", lower_deform_conv, 3, 3}, {0},
};
