/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ir/rows.h"

#include "model/ir/build.h"

size_t mdl_rows_int(struct mdl_ir *ir, int64_t value)
{
    void *data = mdl_ir_fold_alloc(ir, sizeof(value));

    memcpy(data, &value, sizeof(value));
    return mdl_ir_const_new(ir, MDL_I64, 1, (size_t[]){1}, data, false);
}

void mdl_rows_set(struct mdl_ir *ir, size_t v, size_t dim, size_t rows)
{
    size_t least, most;

    if (ir->values[rows].most == MDL_NONE) {
        least = mdl_rows_int(ir, 0);
        most = mdl_rows_int(ir, (int64_t)ir->values[v].dim[dim]);
        ir->values[rows].least = least;
        ir->values[rows].most = most;
    }
    ir->values[v].rows = rows;
    ir->values[v].rows_dim = dim;
}

size_t mdl_rows_limit(struct mdl_ir *ir, size_t v, size_t dim, size_t rows)
{
    size_t own = ir->values[v].rows;

    if (mdl_rows_along(ir, v, dim) && mdl_rows_same(ir, own, rows)) {
        return v;
    }
    if (mdl_rows_along(ir, v, dim)) {
        rows = mdl_ir_binary(ir, MDL_BIN_MIN, own, rows);
    } else if (own != MDL_NONE) {
        mdl_ir_refuse(ir, -EOPNOTSUPP, "two dimensions of the result depend on the data");
    }
    mdl_rows_set(ir, v, dim, rows);
    return v;
}

size_t mdl_rows_alias(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_IR_VIEW);
    struct mdl_ir_value x = ir->values[v];

    op.view.kind = MDL_VIEW_RESHAPE;
    op.op.in[0] = v;
    return mdl_ir_emit(ir, &op, x.dtype, x.rank, x.dim);
}

bool mdl_rows_along(const struct mdl_ir *ir, size_t v, size_t axis)
{
    return v != MDL_NONE && ir->values[v].rows != MDL_NONE && ir->values[v].rows_dim == axis;
}

void mdl_rows_refuse(struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_value *x = &ir->values[v];
    const char *quote = x->name[0] ? "\"" : ""; /* without a name it is within the node */

    mdl_ir_refuse(ir, -EOPNOTSUPP,
                  "dimension %zu of %s%s%s depends on the data (at most %zu); this use of it "
                  "is not supported",
                  x->rows_dim, quote, x->name[0] ? x->name : "an input", quote,
                  x->dim[x->rows_dim]);
}

void mdl_rows_fixed(struct mdl_ir *ir, size_t v, size_t axis)
{
    if (mdl_rows_along(ir, v, axis)) {
        mdl_rows_refuse(ir, v);
    }
}

/* The valid rows of @a and then those of @b (or none), and then @fill. */
static size_t join(struct mdl_ir *ir, size_t a, size_t b, size_t axis, double fill)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_JOIN_ROWS);
    struct mdl_ir_value y = ir->values[a];

    op.op.attr.join_rows.axis = axis;
    op.op.attr.join_rows.fill = fill;
    op.op.in[0] = a;
    op.op.in[1] = y.rows;
    if (b != MDL_NONE) {
        op.op.in[2] = b;
        op.op.in[3] = ir->values[b].rows;
        if (!base_add(y.dim[axis], ir->values[b].dim[axis], &y.dim[axis])) {
            mdl_ir_refuse(ir, -E2BIG, "the concatenated dimension is too large");
        }
    }
    return mdl_ir_emit(ir, &op, y.dtype, y.rank, y.dim);
}

size_t mdl_rows_fill(struct mdl_ir *ir, size_t v, double fill)
{
    return join(ir, v, MDL_NONE, ir->values[v].rows_dim, fill);
}

/* a count is a few sums and limits of others */
#define SAME_DEPTH 16u

static bool same(const struct mdl_ir *ir, size_t a, size_t b, unsigned depth);

static bool same_op(const struct mdl_ir *ir, const struct mdl_ir_op *a, const struct mdl_ir_op *b,
                    unsigned depth)
{
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case MDL_OP_BINARY:
        return a->op.attr.binary == b->op.attr.binary &&
               same(ir, a->op.in[0], b->op.in[0], depth) &&
               same(ir, a->op.in[1], b->op.in[1], depth);
    case MDL_OP_NON_ZERO:
        return same(ir, a->op.in[0], b->op.in[0], depth);
    case MDL_OP_JOIN_ROWS: /* a filled copy */
        return a->op.in[2] == MDL_NONE && b->op.in[2] == MDL_NONE &&
               a->op.attr.join_rows.fill == b->op.attr.join_rows.fill &&
               same(ir, a->op.in[0], b->op.in[0], depth) &&
               same(ir, a->op.in[1], b->op.in[1], depth);
    default:
        return false;
    }
}

