/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base.h"
#include "model/compile.h"

/* Lifetimes in op order, results written over inputs that die, and offsets in the arena: storages
 * largest first, each into the tightest gap between those placed before that live at the same
 * time. */

#define ARENA_ALIGN 64u

static void touch(struct mdl_ir *ir, size_t v, size_t op)
{
    size_t ignored = 0;
    struct mdl_ir_storage *s;

    if (v == MDL_NONE) {
        return;
    }
    s = &ir->storages[mdl_ir_root(ir, ir->values[v].storage, &ignored)];
    if (!s->used) {
        s->used = true;
        s->first_op = s->last_op = op;
    }
    s->first_op = base_min(s->first_op, op);
    s->last_op = base_max(s->last_op, op);
}

static void find_lifetimes(struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->storage_count; i++) {
        ir->storages[i].used = false;
    }
    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_op *op = &ir->run[k].op;

        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            touch(ir, op->in[i], k);
        }
        touch(ir, op->residual_in, k);
        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            touch(ir, op->out[i], k);
        }
    }
}

static bool is_depthwise(const struct mdl_op *op)
{
    return op->kind == MDL_OP_CONV && op->attr.conv.groups > 1;
}

/* A depthwise convolution and the one beside it may be run as one: what the second writes must not
 * lie where the first still reads. */
static void keep_pairs(struct mdl_ir *ir)
{
    for (size_t k = 0; k + 1 < ir->run_count; k++) {
        const struct mdl_op *a = &ir->run[k].op, *b = &ir->run[k + 1].op;

        if (a->kind != MDL_OP_CONV || b->kind != MDL_OP_CONV || b->in[0] != a->out[0] ||
            is_depthwise(a) == is_depthwise(b)) {
            continue;
        }
        touch(ir, a->in[0], k + 1);
        touch(ir, a->residual_in, k + 1);
    }
}

static bool is_elementwise(int kind)
{
    return kind == MDL_OP_UNARY || kind == MDL_OP_BINARY || kind == MDL_OP_PRELU ||
           kind == MDL_OP_AFFINE || kind == MDL_OP_WHERE;
}

/* @v fills its whole unshared arena storage */
static bool fills_storage(const struct mdl_ir *ir, const struct mdl_ir_value *v)
{
    const struct mdl_ir_storage *s = &ir->storages[v->storage];

    return s->home == MDL_HOME_ARENA && s->alias == MDL_NONE && v->offset == 0 &&
           s->bytes == mdl_ir_bytes(v);
}

/* Every element of y is written after the elements at the same place of all inputs were read: true
 * if whatever op @k reads from storage @s has y's very strides. */
static bool reads_in_step(const struct mdl_ir *ir, const struct mdl_op *op, size_t s,
                          const struct mdl_ir_value *y)
{
    for (size_t i = 0; i <= MDL_OP_IN_MAX; i++) {
        size_t in = i < MDL_OP_IN_MAX ? op->in[i] : op->residual_in, offset = 0;
        const struct mdl_ir_value *x;

        if (in == MDL_NONE) {
            continue;
        }
        x = &ir->values[in];
        if (mdl_ir_root(ir, x->storage, &offset) != s) {
            continue;
        }
        if (x->offset + offset != 0 || !mdl_ir_same_dims(x, y) ||
            !mdl_strides_equal(y->rank, y->dim, x->stride, y->stride) ||
            mdl_dtype_bytes(x->dtype) != mdl_dtype_bytes(y->dtype)) {
            return false;
        }
    }
    return true;
}

/* Element functions write over an input of the same shape that nobody reads afterwards. */
static void merge_in_place(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_ir_op *op = &ir->run[k];
        const struct mdl_ir_value *y;

        if (!is_elementwise(op->kind)) {
            continue;
        }
        y = &ir->values[op->op.out[0]];
        if (!fills_storage(ir, y)) {
            continue;
        }
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            const struct mdl_ir_value *x =
                op->op.in[i] == MDL_NONE ? NULL : &ir->values[op->op.in[i]];
            size_t offset = 0, root;
            struct mdl_ir_storage *s;

            if (!x) {
                continue;
            }
            root = mdl_ir_root(ir, x->storage, &offset);
            s = &ir->storages[root];
            if (s->home != MDL_HOME_ARENA || s->last_op != k || offset + x->offset != 0 ||
                s->bytes != mdl_ir_bytes(y) || !mdl_ir_same_dims(x, y) ||
                !reads_in_step(ir, &op->op, root, y)) {
                continue;
            }
            s->last_op = base_max(s->last_op, ir->storages[y->storage].last_op);
            ir->storages[y->storage].alias = root;
            ir->storages[y->storage].alias_offset = 0;
            break;
        }
    }
}

