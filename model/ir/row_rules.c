/* SPDX-License-Identifier: Apache-2.0 */
/* What each op does with inputs whose rows are counted. */
#include <math.h>

#include "base/base.h"
#include "model/ir/bounds.h"
#include "model/ir/build.h"
#include "model/ir/rows.h"

static int pass_slice(struct mdl_ir *ir, const struct mdl_ir_op *op, const size_t *dim,
                      struct mdl_rows *ret)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];
    size_t at = x.rows_dim, n = x.rows, bound;

    if (op->view.step[at] != 1) {
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
    if (op->view.start[at] != 0) {
        bound = mdl_rows_int(ir, (int64_t)op->view.start[at]);
        n = mdl_ir_binary(ir, MDL_BIN_SUB, n, bound);
        bound = mdl_rows_int(ir, 0);
        n = mdl_ir_binary(ir, MDL_BIN_MAX, n, bound);
    }
    if (op->view.start[at] + dim[at] < x.dim[at]) {
        bound = mdl_rows_int(ir, (int64_t)dim[at]);
        n = mdl_ir_binary(ir, MDL_BIN_MIN, n, bound);
    }
    *ret = (struct mdl_rows){n, at};
    return ir->failure;
}

/* Among dims of 1 side by side sizes do not tell which is counted: as many as before are the same.
 * @i: the first in the result. Return: whether it is known; *ret: it */
static bool place_of(const struct mdl_ir_value *x, size_t rank, const size_t *dim, size_t i,
                     size_t *ret)
{
    size_t first = x->rows_dim, behind = first + 1, end = i + 1;

    while (x->dim[x->rows_dim] == 1 && first > 0 && x->dim[first - 1] == 1) {
        first--;
    }
    while (x->dim[x->rows_dim] == 1 && behind < x->rank && x->dim[behind] == 1) {
        behind++;
    }
    while (dim[i] == 1 && end < rank && dim[end] == 1) {
        end++;
    }
    *ret = i + x->rows_dim - first;
    return end - i == behind - first;
}

/* The counted dim must stay, or, if it is the outermost, be merged with dims after it. */
static int pass_reshape(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t rank,
                        const size_t *dim, struct mdl_rows *ret)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];
    size_t before = 1, mine = 1, inner = 1, factor, at = op->view.rows_at;

    for (size_t i = 0; i < x.rows_dim; i++) {
        before *= x.dim[i];
    }
    for (size_t i = 0; i < rank; mine *= dim[i++]) {
        if (mine == before && dim[i] == x.dim[x.rows_dim] && (at == 0 || at == i + 1)) {
            *ret = (struct mdl_rows){x.rows, i};
            return at || place_of(&x, rank, dim, i, &ret->dim) ? 0
                                                               : mdl_rows_refuse(ir, op->op.in[0]);
        }
    }
    for (size_t i = x.rows_dim + 1; i < x.rank && before == 1; i++) {
        inner *= x.dim[i];
        for (size_t k = 0; k < rank && (k == 0 || dim[k - 1] == 1); k++) {
            if (dim[k] == inner * x.dim[x.rows_dim] && (at == 0 || at == k + 1)) {
                factor = mdl_rows_int(ir, (int64_t)inner);
                *ret = (struct mdl_rows){mdl_ir_binary(ir, MDL_BIN_MUL, x.rows, factor), k};
                return ir->failure;
            }
        }
    }
    return mdl_rows_refuse(ir, op->op.in[0]);
}

static int pass_view(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t rank, const size_t *dim,
                     struct mdl_rows *ret)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];

    switch (op->view.kind) {
    case MDL_VIEW_SLICE:
        return pass_slice(ir, op, dim, ret);
    case MDL_VIEW_RESHAPE:
        return pass_reshape(ir, op, rank, dim, ret);
    case MDL_VIEW_EXPAND:
        *ret = (struct mdl_rows){x->rows, x->rows_dim + rank - x->rank};
        return dim[ret->dim] == x->dim[x->rows_dim] ? 0 : mdl_rows_refuse(ir, op->op.in[0]);
    default:
        ret->rows = x->rows;
        for (size_t i = 0; i < rank; i++) {
            if (op->view.perm[i] == x->rows_dim) {
                ret->dim = i;
            }
        }
        return 0;
    }
}

