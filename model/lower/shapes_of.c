/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/ir/rows.h"
#include "model/lower/lowering.h"

/* Operators that only move elements: almost all are views. */

static int lower_identity(struct mdl_lower *l, int arg)
{
    int r = mdl_l_need(l, 1);

    if (r == 0) {
        l->out[0] = l->in[0];
    }
    return r;
}

/* In training a dropout draws, unless it drops nothing: exporters write that with a ratio of 0. */
static bool dropout_draws(struct mdl_lower *l)
{
    size_t training = mdl_l_in(l, 2);
    float ratio = 0.5F;

    if (training == MDL_NONE) {
        return false;
    }
    if (mdl_l_in(l, 1) != MDL_NONE && mdl_l_const_float(l, 1, &ratio) && ratio == 0) {
        return false;
    }
    return !mdl_ir_is_const(l->ir, training) || mdl_ir_elements(mdl_l_value(l, training)) != 1 ||
           mdl_const_int(mdl_l_value(l, training), 0);
}

static int lower_dropout(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x;
    int r = lower_identity(l, 0);
    size_t one;

    if (r < 0) {
        return r;
    }
    if (dropout_draws(l)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "training_mode is not supported; export the model for inference");
    }
    if (l->out_count < 2 || !l->node->outputs[1][0]) {
        return 0;
    }
    /* the mask of an inference keeps everything */
    x = mdl_l_value(l, l->in[0]);
    r = mdl_ir_scalar(l->ir, l->opset < 10 ? x->dtype : MDL_BOOL, 1, &one);
    return r < 0 ? r : mdl_ir_expand(l->ir, one, x->rank, x->dim, &l->out[1]);
}

static int lower_flatten(struct mdl_lower *l, int arg)
{
    size_t flat[2] = {1, 1}, axis;
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    r = mdl_l_axis(l, mdl_l_int(l, "axis", 1), x->rank, true, &axis);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < x->rank; i++) {
        flat[i < axis ? 0 : 1] *= x->dim[i];
    }
    return mdl_ir_reshape_rows(l->ir, l->in[0], 2, flat, x->rows_dim < axis ? 1 : 2, &l->out[0]);
}

/* *ret_at: 1 + the dim that a counted one of 1 becomes, which is copied or open; 0: none */
static int reshape_dims(struct mdl_lower *l, const struct mdl_ir_value *x, const int64_t *shape,
                        size_t rank, size_t *ret_dim, size_t *ret_at)
{
    bool allow_zero = mdl_l_int(l, "allowzero", 0) != 0;
    size_t known = 1, open = MDL_NONE, total = mdl_ir_elements(x);
    bool one = x->rank > 0 && x->dim[x->rows_dim] == 1;

    *ret_at = 0;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] == -1 && open == MDL_NONE) {
            open = i;
            continue;
        }
        if (shape[i] < 0 || (shape[i] == 0 && !allow_zero && i >= x->rank)) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "size %lld of dimension %zu of the new shape is not valid",
                                 (long long)shape[i], i);
        }
        ret_dim[i] = shape[i] == 0 && !allow_zero ? x->dim[i] : (size_t)shape[i];
        *ret_at = one && shape[i] == 0 && !allow_zero && i == x->rows_dim ? 1 + i : *ret_at;
        if (!base_mul(known, ret_dim[i], &known)) {
            return mdl_ir_refuse(l->ir, -E2BIG, "the new shape has too many elements");
        }
    }
    if (open != MDL_NONE) {
        if (known == 0 || total % known) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "%zu elements do not divide by the %zu of the known dimensions",
                                 total, known);
        }
        ret_dim[open] = total / known;
        *ret_at = one && *ret_at == 0 ? 1 + open : *ret_at;
    }
    return 0;
}

