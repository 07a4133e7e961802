/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/ir/rows.h"
#include "model/lower/lowering.h"

/* A sequence is a list of values that is known when the model is loaded: which they are, and how
 * many, depends on constants alone. So its operators are choices, and cost nothing in a frame. */

#define ITEMS_MAX 4096u

static int make(struct mdl_lower *l, enum mdl_dtype dtype, const size_t *items, size_t count,
                size_t *ret)
{
    struct mdl_ir_value *v;
    void *copy;
    int r;

    if (count > ITEMS_MAX) {
        return mdl_ir_refuse(l->ir, -E2BIG, "a sequence of %zu tensors; at most %u are supported",
                             count, ITEMS_MAX);
    }
    r = mdl_ir_fold_alloc(l->ir, count * sizeof(*items), &copy); /* a loop may make many */
    r = r < 0 ? r : mdl_ir_value_new(l->ir, dtype, 0, NULL, ret);
    if (r < 0) {
        return r;
    }
    if (count) {
        memcpy(copy, items, count * sizeof(*items));
    }
    v = &l->ir->values[*ret];
    v->sequence = true;
    v->items = copy;
    v->item_count = count;
    return 0;
}

/* Input @i, a sequence. */
static int sequence(struct mdl_lower *l, size_t i, struct mdl_ir_value *ret)
{
    int r = mdl_l_need(l, i + 1);

    if (r < 0) {
        return r;
    }
    *ret = *mdl_l_value(l, l->in[i]);
    return ret->sequence ? 0 : mdl_ir_refuse(l->ir, -EBADMSG, "input %zu is not a sequence", i);
}

/* Input @i, a tensor. */
static int tensor(struct mdl_lower *l, size_t i)
{
    int r = mdl_l_need(l, i + 1);

    return r < 0 ? r
           : mdl_l_value(l, l->in[i])->sequence
               ? mdl_ir_refuse(l->ir, -EBADMSG, "input %zu is a sequence, not a tensor", i)
               : 0;
}

/* Constant input @i, a position in @count items, or @past_end after them; @fallback: without it. */
static int position(struct mdl_lower *l, size_t i, size_t count, bool past_end, size_t fallback,
                    size_t *ret)
{
    int64_t at, most = (int64_t)count - !past_end;
    size_t given;

    *ret = fallback;
    if (!mdl_l_const_ints(l, i, &at, 1, &given)) {
        return l->error;
    }
    if (given != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "its position has no elements");
    }
    if (at < -(int64_t)count || at > most) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "position %lld is outside a sequence of %zu tensors",
                             (long long)at, count);
    }
    *ret = at < 0 ? (size_t)(at + (int64_t)count) : (size_t)at;
    return 0;
}

static int lower_construct(struct mdl_lower *l, int arg)
{
    int r = mdl_l_need(l, base_max(l->in_count, (size_t)1));

    for (size_t i = 0; r == 0 && i < l->in_count; i++) {
        r = tensor(l, i);
        if (r == 0 && mdl_l_value(l, l->in[i])->dtype != mdl_l_value(l, l->in[0])->dtype) {
            r = mdl_ir_refuse(l->ir, -EBADMSG, "input %zu has another type than the first", i);
        }
    }
    return r < 0 ? r : make(l, mdl_l_value(l, l->in[0])->dtype, l->in, l->in_count, &l->out[0]);
}

static int lower_empty(struct mdl_lower *l, int arg)
{
    enum mdl_dtype dtype;
    int r = mdl_l_need(l, 0);

    r = r < 0 ? r : mdl_l_dtype(l, "dtype", MDL_F32, &dtype);
    return r < 0 ? r : make(l, dtype, NULL, 0, &l->out[0]);
}

static int lower_insert(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s;
    size_t items[ITEMS_MAX + 1], at;
    int r = sequence(l, 0, &s);

    r = r < 0 ? r : tensor(l, 1);
    r = r < 0 ? r : position(l, 2, s.item_count, true, s.item_count, &at);
    if (r < 0) {
        return r;
    }
    if (s.dtype != mdl_l_value(l, l->in[1])->dtype) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "a tensor of type %s for a sequence of %s",
                             mdl_dtype_name(mdl_l_value(l, l->in[1])->dtype),
                             mdl_dtype_name(s.dtype));
    }
    for (size_t i = 0; i <= s.item_count; i++) {
        items[i] = i == at ? l->in[1] : s.items[i - (i > at)];
    }
    return make(l, s.dtype, items, s.item_count + 1, &l->out[0]);
}

static int lower_erase(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s;
    size_t items[ITEMS_MAX], at;
    int r = sequence(l, 0, &s);

    if (r == 0 && s.item_count == 0) {
        r = mdl_ir_refuse(l->ir, -EBADMSG, "the sequence has no tensor");
    }
    r = r < 0 ? r : position(l, 1, s.item_count, false, s.item_count - 1, &at);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i + 1 < s.item_count; i++) {
        items[i] = s.items[i + (i >= at)];
    }
    return make(l, s.dtype, items, s.item_count - 1, &l->out[0]);
}

static int lower_at(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s;
    size_t at;
    int r = sequence(l, 0, &s);

    r = r < 0 ? r : mdl_l_need(l, 2);
    r = r < 0 ? r : position(l, 1, s.item_count, false, 0, &at);
    if (r == 0) {
        l->out[0] = s.items[at];
    }
    return r;
}

static int lower_length(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value s;
    int r = sequence(l, 0, &s);

    return r < 0 ? r : mdl_ir_scalar(l->ir, MDL_I64, (double)s.item_count, &l->out[0]);
}

