/* SPDX-License-Identifier: Apache-2.0 */
/* Strides and copies, in three steps:
 *
 *  1. A trial walk over the ops gives every value strides, as if no concat could share memory.
 *  2. Each concat, outermost first, decides which of its inputs are written straight into its own
 *     memory. Those inputs take the concat's strides.
 *  3. The real walk makes storages and the list of ops to run. It adds a copy wherever a layout
 *     must change: spatial operators read and write NHWC, a reshape needs an order that allows a
 *     view, and a model output must be row-major in its own buffer. */
#include "model/compile/passes.h"
#include "model/ir/strides.h"

/* ---- which order of dimensions a value has in memory ---- */

static bool has_zero_stride(const struct mdl_ir_value *v)
{
    for (size_t i = 0; i < v->rank; i++) {
        if (v->dim[i] > 1 && v->stride[i] == 0) {
            return true;
        }
    }
    return false;
}

/* What attention writes is mostly read as its queries were made: heads beside each other. Its last
 * dim stays the innermost, as primitives write whole vectors. */
static void order_of_attention(const struct mdl_ir_value *q, size_t rank, size_t *order)
{
    size_t kept = 0;

    mdl_order_rows(rank, order);
    if (has_zero_stride(q)) {
        return;
    }
    mdl_order_of(rank, q->dim, q->stride, order);
    for (size_t i = 0; i < rank; i++) {
        if (order[i] != rank - 1) {
            order[kept++] = order[i];
        }
    }
    order[kept] = rank - 1;
}

/* The order of @op's output @out. */
static void choose_order(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t out,
                         size_t *order)
{
    const struct mdl_ir_value *y = &ir->values[out], *best = NULL;

    if (mdl_ir_is_spatial(ir, op)) {
        mdl_order_channels_last(y->rank, order);
        return;
    }
    if (op->kind == MDL_OP_ATTENTION && !y->output) {
        order_of_attention(&ir->values[op->op.in[0]], y->rank, order);
        return;
    }
    if (mdl_op_is(op->kind, MDL_OP_FOLLOWS)) {
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            size_t in = op->op.in[i];
            const struct mdl_ir_value *x = in == MDL_NONE ? NULL : &ir->values[in];

            if (!x || x->rank != y->rank || has_zero_stride(x) ||
                (op->kind != MDL_OP_PAD && !mdl_ir_same_dims(x, y))) {
                continue;
            }
            /* constants do not decide: their order is the file's */
            if (!best || (best->data && !x->data)) {
                best = x;
            }
        }
    }
    /* An output is written row-major directly, except for images: copying them afterwards is faster
     * than element functions across layouts. */
    if (best && (!y->output || mdl_strides_nhwc(best->rank, best->dim, best->stride))) {
        mdl_order_of(best->rank, best->dim, best->stride, order);
    } else {
        mdl_order_rows(y->rank, order);
    }
}

/* ---- the trial walk ---- */

static void rehearse_concat(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    struct mdl_ir_value *y = &ir->values[op->op.out[0]];
    const struct mdl_ir_value *best = NULL;
    size_t order[MDL_RANK_MAX];

    for (size_t i = 0; i < op->concat_count; i++) {
        const struct mdl_ir_value *x = &ir->values[op->concat_in[i]];

        if (!best || (best->data && !x->data)) {
            best = x;
        }
    }
    mdl_order_of(best->rank, best->dim, best->stride, order);
    mdl_layout_dense(y, order);
}

static void rehearse_leaf(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_value *x = &ir->values[v];
    size_t order[MDL_RANK_MAX];

    if (x->data || x->input != MDL_NONE) {
        mdl_order_rows(x->rank, order);
        mdl_strides_dense(x->rank, x->dim, order, x->stride);
    }
}

