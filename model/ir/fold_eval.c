/* SPDX-License-Identifier: Apache-2.0 */
/* A model of one op with constant inputs, run by the caller's primitives. */
#include "model/ir/build.h"
#include "model/ir/strides.h"

struct one_op {
    struct mdl_model model;
    struct mdl_storage storages[MDL_OP_IN_MAX + MDL_OP_OUT_MAX];
    struct mdl_tensor tensors[MDL_OP_IN_MAX + MDL_OP_OUT_MAX];
    struct mdl_op op;
    struct mdl_unit unit;
};

/* @channels_last: the layout of a spatial op's input 0 and outputs; else row-major. */
static size_t add_tensor(struct one_op *o, const struct mdl_ir_value *v, enum mdl_home home,
                         bool channels_last)
{
    struct mdl_storage *s = &o->storages[o->model.storage_count];
    struct mdl_tensor *t = &o->tensors[o->model.tensor_count];
    size_t order[MDL_RANK_MAX];

    *s = (struct mdl_storage){.home = home, .bytes = mdl_ir_bytes(v), .data = v->data};
    *t = (struct mdl_tensor){.name = (char *)(uintptr_t)v->name,
                             .dtype = v->dtype,
                             .storage = o->model.storage_count++,
                             .rank = v->rank};
    memcpy(t->dim, v->dim, sizeof(t->dim));
    if (channels_last && v->rank >= 3) {
        mdl_order_channels_last(v->rank, order);
    } else {
        mdl_order_rows(v->rank, order);
    }
    mdl_strides_dense(v->rank, v->dim, order, t->stride);
    return o->model.tensor_count++;
}

static void to_order(unsigned char *dst, const unsigned char *src, const struct mdl_tensor *t,
                     bool to_rows)
{
    size_t order[MDL_RANK_MAX];
    ptrdiff_t rows[MDL_RANK_MAX];

    mdl_order_rows(t->rank, order);
    mdl_strides_dense(t->rank, t->dim, order, rows);
    mdl_const_move(mdl_dtype_bytes(t->dtype), t->rank, t->dim, dst, to_rows ? rows : t->stride, src,
                   to_rows ? t->stride : rows);
}

static void place_inputs(struct mdl_ir *ir, const struct mdl_ir_op *op, struct one_op *o)
{
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        const struct mdl_tensor *t;
        void *copy;

        if (op->op.in[i] == MDL_NONE) {
            continue;
        }
        o->op.in[i] = add_tensor(o, &ir->values[op->op.in[i]], MDL_HOME_CONST,
                                 i == 0 && mdl_ir_is_spatial(ir, op));
        t = &o->tensors[o->op.in[i]];
        if (mdl_is_dense(t)) {
            continue;
        }
        copy = mdl_ir_fold_alloc(ir, o->storages[t->storage].bytes);
        to_order(copy, ir->values[op->op.in[i]].data, t, false);
        o->storages[t->storage].data = copy;
    }
}

/* @data: memory for each output. */
static void take_outputs(struct mdl_ir *ir, const struct mdl_ir_op *op, const struct one_op *o,
                         const unsigned char *arena, void *const data[MDL_OP_OUT_MAX])
{
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        const struct mdl_tensor *t = data[i] ? &o->tensors[o->op.out[i]] : NULL;

        if (t) {
            to_order(data[i], arena + o->storages[t->storage].offset, t, true);
            ir->values[op->op.out[i]].data = data[i];
            ir->fold_bytes_left -= o->storages[t->storage].bytes;
        }
    }
}

bool mdl_fold_eval(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    base_autofree void *arena = NULL;
    void *data[MDL_OP_OUT_MAX] = {NULL};
    struct one_op o = {.op = op->op};
    size_t bytes = 0;
    bool done;

    if (!ir->options->const_eval) {
        return false;
    }
    o.model = (struct mdl_model){.name = (char *)(uintptr_t) "constant",
                                 .op_count = 1,
                                 .unit_count = 1,
                                 .storages = o.storages,
                                 .tensors = o.tensors,
                                 .ops = &o.op,
                                 .units = &o.unit};
    o.unit.name = o.op.name;
    place_inputs(ir, op, &o);
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        struct mdl_storage *s;

        if (op->op.out[i] == MDL_NONE) {
            continue;
        }
        o.op.out[i] =
            add_tensor(&o, &ir->values[op->op.out[i]], MDL_HOME_ARENA, mdl_ir_is_spatial(ir, op));
        s = &o.storages[o.tensors[o.op.out[i]].storage];
        s->offset = bytes;
        bytes += base_align_up(s->bytes, 64);
    }
    if (bytes > ir->fold_bytes_left) {
        mdl_ir_refuse(
            ir, -E2BIG,
            "the constants computed at load are too large; fold them when the model is exported");
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        size_t v = op->op.out[i];

        data[i] = v == MDL_NONE ? NULL : mdl_ir_alloc(ir, mdl_ir_bytes(&ir->values[v]), 1);
    }
    o.model.arena_bytes = bytes;
    arena = aligned_alloc(64, bytes ? bytes : 64); /* nothing leaves before it is freed */
    if (!arena) {
        mdl_ir_nomem(ir);
    }
    done = ir->options->const_eval(&o.model, arena) >= 0;
    if (done) {
        take_outputs(ir, op, &o, arena, data);
    }
    return done; /* else it runs in every frame */
}
