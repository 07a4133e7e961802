/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of opset 23, and products as ONNX Runtime's optimiser writes them. */
#include <math.h>

#include "model/lower/lowering.h"

struct heads {
    size_t batch, q, kv, group; /* heads; group: queries' heads for each of the keys' */
    size_t rows, keys;
    bool flat; /* inputs and result are [batch, rows, heads * size] */
};

/* [B, S, heads * size] becomes [B, heads, S, size]. */
static size_t split_heads(struct mdl_lower *l, size_t i, int64_t heads)
{
    const struct mdl_ir_value v = *mdl_l_value(l, l->in[i]);
    size_t y;

    mdl_bad_if(l, heads <= 0 || v.dim[2] % (size_t)heads != 0,
               "input %zu has %zu values for %lld heads; q_num_heads and "
               "kv_num_heads must divide them",
               i, v.dim[2], (long long)heads);
    y = mdl_ir_reshape(l->ir, l->in[i], 4,
                       (size_t[]){v.dim[0], v.dim[1], (size_t)heads, v.dim[2] / (size_t)heads});
    return mdl_ir_permute(l->ir, y, (size_t[]){0, 2, 1, 3});
}

static void take_inputs(struct mdl_lower *l, struct heads *h, size_t in[3])
{
    int64_t q = mdl_l_int(l, "q_num_heads", 0), kv = mdl_l_int(l, "kv_num_heads", 0);
    struct mdl_ir_value v[3];

    h->flat = mdl_l_value(l, l->in[0])->rank == 3;
    for (size_t i = 0; i < 3; i++) {
        mdl_bad_if(l, mdl_l_value(l, l->in[i])->rank != (h->flat ? 3u : 4u),
                   "input %zu has rank %zu; queries, keys and values must all have "
                   "rank 3, or all rank 4",
                   i, mdl_l_value(l, l->in[i])->rank);
    }
    for (size_t i = 0; i < 3; i++) {
        in[i] = h->flat ? split_heads(l, i, i == 0 ? q : kv) : l->in[i];
    }
    for (size_t i = 0; i < 3; i++) {
        v[i] = *mdl_l_value(l, in[i]);
    }
    *h =
        (struct heads){v[0].dim[0], v[0].dim[1], v[1].dim[1], 1, v[0].dim[2], v[1].dim[2], h->flat};
    mdl_bad_if(l,
               v[1].dim[0] != h->batch || v[2].dim[0] != h->batch || v[2].dim[1] != h->kv ||
                   v[2].dim[2] != h->keys || v[0].dim[3] != v[1].dim[3] || h->kv == 0 ||
                   h->q % h->kv != 0 || v[0].dim[3] == 0 || h->keys == 0,
               "queries, keys and values do not fit: %zu, %zu and %zu heads, %zu and "
               "%zu values a head, %zu keys and %zu values",
               v[0].dim[1], v[1].dim[1], v[2].dim[1], v[0].dim[3], v[1].dim[3], v[1].dim[2],
               v[2].dim[2]);
    h->group = h->q / h->kv;
}

/* Grouped queries: heads become [kv heads, group], and keys and values are repeated by stride 0. */
static void group_heads(struct mdl_lower *l, const struct heads *h, size_t in[3])
{
    for (size_t i = 0; i < 3 && h->group > 1; i++) {
        const struct mdl_ir_value v = *mdl_l_value(l, in[i]);
        size_t dim[5] = {h->batch, h->kv, i == 0 ? h->group : 1, v.dim[2], v.dim[3]};

        in[i] = mdl_ir_reshape(l->ir, in[i], 5, dim);
        dim[2] = h->group;
        in[i] = mdl_ir_repeat(l->ir, in[i], 5, dim);
    }
}

/* The mask as what is added to the scores: true becomes 0, false negative infinity. */
static size_t as_sum(struct mdl_lower *l, size_t mask)
{
    const struct mdl_ir_value v = *mdl_l_value(l, mask);
    size_t in[3] = {mask};

    if (v.dtype == MDL_F32) {
        return mask;
    }
    mdl_unserved_if(l, v.dtype != MDL_BOOL, "a mask of type %s is not supported",
                    mdl_dtype_name(v.dtype));
    in[1] = mdl_ir_scalar(l->ir, MDL_F32, 0);
    in[2] = mdl_ir_scalar(l->ir, MDL_F32, -INFINITY);
    return mdl_ir_where(l->ir, in, v.rank, v.dim);
}