/* Return: whether all rows of the constant @v along @axis are the same. */
static bool equal_rows(const struct mdl_ir_value *v, size_t axis)
{
    size_t row = mdl_dtype_bytes(v->dtype), all = mdl_ir_bytes(v), step;
    const char *data = v->data;

    for (size_t i = axis + 1; i < v->rank; i++) {
        row *= v->dim[i];
    }
    step = row * v->dim[axis];
    for (size_t at = 0; at < all; at += step) { /* each row is the one before it */
        if (memcmp(data + at, data + at + row, step - row) != 0) {
            return false;
        }
    }
    return true;
}

/* Return: whether @v repeats one row along @axis. */
static bool repeats(const struct mdl_ir *ir, size_t v, size_t axis)
{
    const struct mdl_ir_value *y = &ir->values[v], *x;
    const struct mdl_ir_op *op = y->op == MDL_NONE ? NULL : &ir->ops[y->op];

    if (y->dim[axis] == 1) {
        return true;
    }
    if (y->data) {
        return equal_rows(y, axis);
    }
    if (!op || op->kind != MDL_IR_VIEW || op->view.kind != MDL_VIEW_EXPAND) {
        return false;
    }
    x = &ir->values[op->op.in[0]];
    return axis + x->rank < y->rank || x->dim[axis + x->rank - y->rank] == 1;
}

/* Inputs of one shape, element by element (or side by side in a concat): their rows are the same,
 * or one row is repeated. */
static int pass_together(struct mdl_ir *ir, const size_t *in, size_t count, struct mdl_rows *ret)
{
    size_t first = MDL_NONE;

    for (size_t i = 0; i < count && first == MDL_NONE; i++) {
        first = in[i] != MDL_NONE && ir->values[in[i]].rows != MDL_NONE ? in[i] : MDL_NONE;
    }
    *ret = (struct mdl_rows){ir->values[first].rows, ir->values[first].rows_dim};
    for (size_t i = 0; i < count; i++) {
        const struct mdl_ir_value *x;

        if (in[i] == MDL_NONE) {
            continue;
        }
        x = &ir->values[in[i]];
        if (x->rows == MDL_NONE
                ? !repeats(ir, in[i], ret->dim)
                : !mdl_rows_same(ir, x->rows, ret->rows) || x->rows_dim != ret->dim) {
            return mdl_ir_refuse(ir, -EOPNOTSUPP,
                                 "the inputs have lengths that depend on the data (at most %zu), "
                                 "and it is not known that they are equal",
                                 ir->values[first].dim[ret->dim]);
        }
    }
    return 0;
}

/* Return: the first input, of @from.., whose rows are counted, or MDL_NONE. */
static size_t counted(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t from)
{
    for (size_t i = from; i < MDL_OP_IN_MAX; i++) {
        if (op->op.in[i] != MDL_NONE && ir->values[op->op.in[i]].rows != MDL_NONE) {
            return op->op.in[i];
        }
    }
    for (size_t i = 0; i < op->concat_count; i++) {
        if (ir->values[op->concat_in[i]].rows != MDL_NONE) {
            return op->concat_in[i];
        }
    }
    return MDL_NONE;
}

/* Along the rows mdl_rows_concat() joins. */
static int pass_concat(struct mdl_ir *ir, const struct mdl_ir_op *op, struct mdl_rows *ret)
{
    size_t x = counted(ir, op, 0);

    return ir->values[x].rows_dim == op->concat_axis
               ? mdl_rows_refuse(ir, x)
               : pass_together(ir, op->concat_in, op->concat_count, ret);
}