/* Return: 0 if the rows of the result are those that the shape speaks of. */
static int check_rows(struct mdl_lower *l, const struct mdl_l_dims *shape)
{
    const struct mdl_ir_value *y = mdl_l_value(l, l->out[0]);

    if (shape->rows != MDL_NONE &&
        (!mdl_rows_same(l->ir, y->rows, shape->rows) || y->rows_dim != shape->rows_at)) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "dimension %zu of the new shape depends on the data in a way that is "
                             "not supported",
                             shape->rows_at);
    }
    return 0;
}

static int lower_reshape(struct mdl_lower *l, int arg)
{
    struct mdl_l_dims shape;
    size_t dim[MDL_RANK_MAX], at;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_dims(l, 1, &shape);
    if (r < 0) {
        return r;
    }
    if (mdl_l_in(l, 1) == MDL_NONE &&
        !mdl_l_ints(l, "shape", shape.dim, MDL_RANK_MAX, &shape.count)) {
        return l->error < 0 ? l->error : mdl_ir_refuse(l->ir, -EBADMSG, "the shape is missing");
    }
    r = reshape_dims(l, mdl_l_value(l, l->in[0]), shape.dim, shape.count, dim, &at);
    at = shape.rows == MDL_NONE ? at : 1 + shape.rows_at;
    r = r < 0 ? r : mdl_ir_reshape_rows(l->ir, l->in[0], shape.count, dim, at, &l->out[0]);
    return r < 0 ? r : check_rows(l, &shape);
}

static int lower_transpose(struct mdl_lower *l, int arg)
{
    int64_t perm[MDL_RANK_MAX];
    size_t order[MDL_RANK_MAX], count, rank;
    bool seen[MDL_RANK_MAX] = {0};
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    rank = mdl_l_value(l, l->in[0])->rank;
    for (size_t i = 0; i < rank; i++) {
        order[i] = rank - 1 - i;
    }
    if (mdl_l_ints(l, "perm", perm, MDL_RANK_MAX, &count)) {
        if (count != rank) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "perm has %zu values for rank %zu", count, rank);
        }
        for (size_t i = 0; i < rank; i++) {
            r = mdl_l_axis(l, perm[i], rank, false, &order[i]);
            if (r < 0) {
                return r;
            }
            if (seen[order[i]]) {
                return mdl_ir_refuse(l->ir, -EBADMSG, "perm names dimension %zu twice", order[i]);
            }
            seen[order[i]] = true;
        }
    }
    return l->error < 0 ? l->error : mdl_ir_permute(l->ir, l->in[0], order, &l->out[0]);
}

/* axes as attribute (old) or as input 1 (new); *ret_count 0 and false where absent */
static bool read_axes(struct mdl_lower *l, int64_t *axes, size_t *ret_count)
{
    return mdl_l_const_ints(l, 1, axes, MDL_RANK_MAX, ret_count) ||
           mdl_l_ints(l, "axes", axes, MDL_RANK_MAX, ret_count);
}

static int mark_axes(struct mdl_lower *l, const int64_t *axes, size_t count, size_t rank,
                     bool *mark)
{
    memset(mark, 0, MDL_RANK_MAX * sizeof(*mark));
    for (size_t i = 0; i < count; i++) {
        size_t at;
        int r = mdl_l_axis(l, axes[i], rank, false, &at);

        if (r < 0) {
            return r;
        }
        if (mark[at]) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "axis %zu is named twice", at);
        }
        mark[at] = true;
    }
    return 0;
}

static int lower_squeeze(struct mdl_lower *l, int arg)
{
    int64_t axes[MDL_RANK_MAX];
    size_t count;
    bool given, mark[MDL_RANK_MAX];
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    given = read_axes(l, axes, &count);
    r = l->error < 0 ? l->error : mark_axes(l, axes, count, x->rank, mark);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < x->rank; i++) {
        if (mark[i] && x->dim[i] != 1) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "dimension %zu is %zu; only a dimension of 1 can be removed", i,
                                 x->dim[i]);
        }
        mark[i] |= !given && x->dim[i] == 1;
    }
    return mdl_ir_drop_dims(l->ir, l->in[0], mark, &l->out[0]);
}