static size_t take_mask(struct mdl_lower *l, const struct heads *h)
{
    size_t full[5] = {h->batch, h->q, h->rows, h->keys}, dim[5], mask = mdl_l_in(l, 3), rank = 4;
    struct mdl_ir_value v = *mdl_l_value(l, mask);

    if (mask == MDL_NONE) {
        return MDL_NONE;
    }
    for (size_t i = 0; i < 4; i++) {
        size_t missing = 4 - base_min(v.rank, (size_t)4);

        dim[i] = i < missing ? 1 : v.dim[i - missing];
        mdl_unserved_if(l, v.rank < 2 || v.rank > 4 || (dim[i] != 1 && dim[i] != full[i]),
                        "the mask has rank %zu and does not broadcast to %zu x %zu x %zu "
                        "x %zu; shorter masks are not supported",
                        v.rank, full[0], full[1], full[2], full[3]);
    }
    mask = as_sum(l, mask);
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
    mask = mdl_ir_reshape(l->ir, mask, rank, dim);
    return mdl_ir_repeat(l->ir, mask, rank, full);
}

static void check_attention(struct mdl_lower *l)
{
    static const char *const unsupported[] = {"past_key", "past_value", "nonpad_kv_seqlen"};

    for (size_t i = 4; i < 7; i++) {
        mdl_unserved_if(l, mdl_l_in(l, i) != MDL_NONE, "input %s is not supported",
                        unsupported[i - 4]);
    }
    for (size_t i = 1; i < l->out_count; i++) {
        mdl_unserved_if(l, mdl_l_wants(l, i),
                        "output %zu (\"%s\") is not supported; only the first is", i,
                        l->node->outputs[i]);
    }
}

static size_t lower_attention(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, MDL_OP_ATTENTION);
    float softcap = mdl_l_float(l, "softcap", 0);
    struct mdl_ir_value q;
    struct heads h = {0};
    size_t rank, y, size;

    check_attention(l);
    take_inputs(l, &h, op.op.in);
    op.op.in[3] = take_mask(l, &h);
    group_heads(l, &h, op.op.in);
    mdl_bad_if(l, !(softcap >= 0), "softcap is %g; it must be 0 or more", (double)softcap);
    q = *mdl_l_value(l, op.op.in[0]);
    rank = q.rank;
    op.op.attr.attention.scale =
        mdl_l_float(l, "scale", (float)(1 / sqrt((double)q.dim[rank - 1])));
    op.op.attr.attention.softcap = softcap;
    op.op.attr.attention.causal = mdl_l_int(l, "is_causal", 0) != 0;
    size = mdl_l_value(l, op.op.in[2])->dim[rank - 1];
    op.op.macs = (double)h.batch * (double)h.q * (double)h.rows * (double)h.keys *
                 (double)(q.dim[rank - 1] + size);
    q.dim[rank - 1] = size;
    y = mdl_ir_emit(l->ir, &op, MDL_F32, rank, q.dim);
    y = mdl_ir_reshape(l->ir, y, 4, (size_t[]){h.batch, h.q, h.rows, size});
    if (h.flat) {
        y = mdl_ir_permute(l->ir, y, (size_t[]){0, 2, 1, 3});
        y = mdl_ir_reshape(l->ir, y, 3, (size_t[]){h.batch, h.rows, h.q * size});
    }
    return y;
}

/* alpha times the product of the inputs, each with its last two dims swapped if it says so */
static size_t lower_fused_matmul(struct mdl_lower *l, int arg)
{
    static const char *const swaps[] = {"transA", "transB"};
    struct mdl_ir_op like = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    float alpha = mdl_l_float(l, "alpha", 1);
    size_t in[2] = {l->in[0], l->in[1]}, y;

    mdl_unserved_if(l, mdl_l_int(l, "transBatchA", 0) || mdl_l_int(l, "transBatchB", 0),
                    "transBatchA and transBatchB are not supported");
    for (size_t i = 0; i < 2; i++) {
        size_t perm[MDL_RANK_MAX], rank = mdl_l_value(l, in[i])->rank;

        for (size_t d = 0; d < rank; d++) {
            perm[d] = d;
        }
        if (rank >= 2 && mdl_l_int(l, swaps[i], 0)) {
            perm[rank - 1] = rank - 2;
            perm[rank - 2] = rank - 1;
            in[i] = mdl_ir_permute(l->ir, in[i], perm);
        }
    }
    y = mdl_lower_product(l, in[0], in[1], &like, MDL_F32);
    return alpha == 1
               ? y
               : mdl_ir_binary(l->ir, MDL_BIN_MUL, y, mdl_ir_scalar(l->ir, MDL_F32, (double)alpha));
}

const struct mdl_lower_row mdl_lower_attentions[] = {
    {"Attention", lower_attention, 3, 3},
    {"FusedMatMul", lower_fused_matmul, 2, 2, 0, MDL_LOWER_MICROSOFT},
    {0},
};