static bool same(const struct mdl_ir *ir, size_t a, size_t b, unsigned depth)
{
    const struct mdl_ir_value *x, *y;

    if (a == b || depth == 0 || a == MDL_NONE || b == MDL_NONE) {
        return a == b;
    }
    x = &ir->values[a];
    y = &ir->values[b];
    if (x->dtype != y->dtype || !mdl_ir_same_dims(x, y) || x->input != y->input) {
        return false;
    }
    if (x->data && y->data) {
        return memcmp(x->data, y->data, mdl_ir_bytes(x)) == 0;
    }
    return x->op != MDL_NONE && y->op != MDL_NONE &&
           same_op(ir, &ir->ops[x->op], &ir->ops[y->op], depth - 1);
}

bool mdl_rows_same(const struct mdl_ir *ir, size_t a, size_t b)
{
    return same(ir, a, b, SAME_DEPTH);
}

/* ---- dims that are computed ---- */

static bool is_length(const struct mdl_ir *ir, size_t v)
{
    return ir->values[v].dtype == MDL_I64 || ir->values[v].dtype == MDL_I32;
}

void mdl_rows_trace(const struct mdl_ir *ir, size_t *v, size_t *i)
{
    while (ir->values[*v].op != MDL_NONE && ir->values[*v].rank <= 1) {
        const struct mdl_ir_op *op = &ir->ops[ir->values[*v].op];
        size_t x = op->op.in[0], k = 0;

        if (op->kind == MDL_IR_CONCAT) {
            for (; *i >= mdl_ir_elements(&ir->values[op->concat_in[k]]); k++) {
                *i -= mdl_ir_elements(&ir->values[op->concat_in[k]]);
            }
            *v = op->concat_in[k];
            continue;
        }
        if (op->kind == MDL_IR_VIEW && op->view.kind == MDL_VIEW_SLICE) {
            *i = (size_t)((ptrdiff_t)op->view.start[0] + (ptrdiff_t)*i * op->view.step[0]);
        } else if (op->kind == MDL_IR_VIEW && op->view.kind == MDL_VIEW_EXPAND &&
                   mdl_ir_elements(&ir->values[x]) == 1) {
            *i = 0;
        } else if (!(op->kind == MDL_IR_VIEW && op->view.kind == MDL_VIEW_RESHAPE) &&
                   !(op->kind == MDL_OP_COPY && is_length(ir, x) && is_length(ir, *v))) {
            return;
        }
        *v = x;
    }
}

/* Element @i of @v as an i64 value of one dim and one element. */
static size_t element(struct mdl_ir *ir, size_t v, size_t i)
{
    size_t all;

    mdl_rows_trace(ir, &v, &i);
    all = mdl_ir_elements(&ir->values[v]);
    v = mdl_ir_reshape(ir, v, 1, &all);
    return mdl_ir_cast(ir, mdl_ir_part(ir, v, 0, i, 1), MDL_I64);
}

void mdl_rows_dim(struct mdl_ir *ir, size_t v, size_t i, int64_t *ret_most, size_t *ret_rows)
{
    const struct mdl_ir_value *x = &ir->values[v];
    int64_t least, most;

    if (x->most == MDL_NONE || i >= mdl_ir_elements(x)) {
        mdl_ir_refuse(ir, -EOPNOTSUPP, "input \"%s\" must be a constant", x->name);
    }
    least = mdl_const_int(&ir->values[x->least], i);
    most = mdl_const_int(&ir->values[x->most], i);
    if (most < 0 && least != most) {
        mdl_ir_refuse(ir, -EBADMSG, "a length is negative");
    }
    *ret_most = most;
    *ret_rows = least == most ? MDL_NONE : element(ir, v, i);
}

/* ---- concat ---- */

static size_t joined_rows(struct mdl_ir *ir, size_t v, size_t axis)
{
    size_t rows = ir->values[v].rows;

    return rows == MDL_NONE ? mdl_rows_int(ir, (int64_t)ir->values[v].dim[axis]) : rows;
}

static size_t join_two(struct mdl_ir *ir, size_t a, size_t b, size_t axis)
{
    size_t na = joined_rows(ir, a, axis), nb = joined_rows(ir, b, axis);
    size_t rows = mdl_ir_binary(ir, MDL_BIN_ADD, na, nb), y = join(ir, a, b, axis, 0);

    if (!mdl_ir_is_const(ir, rows)) {
        mdl_rows_set(ir, y, axis, rows);
    }
    return y;
}

size_t mdl_rows_concat(struct mdl_ir *ir, const size_t *in, size_t count, size_t axis)
{
    size_t *part = mdl_ir_memdup(ir, in, count * sizeof(*in));

    for (size_t i = 0; i < count; i++) {
        if (ir->values[in[i]].rows != MDL_NONE && ir->values[in[i]].rows_dim != axis) {
            mdl_rows_refuse(ir, in[i]);
        }
    }
    while (count > 1) { /* neighbours in pairs: each element moves log2(count) times */
        for (size_t i = 0; i < count / 2; i++) {
            part[i] = join_two(ir, part[2 * i], part[2 * i + 1], axis);
        }
        if (count % 2) {
            part[count / 2] = part[count - 1];
        }
        count = count / 2 + count % 2;
    }
    return part[0];
}
