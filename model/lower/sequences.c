/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence is a list of values that is known when the model is loaded: which they are, and how
 * many, depends on constants alone. So its operators are choices, and cost nothing in a frame. */
#include "model/lower/lowering.h"

#define ITEMS_MAX 4096u

static size_t make(struct mdl_lower *l, enum mdl_dtype dtype, const size_t *items, size_t count)
{
    struct mdl_ir_value *v;
    size_t *copy, made;

    mdl_large_if(l, count > ITEMS_MAX, "a sequence of %zu tensors; at most %u are supported", count,
                 ITEMS_MAX);
    copy = mdl_ir_fold_alloc(l->ir, count * sizeof(*items)); /* a loop may make many */
    made = mdl_ir_value_new(l->ir, dtype, 0, NULL);
    if (count) {
        memcpy(copy, items, count * sizeof(*items));
    }
    v = &l->ir->values[made];
    v->sequence = true;
    v->items = copy;
    v->item_count = count;
    return made;
}

/* Input 0, a sequence that is @filled or may be empty. */
static struct mdl_ir_value sequence(struct mdl_lower *l, bool filled)
{
    struct mdl_ir_value s = *mdl_l_value(l, l->in[0]);

    mdl_bad_if(l, !s.sequence, "input 0 is not a sequence");
    mdl_bad_if(l, filled && s.item_count == 0, "the sequence has no tensor");
    return s;
}

/* Input @i, a tensor. */
static void tensor(struct mdl_lower *l, size_t i)
{
    mdl_bad_if(l, mdl_l_value(l, l->in[i])->sequence, "input %zu is a sequence, not a tensor", i);
}

/* Constant input @i, a position in @count items, or @past_end after them; @fallback: without it. */
static size_t position(struct mdl_lower *l, size_t i, size_t count, bool past_end, size_t fallback)
{
    int64_t at, most = (int64_t)count - !past_end;
    size_t given;

    if (!mdl_l_const_ints(l, i, &at, 1, &given)) {
        return fallback;
    }
    mdl_bad_if(l, given != 1, "its position has no elements");
    mdl_bad_if(l, at < -(int64_t)count || at > most,
               "position %lld is outside a sequence of %zu tensors", (long long)at, count);
    return at < 0 ? (size_t)(at + (int64_t)count) : (size_t)at;
}

static size_t lower_construct(struct mdl_lower *l, int arg)
{
    enum mdl_dtype dtype = mdl_l_value(l, l->in[0])->dtype;

    for (size_t i = 0; i < l->in_count; i++) {
        tensor(l, i);
        mdl_bad_if(l, mdl_l_value(l, l->in[i])->dtype != dtype,
                   "input %zu has another type than the first", i);
    }
    return make(l, dtype, l->in, l->in_count);
}

static size_t lower_empty(struct mdl_lower *l, int arg)
{
    return make(l, mdl_l_dtype(l, MDL_F32), NULL, 0);
}

static size_t lower_insert(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s = sequence(l, false);
    size_t items[ITEMS_MAX + 1], at;

    tensor(l, 1);
    at = position(l, 2, s.item_count, true, s.item_count);
    mdl_bad_if(l, s.dtype != mdl_l_value(l, l->in[1])->dtype,
               "a tensor of type %s for a sequence of %s",
               mdl_dtype_name(mdl_l_value(l, l->in[1])->dtype), mdl_dtype_name(s.dtype));
    for (size_t i = 0; i <= s.item_count; i++) {
        items[i] = i == at ? l->in[1] : s.items[i - (i > at)];
    }
    return make(l, s.dtype, items, s.item_count + 1);
}

static size_t lower_erase(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s = sequence(l, true);
    size_t items[ITEMS_MAX], at = position(l, 1, s.item_count, false, s.item_count - 1);

    for (size_t i = 0; i + 1 < s.item_count; i++) {
        items[i] = s.items[i + (i >= at)];
    }
    return make(l, s.dtype, items, s.item_count - 1);
}

static size_t lower_at(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s = sequence(l, false);

    return s.items[position(l, 1, s.item_count, false, 0)];
}

static size_t lower_length(struct mdl_lower *l, int arg)
{
    return mdl_ir_scalar(l->ir, MDL_I64, (double)sequence(l, false).item_count);
}

/* The lengths of the parts: one for all, but the last may be shorter; or a list; or 1.
 * @ret_single: parts of one were asked for. */