static void rehearse(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];
        size_t order[MDL_RANK_MAX];

        if (op->dead) {
            continue;
        }
        for (size_t at = 0, v; (v = mdl_ir_reads(op, &at)) != MDL_NONE;) {
            rehearse_leaf(ir, v);
        }
        if (op->kind == MDL_IR_CONCAT) {
            rehearse_concat(ir, op);
        } else if (op->kind == MDL_IR_VIEW) {
            struct mdl_ir_value x = ir->values[op->op.in[0]], *y = &ir->values[op->op.out[0]];

            if (!mdl_layout_view(op, &x, y)) {
                mdl_order_reshape(x.rank, x.dim, x.stride, y->rank, y->dim, order);
                mdl_strides_dense(x.rank, x.dim, order, x.stride);
                mdl_layout_view(op, &x, y);
            }
        } else {
            for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
                if (op->op.out[i] != MDL_NONE) {
                    choose_order(ir, op, op->op.out[i], order);
                    mdl_layout_dense(&ir->values[op->op.out[i]], order);
                }
            }
        }
    }
}

/* ---- the real walk ---- */

static void walk_view(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t x = op->op.in[0], order[MDL_RANK_MAX];
    struct mdl_ir_value *y = &ir->values[op->op.out[0]], *v = &ir->values[x];

    if (mdl_layout_view(op, v, y)) {
        return;
    }
    mdl_order_reshape(v->rank, v->dim, v->stride, y->rank, y->dim, order);
    x = mdl_layout_copy(ir, op, x, order);
    if (!mdl_layout_view(op, &ir->values[x], &ir->values[op->op.out[0]])) {
        mdl_ir_refuse(ir, -EOPNOTSUPP,
                      "no order of the elements in memory allows this reshape"); /* cannot happen */
    }
}

static void walk_concat(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t whole = op->op.out[0], at = 0, extent;

    if (ir->values[whole].storage == MDL_NONE || ir->values[whole].concat != MDL_NONE) {
        mdl_layout_value(ir, whole, ir->values[whole].order);
    }
    for (size_t i = 0; i < op->concat_count; i++, at += extent) {
        size_t x = op->concat_in[i], part;
        const struct mdl_ir_value *v = &ir->values[x];

        extent = v->dim[op->concat_axis];
        if (v->concat == whole && v->concat_at == at) {
            continue;
        }
        part = mdl_ir_value_new(ir, v->dtype, v->rank, v->dim);
        ir->values[part].name = v->name;
        ir->values[part].concat = whole;
        ir->values[part].concat_axis = op->concat_axis;
        ir->values[part].concat_at = at;
        mdl_layout_value(ir, part, NULL);
        mdl_layout_run_copy(ir, op->op.name, x, part);
    }
}

/* Return: an output is @v or a view of it. */
static bool is_shown(const struct mdl_ir *ir, size_t v)
{
    bool shown = ir->values[v].output;

    for (size_t k = 0; !shown && k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];

        shown = !op->dead && op->kind == MDL_IR_VIEW && op->op.in[0] == v &&
                is_shown(ir, op->op.out[0]);
    }
    return shown;
}

static void walk_op(struct mdl_ir *ir, const struct mdl_ir_op *given)
{
    struct mdl_ir_op op = *given;
    bool empty = true;

    if (op.kind == MDL_OP_CONV || op.kind == MDL_OP_CONV_TRANSPOSE) {
        mdl_layout_row_major(ir, &op, &op.op.in[1]);
    }
    if (mdl_ir_is_spatial(ir, &op)) {
        mdl_layout_channels_last(ir, &op, &op.op.in[0]);
        if (op.op.residual_in != MDL_NONE) {
            mdl_layout_channels_last(ir, &op, &op.op.residual_in);
        }
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        size_t order[MDL_RANK_MAX];

        if (op.op.out[i] != MDL_NONE) {
            choose_order(ir, &op, op.op.out[i], order);
            mdl_layout_value(ir, op.op.out[i], order);
            empty = empty && mdl_ir_elements(&ir->values[op.op.out[i]]) == 0 &&
                    !is_shown(ir, op.op.out[i]);
        }
    }
    if (!empty) {
        mdl_layout_run(ir, &op);
    }
}

