/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample. */
#include <math.h>

#include "model/lower/lowering.h"

static const struct mdl_l_word modes[] = {
    {"nearest", MDL_RESIZE_NEAREST},
    {"linear", MDL_RESIZE_LINEAR},
    {"bilinear", MDL_RESIZE_LINEAR},
    {"cubic", MDL_RESIZE_CUBIC},
    {0},
};
static const struct mdl_l_word coords[] = {
    {"half_pixel", MDL_COORD_HALF_PIXEL},
    {"asymmetric", MDL_COORD_ASYMMETRIC},
    {"align_corners", MDL_COORD_ALIGN_CORNERS},
    {"pytorch_half_pixel", MDL_COORD_PYTORCH_HALF_PIXEL},
    {"tf_half_pixel_for_nn", MDL_COORD_TF_HALF_PIXEL_NN},
    {"half_pixel_symmetric", MDL_COORD_HALF_PIXEL_SYMMETRIC},
    {"tf_crop_and_resize", MDL_COORD_TF_CROP_AND_RESIZE},
    {0},
};
static const struct mdl_l_word rounds[] = {
    {"round_prefer_floor", MDL_ROUND_PREFER_FLOOR},
    {"round_prefer_ceil", MDL_ROUND_PREFER_CEIL},
    {"floor", MDL_ROUND_FLOOR},
    {"ceil", MDL_ROUND_CEIL},
    {0},
};

static void read_attributes(struct mdl_lower *l, struct mdl_ir_op *op, bool upsample)
{
    /* Upsample and Resize of opset 10 have neither attribute: asymmetric and floor are theirs */
    bool old = upsample || l->opset < 11;
    int mode = mdl_l_word(l, "mode", "nearest", modes);
    int coord = MDL_COORD_ASYMMETRIC, round = MDL_ROUND_FLOOR;

    if (!old) {
        coord = mdl_l_word(l, "coordinate_transformation_mode", "half_pixel", coords);
        round = mdl_l_word(l, "nearest_mode", "round_prefer_floor", rounds);
    }
    mdl_bad_if(l, old && mode == MDL_RESIZE_CUBIC, "mode cubic needs opset 11");
    op->op.attr.resize.mode = (enum mdl_resize_mode)mode;
    op->op.attr.resize.coord = (enum mdl_resize_coord)coord;
    op->op.attr.resize.round = (enum mdl_resize_round)round;
    op->op.attr.resize.cubic_a = mdl_l_float(l, "cubic_coeff_a", -0.75f);
    op->op.attr.resize.exclude_outside = mdl_l_int(l, "exclude_outside", 0) != 0;
    op->op.attr.resize.extrapolation = mdl_l_float(l, "extrapolation_value", 0);
    /* nearest takes one element however small the result */
    op->op.attr.resize.antialias =
        mode != MDL_RESIZE_NEAREST && l->opset >= 18 && mdl_l_int(l, "antialias", 0) != 0;
    mdl_bad_if(l, !isfinite(op->op.attr.resize.cubic_a), "cubic_coeff_a is not a finite number");
}

/* In floats, as ONNX's shape inference, ONNX Runtime and torch: 10 times 0.7f is 7, not less. */
static void set_scale(struct mdl_lower *l, struct mdl_ir_op *op, const struct mdl_ir_value *x,
                      size_t at, float scale, size_t *dim)
{
    float out = floorf((float)x->dim[at] * scale);

    mdl_bad_if(l, !(scale > 0) || !(out >= 1) || out >= 0x1p31f,
               "scale %g of a dimension of %zu gives no valid size", (double)scale, x->dim[at]);
    op->op.attr.resize.scale[at] = scale;
    dim[at] = scale == 1 ? x->dim[at] : (size_t)out;
}

/* Scales from constant input @i or the attribute; false where absent or empty. */
static void read_scales(struct mdl_lower *l, size_t i, float *scale, size_t *ret_count)
{
    size_t v = mdl_l_in(l, i);
    const struct mdl_gattr *a = mdl_l_attr(l, "scales");
    const struct mdl_ir_value *x;

    *ret_count = 0;
    if (v == MDL_NONE) {
        if (a && a->type == MDL_ATTR_FLOATS && a->count <= MDL_RANK_MAX) {
            memcpy(scale, a->floats, a->count * sizeof(*scale));
            *ret_count = a->count;
        }
        return;
    }
    x = mdl_l_value(l, v);
    mdl_unserved_if(l, !x->data || x->dtype != MDL_F32 || mdl_ir_elements(x) > MDL_RANK_MAX,
                    "the scales must be constant floats");
    *ret_count = mdl_ir_elements(x);
    for (size_t k = 0; k < *ret_count; k++) {
        scale[k] = (float)mdl_const_real(x, k);
    }
}

