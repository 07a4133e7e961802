/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, in all modes that have a primitive; negative amounts crop. */
#include "model/lower/lowering.h"

static const struct mdl_l_word modes[] = {{"constant", MDL_PAD_CONSTANT},
                                          {"reflect", MDL_PAD_REFLECT},
                                          {"edge", MDL_PAD_EDGE},
                                          {"wrap", MDL_PAD_WRAP},
                                          {0}};

static void pad_amounts(struct mdl_lower *l, const struct mdl_ir_value *x, struct mdl_ir_op *op)
{
    int64_t pads[2 * MDL_RANK_MAX], axes[MDL_RANK_MAX];
    size_t count, axis_count, half;
    bool some;

    if (!mdl_l_const_ints(l, 1, pads, 2 * MDL_RANK_MAX, &count) &&
        !mdl_l_ints(l, "pads", pads, 2 * MDL_RANK_MAX, &count)) {
        mdl_l_ints(l, "paddings", pads, 2 * MDL_RANK_MAX, &count);
    }
    some = mdl_l_const_ints(l, 3, axes, MDL_RANK_MAX, &axis_count);
    half = some ? axis_count : x->rank;
    mdl_bad_if(l, count != 2 * half, "%zu pads for %zu dimensions", count, half);
    for (size_t i = 0; i < half; i++) {
        size_t at = some ? mdl_l_axis(l, axes[i], x->rank, false) : i;

        mdl_bad_if(l,
                   pads[i] < INT32_MIN || pads[i] > INT32_MAX || pads[i + half] < INT32_MIN ||
                       pads[i + half] > INT32_MAX,
                   "a pad is out of range");
        op->op.attr.pad.begin[at] = (ptrdiff_t)pads[i];
        op->op.attr.pad.end[at] = (ptrdiff_t)pads[i + half];
    }
}

static void pad_dims(struct mdl_lower *l, const struct mdl_ir_value *x, const struct mdl_ir_op *op,
                     size_t *ret_dim, bool *ret_none)
{
    *ret_none = true;
    for (size_t i = 0; i < x->rank; i++) {
        int64_t begin = op->op.attr.pad.begin[i], end = op->op.attr.pad.end[i];
        int64_t n = (int64_t)x->dim[i], out = n + begin + end;
        int64_t largest = base_max(begin, end);

        mdl_bad_if(l, out < 0 || n + begin < 0 || n + end < 0,
                   "pads %lld and %lld crop more than dimension %lld", (long long)begin,
                   (long long)end, (long long)n);
        mdl_bad_if(l,
                   largest > 0 && ((op->op.attr.pad.mode == MDL_PAD_REFLECT && largest >= n) ||
                                   (op->op.attr.pad.mode != MDL_PAD_CONSTANT && n == 0)),
                   "pad %lld is too large for dimension %lld", (long long)largest, (long long)n);
        ret_dim[i] = (size_t)out;
        *ret_none &= begin == 0 && end == 0;
    }
}

/* Crops what negative pads crop, so that only positive ones are left: the other modes than constant
 * repeat the cropped input. */
static size_t crop_first(struct mdl_lower *l, struct mdl_ir_op *op, size_t v)
{
    const struct mdl_ir_value *x = mdl_l_value(l, v);
    size_t start[MDL_RANK_MAX], dim[MDL_RANK_MAX];

    for (size_t i = 0; i < x->rank; i++) {
        ptrdiff_t *begin = &op->op.attr.pad.begin[i], *end = &op->op.attr.pad.end[i];
        size_t last = *end < 0 ? (size_t) - *end : 0;

        start[i] = *begin < 0 ? (size_t) - *begin : 0;
        mdl_bad_if(l, start[i] + last > x->dim[i], "pads %td and %td crop more than dimension %zu",
                   *begin, *end, x->dim[i]);
        dim[i] = x->dim[i] - start[i] - last;
        *begin = base_max(*begin, (ptrdiff_t)0);
        *end = base_max(*end, (ptrdiff_t)0);
    }
    return mdl_ir_slice(l->ir, v, start, NULL, dim);
}

/* The op with its amounts set, on @v. */
static size_t emit_pad(struct mdl_lower *l, struct mdl_ir_op *op, size_t v)
{
    const struct mdl_ir_value *x = mdl_l_value(l, v);
    size_t dim[MDL_RANK_MAX];
    bool none;

    pad_dims(l, x, op, dim, &none);
    if (none) {
        return v;
    }
    op->op.in[0] = v;
    return mdl_ir_emit(l->ir, op, x->dtype, x->rank, dim);
}

static size_t lower_pad(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_PAD);
    const struct mdl_ir_value *fill = mdl_l_value(l, mdl_l_in(l, 2));
    size_t in = l->in[0];

    op.op.attr.pad.mode = (enum mdl_pad_mode)mdl_l_word(l, "mode", "constant", modes);
    pad_amounts(l, mdl_l_value(l, in), &op);
    if (op.op.attr.pad.mode != MDL_PAD_CONSTANT) {
        in = crop_first(l, &op, in);
    }
    op.op.attr.pad.value = mdl_l_float(l, "value", 0);
    if (mdl_l_in(l, 2) != MDL_NONE) {
        mdl_unserved_if(l, !fill->data || mdl_ir_elements(fill) != 1,
                        "the fill value must be a constant scalar");
        op.op.attr.pad.value = mdl_const_real(fill, 0);
    }
    return emit_pad(l, &op, in);
}

/* CenterCropPad: what is left over of an odd difference is cropped, or padded, at the end. */
static size_t lower_center_crop_pad(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_PAD);
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    int64_t size[MDL_RANK_MAX], axes[MDL_RANK_MAX];
    size_t count, axis_count;
    bool some = mdl_l_ints(l, "axes", axes, MDL_RANK_MAX, &axis_count);

    axis_count = some ? axis_count : x->rank;
    mdl_bad_if(l, !mdl_l_const_ints(l, 1, size, MDL_RANK_MAX, &count) || count != axis_count,
               "%zu sizes for %zu dimensions", count, axis_count);
    for (size_t i = 0; i < count; i++) {
        size_t at = mdl_l_axis(l, some ? axes[i] : (int64_t)i, x->rank, false);
        int64_t more = size[i] - (int64_t)x->dim[at];

        mdl_bad_if(l, size[i] < 0 || size[i] > INT32_MAX || x->dim[at] > INT32_MAX,
                   "size %lld is out of range", (long long)size[i]);
        op.op.attr.pad.begin[at] = (ptrdiff_t)(more / 2);
        op.op.attr.pad.end[at] = (ptrdiff_t)(more - more / 2);
    }
    return emit_pad(l, &op, crop_first(l, &op, l->in[0]));
}

const struct mdl_lower_row mdl_lower_pads[] = {
    {"Pad", lower_pad, 1, .narrow = MDL_NARROW_KEEPS},
    {"CenterCropPad", lower_center_crop_pad, 2, .narrow = MDL_NARROW_KEEPS},
    {0},
};
