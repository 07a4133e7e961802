/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only move elements: almost all are views. */
#include "model/lower/lowering.h"

static size_t lower_identity(struct mdl_lower *l, int arg)
{
    return l->in[0];
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

static size_t lower_dropout(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t one;

    mdl_unserved_if(l, dropout_draws(l),
                    "training_mode is not supported; export the model for inference");
    if (mdl_l_wants(l, 1)) { /* the mask of an inference keeps everything */
        one = mdl_ir_scalar(l->ir, l->opset < 10 ? x.dtype : MDL_BOOL, 1);
        l->out[1] = mdl_ir_expand(l->ir, one, x.rank, x.dim);
    }
    return l->in[0];
}

size_t mdl_lower_flatten(struct mdl_lower *l, size_t axis)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    size_t flat[2] = {1, 1};

    for (size_t i = 0; i < x->rank; i++) {
        flat[i < axis ? 0 : 1] *= x->dim[i];
    }
    return mdl_ir_reshape_rows(l->ir, l->in[0], 2, flat, x->rows_dim < axis ? 1 : 2);
}

static size_t lower_flatten(struct mdl_lower *l, int arg)
{
    size_t rank = mdl_l_value(l, l->in[0])->rank;

    return mdl_lower_flatten(l, mdl_l_axis(l, mdl_l_int(l, "axis", 1), rank, true));
}

/* *ret_at: 1 + the dim that a counted one of 1 becomes, which is copied or open; 0: none */
static void reshape_dims(struct mdl_lower *l, const struct mdl_ir_value *x, const int64_t *shape,
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
        mdl_bad_if(l, shape[i] < 0 || (shape[i] == 0 && !allow_zero && i >= x->rank),
                   "size %lld of dimension %zu of the new shape is not valid", (long long)shape[i],
                   i);
        ret_dim[i] = shape[i] == 0 && !allow_zero ? x->dim[i] : (size_t)shape[i];
        *ret_at = one && shape[i] == 0 && !allow_zero && i == x->rows_dim ? 1 + i : *ret_at;
        mdl_large_if(l, !base_mul(known, ret_dim[i], &known),
                     "the new shape has too many elements");
    }
    if (open != MDL_NONE) {
        mdl_bad_if(l, known == 0 || total % known,
                   "%zu elements do not divide by the %zu of the known dimensions", total, known);
        ret_dim[open] = total / known;
        *ret_at = one && *ret_at == 0 ? 1 + open : *ret_at;
    }
}

static size_t lower_reshape(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *v;
    struct mdl_l_dims shape;
    size_t dim[MDL_RANK_MAX], at, y;

    mdl_l_dims(l, 1, &shape);
    mdl_bad_if(l,
               mdl_l_in(l, 1) == MDL_NONE &&
                   !mdl_l_ints(l, "shape", shape.dim, MDL_RANK_MAX, &shape.count),
               "the shape is missing");
    reshape_dims(l, mdl_l_value(l, l->in[0]), shape.dim, shape.count, dim, &at);
    at = shape.rows == MDL_NONE ? at : 1 + shape.rows_at;
    y = mdl_ir_reshape_rows(l->ir, l->in[0], shape.count, dim, at);
    v = mdl_l_value(l, y);
    mdl_unserved_if(l,
                    shape.rows != MDL_NONE && (!mdl_rows_same(l->ir, v->rows, shape.rows) ||
                                               v->rows_dim != shape.rows_at),
                    "dimension %zu of the new shape depends on the data in a way that is "
                    "not supported",
                    shape.rows_at);
    return y;
}

static size_t lower_transpose(struct mdl_lower *l, int arg)
{
    int64_t perm[MDL_RANK_MAX];
    size_t order[MDL_RANK_MAX], count, rank = mdl_l_value(l, l->in[0])->rank;
    bool seen[MDL_RANK_MAX] = {0}, given = mdl_l_ints(l, "perm", perm, MDL_RANK_MAX, &count);

    mdl_bad_if(l, given && count != rank, "perm has %zu values for rank %zu", count, rank);
    for (size_t i = 0; i < rank; i++) {
        order[i] = given ? mdl_l_axis(l, perm[i], rank, false) : rank - 1 - i;
        mdl_bad_if(l, seen[order[i]], "perm names dimension %zu twice", order[i]);
        seen[order[i]] = true;
    }
    return mdl_ir_permute(l->ir, l->in[0], order);
}

