/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "model/lower/lowering.h"

/* Attention of opset 23, and products as ONNX Runtime's optimiser writes them. */

struct heads {
    size_t batch, q, kv, group; /* heads; group: queries' heads for each of the keys' */
    size_t rows, keys;
    bool flat; /* inputs and result are [batch, rows, heads * size] */
};

/* [B, S, heads * size] becomes [B, heads, S, size]. */
static int split_heads(struct mdl_lower *l, size_t i, int64_t heads, size_t *ret)
{
    const struct mdl_ir_value v = *mdl_l_value(l, l->in[i]);
    int r;

    if (heads <= 0 || v.dim[2] % (size_t)heads != 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "input %zu has %zu values for %lld heads; q_num_heads and "
                             "kv_num_heads must divide them",
                             i, v.dim[2], (long long)heads);
    }
    r = mdl_ir_reshape(l->ir, l->in[i], 4,
                       (size_t[]){v.dim[0], v.dim[1], (size_t)heads, v.dim[2] / (size_t)heads},
                       ret);
    return r < 0 ? r : mdl_ir_permute(l->ir, *ret, (size_t[]){0, 2, 1, 3}, ret);
}

static int take_inputs(struct mdl_lower *l, struct heads *h, size_t in[3])
{
    int64_t q = mdl_l_int(l, "q_num_heads", 0), kv = mdl_l_int(l, "kv_num_heads", 0);
    struct mdl_ir_value v[3];
    int r = 0;

    h->flat = mdl_l_value(l, l->in[0])->rank == 3;
    for (size_t i = 0; i < 3; i++) {
        if (mdl_l_value(l, l->in[i])->rank != (h->flat ? 3u : 4u)) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "input %zu has rank %zu; queries, keys and values must all have "
                                 "rank 3, or all rank 4",
                                 i, mdl_l_value(l, l->in[i])->rank);
        }
    }
    for (size_t i = 0; r == 0 && i < 3; i++) {
        in[i] = l->in[i];
        r = h->flat ? split_heads(l, i, i == 0 ? q : kv, &in[i]) : l->error;
    }
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < 3; i++) {
        v[i] = *mdl_l_value(l, in[i]);
    }
    *h =
        (struct heads){v[0].dim[0], v[0].dim[1], v[1].dim[1], 1, v[0].dim[2], v[1].dim[2], h->flat};
    if (v[1].dim[0] != h->batch || v[2].dim[0] != h->batch || v[2].dim[1] != h->kv ||
        v[2].dim[2] != h->keys || v[0].dim[3] != v[1].dim[3] || h->kv == 0 || h->q % h->kv != 0 ||
        v[0].dim[3] == 0 || h->keys == 0) {
        return mdl_ir_refuse(l->ir, -EBADMSG,
                             "queries, keys and values do not fit: %zu, %zu and %zu heads, %zu and "
                             "%zu values a head, %zu keys and %zu values",
                             v[0].dim[1], v[1].dim[1], v[2].dim[1], v[0].dim[3], v[1].dim[3],
                             v[1].dim[2], v[2].dim[2]);
    }
    h->group = h->q / h->kv;
    return 0;
}

/* Grouped queries: heads become [kv heads, group], and keys and values are repeated by stride 0. */
static int group_heads(struct mdl_lower *l, const struct heads *h, size_t in[3])
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < 3 && h->group > 1; i++) {
        const struct mdl_ir_value v = *mdl_l_value(l, in[i]);
        size_t dim[5] = {h->batch, h->kv, i == 0 ? h->group : 1, v.dim[2], v.dim[3]};

        r = mdl_ir_reshape(l->ir, in[i], 5, dim, &in[i]);
        dim[2] = h->group;
        r = r < 0 ? r : mdl_ir_repeat(l->ir, in[i], 5, dim, &in[i]);
    }
    return r;
}

/* The mask as what is added to the scores: true becomes 0, false negative infinity. */
static int as_sum(struct mdl_lower *l, size_t mask, size_t *ret)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_WHERE);
    const struct mdl_ir_value v = *mdl_l_value(l, mask);
    size_t in[3] = {mask};
    int r;

    if (v.dtype == MDL_F32) {
        *ret = mask;
        return 0;
    }
    if (v.dtype != MDL_BOOL) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "a mask of type %s is not supported",
                             mdl_dtype_name(v.dtype));
    }
    r = mdl_ir_scalar(l->ir, MDL_F32, 0, &in[1]);
    r = r < 0 ? r : mdl_ir_scalar(l->ir, MDL_F32, -INFINITY, &in[2]);
    r = r < 0 ? r : mdl_ir_spread(l->ir, in, 3, v.rank, v.dim, op.op.in);
    return r < 0 ? r : mdl_ir_emit(l->ir, &op, MDL_F32, v.rank, v.dim, ret);
}

