/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base.h"
#include "model/lower/lowering.h"

struct word {
    const char *name;
    int value;
};

static int look_up(struct mdl_lower *l, const char *attr, const char *fallback,
                   const struct word *words, int *ret)
{
    const char *s = mdl_l_string(l, attr, fallback);

    for (; words->name; words++) {
        if (strcmp(words->name, s) == 0) {
            *ret = words->value;
            return l->error;
        }
    }
    return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "%s %s is not supported", attr, s);
}

static const struct word modes[] = {
    {"nearest", MDL_RESIZE_NEAREST},
    {"linear", MDL_RESIZE_LINEAR},
    {"bilinear", MDL_RESIZE_LINEAR},
    {0},
};
static const struct word coords[] = {
    {"half_pixel", MDL_COORD_HALF_PIXEL},
    {"asymmetric", MDL_COORD_ASYMMETRIC},
    {"align_corners", MDL_COORD_ALIGN_CORNERS},
    {"pytorch_half_pixel", MDL_COORD_PYTORCH_HALF_PIXEL},
    {"tf_half_pixel_for_nn", MDL_COORD_TF_HALF_PIXEL_NN},
    {0},
};
static const struct word rounds[] = {
    {"round_prefer_floor", MDL_ROUND_PREFER_FLOOR},
    {"round_prefer_ceil", MDL_ROUND_PREFER_CEIL},
    {"floor", MDL_ROUND_FLOOR},
    {"ceil", MDL_ROUND_CEIL},
    {0},
};

static int read_attributes(struct mdl_lower *l, struct mdl_ir_op *op, bool upsample)
{
    /* Upsample and Resize of opset 10 have neither attribute: asymmetric and floor are theirs */
    bool old = upsample || l->opset < 11;
    int mode = 0, coord = MDL_COORD_ASYMMETRIC, round = MDL_ROUND_FLOOR, r;

    r = look_up(l, "mode", "nearest", modes, &mode);
    if (r == 0 && !old) {
        r = look_up(l, "coordinate_transformation_mode", "half_pixel", coords, &coord);
        r = r < 0 ? r : look_up(l, "nearest_mode", "round_prefer_floor", rounds, &round);
    }
    if (r < 0) {
        return r;
    }
    if (mdl_l_int(l, "antialias", 0)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "antialias is not supported; export the model without it");
    }
    if (strcmp(mdl_l_string(l, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "keep_aspect_ratio_policy is not supported");
    }
    op->op.attr.resize.mode = (enum mdl_resize_mode)mode;
    op->op.attr.resize.coord = (enum mdl_resize_coord)coord;
    op->op.attr.resize.round = (enum mdl_resize_round)round;
    return l->error;
}

static int set_scale(struct mdl_lower *l, struct mdl_ir_op *op, const struct mdl_ir_value *x,
                     size_t at, double scale, size_t *dim)
{
    double out = floor((double)x->dim[at] * scale);

    if (!(scale > 0) || !(out >= 1) || out > INT32_MAX) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "scale %g of a dimension of %zu gives no valid size",
                             scale, x->dim[at]);
    }
    op->op.attr.resize.scale[at] = (float)scale;
    dim[at] = (size_t)out;
    return 0;
}

/* Scales from constant input @i or the attribute; false where absent or empty. */
static int read_scales(struct mdl_lower *l, size_t i, float *scale, size_t *ret_count)
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
        return 0;
    }
    x = mdl_l_value(l, v);
    if (!x->data || x->dtype != MDL_F32 || mdl_ir_elements(x) > MDL_RANK_MAX) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "the scales must be constant floats");
    }
    *ret_count = mdl_ir_elements(x);
    for (size_t k = 0; k < *ret_count; k++) {
        scale[k] = (float)mdl_const_real(x, k);
    }
    return 0;
}