/* axes as attribute (old) or as input 1 (new); *ret_count 0 and false where absent */
static bool read_axes(struct mdl_lower *l, int64_t *axes, size_t *ret_count)
{
    return mdl_l_const_ints(l, 1, axes, MDL_RANK_MAX, ret_count) ||
           mdl_l_ints(l, "axes", axes, MDL_RANK_MAX, ret_count);
}

static void mark_axes(struct mdl_lower *l, const int64_t *axes, size_t count, size_t rank,
                      bool *mark)
{
    memset(mark, 0, MDL_RANK_MAX * sizeof(*mark));
    for (size_t i = 0; i < count; i++) {
        size_t at = mdl_l_axis(l, axes[i], rank, false);

        mdl_bad_if(l, mark[at], "axis %zu is named twice", at);
        mark[at] = true;
    }
}

static size_t lower_squeeze(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    int64_t axes[MDL_RANK_MAX];
    size_t count;
    bool mark[MDL_RANK_MAX], given = read_axes(l, axes, &count);

    mark_axes(l, axes, count, x->rank, mark);
    for (size_t i = 0; i < x->rank; i++) {
        mdl_bad_if(l, mark[i] && x->dim[i] != 1,
                   "dimension %zu is %zu; only a dimension of 1 can be removed", i, x->dim[i]);
        mark[i] |= !given && x->dim[i] == 1;
    }
    return mdl_ir_drop_dims(l->ir, l->in[0], mark);
}

static size_t lower_unsqueeze(struct mdl_lower *l, int arg)
{
    int64_t axes[MDL_RANK_MAX];
    size_t count, rank;
    bool mark[MDL_RANK_MAX];

    mdl_bad_if(l, !read_axes(l, axes, &count), "axes are missing");
    rank = mdl_l_value(l, l->in[0])->rank + count;
    mdl_large_if(l, rank > MDL_RANK_MAX, "rank %zu is more than %u", rank, MDL_RANK_MAX);
    mark_axes(l, axes, count, rank, mark);
    return mdl_ir_new_dims(l->ir, l->in[0], rank, mark);
}

static size_t lower_expand(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x;
    struct mdl_l_dims shape;
    size_t dim[MDL_RANK_MAX], count, rank;

    mdl_l_dims(l, 1, &shape);
    x = mdl_l_value(l, l->in[0]);
    count = shape.count;
    rank = base_max(x->rank, count);
    for (size_t i = 0; i < rank; i++) {
        size_t mine = i + x->rank >= rank ? x->dim[i + x->rank - rank] : 1;
        int64_t want = i + count >= rank ? shape.dim[i + count - rank] : 1;

        mdl_bad_if(l, want < 0, "dimension %lld of the shape is negative", (long long)want);
        dim[i] = want == 1 ? mine : (size_t)want;
    }
    return mdl_l_limit(l, mdl_ir_expand(l->ir, l->in[0], rank, dim), &shape);
}

/* Repeats the dims of @x from @at on for which a view has room, the others being merged: d becomes
 * [times][d] by stride 0 and is merged again (that copies). @at: where to go on. */
static size_t tile_some(struct mdl_lower *l, const int64_t *times, size_t *at, size_t x)
{
    size_t split[MDL_RANK_MAX], wide[MDL_RANK_MAX], dim[MDL_RANK_MAX], rank = 0, i = 0;
    const struct mdl_ir_value *v = mdl_l_value(l, x);
    size_t count = v->rank;

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
    x = mdl_ir_reshape(l->ir, x, rank, split);
    x = mdl_ir_expand(l->ir, x, rank, wide);
    return mdl_ir_reshape(l->ir, x, count, dim);
}