/* The dims that scales, sizes and roi are about: all, or attribute axes (opset 18). */
struct axes {
    size_t count, at[MDL_RANK_MAX];
};

static void read_axes(struct mdl_lower *l, size_t rank, struct axes *ret)
{
    int64_t axes[MDL_RANK_MAX];
    bool used[MDL_RANK_MAX] = {false};
    bool some = l->opset >= 18 && mdl_l_ints(l, "axes", axes, MDL_RANK_MAX, &ret->count);

    ret->count = some ? ret->count : rank;
    for (size_t i = 0; i < ret->count; i++) {
        ret->at[i] = mdl_l_axis(l, some ? axes[i] : (int64_t)i, rank, false);
        mdl_bad_if(l, used[ret->at[i]], "axis %zu is given twice", ret->at[i]);
        used[ret->at[i]] = true;
    }
}

static void check_count(struct mdl_lower *l, const char *what, size_t count, size_t wanted)
{
    mdl_bad_if(l, count != wanted, "%zu %s for %zu dimensions", count, what, wanted);
}

/* keep_aspect_ratio_policy: one scale for all axes, by which the result fits into the sizes, or
 * covers them. */
static void keep_ratio(struct mdl_lower *l, struct mdl_ir_op *op, const struct mdl_ir_value *x,
                       const struct axes *axes, bool larger, size_t *dim)
{
    double scale = larger ? 0 : INFINITY;

    for (size_t i = 0; i < axes->count; i++) {
        double one = (double)dim[axes->at[i]] / (double)x->dim[axes->at[i]];

        scale = larger ? fmax(scale, one) : fmin(scale, one);
    }
    for (size_t i = 0; i < axes->count; i++) {
        double size = floor(scale * (double)x->dim[axes->at[i]] + 0.5);

        mdl_bad_if(l, !(size >= 1) || size > INT32_MAX,
                   "keep_aspect_ratio_policy gives dimension %zu a size of %g", axes->at[i], size);
        dim[axes->at[i]] = (size_t)size;
        op->op.attr.resize.scale[axes->at[i]] = (float)scale;
    }
}

static const struct mdl_l_word policies[] = {
    {"stretch", 0},
    {"not_larger", 1},
    {"not_smaller", 2},
    {0},
};

static void apply_sizes(struct mdl_lower *l, struct mdl_ir_op *op, const struct mdl_ir_value *x,
                        const struct axes *axes, const int64_t *size, size_t *dim)
{
    int policy = l->opset < 18 ? 0 : mdl_l_word(l, "keep_aspect_ratio_policy", "stretch", policies);

    for (size_t i = 0; i < axes->count; i++) {
        size_t at = axes->at[i];

        mdl_bad_if(l, size[i] < 1 || size[i] > INT32_MAX, "size %lld is out of range",
                   (long long)size[i]);
        dim[at] = (size_t)size[i];
        op->op.attr.resize.scale[at] = (float)((double)size[i] / (double)x->dim[at]);
    }
    if (policy) {
        keep_ratio(l, op, x, axes, policy == 2, dim);
    }
}

/* Input 1: where each axis begins, then where each ends, as fractions of the input. */
static void read_roi(struct mdl_lower *l, struct mdl_ir_op *op, const struct axes *axes)
{
    size_t v = mdl_l_in(l, 1);
    const struct mdl_ir_value *roi;

    for (size_t d = 0; d < MDL_RANK_MAX; d++) {
        op->op.attr.resize.roi_end[d] = 1;
    }
    if (op->op.attr.resize.coord != MDL_COORD_TF_CROP_AND_RESIZE) {
        return; /* the others ignore it */
    }
    mdl_bad_if(l, v == MDL_NONE, "tf_crop_and_resize needs input 1, the roi");
    roi = mdl_l_value(l, v);
    mdl_unserved_if(l, !roi->data || roi->dtype != MDL_F32, "the roi must be constant floats");
    check_count(l, "values of the roi", mdl_ir_elements(roi), 2 * axes->count);
    for (size_t i = 0; i < axes->count; i++) {
        float begin = (float)mdl_const_real(roi, i);
        float end = (float)mdl_const_real(roi, axes->count + i);

        mdl_bad_if(l, !(fabsf(begin) < 1e6f && fabsf(end) < 1e6f),
                   "the roi from %g to %g is out of range", (double)begin, (double)end);
        op->op.attr.resize.roi_begin[axes->at[i]] = begin;
        op->op.attr.resize.roi_end[axes->at[i]] = end;
    }
}