/* The copy that brings a model input into the arena, if nobody else reads the input. */
size_t mdl_ir_entry_op(const struct mdl_ir *ir, size_t input)
{
    const struct mdl_ir_value *x = &ir->values[ir->inputs[input]], *y;
    size_t entry = MDL_NONE, readers = 0, offset = 0;

    if (x->storage == MDL_NONE) {
        return MDL_NONE;
    }
    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_op *op = &ir->run[k].op;

        for (size_t i = 0; i <= MDL_OP_IN_MAX; i++) {
            size_t in = i < MDL_OP_IN_MAX ? op->in[i] : op->residual_in;

            if (in != MDL_NONE && ir->values[in].storage == x->storage) {
                readers++;
                entry = k;
            }
        }
    }
    if (readers != 1 || ir->run[entry].kind != MDL_OP_COPY ||
        ir->run[entry].op.in[0] != ir->inputs[input]) {
        return MDL_NONE;
    }
    y = &ir->values[ir->run[entry].op.out[0]];
    if (ir->storages[mdl_ir_root(ir, y->storage, &offset)].home != MDL_HOME_ARENA) {
        return MDL_NONE;
    }
    return entry;
}

/* An image is converted before op 0 runs: its place must be free from the start. */
static void keep_inputs(struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->g->input_count; i++) {
        const struct mdl_ir_value *x = &ir->values[ir->inputs[i]];
        size_t entry = mdl_ir_entry_op(ir, i), offset = 0;

        if (entry == MDL_NONE) {
            ir->storages[x->storage].used = true;
            ir->storages[x->storage].first_op = 0;
        } else {
            const struct mdl_ir_value *y = &ir->values[ir->run[entry].op.out[0]];

            ir->storages[mdl_ir_root(ir, y->storage, &offset)].first_op = 0;
            ir->storages[x->storage].used = false; /* no room of its own */
        }
    }
}

static bool wants_room(const struct mdl_ir_storage *s)
{
    return s->used && s->alias == MDL_NONE && s->bytes > 0 &&
           (s->home == MDL_HOME_ARENA || s->home == MDL_HOME_INPUT);
}

struct place {
    size_t storage, bytes;
};

static int by_size(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return x->storage < y->storage ? -1 : x->storage > y->storage;
}

/* Tightest gap among the placed ones (sorted by offset) that live at the same time. */
static size_t find_gap(const struct mdl_ir *ir, const size_t *placed, size_t count,
                       const struct mdl_ir_storage *s, size_t bytes)
{
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        const struct mdl_ir_storage *p = &ir->storages[placed[i]];

        if (p->last_op < s->first_op || p->first_op > s->last_op) {
            continue;
        }
        if (p->offset > end && p->offset - end >= bytes && p->offset - end < best_gap) {
            best = end;
            best_gap = p->offset - end;
        }
        end = base_max(end, base_align_up(p->offset + p->bytes, ARENA_ALIGN));
    }
    return best != SIZE_MAX ? best : end;
}

static int place_all(struct mdl_ir *ir, size_t *ret_bytes)
{
    struct place *todo = mdl_pool_alloc(ir->pool, ir->storage_count, sizeof(*todo));
    size_t *placed = mdl_pool_alloc(ir->pool, ir->storage_count, sizeof(*placed));
    size_t count = 0, total = 0, limit = ir->options->arena_bytes_max;

    if (!todo || !placed) {
        return mdl_ir_nomem(ir);
    }
    for (size_t i = 0; i < ir->storage_count; i++) {
        if (wants_room(&ir->storages[i])) {
            todo[count++] = (struct place){i, base_align_up(ir->storages[i].bytes, ARENA_ALIGN)};
        }
    }
    if (count) {
        qsort(todo, count, sizeof(*todo), by_size);
    }
    for (size_t i = 0; i < count; i++) {
        struct mdl_ir_storage *s = &ir->storages[todo[i].storage];
        size_t k = i, end;

        s->offset = find_gap(ir, placed, i, s, todo[i].bytes);
        if (!base_add(s->offset, todo[i].bytes, &end) || end > limit) {
            return mdl_ir_refuse(ir, -E2BIG, "one frame needs more than %zu bytes of memory",
                                 limit);
        }
        total = base_max(total, end);
        while (k > 0 && ir->storages[placed[k - 1]].offset > s->offset) {
            placed[k] = placed[k - 1];
            k--;
        }
        placed[k] = todo[i].storage;
    }
    *ret_bytes = total;
    return 0;
}

int mdl_memory(struct mdl_ir *ir, size_t *ret_arena_bytes)
{
    find_lifetimes(ir);
    if (!ir->options->no_fusion) {
        keep_pairs(ir);
        merge_in_place(ir);
    }
    keep_inputs(ir);
    return place_all(ir, ret_arena_bytes);
}
