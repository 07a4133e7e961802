/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ir/build.h"

static bool all_const(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    for (size_t at = 0, v; (v = mdl_ir_reads(op, &at)) != MDL_NONE;) {
        if (!mdl_ir_is_const(ir, v)) {
            return false;
        }
    }
    return true;
}

/* Adds an op whose outputs exist, or evaluates it. */
static void add_or_fold(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    bool done = false;

    if (all_const(ir, op)) {
        mdl_ir_called_off(ir);
        done = mdl_fold_op(ir, op);
    }
    if (!done) {
        mdl_ir_op_add(ir, op);
    }
}

/* @fold: at once, if its inputs are constant */
static size_t emit(struct mdl_ir *ir, struct mdl_ir_op *op, enum mdl_dtype dtype, size_t rank,
                   const size_t *dim, bool fold)
{
    struct mdl_rows rows = ir->hooks->before(ir, op, rank, dim);

    op->op.out[0] = mdl_ir_value_new(ir, dtype, rank, dim);
    if (fold) {
        add_or_fold(ir, op);
    } else {
        mdl_ir_op_add(ir, op);
    }
    ir->hooks->after(ir, op, rows);
    return fold ? mdl_const_settled(ir, op->op.out[0]) : op->op.out[0];
}

size_t mdl_ir_emit(struct mdl_ir *ir, struct mdl_ir_op *op, enum mdl_dtype dtype, size_t rank,
                   const size_t *dim)
{
    return emit(ir, op, dtype, rank, dim, true);
}

static size_t emit_view(struct mdl_ir *ir, struct mdl_ir_op *op, size_t x, size_t rank,
                        const size_t *dim)
{
    op->op.in[0] = x;
    return mdl_ir_emit(ir, op, mdl_ir_at(ir, x)->dtype, rank, dim);
}

size_t mdl_ir_permute(struct mdl_ir *ir, size_t x, const size_t *perm)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_IR_VIEW);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);
    size_t dim[MDL_RANK_MAX];
    bool identity = true;

    op.view.kind = MDL_VIEW_PERMUTE;
    for (size_t i = 0; i < v->rank; i++) {
        op.view.perm[i] = perm[i];
        dim[i] = v->dim[perm[i]];
        identity &= perm[i] == i;
    }
    if (identity) {
        return x;
    }
    return emit_view(ir, &op, x, v->rank, dim);
}

size_t mdl_ir_slice(struct mdl_ir *ir, size_t x, const size_t *start, const ptrdiff_t *step,
                    const size_t *dim)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_IR_VIEW);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);
    bool identity = true;

    op.view.kind = MDL_VIEW_SLICE;
    for (size_t i = 0; i < v->rank; i++) {
        op.view.start[i] = start[i];
        op.view.step[i] = step ? step[i] : 1;
        identity &= dim[i] == v->dim[i] && start[i] == 0 && (op.view.step[i] == 1 || dim[i] <= 1);
    }
    if (identity) {
        return x;
    }
    return emit_view(ir, &op, x, v->rank, dim);
}

static size_t expand(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim, bool fold)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_IR_VIEW);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);

    if (v->rank == rank && memcmp(v->dim, dim, rank * sizeof(*dim)) == 0) {
        return x;
    }
    if (v->rank > rank) {
        mdl_ir_refuse(ir, -EBADMSG, "an input of rank %zu does not broadcast to rank %zu", v->rank,
                      rank);
    }
    for (size_t i = 0; i < v->rank; i++) {
        size_t want = dim[rank - v->rank + i];

        if (v->dim[i] != want && v->dim[i] != 1) {
            mdl_ir_refuse(ir, -EBADMSG, "dimension %zu does not broadcast to %zu", v->dim[i], want);
        }
    }
    op.view.kind = MDL_VIEW_EXPAND;
    op.op.in[0] = x;
    return emit(ir, &op, v->dtype, rank, dim, fold);
}

size_t mdl_ir_part(struct mdl_ir *ir, size_t x, size_t axis, size_t start, size_t count)
{
    struct mdl_ir_value v = *mdl_ir_at(ir, x);
    size_t from[MDL_RANK_MAX] = {0};

    from[axis] = start;
    v.dim[axis] = count;
    return mdl_ir_slice(ir, x, from, NULL, v.dim);
}

