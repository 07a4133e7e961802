/* SPDX-License-Identifier: Apache-2.0 */
/* What each op does with inputs whose rows are counted. */
#include <math.h>

#include "model/ir/build.h"
#include "model/ir/rows.h"

#define NO_ROWS ((struct mdl_rows){MDL_NONE, 0})

static struct mdl_rows rows_of(const struct mdl_ir *ir, size_t v)
{
    return (struct mdl_rows){ir->values[v].rows, ir->values[v].rows_dim};
}

static struct mdl_rows pass_slice(struct mdl_ir *ir, const struct mdl_ir_op *op, const size_t *dim)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];
    size_t at = x.rows_dim, n = x.rows, bound;

    if (op->view.step[at] != 1) {
        mdl_rows_refuse(ir, op->op.in[0]);
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
    return (struct mdl_rows){n, at};
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
static struct mdl_rows pass_reshape(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t rank,
                                    const size_t *dim)
{
    struct mdl_ir_value x = ir->values[op->op.in[0]];
    size_t before = 1, mine = 1, inner = 1, factor, at = op->view.rows_at, place;

    for (size_t i = 0; i < x.rows_dim; i++) {
        before *= x.dim[i];
    }
    for (size_t i = 0; i < rank; mine *= dim[i++]) {
        if (mine == before && dim[i] == x.dim[x.rows_dim] && (at == 0 || at == i + 1)) {
            if (!at && !place_of(&x, rank, dim, i, &place)) {
                mdl_rows_refuse(ir, op->op.in[0]);
            }
            return (struct mdl_rows){x.rows, at ? i : place};
        }
    }
    for (size_t i = x.rows_dim + 1; i < x.rank && before == 1; i++) {
        inner *= x.dim[i];
        for (size_t k = 0; k < rank && (k == 0 || dim[k - 1] == 1); k++) {
            if (dim[k] == inner * x.dim[x.rows_dim] && (at == 0 || at == k + 1)) {
                factor = mdl_rows_int(ir, (int64_t)inner);
                return (struct mdl_rows){mdl_ir_binary(ir, MDL_BIN_MUL, x.rows, factor), k};
            }
        }
    }
    mdl_rows_refuse(ir, op->op.in[0]);
}

static struct mdl_rows pass_view(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t rank,
                                 const size_t *dim)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    size_t at = 0;

    switch (op->view.kind) {
    case MDL_VIEW_SLICE:
        return pass_slice(ir, op, dim);
    case MDL_VIEW_RESHAPE:
        return pass_reshape(ir, op, rank, dim);
    case MDL_VIEW_EXPAND:
        at = x->rows_dim + rank - x->rank;
        if (dim[at] != x->dim[x->rows_dim]) {
            mdl_rows_refuse(ir, op->op.in[0]);
        }
        break;
    default:
        while (op->view.perm[at] != x->rows_dim) {
            at++;
        }
        break;
    }
    return (struct mdl_rows){x->rows, at};
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
    const struct mdl_ir_op *op = mdl_ir_writer(ir, v);

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
static struct mdl_rows pass_together(struct mdl_ir *ir, const size_t *in, size_t count)
{
    size_t first = MDL_NONE;
    struct mdl_rows rows;

    for (size_t i = 0; i < count && first == MDL_NONE; i++) {
        first = in[i] != MDL_NONE && ir->values[in[i]].rows != MDL_NONE ? in[i] : MDL_NONE;
    }
    rows = rows_of(ir, first);
    for (size_t i = 0; i < count; i++) {
        const struct mdl_ir_value *x;

        if (in[i] == MDL_NONE) {
            continue;
        }
        x = &ir->values[in[i]];
        if (x->rows == MDL_NONE
                ? !repeats(ir, in[i], rows.dim)
                : !mdl_rows_same(ir, x->rows, rows.rows) || x->rows_dim != rows.dim) {
            mdl_ir_refuse(ir, -EOPNOTSUPP,
                          "the inputs have lengths that depend on the data (at most %zu), "
                          "and it is not known that they are equal",
                          ir->values[first].dim[rows.dim]);
        }
    }
    return rows;
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
static struct mdl_rows pass_concat(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t x = counted(ir, op, 0);

    mdl_rows_fixed(ir, x, op->concat_axis);
    return pass_together(ir, op->concat_in, op->concat_count);
}

/* The op gets a copy of its input whose other rows hold @fill. */
static struct mdl_rows take_filled(struct mdl_ir *ir, struct mdl_ir_op *op, size_t i, double fill)
{
    op->op.in[i] = mdl_rows_fill(ir, op->op.in[i], fill);
    return NO_ROWS;
}

static struct mdl_rows pass_reduce(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    if (!op->op.attr.reduce.axes[ir->values[op->op.in[0]].rows_dim]) {
        return rows_of(ir, op->op.in[0]);
    }
    switch (op->op.attr.reduce.which) {
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
        mdl_rows_refuse(ir, op->op.in[0]);
    }
}

/* Along @axis the op mixes rows, and @fill does not count there. */
static struct mdl_rows pass_line(struct mdl_ir *ir, struct mdl_ir_op *op, size_t axis, double fill,
                                 bool keeps)
{
    struct mdl_rows rows = rows_of(ir, op->op.in[0]);

    if (rows.dim != axis) {
        return rows;
    }
    take_filled(ir, op, 0, fill);
    return keeps ? rows : NO_ROWS;
}

/* Return: the indices were found among valid rows, so that they count from the beginning. */
static bool counts_from_begin(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_op *op;

    while ((op = mdl_ir_writer(ir, v))) {
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

static struct mdl_rows pass_gather(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    size_t axis = op->op.attr.gather.axis, index_rank = ir->values[op->op.in[1]].rank;
    struct mdl_rows x = rows_of(ir, op->op.in[0]), index = rows_of(ir, op->op.in[1]);

    if (x.rows != MDL_NONE && x.dim == axis) {
        op->op.in[2] = x.rows;
    } else if (x.rows != MDL_NONE) {
        if (index.rows != MDL_NONE) {
            mdl_ir_refuse(ir, -EOPNOTSUPP, "two dimensions of the result depend on the data");
        }
        return (struct mdl_rows){x.rows, x.dim < axis ? x.dim : x.dim - 1 + index_rank};
    }
    return (struct mdl_rows){index.rows, axis + index.dim};
}

static struct mdl_rows pass_gather_nd(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]], *index = &ir->values[op->op.in[1]];
    size_t batch = op->op.attr.gather.batch_dims, width = index->dim[index->rank - 1];

    if (x->rows != MDL_NONE && (x->rows_dim < batch || x->rows_dim >= batch + width ||
                                !counts_from_begin(ir, op->op.in[1]))) {
        mdl_rows_refuse(ir, op->op.in[0]);
    }
    mdl_rows_fixed(ir, op->op.in[1], index->rank - 1);
    return rows_of(ir, op->op.in[1]);
}

/* Rows of indices that are not valid point nowhere, so their updates are left out. */
static struct mdl_rows pass_scatter(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    struct mdl_rows x = rows_of(ir, op->op.in[0]), index = rows_of(ir, op->op.in[1]);
    struct mdl_rows updates = rows_of(ir, op->op.in[2]);

    if (x.rows != MDL_NONE &&
        (op->kind != MDL_OP_SCATTER_ELEMENTS || op->op.attr.scatter.axis != x.dim ||
         !counts_from_begin(ir, op->op.in[1]))) {
        mdl_rows_refuse(ir, op->op.in[0]);
    }
    if (index.rows == MDL_NONE || !mdl_rows_same(ir, updates.rows, index.rows) ||
        updates.dim != index.dim) {
        mdl_rows_refuse(ir, index.rows == MDL_NONE ? op->op.in[2] : op->op.in[1]);
    }
    take_filled(ir, op, 1, -INFINITY);
    return x;
}

/* Each region is computed by itself, and what the other rows hold is some region. */
static struct mdl_rows pass_regions(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    if (ir->values[op->op.in[0]].rows != MDL_NONE) {
        mdl_rows_refuse(ir, op->op.in[0]);
    }
    return pass_together(ir, op->op.in + 1, op->kind == MDL_OP_ROI_ALIGN ? 2 : 1);
}

static struct mdl_rows pass_nms(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    struct mdl_rows boxes = rows_of(ir, op->op.in[0]), scores = rows_of(ir, op->op.in[1]);

    if (scores.rows == MDL_NONE || scores.dim != 2 || !mdl_rows_same(ir, boxes.rows, scores.rows) ||
        boxes.dim != 1) {
        mdl_rows_refuse(ir, scores.rows == MDL_NONE ? op->op.in[0] : op->op.in[1]);
    }
    return take_filled(ir, op, 1, (double)NAN); /* NaN is no candidate */
}

/* A product with the rows of the first input. */
static struct mdl_rows pass_product(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank)
{
    const struct mdl_ir_value *a = &ir->values[op->op.in[0]];

    if (a->rows == MDL_NONE || a->rows_dim + 1 == a->rank ||
        (op->kind == MDL_OP_GEMM && op->op.attr.gemm.trans_a)) {
        mdl_rows_refuse(ir, a->rows == MDL_NONE ? op->op.in[1] : op->op.in[0]);
    }
    return (struct mdl_rows){a->rows, a->rows_dim + rank - a->rank};
}

/* Images are independent of each other. */
static struct mdl_rows pass_batch(struct mdl_ir *ir, struct mdl_ir_op *op)
{
    struct mdl_rows x = rows_of(ir, op->op.in[0]);

    if (x.rows == MDL_NONE || x.dim != 0) {
        mdl_rows_refuse(ir, x.rows == MDL_NONE ? op->op.in[1] : op->op.in[0]);
    }
    return x;
}

/* The op changes other dims only. */
static struct mdl_rows pass_beside(struct mdl_ir *ir, const struct mdl_ir_op *op, const size_t *dim)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    bool moved = op->kind == MDL_OP_PAD && op->op.attr.pad.begin[x->rows_dim] != 0;

    if (moved || dim[x->rows_dim] != x->dim[x->rows_dim] ||
        (op->kind == MDL_OP_RESIZE && x->rows_dim > 1)) {
        mdl_rows_refuse(ir, op->op.in[0]);
    }
    return rows_of(ir, op->op.in[0]);
}

static struct mdl_rows pass_top_k(struct mdl_ir *ir, struct mdl_ir_op *op, const size_t *dim)
{
    struct mdl_rows rows = rows_of(ir, op->op.in[0]);
    size_t axis = op->op.attr.top_k.axis, k;

    if (rows.dim != axis) {
        return rows;
    }
    op->op.in[1] = rows.rows;
    k = mdl_rows_int(ir, (int64_t)dim[axis]);
    return (struct mdl_rows){mdl_ir_binary(ir, MDL_BIN_MIN, rows.rows, k), axis};
}

/* Only the first input has counted rows. */
static struct mdl_rows pass_first(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank,
                                  const size_t *dim)
{
    switch (op->kind) {
    case MDL_IR_VIEW:
        return pass_view(ir, op, rank, dim);
    case MDL_OP_COPY:
    case MDL_OP_UNARY:
    case MDL_OP_AFFINE:
    case MDL_OP_QUANTIZE:
    case MDL_OP_DEQUANTIZE:
        return rows_of(ir, op->op.in[0]);
    case MDL_OP_PAD:
    case MDL_OP_RESIZE:
        return pass_beside(ir, op, dim);
    case MDL_OP_REDUCE:
        return pass_reduce(ir, op);
    case MDL_OP_SOFTMAX:
        return pass_line(ir, op, op->op.attr.softmax.axis, -INFINITY, true);
    case MDL_OP_ARG:
        return pass_line(ir, op, op->op.attr.arg.axis, op->op.attr.arg.max ? -INFINITY : INFINITY,
                         false);
    case MDL_OP_TOP_K:
        return pass_top_k(ir, op, dim);
    case MDL_OP_NON_ZERO:
        return take_filled(ir, op, 0, 0);
    case MDL_OP_MATMUL:
    case MDL_OP_GEMM:
        return pass_product(ir, op, rank);
    case MDL_OP_CONV:
    case MDL_OP_CONV_TRANSPOSE:
    case MDL_OP_MAX_POOL:
    case MDL_OP_AVG_POOL:
    case MDL_OP_LRN:
        return pass_batch(ir, op);
    default:
        mdl_rows_refuse(ir, op->op.in[0]);
    }
}

static struct mdl_rows before(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank,
                              const size_t *dim)
{
    size_t other = counted(ir, op, 1);

    if (counted(ir, op, 0) == MDL_NONE || op->kind == MDL_OP_JOIN_ROWS) {
        return NO_ROWS;
    }
    switch (op->kind) {
    case MDL_OP_BINARY:
    case MDL_OP_WHERE:
    case MDL_OP_PRELU:
        return pass_together(ir, op->op.in, MDL_OP_IN_MAX);
    case MDL_IR_CONCAT:
        return pass_concat(ir, op);
    case MDL_OP_GATHER:
        return pass_gather(ir, op);
    case MDL_OP_GATHER_ND:
        return pass_gather_nd(ir, op);
    case MDL_OP_SCATTER_ND:
    case MDL_OP_SCATTER_ELEMENTS:
        return pass_scatter(ir, op);
    case MDL_OP_NMS:
        return pass_nms(ir, op);
    case MDL_OP_ROI_ALIGN:
    case MDL_OP_MAX_ROI_POOL:
        return pass_regions(ir, op);
    default:
        if (other != MDL_NONE) {
            mdl_rows_refuse(ir, other);
        }
        return pass_first(ir, op, rank, dim);
    }
}

static void after(struct mdl_ir *ir, const struct mdl_ir_op *op, struct mdl_rows rows)
{
    mdl_bounds_of(ir, op);
    for (size_t i = 0; i < MDL_OP_OUT_MAX && rows.rows != MDL_NONE; i++) {
        if (op->op.out[i] != MDL_NONE) {
            mdl_rows_set(ir, op->op.out[i], rows.dim, rows.rows);
        }
    }
}

const struct mdl_ir_hooks mdl_rows_hooks = {.before = before, .after = after};
