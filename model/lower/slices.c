/* SPDX-License-Identifier: Apache-2.0 */
/* Parts, joins and borders: Slice, Split, Concat, and Pad in all modes that have a primitive;
 * negative amounts crop. */
#include "model/lower/lowering.h"

struct slice_args {
    int64_t start[MDL_RANK_MAX], end[MDL_RANK_MAX], axis[MDL_RANK_MAX], step[MDL_RANK_MAX];
    size_t count;
    struct mdl_l_dims ends; /* one may depend on the data */
};

static void slice_read(struct mdl_lower *l, struct slice_args *a)
{
    size_t ends, axes, steps;
    bool have_axes, have_steps = false;

    a->ends.rows = MDL_NONE;
    if (l->opset < 10) {
        mdl_l_ints(l, "starts", a->start, MDL_RANK_MAX, &a->count);
        mdl_l_ints(l, "ends", a->end, MDL_RANK_MAX, &ends);
        have_axes = mdl_l_ints(l, "axes", a->axis, MDL_RANK_MAX, &axes);
    } else {
        mdl_l_const_ints(l, 1, a->start, MDL_RANK_MAX, &a->count);
        mdl_l_dims(l, 2, &a->ends);
        memcpy(a->end, a->ends.dim, sizeof(a->end));
        ends = a->ends.count;
        have_axes = mdl_l_const_ints(l, 3, a->axis, MDL_RANK_MAX, &axes);
        have_steps = mdl_l_const_ints(l, 4, a->step, MDL_RANK_MAX, &steps);
    }
    mdl_bad_if(
        l, ends != a->count || (have_axes && axes != a->count) || (have_steps && steps != a->count),
        "starts, ends, axes and steps differ in length");
    for (size_t i = 0; i < a->count; i++) {
        a->axis[i] = have_axes ? a->axis[i] : (int64_t)i;
        a->step[i] = have_steps ? a->step[i] : 1;
    }
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* One dim, Python's rules with clamping. */
static void slice_dim(struct mdl_lower *l, int64_t n, int64_t start, int64_t end, int64_t step,
                      size_t *ret_start, ptrdiff_t *ret_step, size_t *ret_count)
{
    int64_t span, stride;

    mdl_bad_if(l, step == 0, "a step is 0");
    /* steps past the dim take one element; keep them small so that nothing overflows */
    step = clamp(step, -(n + 1), n + 1);
    start = start < 0 ? clamp(start, -n, -1) + n : clamp(start, 0, n);
    end = end < 0 ? clamp(end, -n - 1, -1) + n : clamp(end, 0, n);
    if (step > 0) {
        start = clamp(start, 0, n);
        end = clamp(end, 0, n);
        span = end - start;
        stride = step;
    } else {
        start = clamp(start, 0, n - 1);
        end = clamp(end, -1, n - 1);
        span = start - end;
        stride = -step;
    }
    *ret_count = span > 0 && n > 0 ? (size_t)((span + stride - 1) / stride) : 0;
    *ret_start = *ret_count ? (size_t)start : 0;
    *ret_step = (ptrdiff_t)step;
}

/* Where the length depends on the data, positions must count from the beginning. */
static void slice_check_rows(struct mdl_lower *l, const struct slice_args *a, size_t i, size_t at)
{
    bool counted = mdl_rows_along(l->ir, l->in[0], at);
    bool computed = a->ends.rows != MDL_NONE && a->ends.rows_at == i;

    mdl_unserved_if(l, counted && (a->start[i] < 0 || a->end[i] < 0),
                    "a position counts from the end of a dimension that depends on the "
                    "data");
    mdl_unserved_if(l, computed && (a->start[i] != 0 || a->step[i] != 1),
                    "an end that depends on the data needs start 0 and step 1");
}

static size_t lower_slice(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    struct slice_args a;
    size_t start[MDL_RANK_MAX], dim[MDL_RANK_MAX], rows_axis = 0, y;
    ptrdiff_t step[MDL_RANK_MAX];
    bool seen[MDL_RANK_MAX] = {0};

    mdl_l_need(l, l->opset < 10 ? 1 : 3, 0);
    slice_read(l, &a);
    for (size_t i = 0; i < x->rank; i++) {
        start[i] = 0;
        step[i] = 1;
        dim[i] = x->dim[i];
    }
    for (size_t i = 0; i < a.count; i++) {
        size_t at = mdl_l_axis(l, a.axis[i], x->rank, false);

        mdl_bad_if(l, seen[at], "axis %zu is named twice", at);
        seen[at] = true;
        rows_axis = i == a.ends.rows_at ? at : rows_axis;
        slice_check_rows(l, &a, i, at);
        slice_dim(l, (int64_t)x->dim[at], a.start[i], a.end[i], a.step[i], &start[at], &step[at],
                  &dim[at]);
    }
    y = mdl_ir_slice(l->ir, l->in[0], start, step, dim);
    if (a.ends.rows == MDL_NONE) {
        return y;
    }
    /* the end of one axis is a bound: so many rows are valid */
    return mdl_rows_limit(l->ir, mdl_rows_alias(l->ir, y), rows_axis, a.ends.rows);
}

/* Sizes of the parts: attribute, input, or equal (the last may be smaller from opset 18 on). */
static void split_sizes(struct mdl_lower *l, size_t n, int64_t *size)
{
    size_t count, parts = l->out_count;
    int64_t sum = 0;

    if (mdl_l_const_ints(l, 1, size, parts, &count) ||
        mdl_l_ints(l, "split", size, parts, &count)) {
        for (size_t i = 0; i < count; i++) {
            mdl_bad_if(l, size[i] < 0 || size[i] > (int64_t)n,
                       "a part of size %lld does not fit a dimension of %zu", (long long)size[i],
                       n);
            sum += size[i];
        }
        mdl_bad_if(l, count != parts || (size_t)sum != n,
                   "%zu parts with %lld elements do not fit %zu outputs and a dimension of %zu",
                   count, (long long)sum, parts, n);
        return;
    }
    mdl_bad_if(l, n % parts && !mdl_l_attr(l, "num_outputs"),
               "a dimension of %zu does not divide by %zu", n, parts);
    for (size_t i = 0; i < parts; i++) {
        size_t each = (n + parts - 1) / parts;

        size[i] = (int64_t)(each * i >= n ? 0 : base_min(each, n - each * i));
    }
}

void mdl_lower_parts(struct mdl_lower *l, size_t v, size_t axis, const int64_t *size, size_t count,
                     size_t *ret)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        ret[i] = mdl_ir_part(l->ir, v, axis, at, (size_t)size[i]);
        at += (size_t)size[i];
    }
}