/* Which dims the scales or sizes are about: all, or attribute axes (opset 18). */
static int read_axes(struct mdl_lower *l, size_t rank, size_t count, size_t *ret_axis)
{
    int64_t axes[MDL_RANK_MAX];
    size_t axis_count;
    bool some = mdl_l_ints(l, "axes", axes, MDL_RANK_MAX, &axis_count);

    if (l->error < 0) {
        return l->error;
    }
    if (count != (some ? axis_count : rank)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "%zu scales or sizes for %zu dimensions", count,
                             some ? axis_count : rank);
    }
    for (size_t i = 0; i < count; i++) {
        int r;

        ret_axis[i] = i;
        r = some ? mdl_l_axis(l, axes[i], rank, false, &ret_axis[i]) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int apply_scales(struct mdl_lower *l, struct mdl_ir_op *op, const struct mdl_ir_value *x,
                        const float *scale, size_t count, size_t *dim)
{
    size_t axis[MDL_RANK_MAX];
    int r = read_axes(l, x->rank, count, axis);

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = set_scale(l, op, x, axis[i], scale[i], dim);
    }
    return r;
}

static int apply_sizes(struct mdl_lower *l, struct mdl_ir_op *op, const struct mdl_ir_value *x,
                       const int64_t *size, size_t count, size_t *dim)
{
    size_t axis[MDL_RANK_MAX];
    int r = read_axes(l, x->rank, count, axis);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (size[i] < 1 || size[i] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "size %lld is out of range", (long long)size[i]);
        }
        dim[axis[i]] = (size_t)size[i];
        op->op.attr.resize.scale[axis[i]] = (float)((double)size[i] / (double)x->dim[axis[i]]);
    }
    return r;
}

/* Before opset 11 nearest rounds up in a dimension that shrinks and down in one that grows (ONNX's
 * own test of Resize-10 and ONNX Runtime). Dimensions are independent, so both in one operator are
 * two. */
static int old_nearest(struct mdl_lower *l, const struct mdl_ir_op *op,
                       const struct mdl_ir_value *x, const size_t *dim)
{
    struct mdl_ir_op shrink = *op, grow = *op;
    size_t small[MDL_RANK_MAX];
    bool shrinks = false, grows = false;
    int r = 0;

    l->out[0] = op->op.in[0];
    for (size_t i = 0; i < x->rank; i++) {
        float *down = &shrink.op.attr.resize.scale[i], *up = &grow.op.attr.resize.scale[i];

        small[i] = *down < 1 ? dim[i] : x->dim[i];
        shrinks |= *down < 1;
        grows |= *up > 1;
        *down = base_min(*down, 1.0f);
        *up = base_max(*up, 1.0f);
    }
    if (shrinks) {
        shrink.op.attr.resize.round = MDL_ROUND_CEIL;
        r = mdl_ir_emit(l->ir, &shrink, MDL_F32, x->rank, small, &l->out[0]);
    }
    if (r == 0 && (grows || !shrinks)) {
        grow.op.in[0] = l->out[0];
        r = mdl_ir_emit(l->ir, &grow, MDL_F32, x->rank, dim, &l->out[0]);
    }
    return r;
}

static int lower_resize(struct mdl_lower *l, int upsample)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_RESIZE);
    size_t dim[MDL_RANK_MAX], scale_in = upsample || l->opset < 11 ? 1 : 2, count, sizes = 0;
    float scale[MDL_RANK_MAX];
    int64_t size[MDL_RANK_MAX];
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_f32(l, 0);
    r = r < 0 ? r : read_attributes(l, &op, upsample != 0);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    for (size_t i = 0; i < x->rank; i++) {
        dim[i] = x->dim[i];
        op.op.attr.resize.scale[i] = 1;
        if (x->dim[i] == 0) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %zu of the input is 0", i);
        }
    }
    r = read_scales(l, scale_in, scale, &count);
    if (r < 0) {
        return r;
    }
    if (count == 0 && !upsample) {
        mdl_l_const_ints(l, 3, size, MDL_RANK_MAX, &sizes);
    }
    if (l->error < 0) {
        return l->error;
    }
    if (count == 0 && sizes == 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "neither scales nor sizes are given");
    }
    r = count ? apply_scales(l, &op, x, scale, count, dim)
              : apply_sizes(l, &op, x, size, sizes, dim);
    if (r < 0) {
        return r;
    }
    op.op.in[0] = l->in[0];
    if (op.op.attr.resize.mode == MDL_RESIZE_NEAREST && (upsample || l->opset < 11)) {
        return old_nearest(l, &op, x, dim);
    }
    return mdl_ir_emit(l->ir, &op, MDL_F32, x->rank, dim, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_resizes[] = {
    {"Resize", lower_resize, 0},
    {"Upsample", lower_resize, 1, NULL, .until = 9}, /* later it has no meaning */
    {0},
};