/* The op gets a copy of its input whose other rows hold @fill. */
static int take_filled(struct mdl_ir *ir, struct mdl_ir_op *op, size_t i, double fill)
{
    op->op.in[i] = mdl_rows_fill(ir, op->op.in[i], fill);
    return ir->failure;
}

static int pass_reduce(struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_rows *ret)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];
    enum mdl_reduce which = op->op.attr.reduce.which;

    if (!op->op.attr.reduce.axes[x.rows_dim]) {
        *ret = (struct mdl_rows){x.rows, x.rows_dim};
        return 0;
    }
    switch (which) {
    case MDL_RED_MAX:
        return take_filled(ir, op, 0, -INFINITY);
    case MDL_RED_MIN:
        return take_filled(ir, op, 0, INFINITY);
    case MDL_RED_PROD:
        return take_filled(ir, op, 0, 1);
    case MDL_RED_SUM:
    case MDL_RED_L1:
    case MDL_RED_L2:
    case MDL_RED_SUM_SQUARE:
        return take_filled(ir, op, 0, 0);
    default:
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
}

/* Along @axis the op mixes rows, and @fill does not count there. */
static int pass_line(struct mdl_ir *ir, struct mdl_ir_op *op, size_t axis, double fill, bool keeps,
                     struct mdl_rows *ret)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];

    if (x.rows_dim != axis || keeps) {
        *ret = (struct mdl_rows){x.rows, x.rows_dim};
    }
    return x.rows_dim == axis ? take_filled(ir, op, 0, fill) : 0;
}

/* Return: whether the indices were found among valid rows, so that they count from the begin. */
static bool counts_from_begin(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_op *op;

    while (ir->values[v].op != MDL_NONE) {
        op = &ir->ops[ir->values[v].op];
        if (op->kind == MDL_OP_NON_ZERO || op->kind == MDL_OP_NMS || op->kind == MDL_OP_ARG ||
            op->kind == MDL_OP_TOP_K) {
            return true;
        }
        if (op->kind != MDL_IR_VIEW && op->kind != MDL_OP_COPY && op->kind != MDL_OP_GATHER) {
            return false;
        }
        v = op->op.in[0];
    }
    return false;
}

static int pass_gather(struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_rows *ret)
{
    size_t axis = op->op.attr.gather.axis, index = op->op.in[1], x = op->op.in[0];
    size_t index_rank = ir->values[index].rank, rows_dim = ir->values[x].rows_dim;

    if (ir->values[x].rows != MDL_NONE && rows_dim == axis) {
        op->op.in[2] = ir->values[x].rows;
    } else if (ir->values[x].rows != MDL_NONE) {
        if (ir->values[index].rows != MDL_NONE) {
            return mdl_ir_refuse(ir, -EOPNOTSUPP,
                                 "two dimensions of the result depend on the data");
        }
        *ret = (struct mdl_rows){ir->values[x].rows,
                                 rows_dim < axis ? rows_dim : rows_dim - 1 + index_rank};
        return 0;
    }
    if (ir->values[index].rows != MDL_NONE) {
        *ret = (struct mdl_rows){ir->values[index].rows, axis + ir->values[index].rows_dim};
    }
    return 0;
}

static int pass_gather_nd(struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_rows *ret)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]], *index = &ir->values[op->op.in[1]];
    size_t batch = op->op.attr.gather.batch_dims, width = index->dim[index->rank - 1];

    if (x->rows != MDL_NONE && (x->rows_dim < batch || x->rows_dim >= batch + width ||
                                !counts_from_begin(ir, op->op.in[1]))) {
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
    if (index->rows != MDL_NONE) {
        if (index->rows_dim + 1 == index->rank) {
            return mdl_rows_refuse(ir, op->op.in[1]);
        }
        *ret = (struct mdl_rows){index->rows, index->rows_dim};
    }
    return 0;
}

