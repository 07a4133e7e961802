/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/lower/lowering.h"

/* Pad, in all modes that have a primitive; negative amounts crop. */

static int pad_mode(struct mdl_lower *l, struct mdl_ir_op *op)
{
    const char *mode = mdl_l_string(l, "mode", "constant");

    if (strcmp(mode, "constant") == 0) {
        op->op.attr.pad.mode = MDL_PAD_CONSTANT;
    } else if (strcmp(mode, "reflect") == 0) {
        op->op.attr.pad.mode = MDL_PAD_REFLECT;
    } else if (strcmp(mode, "edge") == 0) {
        op->op.attr.pad.mode = MDL_PAD_EDGE;
    } else if (strcmp(mode, "wrap") == 0) {
        op->op.attr.pad.mode = MDL_PAD_WRAP;
    } else {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "mode %s is not supported", mode);
    }
    return l->error;
}

static int pad_amounts(struct mdl_lower *l, const struct mdl_ir_value *x, struct mdl_ir_op *op)
{
    int64_t pads[2 * MDL_RANK_MAX], axes[MDL_RANK_MAX];
    size_t count, axis_count, half;
    bool some;

    if (!mdl_l_const_ints(l, 1, pads, 2 * MDL_RANK_MAX, &count) && l->error == 0 &&
        !mdl_l_ints(l, "pads", pads, 2 * MDL_RANK_MAX, &count)) {
        mdl_l_ints(l, "paddings", pads, 2 * MDL_RANK_MAX, &count);
    }
    some = mdl_l_const_ints(l, 3, axes, MDL_RANK_MAX, &axis_count);
    if (l->error < 0) {
        return l->error;
    }
    half = some ? axis_count : x->rank;
    if (count != 2 * half) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "%zu pads for %zu dimensions", count, half);
    }
    for (size_t i = 0; i < half; i++) {
        size_t at = i;
        int r = some ? mdl_l_axis(l, axes[i], x->rank, false, &at) : 0;

        if (r < 0) {
            return r;
        }
        if (pads[i] < INT32_MIN || pads[i] > INT32_MAX || pads[i + half] < INT32_MIN ||
            pads[i + half] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "a pad is out of range");
        }
        op->op.attr.pad.begin[at] = (ptrdiff_t)pads[i];
        op->op.attr.pad.end[at] = (ptrdiff_t)pads[i + half];
    }
    return 0;
}

static int pad_dims(struct mdl_lower *l, const struct mdl_ir_value *x, const struct mdl_ir_op *op,
                    size_t *ret_dim, bool *ret_none)
{
    *ret_none = true;
    for (size_t i = 0; i < x->rank; i++) {
        int64_t begin = op->op.attr.pad.begin[i], end = op->op.attr.pad.end[i];
        int64_t n = (int64_t)x->dim[i], out = n + begin + end;
        int64_t largest = base_max(begin, end);

        if (out < 0 || n + begin < 0 || n + end < 0) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "pads %lld and %lld crop more than dimension %lld",
                                 (long long)begin, (long long)end, (long long)n);
        }
        if (largest > 0 && ((op->op.attr.pad.mode == MDL_PAD_REFLECT && largest >= n) ||
                            (op->op.attr.pad.mode != MDL_PAD_CONSTANT && n == 0))) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "pad %lld is too large for dimension %lld",
                                 (long long)largest, (long long)n);
        }
        ret_dim[i] = (size_t)out;
        *ret_none &= begin == 0 && end == 0;
    }
    return 0;
}

/* Crops what negative pads crop, so that only positive ones are left: the other modes than constant
 * repeat the cropped input. */
