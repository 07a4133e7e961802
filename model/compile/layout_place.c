/* SPDX-License-Identifier: Apache-2.0 */
/* Where values are: a storage of their own, or a view of another. */
#include "model/compile/passes.h"
#include "model/ir/strides.h"

void mdl_layout_dense(struct mdl_ir_value *v, const size_t *order)
{
    memcpy(v->order, order, v->rank * sizeof(*order));
    mdl_strides_dense(v->rank, v->dim, order, v->stride);
}

/* Strides (and, in the real walk, storage and offset) of a view; false: only a copy can do it. */
bool mdl_layout_view(const struct mdl_ir_op *op, const struct mdl_ir_value *x,
                     struct mdl_ir_value *y)
{
    ptrdiff_t at = 0;

    y->storage = x->storage;
    if (op->view.kind != MDL_VIEW_RESHAPE) {
        at = mdl_strides_view(op, x, x->stride, y, y->stride);
    } else if (!mdl_strides_reshape(x->rank, x->dim, x->stride, y->rank, y->dim, y->stride)) {
        return false;
    }
    if (mdl_ir_elements(y) == 0) {
        at = 0;
    }
    y->offset = x->offset + (size_t)(at * (ptrdiff_t)mdl_dtype_bytes(x->dtype));
    return true;
}

size_t mdl_layout_storage(struct mdl_ir *ir, enum mdl_home home, size_t bytes)
{
    mdl_ir_grow(ir, (void **)&ir->storages, &ir->storage_cap, ir->storage_count,
                sizeof(*ir->storages));
    ir->storages[ir->storage_count] =
        (struct mdl_ir_storage){.mem = {.home = home, .bytes = bytes}, .alias = MDL_NONE};
    return ir->storage_count++;
}

/* Memory of a value that an op writes: the concat's that it is part of, or its own. */
void mdl_layout_value(struct mdl_ir *ir, size_t v, const size_t *order)
{
    size_t whole = ir->values[v].concat;
    struct mdl_ir_value *x = &ir->values[v];

    if (whole == MDL_NONE) {
        mdl_layout_dense(x, order);
        x->offset = 0;
        if (x->storage == MDL_NONE) {
            x->storage = mdl_layout_storage(ir, MDL_HOME_ARENA, mdl_ir_bytes(x));
        }
        return;
    }
    if (ir->values[whole].storage == MDL_NONE) { /* its first part */
        mdl_layout_value(ir, whole, ir->values[whole].order);
    }
    memcpy(x->stride, ir->values[whole].stride, sizeof(x->stride));
    x->storage = ir->values[whole].storage;
    x->offset = ir->values[whole].offset + x->concat_at *
                                               (size_t)ir->values[whole].stride[x->concat_axis] *
                                               mdl_dtype_bytes(x->dtype);
}

void mdl_layout_leaf(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_value *x = &ir->values[v];
    size_t order[MDL_RANK_MAX];

    if (x->storage != MDL_NONE || (!x->data && x->input == MDL_NONE)) {
        return;
    }
    mdl_order_rows(x->rank, order);
    mdl_layout_dense(x, order);
    x->storage = mdl_layout_storage(ir, x->data ? MDL_HOME_CONST : MDL_HOME_INPUT, mdl_ir_bytes(x));
    ir->storages[x->storage].mem.data = x->data;
    ir->storages[x->storage].in_file = x->in_file;
    ir->storages[x->storage].mem.index = x->data ? 0 : x->input;
}

void mdl_layout_run(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    if (ir->run_count >= MDL_IR_RUN_MAX) {
        mdl_ir_refuse(ir, -E2BIG, "the model needs more than %u operators and copies",
                      MDL_IR_RUN_MAX);
    }
    mdl_ir_grow(ir, (void **)&ir->run, &ir->run_cap, ir->run_count, sizeof(*ir->run));
    ir->run[ir->run_count++] = *op;
}

void mdl_layout_run_copy(struct mdl_ir *ir, const char *name, size_t x, size_t y)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_COPY);

    op.op.name = (char *)(uintptr_t)name;
    op.op.in[0] = x;
    op.op.out[0] = y;
    mdl_layout_run(ir, &op);
}

/* A dense copy of @x in @order. */
size_t mdl_layout_copy(struct mdl_ir *ir, const struct mdl_ir_op *because, size_t x,
                       const size_t *order)
{
    const struct mdl_ir_value *v = &ir->values[x];
    size_t y = mdl_ir_value_new(ir, v->dtype, v->rank, v->dim);

    ir->values[y].name = v->name;
    mdl_layout_value(ir, y, order);
    mdl_layout_run_copy(ir, because->op.name, x, y);
    return y;
}

/* The value that spatial operators read instead of @x. */
void mdl_layout_channels_last(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *x)
{
    struct mdl_ir_value *v = &ir->values[*x];
    size_t order[MDL_RANK_MAX], y = v->channels_last;

    if (mdl_strides_nhwc(v->rank, v->dim, v->stride)) {
        return;
    }
    if (y == MDL_NONE) {
        mdl_order_channels_last(v->rank, order);
        y = mdl_layout_copy(ir, op, *x, order);
        ir->values[*x].channels_last = y;
    }
    *x = y;
}

/* Weights that are computed per frame: as in ONNX. */
void mdl_layout_row_major(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *x)
{
    const struct mdl_ir_value *v = &ir->values[*x];
    size_t order[MDL_RANK_MAX];

    if (!mdl_strides_rows(v->rank, v->dim, v->stride)) {
        mdl_order_rows(v->rank, order);
        *x = mdl_layout_copy(ir, op, *x, order);
    }
}

size_t mdl_ir_root(const struct mdl_ir *ir, size_t storage, size_t *offset)
{
    while (ir->storages[storage].alias != MDL_NONE) {
        *offset += ir->storages[storage].alias_offset;
        storage = ir->storages[storage].alias;
    }
    return storage;
}