size_t mdl_ir_expand(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim)
{
    return expand(ir, x, rank, dim, true);
}

size_t mdl_ir_repeat(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim)
{
    return expand(ir, x, rank, dim, false);
}

void mdl_ir_spread(struct mdl_ir *ir, const size_t *x, size_t count, size_t rank, const size_t *dim,
                   size_t *ret)
{
    bool fold = true;

    for (size_t i = 0; i < count; i++) {
        fold &= mdl_ir_is_const(ir, x[i]);
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = expand(ir, x[i], rank, dim, fold);
    }
}

size_t mdl_ir_where(struct mdl_ir *ir, const size_t x[3], size_t rank, const size_t *dim)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_WHERE);

    mdl_ir_spread(ir, x, 3, rank, dim, op.op.in);
    return mdl_ir_emit(ir, &op, mdl_ir_at(ir, x[1])->dtype, rank, dim);
}

size_t mdl_ir_reshape_rows(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim, size_t at)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_IR_VIEW);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);
    size_t elements = 1;

    if (rank > MDL_RANK_MAX) {
        mdl_ir_refuse(ir, -E2BIG, "rank %zu is more than %u", rank, MDL_RANK_MAX);
    }
    for (size_t i = 0; i < rank; i++) {
        if (!base_mul(elements, dim[i], &elements)) {
            mdl_ir_refuse(ir, -E2BIG, "the new shape has too many elements");
        }
    }
    if (elements != mdl_ir_elements(v)) {
        mdl_ir_refuse(ir, -EBADMSG, "cannot reshape %zu elements to %zu", mdl_ir_elements(v),
                      elements);
    }
    if (v->rank == rank && memcmp(v->dim, dim, rank * sizeof(*dim)) == 0 &&
        (at == 0 || v->rows == MDL_NONE || at == 1 + v->rows_dim)) {
        return x;
    }
    op.view.kind = MDL_VIEW_RESHAPE;
    op.view.rows_at = at;
    return emit_view(ir, &op, x, rank, dim);
}

size_t mdl_ir_reshape(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim)
{
    return mdl_ir_reshape_rows(ir, x, rank, dim, 0);
}

size_t mdl_ir_drop_dims(struct mdl_ir *ir, size_t x, const bool *drop)
{
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);
    size_t dim[MDL_RANK_MAX], rank = 0, at = 0;

    for (size_t i = 0; i < v->rank; i++) {
        at = i == v->rows_dim ? 1 + rank : at; /* dropped: into the next */
        if (!drop[i]) {
            dim[rank++] = v->dim[i];
        }
    }
    return mdl_ir_reshape_rows(ir, x, rank, dim, at);
}

size_t mdl_ir_new_dims(struct mdl_ir *ir, size_t x, size_t rank, const bool *fresh)
{
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);
    size_t dim[MDL_RANK_MAX + 1], from = 0, at = 0;

    for (size_t i = 0; i < rank; i++) {
        at = !fresh[i] && from == v->rows_dim ? 1 + i : at;
        dim[i] = fresh[i] ? 1 : v->dim[from++];
    }
    return mdl_ir_reshape_rows(ir, x, rank, dim, at);
}

size_t mdl_ir_concat(struct mdl_ir *ir, const size_t *in, size_t count, size_t axis)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_IR_CONCAT);
    struct mdl_ir_value v = ir->values[in[0]];

    op.concat_in = mdl_ir_alloc(ir, count, sizeof(*op.concat_in));
    v.dim[axis] = 0;
    for (size_t i = 0; i < count; i++) {
        if (!base_add(v.dim[axis], ir->values[in[i]].dim[axis], &v.dim[axis])) {
            mdl_ir_refuse(ir, -E2BIG, "the concatenated dimension is too large");
        }
        if (mdl_ir_elements(&ir->values[in[i]])) {
            op.concat_in[op.concat_count++] = in[i];
        }
    }
    if (op.concat_count == 1 || (op.concat_count == 0 && count)) {
        size_t only = op.concat_count ? op.concat_in[0] : in[0];

        if (mdl_ir_same_dims(&ir->values[only], &v)) {
            return only;
        }
    }
    op.concat_axis = axis;
    return mdl_ir_emit(ir, &op, v.dtype, v.rank, v.dim);
}