static void split_sizes(struct mdl_lower *l, size_t n, int64_t **ret_size, size_t *ret_count,
                        bool *ret_single)
{
    size_t given = 0, count = n;
    int64_t *size = mdl_ir_alloc(l->ir, ITEMS_MAX, sizeof(*size)), each = 1, sum = 0;
    bool list;

    mdl_l_const_ints(l, 1, size, ITEMS_MAX, &given);
    list = given && mdl_l_value(l, l->in[1])->rank > 0;
    if (given && !list) {
        each = size[0];
        count = each > 0 ? (n + (size_t)each - 1) / (size_t)each : 0;
    }
    if (each < 1 || (!list && count > ITEMS_MAX)) {
        mdl_l_refuse(l, each < 1 ? -EBADMSG : -E2BIG,
                     "parts of %lld of a dimension of %zu; 1 to %u parts are supported",
                     (long long)each, n, ITEMS_MAX);
    }
    for (size_t i = 0; i < (list ? given : count); i++) {
        size[i] = list ? size[i] : (int64_t)base_min((size_t)each, n - i * (size_t)each);
        mdl_bad_if(l, size[i] < 0 || size[i] > (int64_t)n - sum,
                   "part %zu of size %lld does not fit in %zu", i, (long long)size[i], n);
        sum += size[i];
    }
    mdl_bad_if(l, sum != (int64_t)n, "the parts have %lld elements, the dimension %zu",
               (long long)sum, n);
    *ret_size = size;
    *ret_count = list ? given : count;
    *ret_single = !list && each == 1;
}

/* ONNX ignores keepdims where sizes are given. But torch writes unbind() as parts of one without
 * the axis, and that is what ONNX Runtime makes of it. */
static size_t lower_split(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t axis = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false), count = 0, *parts;
    enum mdl_dtype dtype = x->dtype;
    bool single = false, drop[MDL_RANK_MAX] = {0};
    int64_t *size = NULL;

    tensor(l, 0);
    mdl_rows_fixed(l->ir, l->in[0], axis);
    split_sizes(l, x->dim[axis], &size, &count, &single);
    /* a loop may make many: each is a value, for which the budget must have room */
    parts = mdl_ir_fold_alloc(l->ir, count * sizeof(struct mdl_ir_value));
    mdl_lower_parts(l, l->in[0], axis, size, count, parts);
    drop[axis] = true;
    for (size_t i = 0; single && mdl_l_int(l, "keepdims", 1) == 0 && i < count; i++) {
        parts[i] = mdl_ir_drop_dims(l->ir, parts[i], drop);
    }
    return make(l, dtype, parts, count);
}

static size_t lower_concat(struct mdl_lower *l, int arg)
{
    int64_t along = mdl_l_int(l, "axis", 0);
    struct mdl_ir_value s = sequence(l, true);
    size_t *items, axis;

    mdl_bad_if(l, !mdl_l_attr(l, "axis"), "attribute axis is missing");
    if (!mdl_l_int(l, "new_axis", 0)) {
        return mdl_lower_concat_of(l, s.items, s.item_count, along);
    }
    items = mdl_ir_memdup(l->ir, s.items, s.item_count * sizeof(*items));
    axis = mdl_l_axis(l, along, mdl_l_value(l, items[0])->rank + 1, false);
    for (size_t i = 0; i < s.item_count; i++) {
        items[i] = mdl_lower_new_axis(l, items[i], axis);
    }
    return mdl_lower_concat_of(l, items, s.item_count, (int64_t)axis);
}

const struct mdl_lower_row mdl_lower_sequences[] = {
    {"SequenceConstruct", lower_construct, MDL_LOWER_ALL, .narrow = MDL_NARROW_OWN},
    {"SequenceEmpty", lower_empty, 0},
    {"SequenceInsert", lower_insert, 2, .sequences = true, .narrow = MDL_NARROW_OWN},
    {"SequenceErase", lower_erase, 1, .sequences = true, .narrow = MDL_NARROW_OWN},
    {"SequenceAt", lower_at, 2, .sequences = true, .narrow = MDL_NARROW_OWN},
    {"SequenceLength", lower_length, 1, .sequences = true, .narrow = MDL_NARROW_OWN},
    {"SplitToSequence", lower_split, 1, .narrow = MDL_NARROW_OWN},
    {"ConcatFromSequence", lower_concat, 1, .sequences = true, .narrow = MDL_NARROW_OWN},
    {0},
};