/* The lengths of the parts: one for all, but the last may be shorter; or a list; or 1.
 * @ret_single: parts of one were asked for. */
static int split_sizes(struct mdl_lower *l, size_t n, int64_t **ret_size, size_t *ret_count,
                       bool *ret_single)
{
    size_t given = 0, count = n;
    int64_t *size = mdl_pool_alloc(l->ir->pool, ITEMS_MAX, sizeof(*size)), each = 1, sum = 0;
    bool list;

    if (!size) {
        return mdl_ir_nomem(l->ir);
    }
    mdl_l_const_ints(l, 1, size, ITEMS_MAX, &given);
    if (l->error < 0) {
        return l->error;
    }
    list = given && mdl_l_value(l, l->in[1])->rank > 0;
    if (given && !list) {
        each = size[0];
        count = each > 0 ? (n + (size_t)each - 1) / (size_t)each : 0;
    }
    if (each < 1 || (!list && count > ITEMS_MAX)) {
        return mdl_ir_refuse(l->ir, each < 1 ? -EBADMSG : -E2BIG,
                             "parts of %lld of a dimension of %zu; 1 to %u parts are supported",
                             (long long)each, n, ITEMS_MAX);
    }
    for (size_t i = 0; i < (list ? given : count); i++) {
        size[i] = list ? size[i] : (int64_t)base_min((size_t)each, n - i * (size_t)each);
        if (size[i] < 0 || size[i] > (int64_t)n - sum) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "part %zu of size %lld does not fit in %zu", i,
                                 (long long)size[i], n);
        }
        sum += size[i];
    }
    if (sum != (int64_t)n) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the parts have %lld elements, the dimension %zu",
                             (long long)sum, n);
    }
    *ret_size = size;
    *ret_count = list ? given : count;
    *ret_single = !list && each == 1;
    return 0;
}

/* Each of the parts loses @axis. */
static int drop_axis(struct mdl_lower *l, size_t axis, size_t *parts, size_t count)
{
    bool drop[MDL_RANK_MAX] = {0};
    int r = 0;

    drop[axis] = true;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = mdl_ir_drop_dims(l->ir, parts[i], drop, &parts[i]);
    }
    return r;
}

/* ONNX ignores keepdims where sizes are given. But torch writes unbind() as parts of one without
 * the axis, and that is what ONNX Runtime makes of it. */
static int lower_split(struct mdl_lower *l, int arg)
{
    size_t axis, count = 0, *parts;
    bool single = false;
    void *room = NULL;
    const struct mdl_ir_value *x;
    int64_t *size = NULL;
    int r = tensor(l, 0);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, mdl_l_int(l, "axis", 0), x->rank, false, &axis);
    r = r < 0 ? r : mdl_rows_fixed(l->ir, l->in[0], axis);
    r = r < 0 ? r : split_sizes(l, x->dim[axis], &size, &count, &single);
    if (r < 0) {
        return r;
    }
    /* a loop may make many: each is a value, for which the budget must have room */
    r = mdl_ir_fold_alloc(l->ir, count * sizeof(struct mdl_ir_value), &room);
    parts = room;
    r = r < 0 ? r : mdl_lower_parts(l, l->in[0], axis, size, count, parts);
    if (r == 0 && single && mdl_l_int(l, "keepdims", 1) == 0) {
        r = drop_axis(l, axis, parts, count);
    }
    return r < 0 ? r : make(l, mdl_l_value(l, l->in[0])->dtype, parts, count, &l->out[0]);
}

static int lower_concat(struct mdl_lower *l, int arg)
{
    bool stack = mdl_l_int(l, "new_axis", 0) != 0;
    struct mdl_ir_value s;
    size_t *items, axis;
    int r = sequence(l, 0, &s);

    if (r == 0 && s.item_count == 0) {
        r = mdl_ir_refuse(l->ir, -EBADMSG, "the sequence has no tensor");
    }
    if (r == 0 && !mdl_l_attr(l, "axis")) {
        r = mdl_ir_refuse(l->ir, -EBADMSG, "attribute axis is missing");
    }
    if (r < 0 || !stack) {
        return r < 0 ? r
                     : mdl_lower_concat_of(l, s.items, s.item_count, mdl_l_int(l, "axis", 0),
                                           &l->out[0]);
    }
    items = mdl_pool_memdup(l->ir->pool, s.items, s.item_count * sizeof(*items));
    if (!items) {
        return mdl_ir_nomem(l->ir);
    }
    r = mdl_l_axis(l, mdl_l_int(l, "axis", 0), mdl_l_value(l, items[0])->rank + 1, false, &axis);
    for (size_t i = 0; r == 0 && i < s.item_count; i++) {
        r = mdl_lower_new_axis(l, items[i], axis, &items[i]);
    }
    return r < 0 ? r : mdl_lower_concat_of(l, items, s.item_count, (int64_t)axis, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_sequences[] = {
    {"SequenceConstruct", lower_construct, 0, .narrows = true},
    {"SequenceEmpty", lower_empty, 0},
    {"SequenceInsert", lower_insert, 0, .sequences = true, .narrows = true},
    {"SequenceErase", lower_erase, 0, .sequences = true, .narrows = true},
    {"SequenceAt", lower_at, 0, .sequences = true, .narrows = true},
    {"SequenceLength", lower_length, 0, .sequences = true, .narrows = true},
    {"SplitToSequence", lower_split, 0, .narrows = true},
    {"ConcatFromSequence", lower_concat, 0, .sequences = true, .narrows = true},
    {0},
};