static void walk(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op op = ir->ops[k];

        if (op.dead) {
            continue;
        }
        for (size_t at = 0, v; (v = mdl_ir_reads(&op, &at)) != MDL_NONE;) {
            mdl_layout_leaf(ir, v);
        }
        if (op.kind == MDL_IR_VIEW) {
            walk_view(ir, &op);
        } else if (op.kind == MDL_IR_CONCAT) {
            walk_concat(ir, &op);
        } else {
            walk_op(ir, &op);
        }
    }
}

/* ---- outputs ---- */

/* Return: @v has memory of its own, dense, row-major and of just its size. Then it can use another
 * value's memory instead of being copied there. */
static bool can_move(const struct mdl_ir *ir, const struct mdl_ir_value *v)
{
    const struct mdl_ir_storage *s = &ir->storages[v->storage];

    return s->mem.home == MDL_HOME_ARENA && s->alias == MDL_NONE && v->offset == 0 &&
           s->mem.bytes == mdl_ir_bytes(v) && mdl_strides_rows(v->rank, v->dim, v->stride);
}

static void walk_output(struct mdl_ir *ir, size_t i)
{
    size_t v = ir->outputs[i], y, to, order[MDL_RANK_MAX];

    mdl_layout_leaf(ir, v);
    to = mdl_layout_storage(ir, MDL_HOME_OUTPUT, mdl_ir_bytes(&ir->values[v]));
    ir->storages[to].mem.index = i;
    if (can_move(ir, &ir->values[v])) {
        ir->storages[ir->values[v].storage].alias = to;
        ir->output_values[i] = v;
        return;
    }
    y = mdl_ir_value_new(ir, ir->values[v].dtype, ir->values[v].rank, ir->values[v].dim);
    mdl_order_rows(ir->values[y].rank, order);
    ir->values[y].storage = to;
    ir->values[y].name = ir->g->outputs[i].name;
    mdl_layout_dense(&ir->values[y], order);
    ir->output_values[i] = y;
    mdl_layout_run_copy(ir, ir->g->outputs[i].name, v, y);
}

/* Removes copies whose source can be written directly at the destination, such as a head that is
 * transposed, flattened and concatenated with others. */
static void drop_copies(struct mdl_ir *ir)
{
    size_t kept = 0;

    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_ir_op *op = &ir->run[k];
        const struct mdl_ir_value *x, *y;
        size_t ignored = 0;

        if (op->kind == MDL_OP_COPY) {
            x = &ir->values[op->op.in[0]];
            y = &ir->values[op->op.out[0]];
            if (y->concat != MDL_NONE && x->dtype == y->dtype && can_move(ir, x) &&
                mdl_strides_rows(y->rank, y->dim, y->stride) &&
                mdl_ir_root(ir, y->storage, &ignored) != x->storage) {
                struct mdl_ir_storage *s = &ir->storages[x->storage];

                s->alias = y->storage;
                s->alias_offset = y->offset;
                continue;
            }
        }
        ir->run[kept++] = *op;
    }
    ir->run_count = kept;
}

void mdl_layout(struct mdl_ir *ir)
{
    ir->node = NULL;
    ir->node_name = "";
    ir->output_values = mdl_ir_alloc(ir, ir->g->output_count, sizeof(*ir->output_values));
    if (!ir->options->no_fusion) {
        mdl_layout_nest_concats(ir);
    }
    rehearse(ir);
    if (!ir->options->no_fusion) {
        mdl_layout_join_concats(ir);
    }
    for (size_t i = 0; i < ir->g->input_count; i++) {
        mdl_layout_leaf(ir, ir->inputs[i]); /* even if no operator reads it */
    }
    walk(ir);
    for (size_t i = 0; i < ir->g->output_count; i++) {
        walk_output(ir, i);
    }
    drop_copies(ir);
}