static int take_mask(struct mdl_lower *l, const struct heads *h, size_t *ret)
{
    size_t full[5] = {h->batch, h->q, h->rows, h->keys}, dim[5], mask = mdl_l_in(l, 3), rank = 4;
    struct mdl_ir_value v;
    int r;

    if (mask == MDL_NONE) {
        return 0;
    }
    v = *mdl_l_value(l, mask);
    for (size_t i = 0; i < 4; i++) {
        size_t missing = 4 - base_min(v.rank, (size_t)4);

        dim[i] = i < missing ? 1 : v.dim[i - missing];
        if (v.rank < 2 || v.rank > 4 || (dim[i] != 1 && dim[i] != full[i])) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                                 "the mask has rank %zu and does not broadcast to %zu x %zu x %zu "
                                 "x %zu; shorter masks are not supported",
                                 v.rank, full[0], full[1], full[2], full[3]);
        }
    }
    r = as_sum(l, mask, &mask);
    if (h->group > 1) {
        rank = 5;
        full[4] = full[3];
        dim[4] = dim[3];
        full[3] = h->rows;
        dim[3] = dim[2];
        full[1] = h->kv;
        full[2] = h->group;
        dim[2] = dim[1] == 1 ? 1 : h->group;
        dim[1] = dim[1] == 1 ? 1 : h->kv;
    }
    r = r < 0 ? r : mdl_ir_reshape(l->ir, mask, rank, dim, &mask);
    return r < 0 ? r : mdl_ir_repeat(l->ir, mask, rank, full, ret);
}

static int check_attention(struct mdl_lower *l)
{
    static const char *const unsupported[] = {"past_key", "past_value", "nonpad_kv_seqlen"};
    int r = mdl_l_need(l, 3);

    for (size_t i = 0; r == 0 && i < 3; i++) {
        r = mdl_l_f32(l, i);
    }
    for (size_t i = 4; r == 0 && i < 7; i++) {
        if (mdl_l_in(l, i) != MDL_NONE) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input %s is not supported",
                                 unsupported[i - 4]);
        }
    }
    for (size_t i = 1; r == 0 && i < l->out_count; i++) {
        if (l->node->outputs[i][0]) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                                 "output %zu (\"%s\") is not supported; only the first is", i,
                                 l->node->outputs[i]);
        }
    }
    return r;
}

static int lower_attention(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_ATTENTION);
    float softcap = mdl_l_float(l, "softcap", 0);
    struct mdl_ir_value q;
    struct heads h = {0};
    size_t dim[5], rank, y, size;
    int r = check_attention(l);

    r = r < 0 ? r : take_inputs(l, &h, op.op.in);
    r = r < 0 ? r : take_mask(l, &h, &op.op.in[3]);
    r = r < 0 ? r : group_heads(l, &h, op.op.in);
    if (r < 0) {
        return r;
    }
    if (!(softcap >= 0)) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "softcap is %g; it must be 0 or more",
                             (double)softcap);
    }
    q = *mdl_l_value(l, op.op.in[0]);
    rank = q.rank;
    op.op.attr.attention.scale =
        mdl_l_float(l, "scale", (float)(1 / sqrt((double)q.dim[rank - 1])));
    op.op.attr.attention.softcap = softcap;
    op.op.attr.attention.causal = mdl_l_int(l, "is_causal", 0) != 0;
    size = mdl_l_value(l, op.op.in[2])->dim[rank - 1];
    op.op.macs = (double)h.batch * (double)h.q * (double)h.rows * (double)h.keys *
                 (double)(q.dim[rank - 1] + size);
    for (size_t i = 0; i < rank; i++) {
        dim[i] = i + 1 < rank ? q.dim[i] : size;
    }
    r = mdl_ir_emit(l->ir, &op, MDL_F32, rank, dim, &y);
    r = r < 0 ? r : mdl_ir_reshape(l->ir, y, 4, (size_t[]){h.batch, h.q, h.rows, size}, &y);
    if (r == 0 && h.flat) {
        r = mdl_ir_permute(l->ir, y, (size_t[]){0, 2, 1, 3}, &y);
        r = r < 0 ? r : mdl_ir_reshape(l->ir, y, 3, (size_t[]){h.batch, h.rows, h.q * size}, &y);
    }
    l->out[0] = y;
    return r;
}

/* alpha times the product of the inputs, each with its last two dims swapped if it says so */
static int lower_fused_matmul(struct mdl_lower *l, int arg)
{
    static const char *const swaps[] = {"transA", "transB"};
    struct mdl_ir_op like = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    float alpha = mdl_l_float(l, "alpha", 1);
    size_t in[2], factor;
    int r = mdl_l_need(l, 2);

    if (r == 0 && (mdl_l_int(l, "transBatchA", 0) || mdl_l_int(l, "transBatchB", 0))) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "transBatchA and transBatchB are not supported");
    }
    for (size_t i = 0; r == 0 && i < 2; i++) {
        size_t perm[MDL_RANK_MAX], rank;

        r = mdl_l_f32(l, i);
        in[i] = l->in[i];
        rank = mdl_l_value(l, in[i])->rank;
        for (size_t d = 0; d < rank; d++) {
            perm[d] = d;
        }
        if (r == 0 && rank >= 2 && mdl_l_int(l, swaps[i], 0)) {
            perm[rank - 1] = rank - 2;
            perm[rank - 2] = rank - 1;
            r = mdl_ir_permute(l->ir, in[i], perm, &in[i]);
        }
    }
    r = r < 0 ? r : mdl_lower_product(l, in[0], in[1], &like, MDL_F32, &l->out[0]);
    if (r < 0 || alpha == 1) {
        return r;
    }
    r = mdl_ir_scalar(l->ir, MDL_F32, (double)alpha, &factor);
    return r < 0 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, l->out[0], factor, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_attentions[] = {
    {"Attention", lower_attention, 0},
    {"FusedMatMul", lower_fused_matmul, 0, "com.microsoft"},
    {0},
};