static size_t lower_tile(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    int64_t times[MDL_RANK_MAX];
    size_t count, all = mdl_ir_elements(x), at = 0, y = l->in[0];

    mdl_l_const_ints(l, 1, times, MDL_RANK_MAX, &count);
    mdl_bad_if(l, count != x->rank, "%zu repeats for rank %zu", count, x->rank);
    for (size_t i = 0; i < x->rank; i++) {
        mdl_bad_if(l, times[i] < 0 || times[i] > INT32_MAX, "repeat %lld is out of range",
                   (long long)times[i]);
        mdl_large_if(l, !base_mul(all, (size_t)times[i], &all), "the output is too large");
    }
    do {
        y = tile_some(l, times, &at, y);
    } while (at < count);
    return y;
}

static size_t block_size(struct mdl_lower *l)
{
    int64_t b = mdl_l_int(l, "blocksize", 0);

    mdl_bad_if(l, b < 1 || b > 65536, "blocksize %lld is out of range", (long long)b);
    mdl_bad_if(l, mdl_l_value(l, l->in[0])->rank != 4,
               "the input has rank %zu; it must have rank 4", mdl_l_value(l, l->in[0])->rank);
    return (size_t)b;
}

/* reshape to 6 dims, permute, reshape to 4 */
static size_t blocks(struct mdl_lower *l, const size_t *six, const size_t *perm, const size_t *four)
{
    size_t y = mdl_ir_reshape(l->ir, l->in[0], 6, six);

    return mdl_ir_reshape(l->ir, mdl_ir_permute(l->ir, y, perm), 4, four);
}

static size_t lower_depth_to_space(struct mdl_lower *l, int arg)
{
    const char *mode = mdl_l_string(l, "mode", "DCR");
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    bool crd = strcmp(mode, "CRD") == 0;
    size_t b = block_size(l), c, four[4];

    mdl_bad_if(l, (!crd && strcmp(mode, "DCR") != 0) || x.dim[1] % (b * b),
               "mode %s is not known, or %zu channels do not divide into blocks of %zu", mode,
               x.dim[1], b);
    c = x.dim[1] / (b * b);
    memcpy(four, (size_t[]){x.dim[0], c, x.dim[2] * b, x.dim[3] * b}, sizeof(four));
    return crd ? blocks(l, (size_t[]){x.dim[0], c, b, b, x.dim[2], x.dim[3]},
                        (size_t[]){0, 1, 4, 2, 5, 3}, four)
               : blocks(l, (size_t[]){x.dim[0], b, b, c, x.dim[2], x.dim[3]},
                        (size_t[]){0, 3, 4, 1, 5, 2}, four);
}

static size_t lower_space_to_depth(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    size_t b = block_size(l), h, w;

    mdl_bad_if(l, x.dim[2] % b || x.dim[3] % b, "blocks of %zu do not divide %zu x %zu", b,
               x.dim[2], x.dim[3]);
    h = x.dim[2] / b;
    w = x.dim[3] / b;
    return blocks(l, (size_t[]){x.dim[0], x.dim[1], h, b, w, b}, (size_t[]){0, 3, 5, 1, 2, 4},
                  (size_t[]){x.dim[0], x.dim[1] * b * b, h, w});
}

const struct mdl_lower_row mdl_lower_shapes[] = {
    {"Identity", lower_identity, 1, .sequences = true, .narrow = MDL_NARROW_KEEPS},
    {"Dropout", lower_dropout, 1},
    {"Flatten", lower_flatten, 1, .narrow = MDL_NARROW_KEEPS},
    {"Reshape", lower_reshape, 1, .narrow = MDL_NARROW_KEEPS},
    {"Transpose", lower_transpose, 1, .narrow = MDL_NARROW_KEEPS},
    {"Squeeze", lower_squeeze, 1, .narrow = MDL_NARROW_KEEPS},
    {"Unsqueeze", lower_unsqueeze, 1, .narrow = MDL_NARROW_KEEPS},
    {"Expand", lower_expand, 2, .narrow = MDL_NARROW_KEEPS},
    {"Tile", lower_tile, 2, .narrow = MDL_NARROW_KEEPS},
    {"DepthToSpace", lower_depth_to_space, 1, .narrow = MDL_NARROW_KEEPS},
    {"SpaceToDepth", lower_space_to_depth, 1, .narrow = MDL_NARROW_KEEPS},
    {0},
};