/* Before opset 11 nearest rounds up in a dimension that shrinks and down in one that grows (ONNX's
 * own test of Resize-10 and ONNX Runtime). Dimensions are independent, so both in one operator are
 * two. */
static size_t old_nearest(struct mdl_lower *l, const struct mdl_ir_op *op, struct mdl_ir_value x,
                          const size_t *dim)
{
    struct mdl_ir_op shrink = *op, grow = *op;
    size_t small[MDL_RANK_MAX];
    bool shrinks = false, grows = false;

    for (size_t i = 0; i < x.rank; i++) {
        float *down = &shrink.op.attr.resize.scale[i], *up = &grow.op.attr.resize.scale[i];

        small[i] = *down < 1 ? dim[i] : x.dim[i];
        shrinks |= *down < 1;
        grows |= *up > 1;
        *down = base_min(*down, 1.0f);
        *up = base_max(*up, 1.0f);
    }
    if (shrinks) {
        shrink.op.attr.resize.round = MDL_ROUND_CEIL;
        grow.op.in[0] = mdl_ir_emit(l->ir, &shrink, x.dtype, x.rank, small);
    }
    return grows || !shrinks ? mdl_ir_emit(l->ir, &grow, x.dtype, x.rank, dim) : grow.op.in[0];
}

/* Scales or sizes, whichever the node has: @ret_dim and the op's scales. */
static void read_result(struct mdl_lower *l, bool upsample, struct mdl_ir_op *op,
                        const struct mdl_ir_value *x, const struct axes *axes, size_t *ret_dim)
{
    size_t count, sizes = 0;
    float scale[MDL_RANK_MAX];
    int64_t size[MDL_RANK_MAX];

    read_scales(l, upsample || l->opset < 11 ? 1 : 2, scale, &count);
    if (count == 0 && !upsample && l->opset >= 11) {
        mdl_l_const_ints(l, 3, size, MDL_RANK_MAX, &sizes);
    }
    mdl_bad_if(l, count == 0 && sizes == 0, "neither scales nor sizes are given");
    check_count(l, "scales or sizes", count ? count : sizes, axes->count);
    if (sizes) {
        apply_sizes(l, op, x, axes, size, ret_dim);
    }
    for (size_t i = 0; i < count; i++) {
        set_scale(l, op, x, axes->at[i], scale[i], ret_dim);
    }
}

static size_t lower_resize(struct mdl_lower *l, int upsample)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_RESIZE, 1);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t dim[MDL_RANK_MAX];
    struct axes axes;
    bool nearest;

    read_attributes(l, &op, upsample != 0);
    nearest = op.op.attr.resize.mode == MDL_RESIZE_NEAREST;
    mdl_unserved_if(l,
                    !nearest && x->dtype != MDL_F32 && x->dtype != MDL_U8 && x->dtype != MDL_I8 &&
                        x->dtype != MDL_I32,
                    "values of type %s are only resized by nearest", mdl_dtype_name(x->dtype));
    for (size_t i = 0; i < x->rank; i++) {
        dim[i] = x->dim[i];
        op.op.attr.resize.scale[i] = 1;
        mdl_bad_if(l, x->dim[i] == 0, "dimension %zu of the input is 0", i);
    }
    read_axes(l, x->rank, &axes);
    read_roi(l, &op, &axes);
    read_result(l, upsample != 0, &op, x, &axes, dim);
    return nearest && (upsample || l->opset < 11) ? old_nearest(l, &op, *x, dim)
                                                  : mdl_ir_emit(l->ir, &op, x->dtype, x->rank, dim);
}

const struct mdl_lower_row mdl_lower_resizes[] = {
    {"Resize", lower_resize, 1},
    {"Upsample", lower_resize, 1, 0, 1, .until = 9}, /* later it has no meaning */
    {0},
};