size_t mdl_ir_cast(struct mdl_ir *ir, size_t x, enum mdl_dtype dtype)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_COPY);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);

    if (v->dtype == dtype) {
        return x;
    }
    op.op.in[0] = x;
    return mdl_ir_emit(ir, &op, dtype, v->rank, v->dim);
}

size_t mdl_ir_broadcast(struct mdl_ir *ir, const size_t *values, size_t count,
                        size_t ret_dim[MDL_RANK_MAX])
{
    size_t rank = 0;

    for (size_t i = 0; i < count; i++) {
        rank = base_max(rank, mdl_ir_at(ir, values[i])->rank);
    }
    for (size_t k = 0; k < rank; k++) {
        size_t dim = 1;

        for (size_t i = 0; i < count; i++) {
            const struct mdl_ir_value *v = mdl_ir_at(ir, values[i]);
            size_t mine = k + v->rank >= rank ? v->dim[k + v->rank - rank] : 1;

            if (mine == dim || mine == 1) {
                continue;
            }
            if (dim != 1) {
                mdl_ir_refuse(ir, -EBADMSG, "dimensions %zu and %zu do not broadcast", dim, mine);
            }
            dim = mine;
        }
        ret_dim[k] = dim;
    }
    return rank;
}

size_t mdl_ir_binary(struct mdl_ir *ir, enum mdl_binary which, size_t a, size_t b)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_BINARY);
    enum mdl_dtype in = mdl_ir_at(ir, a)->dtype, out = in;
    size_t rank, dim[MDL_RANK_MAX], both[2] = {a, b};

    if (in != mdl_ir_at(ir, b)->dtype && which != MDL_BIN_POW) {
        mdl_ir_refuse(ir, -EBADMSG, "the inputs have types %s and %s; they must be equal",
                      mdl_dtype_name(in), mdl_dtype_name(mdl_ir_at(ir, b)->dtype));
    }
    if (which == MDL_BIN_EQUAL || which == MDL_BIN_LESS || which == MDL_BIN_GREATER ||
        which == MDL_BIN_AND || which == MDL_BIN_OR) {
        out = MDL_BOOL;
    }
    op.op.attr.binary = which;
    rank = mdl_ir_broadcast(ir, both, 2, dim);
    mdl_ir_spread(ir, both, 2, rank, dim, op.op.in);
    return mdl_ir_emit(ir, &op, out, rank, dim);
}

size_t mdl_ir_unary(struct mdl_ir *ir, enum mdl_act act, float a, float b, size_t x)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_UNARY);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);

    op.op.in[0] = x;
    op.op.act = act;
    op.op.act_a = a;
    op.op.act_b = b;
    return mdl_ir_emit(ir, &op, v->dtype, v->rank, v->dim);
}

size_t mdl_ir_reduce(struct mdl_ir *ir, enum mdl_reduce which, size_t x, const bool *axes,
                     bool keep_dims)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_REDUCE);
    const struct mdl_ir_value *v = mdl_ir_at(ir, x);
    size_t dim[MDL_RANK_MAX], y;

    op.op.in[0] = x;
    op.op.attr.reduce.which = which;
    for (size_t i = 0; i < v->rank; i++) {
        op.op.attr.reduce.axes[i] = axes[i];
        dim[i] = axes[i] ? 1 : v->dim[i];
    }
    y = mdl_ir_emit(ir, &op, v->dtype, v->rank, dim);
    return keep_dims ? y : mdl_ir_drop_dims(ir, y, axes);
}

size_t mdl_ir_scalar(struct mdl_ir *ir, enum mdl_dtype dtype, double value)
{
    void *data = mdl_ir_fold_alloc(ir, 8);

    mdl_const_store(data, dtype, 0, value, (int64_t)value);
    return mdl_ir_const_new(ir, dtype, 0, NULL, data, false);
}