static int lower_unsqueeze(struct mdl_lower *l, int arg)
{
    int64_t axes[MDL_RANK_MAX];
    size_t count, rank;
    bool mark[MDL_RANK_MAX];
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if (!read_axes(l, axes, &count)) {
        return l->error < 0 ? l->error : mdl_ir_refuse(l->ir, -EBADMSG, "axes are missing");
    }
    rank = x->rank + count;
    if (rank > MDL_RANK_MAX) {
        return mdl_ir_refuse(l->ir, -E2BIG, "rank %zu is more than %u", rank, MDL_RANK_MAX);
    }
    r = mark_axes(l, axes, count, rank, mark);
    return r < 0 ? r : mdl_ir_new_dims(l->ir, l->in[0], rank, mark, &l->out[0]);
}

static int lower_expand(struct mdl_lower *l, int arg)
{
    struct mdl_l_dims shape;
    size_t dim[MDL_RANK_MAX], count, rank;
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    r = mdl_l_dims(l, 1, &shape);
    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    count = shape.count;
    rank = base_max(x->rank, count);
    for (size_t i = 0; i < rank; i++) {
        size_t mine = i + x->rank >= rank ? x->dim[i + x->rank - rank] : 1;
        int64_t want = i + count >= rank ? shape.dim[i + count - rank] : 1;

        if (want < 0) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %lld of the shape is negative",
                                 (long long)want);
        }
        dim[i] = want == 1 ? mine : (size_t)want;
    }
    r = mdl_ir_expand(l->ir, l->in[0], rank, dim, &l->out[0]);
    return r < 0 ? r : mdl_l_limit(l, &shape);
}

/* Repeats the dims of @x from @at on for which a view has room, the others being merged: d becomes
 * [times][d] by stride 0 and is merged again (that copies). @at: where to go on. */
static int tile_some(struct mdl_lower *l, const int64_t *times, size_t *at, size_t *x)
{
    size_t split[MDL_RANK_MAX], wide[MDL_RANK_MAX], dim[MDL_RANK_MAX], rank = 0, i = 0, y;
    const struct mdl_ir_value *v = mdl_l_value(l, *x);
    size_t count = v->rank;
    int r;

    memcpy(dim, v->dim, sizeof(dim));
    if (*at > 0) {
        split[rank++] = 1;
    }
    for (; i < *at; i++) {
        split[0] *= dim[i];
    }
    for (; i < count; i++) {
        bool both = times[i] != 1 && dim[i] != 1;

        if (rank + (both ? 2 : 1) + (i + 1 < count ? 1 : 0) > MDL_RANK_MAX) {
            break;
        }
        if (both) {
            wide[rank] = (size_t)times[i];
            split[rank++] = 1;
        }
        split[rank] = dim[i];
        wide[rank++] = both ? dim[i] : dim[i] * (size_t)times[i];
        dim[i] *= (size_t)times[i];
    }
    if (*at > 0) {
        wide[0] = split[0];
    }
    *at = i;
    if (i < count) {
        split[rank] = 1;
        for (; i < count; i++) {
            split[rank] *= dim[i];
        }
        wide[rank] = split[rank];
        rank++;
    }
    r = mdl_ir_reshape(l->ir, *x, rank, split, &y);
    r = r < 0 ? r : mdl_ir_expand(l->ir, y, rank, wide, &y);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, count, dim, x);
}

static int lower_tile(struct mdl_lower *l, int arg)
{
    int64_t times[MDL_RANK_MAX];
    size_t count, all, at = 0, y;
    const struct mdl_ir_value *x;
    int r = mdl_l_need(l, 2);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if (!mdl_l_const_ints(l, 1, times, MDL_RANK_MAX, &count)) {
        return l->error;
    }
    if (count != x->rank) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "%zu repeats for rank %zu", count, x->rank);
    }
    all = mdl_ir_elements(x);
    for (size_t i = 0; i < x->rank; i++) {
        if (times[i] < 0 || times[i] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "repeat %lld is out of range",
                                 (long long)times[i]);
        }
        if (!base_mul(all, (size_t)times[i], &all)) {
            return mdl_ir_refuse(l->ir, -E2BIG, "the output is too large");
        }
    }
    y = l->in[0];
    do {
        r = tile_some(l, times, &at, &y);
    } while (r == 0 && at < count);
    l->out[0] = y;
    return r;
}