/* Rows of indices that are not valid point nowhere, so their updates are left out. */
static int pass_scatter(struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_rows *ret)
{
    const struct mdl_ir_value *index = &ir->values[op->op.in[1]], *u = &ir->values[op->op.in[2]];

    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];

    if (x->rows != MDL_NONE &&
        (op->kind != MDL_OP_SCATTER_ELEMENTS || op->op.attr.scatter.axis != x->rows_dim ||
         !counts_from_begin(ir, op->op.in[1]))) {
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
    *ret = (struct mdl_rows){x->rows, x->rows_dim};
    if (index->rows == MDL_NONE || !mdl_rows_same(ir, u->rows, index->rows) ||
        u->rows_dim != index->rows_dim) {
        return mdl_rows_refuse(ir, index->rows == MDL_NONE ? op->op.in[2] : op->op.in[1]);
    }
    return take_filled(ir, op, 1, -INFINITY);
}

/* Each region is computed by itself, and what the other rows hold is some region. */
static int pass_regions(struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_rows *ret)
{
    if (ir->values[op->op.in[0]].rows != MDL_NONE) {
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
    return pass_together(ir, op->op.in + 1, op->kind == MDL_OP_ROI_ALIGN ? 2 : 1, ret);
}

static int pass_nms(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    const struct mdl_ir_value *b = &ir->values[op->op.in[0]], *s = &ir->values[op->op.in[1]];

    if (s->rows == MDL_NONE || s->rows_dim != 2 || !mdl_rows_same(ir, b->rows, s->rows) ||
        b->rows_dim != 1) {
        return mdl_rows_refuse(ir, s->rows == MDL_NONE ? op->op.in[0] : op->op.in[1]);
    }
    return take_filled(ir, op, 1, (double)NAN); /* NaN is no candidate */
}

/* A product with the rows of the first input. */
static int pass_product(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank, struct mdl_rows *ret)
{
    const struct mdl_ir_value *a = &ir->values[op->op.in[0]];

    if (a->rows == MDL_NONE || a->rows_dim + 1 == a->rank ||
        (op->kind == MDL_OP_GEMM && op->op.attr.gemm.trans_a)) {
        return mdl_rows_refuse(ir, a->rows == MDL_NONE ? op->op.in[1] : op->op.in[0]);
    }
    *ret = (struct mdl_rows){a->rows, a->rows_dim + rank - a->rank};
    return 0;
}

/* Images are independent of each other. */
static int pass_batch(struct mdl_ir *ir, struct mdl_ir_op *op, struct mdl_rows *ret)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];

    if (x->rows == MDL_NONE || x->rows_dim != 0) {
        return mdl_rows_refuse(ir, x->rows == MDL_NONE ? op->op.in[1] : op->op.in[0]);
    }
    *ret = (struct mdl_rows){x->rows, 0};
    return 0;
}

/* The op changes other dims only. */
static int pass_beside(struct mdl_ir *ir, const struct mdl_ir_op *op, const size_t *dim,
                       struct mdl_rows *ret)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    bool moved = op->kind == MDL_OP_PAD && op->op.attr.pad.begin[x->rows_dim] != 0;

    if (moved || dim[x->rows_dim] != x->dim[x->rows_dim] ||
        (op->kind == MDL_OP_RESIZE && x->rows_dim > 1)) {
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
    *ret = (struct mdl_rows){x->rows, x->rows_dim};
    return 0;
}

static int pass_top_k(struct mdl_ir *ir, struct mdl_ir_op *op, const size_t *dim,
                      struct mdl_rows *ret)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];
    size_t axis = op->op.attr.top_k.axis, k;

    *ret = (struct mdl_rows){x.rows, x.rows_dim};
    if (x.rows_dim != axis) {
        return 0;
    }
    op->op.in[1] = x.rows;
    k = mdl_rows_int(ir, (int64_t)dim[axis]);
    ret->rows = mdl_ir_binary(ir, MDL_BIN_MIN, x.rows, k);
    return ir->failure;
}