static int crop_first(struct mdl_lower *l, struct mdl_ir_op *op, size_t *v)
{
    const struct mdl_ir_value *x = mdl_l_value(l, *v);
    size_t start[MDL_RANK_MAX], dim[MDL_RANK_MAX];
    ptrdiff_t step[MDL_RANK_MAX];
    bool crops = false;

    for (size_t i = 0; i < x->rank; i++) {
        ptrdiff_t *begin = &op->op.attr.pad.begin[i], *end = &op->op.attr.pad.end[i];
        size_t last = *end < 0 ? (size_t) - *end : 0;

        start[i] = *begin < 0 ? (size_t) - *begin : 0;
        if (start[i] + last > x->dim[i]) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "pads %td and %td crop more than dimension %zu",
                                 *begin, *end, x->dim[i]);
        }
        dim[i] = x->dim[i] - start[i] - last;
        step[i] = 1;
        crops |= start[i] + last > 0;
        *begin = base_max(*begin, (ptrdiff_t)0);
        *end = base_max(*end, (ptrdiff_t)0);
    }
    return crops ? mdl_ir_slice(l->ir, *v, start, step, dim, v) : 0;
}

static int lower_pad(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_PAD);
    const struct mdl_ir_value *x;
    size_t dim[MDL_RANK_MAX], in;
    float value = mdl_l_float(l, "value", 0);
    bool none;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    in = l->in[0];
    r = pad_mode(l, &op);
    r = r < 0 ? r : pad_amounts(l, mdl_l_value(l, in), &op);
    if (r == 0 && op.op.attr.pad.mode != MDL_PAD_CONSTANT) {
        r = crop_first(l, &op, &in);
    }
    x = mdl_l_value(l, in);
    r = r < 0 ? r : pad_dims(l, x, &op, dim, &none);
    if (r < 0) {
        return r;
    }
    op.op.attr.pad.value = value;
    if (mdl_l_in(l, 2) != MDL_NONE) {
        const struct mdl_ir_value *v = mdl_l_value(l, l->in[2]);

        if (!v->data || mdl_ir_elements(v) != 1) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "the fill value must be a constant scalar");
        }
        op.op.attr.pad.value = mdl_const_real(v, 0);
    }
    if (none) {
        l->out[0] = in;
        return 0;
    }
    op.op.in[0] = in;
    return mdl_ir_emit(l->ir, &op, x->dtype, x->rank, dim, &l->out[0]);
}

/* CenterCropPad: what is left over of an odd difference is cropped, or padded, at the end. */
static int lower_center_crop_pad(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_PAD);
    int64_t size[MDL_RANK_MAX], axes[MDL_RANK_MAX];
    size_t count, axis_count, in, dim[MDL_RANK_MAX];
    bool some, none;
    int r = mdl_l_need(l, 2);

    if (r < 0 || !mdl_l_const_ints(l, 1, size, MDL_RANK_MAX, &count)) {
        return r < 0 ? r : l->error;
    }
    in = l->in[0];
    some = mdl_l_ints(l, "axes", axes, MDL_RANK_MAX, &axis_count);
    if (l->error < 0) {
        return l->error;
    }
    if (count != (some ? axis_count : mdl_l_value(l, in)->rank)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "%zu sizes for %zu dimensions", count,
                             some ? axis_count : mdl_l_value(l, in)->rank);
    }
    for (size_t i = 0; i < count; i++) {
        const struct mdl_ir_value *x = mdl_l_value(l, in);
        int64_t more;
        size_t at;

        r = mdl_l_axis(l, some ? axes[i] : (int64_t)i, x->rank, false, &at);
        if (r < 0) {
            return r;
        }
        if (size[i] < 0 || size[i] > INT32_MAX || x->dim[at] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "size %lld is out of range", (long long)size[i]);
        }
        more = size[i] - (int64_t)x->dim[at];
        op.op.attr.pad.begin[at] = (ptrdiff_t)(more / 2);
        op.op.attr.pad.end[at] = (ptrdiff_t)(more - more / 2);
    }
    r = crop_first(l, &op, &in);
    r = r < 0 ? r : pad_dims(l, mdl_l_value(l, in), &op, dim, &none);
    if (r < 0) {
        return r;
    }
    op.op.in[0] = l->out[0] = in;
    return none ? 0
                : mdl_ir_emit(l->ir, &op, mdl_l_value(l, in)->dtype, mdl_l_value(l, in)->rank, dim,
                              &l->out[0]);
}

const struct mdl_lower_row mdl_lower_pads[] = {
    {"Pad", lower_pad, 0},
    {"CenterCropPad", lower_center_crop_pad, 0},
    {0},
};