static int block_size(struct mdl_lower *l, size_t *ret)
{
    int64_t b = mdl_l_int(l, "blocksize", 0);
    int r = mdl_l_need(l, 1);

    if (r < 0 || l->error < 0) {
        return r < 0 ? r : l->error;
    }
    if (b < 1 || b > 65536) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "blocksize %lld is out of range", (long long)b);
    }
    if (mdl_l_value(l, l->in[0])->rank != 4) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the input has rank %zu; it must have rank 4",
                             mdl_l_value(l, l->in[0])->rank);
    }
    *ret = (size_t)b;
    return 0;
}

/* reshape to 6 dims, permute, reshape to 4 */
static int blocks(struct mdl_lower *l, const size_t *six, const size_t *perm, const size_t *four)
{
    size_t y;
    int r = mdl_ir_reshape(l->ir, l->in[0], 6, six, &y);

    r = r < 0 ? r : mdl_ir_permute(l->ir, y, perm, &y);
    return r < 0 ? r : mdl_ir_reshape(l->ir, y, 4, four, &l->out[0]);
}

static int lower_depth_to_space(struct mdl_lower *l, int arg)
{
    const char *mode = mdl_l_string(l, "mode", "DCR");
    const struct mdl_ir_value *x;
    bool crd = strcmp(mode, "CRD") == 0;
    size_t b, c;
    int r = block_size(l, &b);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if ((!crd && strcmp(mode, "DCR") != 0) || x->dim[1] % (b * b)) {
        return mdl_ir_refuse(
            l->ir, -EBADMSG,
            "mode %s is not known, or %zu channels do not divide into blocks of %zu", mode,
            x->dim[1], b);
    }
    c = x->dim[1] / (b * b);
    if (crd) {
        return blocks(l, (size_t[]){x->dim[0], c, b, b, x->dim[2], x->dim[3]},
                      (size_t[]){0, 1, 4, 2, 5, 3},
                      (size_t[]){x->dim[0], c, x->dim[2] * b, x->dim[3] * b});
    }
    return blocks(l, (size_t[]){x->dim[0], b, b, c, x->dim[2], x->dim[3]},
                  (size_t[]){0, 3, 4, 1, 5, 2},
                  (size_t[]){x->dim[0], c, x->dim[2] * b, x->dim[3] * b});
}

static int lower_space_to_depth(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x;
    size_t b, h, w;
    int r = block_size(l, &b);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    if (x->dim[2] % b || x->dim[3] % b) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "blocks of %zu do not divide %zu x %zu", b, x->dim[2],
                             x->dim[3]);
    }
    h = x->dim[2] / b;
    w = x->dim[3] / b;
    return blocks(l, (size_t[]){x->dim[0], x->dim[1], h, b, w, b}, (size_t[]){0, 3, 5, 1, 2, 4},
                  (size_t[]){x->dim[0], x->dim[1] * b * b, h, w});
}

const struct mdl_lower_row mdl_lower_shapes[] = {
    {"Identity", lower_identity, 0, .sequences = true},
    {"Dropout", lower_dropout, 0},
    {"Flatten", lower_flatten, 0},
    {"Reshape", lower_reshape, 0},
    {"Transpose", lower_transpose, 0},
    {"Squeeze", lower_squeeze, 0},
    {"Unsqueeze", lower_unsqueeze, 0},
    {"Expand", lower_expand, 0},
    {"Tile", lower_tile, 0},
    {"DepthToSpace", lower_depth_to_space, 0},
    {"SpaceToDepth", lower_space_to_depth, 0},
    {0},
};