static size_t lower_split(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x.rank, false);
    int64_t *size = mdl_ir_alloc(l->ir, l->out_count, sizeof(*size));

    mdl_rows_fixed(l->ir, l->in[0], axis);
    split_sizes(l, x.dim[axis], size);
    mdl_lower_parts(l, l->in[0], axis, size, l->out_count, l->out);
    return l->out[0];
}

size_t mdl_lower_beside(struct mdl_lower *l, size_t v, size_t rank, size_t at)
{
    size_t dim[MDL_RANK_MAX];

    for (size_t i = 0; i < rank; i++) {
        dim[i] = i == at ? mdl_ir_elements(mdl_l_value(l, v)) : 1;
    }
    return mdl_ir_reshape(l->ir, v, rank, dim);
}

size_t mdl_lower_new_axis(struct mdl_lower *l, size_t x, size_t axis)
{
    bool fresh[MDL_RANK_MAX + 1] = {0};

    fresh[axis] = true;
    return mdl_ir_new_dims(l->ir, x, mdl_l_value(l, x)->rank + 1, fresh);
}

size_t mdl_lower_concat_of(struct mdl_lower *l, const size_t *in, size_t count, int64_t along)
{
    struct mdl_ir_value first = *mdl_l_value(l, in[0]);
    size_t axis = mdl_l_axis(l, along, first.rank, false);

    for (size_t i = 1; i < count; i++) {
        struct mdl_ir_value x = *mdl_l_value(l, in[i]);

        if (x.rank == first.rank) {
            x.dim[axis] = first.dim[axis];
        }
        mdl_bad_if(l, !mdl_ir_same_dims(&x, &first), "input %zu does not fit the first input", i);
        mdl_bad_if(l, x.dtype != first.dtype, "input %zu has type %s, the first input has type %s",
                   i, mdl_dtype_name(x.dtype), mdl_dtype_name(first.dtype));
    }
    for (size_t i = 0; i < count; i++) {
        if (mdl_rows_along(l->ir, in[i], axis)) {
            return mdl_rows_concat(l->ir, in, count, axis);
        }
    }
    return mdl_ir_concat(l->ir, in, count, axis);
}

static size_t lower_concat(struct mdl_lower *l, int arg)
{
    return mdl_lower_concat_of(l, l->in, l->in_count, mdl_l_int(l, "axis", 1));
}

/* ---- borders ---- */

static const struct mdl_l_word pad_modes[] = {{"constant", MDL_PAD_CONSTANT},
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

/* Crops what negative pads crop, so that only positive ones are left: the other modes than
 * constant repeat the cropped input. */
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

    op.op.attr.pad.mode = (enum mdl_pad_mode)mdl_l_word(l, "mode", "constant", pad_modes);
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

const struct mdl_lower_row mdl_lower_slices[] = {
    {"Slice", lower_slice, 1, .narrow = MDL_NARROW_KEEPS},
    {"Split", lower_split, 1, .narrow = MDL_NARROW_KEEPS},
    {"Concat", lower_concat, MDL_LOWER_ALL, .narrow = MDL_NARROW_KEEPS},
    {"Pad", lower_pad, 1, .narrow = MDL_NARROW_KEEPS},
    {"CenterCropPad", lower_center_crop_pad, 2, .narrow = MDL_NARROW_KEEPS},
    {0},
};