/* Only the first input has counted rows. */
static int pass_first(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank, const size_t *dim,
                      struct mdl_rows *ret)
{
    switch (op->kind) {
    case MDL_IR_VIEW:
        return pass_view(ir, op, rank, dim, ret);
    case MDL_OP_COPY:
    case MDL_OP_UNARY:
    case MDL_OP_AFFINE:
    case MDL_OP_QUANTIZE:
    case MDL_OP_DEQUANTIZE:
        *ret = (struct mdl_rows){ir->values[op->op.in[0]].rows, ir->values[op->op.in[0]].rows_dim};
        return 0;
    case MDL_OP_PAD:
    case MDL_OP_RESIZE:
        return pass_beside(ir, op, dim, ret);
    case MDL_OP_REDUCE:
        return pass_reduce(ir, op, ret);
    case MDL_OP_SOFTMAX:
        return pass_line(ir, op, op->op.attr.softmax.axis, -INFINITY, true, ret);
    case MDL_OP_ARG:
        return pass_line(ir, op, op->op.attr.arg.axis, op->op.attr.arg.max ? -INFINITY : INFINITY,
                         false, ret);
    case MDL_OP_TOP_K:
        return pass_top_k(ir, op, dim, ret);
    case MDL_OP_NON_ZERO:
        return take_filled(ir, op, 0, 0);
    case MDL_OP_MATMUL:
    case MDL_OP_GEMM:
        return pass_product(ir, op, rank, ret);
    case MDL_OP_CONV:
    case MDL_OP_CONV_TRANSPOSE:
    case MDL_OP_MAX_POOL:
    case MDL_OP_AVG_POOL:
    case MDL_OP_LRN:
        return pass_batch(ir, op, ret);
    default:
        return mdl_rows_refuse(ir, op->op.in[0]);
    }
}

static int before(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank, const size_t *dim,
                  struct mdl_rows *ret)
{
    size_t other = counted(ir, op, 1);

    *ret = (struct mdl_rows){MDL_NONE, 0};
    if (counted(ir, op, 0) == MDL_NONE || op->kind == MDL_OP_JOIN_ROWS) {
        return 0;
    }
    switch (op->kind) {
    case MDL_OP_BINARY:
    case MDL_OP_WHERE:
    case MDL_OP_PRELU:
        return pass_together(ir, op->op.in, MDL_OP_IN_MAX, ret);
    case MDL_IR_CONCAT:
        return pass_concat(ir, op, ret);
    case MDL_OP_GATHER:
        return pass_gather(ir, op, ret);
    case MDL_OP_GATHER_ND:
        return pass_gather_nd(ir, op, ret);
    case MDL_OP_SCATTER_ND:
    case MDL_OP_SCATTER_ELEMENTS:
        return pass_scatter(ir, op, ret);
    case MDL_OP_NMS:
        return pass_nms(ir, op);
    case MDL_OP_ROI_ALIGN:
    case MDL_OP_MAX_ROI_POOL:
        return pass_regions(ir, op, ret);
    default:
        return other == MDL_NONE ? pass_first(ir, op, rank, dim, ret) : mdl_rows_refuse(ir, other);
    }
}

static int after(struct mdl_ir *ir, const struct mdl_ir_op *op, const struct mdl_rows *rows)
{
    int r = mdl_bounds_of(ir, op);

    for (size_t i = 0; r == 0 && i < MDL_OP_OUT_MAX && rows->rows != MDL_NONE; i++) {
        if (op->op.out[i] != MDL_NONE) {
            r = mdl_rows_set(ir, op->op.out[i], rows->dim, rows->rows);
        }
    }
    return r;
}

const struct mdl_ir_hooks mdl_rows_hooks = {.before = before, .after = after};
